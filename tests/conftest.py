"""What holds for all tests: none asserts a time, hypothesis neither."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
