"""Work in threads: results in order, bounded, the first failure raised, and an interruption that waits for nothing."""

import subprocess
import sys
import threading
import time

import pytest

from gatewayfilter.sources import parallel
from gatewayfilter.sources.parallel import in_parallel
from tests.case_tables import all_cases


@all_cases("width", [1, 2, 50])
def test_results_come_in_the_order_of_the_items(width: int) -> None:
    seen: list[tuple[int, int]] = []
    found = in_parallel(range(20), lambda number: number * 2, width, lambda done, total: seen.append((done, total)))
    assert found == [number * 2 for number in range(20)]
    assert seen == [(done, 20) for done in range(21)]


def test_nothing_to_do_is_done_at_once() -> None:
    assert in_parallel([], str, 4) == []


def test_no_more_than_the_width_run_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    in_parallel(range(12), work, 3)
    assert 1 < most <= 3


def test_an_exception_is_raised_once_all_is_done() -> None:
    done: list[int] = []

    def work(number: int) -> int:
        if number == 1:
            raise ValueError("one")
        done.append(number)
        return number

    with pytest.raises(ValueError, match="one"):
        in_parallel(range(5), work, 2)
    assert sorted(done) == [0, 2, 3, 4]


def test_work_that_takes_longer_than_a_look_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_LOOK_S", 0.001)

    def work(number: int) -> int:
        time.sleep(0.02)
        return number

    assert in_parallel([7], work, 2) == [7]


def test_exceptions_that_are_results_are_results() -> None:
    failure = ValueError("a value")
    assert in_parallel([1, 2], lambda _: failure, 2) == [failure, failure]


def test_an_interrupted_program_ends_though_work_goes_on() -> None:
    program = (
        "import os, signal, threading, time\n"
        "from gatewayfilter.sources.parallel import in_parallel\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "in_parallel([1, 2], lambda _: time.sleep(600), 2)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "KeyboardInterrupt" in ended.stderr
