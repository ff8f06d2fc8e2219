"""Settings of the whole suite."""

from hypothesis import settings

# the same examples on every run and machine; how fast a machine is decides nothing
settings.register_profile("softnum", deadline=None, derandomize=True, max_examples=150, database=None)
settings.load_profile("softnum")
