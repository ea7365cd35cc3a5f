"""The memory of a process that serves for months: what stands at its start is set aside, what a connection leaves goes soon."""

import ctypes
import gc
import threading
from typing import Final

_THRESHOLDS: Final = (2000, 5, 2)
"""Python looks at all objects after 36,000 new ones in place of 242,000."""
_GIVE_BACK_EVERY_S: Final = 20.0


def settle() -> None:
    """Takes everything that exists now out of the garbage collector's sight; to be called when a process is ready to serve.

    The layers of a finished connection hold each other in circles, and with them 70 KB of TLS state a side that only the
    collector frees. Beside 150,000 objects of a loaded engine it seldom looks far enough to find them: memory grew for ten
    minutes. With the engine set aside (`gc.freeze`) a look at everything else takes a millisecond or two, and can be had often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()  # counts anew what is old, which is next to nothing now


def give_back() -> bool:
    """Returns free memory to the system that lies between blocks in use; it takes a millisecond or two.

    glibc by itself gives back only what is free at the end of the heap, where one small block that lives long holds all before
    it: a process stays as large as it was in its busiest moment.

    Returns:
        Whether the C library can (glibc) and there was any.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):  # another C library
        return False


def keep_small(stop: threading.Event | None = None) -> None:
    """Has memory given back now and then, by a thread that ends with the process, or with `stop`."""
    stop = stop or threading.Event()

    def work() -> None:
        while not stop.wait(_GIVE_BACK_EVERY_S):
            give_back()

    threading.Thread(target=work, name="give-back", daemon=True).start()
