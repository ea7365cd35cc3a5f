"""Processes that decide batches collect cycles rarely, but do, and keep the memory of a batch for the next one."""

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from gatewayfilter import allocator
from gatewayfilter.scaleout.stream.batch_process import OBJECTS, set_up_process


@pytest.fixture
def thresholds(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int, int]]:
    """The collector as it was, and a C library without settings: this process goes on with other tests."""
    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=lambda _: SimpleNamespace()))
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_a_batch_is_not_gone_through_and_cycles_are_found(thresholds: tuple[int, int, int]) -> None:
    set_up_process()
    assert gc.get_threshold() == (OBJECTS, *thresholds[1:])
    gc.collect()
    before = gc.get_stats()[0]["collections"]
    batch = [{"row": number} for number in range(80_000)]
    assert gc.get_stats()[0]["collections"] == before
    more = [[row] for row in batch] + [[row] for row in batch]
    assert gc.get_stats()[0]["collections"] > before
    assert len(more) == 160_000


_CHURN = """
import resource, sys
from gatewayfilter.scaleout.stream.batch_process import set_up_process
if sys.argv[1] == "set":
    set_up_process()
def churn():
    kept = [b"x" * 3_000_000 for _ in range(10)]
    del kept
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_freed_pages_are_used_again() -> None:
    runs = [[sys.executable, "-c", _CHURN, how] for how in ("set", "unset")]
    with_it, without = (int(subprocess.run(run, capture_output=True, check=True).stdout) for run in runs)
    assert with_it < without / 4
