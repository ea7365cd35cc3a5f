"""The memory of the dashboard's process: fewer heaps of the C library, and freed pages given back to the system."""

import ctypes
import gc
import linecache
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gatewayfilter.allocator import AllocatorOption, give_back, tune_allocator

_LARGE: Final = 1 << 16
"""Bytes. Left to itself glibc raises it to the largest piece that was freed, and the heap keeps holes of that size."""
_RELEASE_S: Final = 15.0
"""Between two releases at most."""
_SOONEST_S: Final = 1.0
"""Between two releases at least."""
_GROWN: Final = 1_000_000
"""Bytes of growth since the last release after which the next one comes sooner: a burst of requests leaves holes."""
_STATM: Final = Path("/proc/self/statm")
_SET_THP_DISABLE: Final = 41
"""`PR_SET_THP_DISABLE` of `prctl`. Source: prctl.h of Linux."""


def limit_heaps() -> None:
    """Has all threads use one heap, of small pages. Called before threads start; nothing where the system has no such settings.

    Where the system has huge pages for all, 4 KiB that are used of 2 MiB would take the whole.
    """
    tune_allocator({AllocatorOption.ARENA_MAX: 1, AllocatorOption.MMAP_THRESHOLD: _LARGE})
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(_SET_THP_DISABLE, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def keep_imported() -> None:
    """Takes what is imported out of later garbage collections, and gives back what the imports freed."""
    release_memory()
    gc.freeze()


def release_memory() -> None:
    """Drops the source lines that tracebacks read, collects garbage and gives freed pages back; without glibc they stay."""
    linecache.clearcache()
    gc.collect()
    give_back()


def resident_bytes() -> int:
    """Returns the resident memory of this process, 0 where the system does not tell."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


class ReleaseTimes:
    """When memory is to be released: from time to time, and soon after it has grown.

    Args:
        resident: returns the bytes in use.
        clock: monotonic seconds.
    """

    def __init__(self, resident: Callable[[], int] = resident_bytes, clock: Callable[[], float] = time.monotonic) -> None:
        self._resident = resident
        self._clock = clock
        self.released()

    def released(self) -> None:
        """Takes note that memory was released now."""
        self._at, self._level = self._clock(), self._resident()

    @property
    def due(self) -> bool:
        """Whether it should be released. Costs some microseconds."""
        passed = self._clock() - self._at
        return passed >= _RELEASE_S or (passed >= _SOONEST_S and self._resident() - self._level >= _GROWN)
