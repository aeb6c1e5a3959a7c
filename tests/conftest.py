"""Settings that all tests share."""

import hypothesis

# Examples are the same in every run, so that a red test is red for everyone; no deadline, because tests are not timed.
# `pytest --hypothesis-profile=explore` looks for new ones.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("same")
