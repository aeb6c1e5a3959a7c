"""`python -m fuzz`: see `fuzz.long`."""

import sys

from fuzz.long import main

if __name__ == "__main__":
    sys.exit(main())
