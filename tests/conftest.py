"""What holds for all tests: none asserts a time, hypothesis neither; ^C reaches the programs that they start."""

import signal

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell that runs the tests in the background has them ignore ^C, and what they start would ignore it as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
