"""What a finished connection leaves is freed soon, in a process that holds many objects; in processes of their own."""

import subprocess
import sys

PROGRAM = """
import collections, gc, sys, weakref
from gatewayfilter.processes.heap import settle

class Layer:
    pass

engine = [[number] for number in range(400_000)]  # what lives as long as the process
gc.collect()
if sys.argv[1] == "settled":
    settle()

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


def run(how: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=60)
    most, frozen = done.stdout.split()
    return int(most), int(frozen)


def test_circles_do_not_pile_up_beside_a_large_engine() -> None:
    most, frozen = run("settled")
    assert frozen > 400_000
    assert most < 900
    assert run("as it is")[0] > 2_000, "the process of this test no longer shows what it is about"
