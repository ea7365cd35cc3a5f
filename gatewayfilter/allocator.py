"""The C library's allocator: settings, and free memory given back to the system. Nothing where the library is not glibc."""

import ctypes
from collections.abc import Mapping
from enum import IntEnum


class AllocatorOption(IntEnum):
    """A parameter of mallopt(3). Source: malloc.h of glibc."""

    TRIM_THRESHOLD = -1
    """Bytes that stay free at the end of the heap."""
    MMAP_THRESHOLD = -3
    """Larger pieces are mapped apart, and given back when they are freed."""
    ARENA_MAX = -8
    """Heaps of the process."""


def tune_allocator(options: Mapping[AllocatorOption, int]) -> None:
    """Sets options for this process."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    for option, value in options.items():
        set_option(int(option), value)


def give_back() -> bool:
    """Returns free memory between blocks in use to the system; it takes a millisecond or two.

    Returns:
        Whether the C library can, and there was any.
    """
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):  # another C library
        return False
