"""A pause of the cyclic garbage collector, for work that makes many objects that stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Switches the cyclic garbage collector off for a while; objects without cycles are freed as ever.

    Compiling lists makes a million objects that stay, and the collector goes through them again and again. It stays off where it
    was off. When pauses of threads overlap, it is on again at the end of the first.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
