"""The memory of the dashboard's process: fewer heaps of the C library, and freed pages given back to the system."""

import ctypes
import gc
from typing import Final

_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of `mallopt`. Source: malloc.h of glibc."""


def limit_heaps() -> None:
    """Has all threads use one heap. Called before threads start; nothing without glibc."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_ARENA_MAX, 1)


def keep_imported() -> None:
    """Takes what is imported out of later garbage collections, and gives back what the imports freed."""
    release_memory()
    gc.freeze()


def release_memory() -> None:
    """Collects garbage and gives freed pages back; without glibc they stay."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
