"""The C library's allocator, by a library of the test."""

from types import SimpleNamespace

import pytest

from gatewayfilter import allocator
from gatewayfilter.allocator import AllocatorOption, give_back, tune_allocator


def test_options_are_set_and_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[tuple[int, ...]]()
    library = SimpleNamespace(mallopt=lambda *given: done.append(given), malloc_trim=lambda pad: 1 - pad)
    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=lambda _: library))
    tune_allocator({AllocatorOption.ARENA_MAX: 2, AllocatorOption.TRIM_THRESHOLD: 65_536})
    assert done == [(-8, 2), (-1, 65_536)]
    assert give_back() is True
    library.malloc_trim = lambda _: 0
    assert give_back() is False


def test_another_library_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=lambda _: SimpleNamespace()))
    tune_allocator({AllocatorOption.MMAP_THRESHOLD: 1})
    assert give_back() is False
