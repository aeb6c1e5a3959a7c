"""One logger, "darkmetrics": silent until a program asks for it."""

import logging

LOGGER = logging.getLogger("darkmetrics")
LOGGER.addHandler(logging.NullHandler())
