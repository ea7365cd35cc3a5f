"""What the watchdog does between two looks, and when it ends."""

import os
import signal
import threading
from types import SimpleNamespace
from typing import cast

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway import watchdog as module
from gatewayfilter.gateway.control import Gateway, GatewayState
from gatewayfilter.gateway.netlink_monitor import NetlinkMonitor
from gatewayfilter.gateway.plan import GatewayPlan
from gatewayfilter.gateway.runtime_state import RuntimeStateFile
from gatewayfilter.gateway.watchdog import OPEN_AFTER, POLL_S, Watchdog, until_terminated
from tests.gateway.gateway_fakes import FakeKernel

OPENING = GatewayPlan(lan=("lan0",), proxy_port=8080, fail_open=True)


@pytest.fixture
def gateway(kernel: FakeKernel, memory: RuntimeStateFile) -> Gateway:
    found = Gateway(OPENING, kernel, memory)
    found.up()
    return found


class Changes:
    """Notifications of the kernel, after 0.2 s each; the clock stands otherwise."""

    def __init__(self, *deleted: bool) -> None:
        self.deleted = [*deleted]
        self.now = 100.0
        self.waited: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        self.waited.append(round(timeout_s, 3))
        found = self.deleted.pop(0) if self.deleted else None
        self.now += timeout_s if found is None else 0.2
        return bool(found)


def _wait(watchdog: Watchdog, changes: Changes, stop: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: changes.now))
    watchdog._wait(cast("NetlinkMonitor", changes), stop)


def test_rules_that_go_between_two_looks_are_loaded_at_once(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchdog, changes = Watchdog(gateway, kernel, memory, 8080, restoring=True), Changes(True, False)
    kernel.table = ""
    _wait(watchdog, changes, threading.Event(), monkeypatch)
    assert gateway.status().state is GatewayState.UP
    assert changes.waited == [POLL_S, 0.3, 0.1]  # to the next look, whatever came meanwhile
    kernel.table = ""
    _wait(watchdog, Changes(False), threading.Event(), monkeypatch)
    assert kernel.table == ""  # something else changed


def test_whoever_is_to_stop_does_not_wait(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, changes = threading.Event(), Changes()
    stop.set()
    _wait(Watchdog(gateway, kernel, memory, 8080), changes, stop, monkeypatch)
    assert changes.waited == []


def test_it_looks_until_it_is_stopped_or_the_gateway_is_down(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, waits = threading.Event(), 0

    def wait(*_: object) -> None:
        nonlocal waits
        waits += 1
        assert memory.is_watched() is True
        if waits == 3:
            stop.set()
        if waits == 6:
            gateway.down()

    monkeypatch.setattr(Watchdog, "_wait", wait)
    watchdog = Watchdog(gateway, kernel, memory, 8080)
    assert watchdog.run(stop) is True
    assert waits == 3
    assert watchdog.run(threading.Event()) is True
    assert waits == 6
    assert memory.is_watched() is False


def test_a_refused_change_is_tried_again(gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile) -> None:
    watchdog = Watchdog(gateway, kernel, memory, 8080, restoring=True)
    kernel.ports, table = {}, kernel.table
    kernel.table, kernel.fail_at = "", "load"
    assert watchdog.restore() is False
    for _ in range(OPEN_AFTER):
        assert watchdog.look() is True  # there is no table to open the way in
    kernel.table, kernel.fail_at = table, ""
    assert gateway.status().state is GatewayState.UP
    assert watchdog.look() is True
    assert gateway.status().state is GatewayState.OPEN


def test_an_open_way_is_not_opened_again(
    gateway: Gateway, kernel: FakeKernel, memory: RuntimeStateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bool] = []
    open_way = Gateway.open_way

    def note(this: Gateway) -> None:
        opened.append(True)
        open_way(this)

    monkeypatch.setattr(Gateway, "open_way", note)
    watchdog = Watchdog(gateway, kernel, memory, 8080, answers=lambda: False)
    kernel.ports = {}
    for _ in range(3 * OPEN_AFTER):
        watchdog.look()
    kernel.ports = {8080: frozenset({4})}
    for _ in range(3 * OPEN_AFTER):
        watchdog.look()  # the first finds a listener, then nobody answers
    assert len(opened) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_work(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    stopped: list[bool] = []

    def work(stop: threading.Event) -> bool:
        stopped.append(stop.is_set())
        os.kill(os.getpid(), number)
        stopped.append(stop.wait(10))
        return True

    assert until_terminated(work) is True
    assert stopped == [False, True]
    assert {each: signal.getsignal(each) for each in before} == before

    def fail(_: threading.Event) -> bool:
        raise GatewayError("no")

    with pytest.raises(GatewayError):
        until_terminated(fail)
    assert {each: signal.getsignal(each) for each in before} == before
    assert until_terminated(lambda _: False) is False
