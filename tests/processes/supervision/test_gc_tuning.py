"""What a finished connection leaves is freed soon, in a process that holds many objects; in processes of their own."""

import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gatewayfilter.processes.supervision import gc_tuning

PROGRAM = """
import collections, gc, sys, weakref
from gatewayfilter.processes.supervision.gc_tuning import freeze_startup

class Layer:
    pass

engine = [[number] for number in range(400_000)]  # what lives as long as the process
gc.collect()
if sys.argv[1] == "settled":
    freeze_startup()

alive = most = 0

def gone(_reference):
    global alive
    alive -= 1

references, open_now = [], collections.deque(maxlen=300)
for _ in range(3_000):  # connections of 100 objects each, 300 of them open at a time; the layers of each hold each other
    inner, outer = Layer(), Layer()
    inner.outer, outer.inner, outer.rest = outer, inner, [[] for _ in range(100)]
    references.append(weakref.ref(outer, gone))
    open_now.append(outer)
    alive += 1
    most = max(most, alive)
print(most, gc.get_freeze_count())
"""

HOLES = """
import threading
from pathlib import Path
from gatewayfilter.allocator import give_back
from gatewayfilter.processes.supervision import gc_tuning as heap

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

kept = []
for _ in range(3_000):
    kept += [bytearray(600), bytearray(20_000)]
full = resident()
del kept[1::2]  # 60 MB, each piece before one that stays
freed = resident()
given = give_back()
print(full, freed, resident(), int(given))
stop = threading.Event()
heap.trim_regularly(stop)
thread = next(thread for thread in threading.enumerate() if thread.name == "give-back")
stop.set()
thread.join(10)
print(int(thread.is_alive()))
"""


def run(how: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=60)
    most, frozen = done.stdout.split()
    return int(most), int(frozen)


def test_circles_do_not_pile_up_beside_a_large_engine() -> None:
    most, frozen = run("settled")
    assert frozen > 400_000
    assert most < 900
    assert run("as it is")[0] > 2_000, "the process of this test no longer shows what it is about"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_between_what_is_in_use_goes_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True, timeout=60)
    full, freed, after, given, alive = map(int, done.stdout.split())
    assert freed > 0.9 * full, "the C library gives it back by itself: giving back is of no use any more"
    assert after < 0.6 * full
    assert (given, alive) == (1, 0)


def test_objects_of_the_start_are_frozen_before_collections_come_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[object]()
    monkeypatch.setattr(gc_tuning, "gc", SimpleNamespace(
        collect=lambda: done.append("collect"), freeze=lambda: done.append("freeze"),
        set_threshold=lambda *given: done.append(given),
    ))  # fmt: skip
    gc_tuning.freeze_startup()
    assert done == ["collect", "freeze", (2000, 5, 2), "collect"]


def test_memory_is_given_back_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[object]()
    pauses = [False, False, True]
    stop = threading.Event()

    def wait(pause_s: float) -> bool:
        done.append(pause_s)
        return pauses.pop(0)

    def thread(target: Callable[[], None], **facts: object) -> object:
        assert facts == {"name": "give-back", "daemon": True}, "it ends with the process"
        return SimpleNamespace(start=target)

    monkeypatch.setattr(stop, "wait", wait)
    monkeypatch.setattr(gc_tuning, "give_back", lambda: done.append("give back"))
    monkeypatch.setattr(gc_tuning, "threading", SimpleNamespace(Thread=thread, Event=threading.Event))
    gc_tuning.trim_regularly(stop)
    assert done == [20.0, "give back", 20.0, "give back", 20.0]
