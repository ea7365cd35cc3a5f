"""What `gatewayfilter gateway` does with a gateway, and prints: `gatewayfilter.cli.operate.gateway_commands`."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.gateway.control import GatewayState, GatewayStatus
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, table, texts

UP = GatewayStatus(GatewayState.UP, (), (4, 6), (4,), 1, 2_000, fail_open=False, watched=False)
OPEN = SETTINGS.model_copy(update={"gateway": SETTINGS.gateway.model_copy(update={"fail_open": True, "lan": ("lan0",)})})


class Kernel:
    """A gateway, its watchdog and the kernel, of which the calls are noted."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.status_now = UP
        self.changed = True
        self.watched = True

    def up(self, *, wait_s: float, check: bool) -> bool:
        self.calls.append(("up", wait_s, check))
        return self.changed

    def down(self) -> None:
        self.calls.append("down")

    def status(self) -> GatewayStatus:
        return self.status_now

    def run(self, stop: threading.Event) -> bool:
        stop.set()
        self.calls.append("run")
        return self.watched


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    double = Kernel()

    def watchdog(gateway: object, kernel: object, memory: object, port: int, *, restoring: bool, answers: object) -> Kernel:
        del kernel, memory
        assert gateway is double
        double.calls.append(("watchdog", port, restoring, answers))
        return double

    monkeypatch.setattr("gatewayfilter.gateway.control.Gateway", lambda _plan, _kernel, _memory: double)
    monkeypatch.setattr("gatewayfilter.gateway.plan.make_plan", lambda _settings: SimpleNamespace(proxy_port=8080))
    monkeypatch.setattr("gatewayfilter.gateway.watchdog.Watchdog", watchdog)
    monkeypatch.setattr("gatewayfilter.gateway.liveness_probe.LivenessProbe", lambda listen: ("probe", listen))
    monkeypatch.setattr("gatewayfilter.telemetry.set_up_logging", lambda level: double.calls.append(("log", level)))
    monkeypatch.setattr(subprocess, "Popen", lambda arguments, **how: double.calls.append((arguments, how)))
    return double


def test_up_loads_the_rules_and_tells_what_changed(kernel: Kernel) -> None:
    context = Doubled()
    assert texts(context, "gateway", "up") == (0, "The gateway is up.\n", "")
    assert kernel.calls == [("up", 10.0, True)]
    assert context.options == [{"gateway__lan": None, "gateway__fail_open": None}]
    kernel.changed = False
    kernel.status_now = GatewayStatus(GatewayState.UP, ("no worker listens",), (), (), 0, 0, fail_open=False, watched=False)
    context = Doubled()
    arguments = ("gateway", "up", "--lan", "lan0", "--lan", "lan1", "--fail-closed", "--wait", "3", "--no-check")
    told = "The gateway is up already; nothing was changed.\n"
    assert texts(context, *arguments) == (0, told, "  but no worker listens\n")
    assert kernel.calls[1:] == [("up", 3.0, False)]
    assert context.options == [{"gateway__lan": ("lan0", "lan1"), "gateway__fail_open": False}]
    document = called(Doubled(), "gateway", "up", "--json").json
    assert (document["changed"], document["status"]["problems"]) == (False, ["no worker listens"])


def test_up_that_fails_open_starts_a_watchdog_of_its_own(kernel: Kernel) -> None:
    assert texts(Doubled(settings=OPEN), "gateway", "up", "--lan", "lan0", "--config", "c.toml", "--data-dir", "/state")[0] == 0
    (_, (arguments, how)) = kernel.calls
    begin = [sys.executable, "-m", "gatewayfilter.cli", "gateway", "watch", "--lan", "lan0"]
    assert arguments == [*begin, "--config", str(Path("c.toml").absolute()), "--data-dir", "/state"]
    nowhere = subprocess.DEVNULL
    assert how == {"stdin": nowhere, "stdout": nowhere, "stderr": nowhere, "start_new_session": True, "cwd": "/"}
    kernel.calls.clear()
    assert texts(Doubled(settings=OPEN), "gateway", "up")[0] == 0
    assert kernel.calls[1][0] == begin[:5]


def test_up_in_the_foreground_is_the_watchdog_and_takes_all_back(kernel: Kernel) -> None:
    assert texts(Doubled(settings=OPEN), "gateway", "up", "--foreground") == (0, "The gateway is up.\n", "")
    probe = ("probe", SETTINGS.proxy.listen)
    assert kernel.calls == [("up", 10.0, True), ("watchdog", 8080, True, probe), ("log", "info"), "run", "down"]


@pytest.mark.parametrize(("ready", "line", "kept"), [(True, "\n", True), (True, "", False), (False, "\n", False)])
def test_up_is_taken_back_unless_enter_is_pressed(
    kernel: Kernel,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ready: bool,
    line: str,
    kept: bool,
) -> None:
    waits: list[object] = []

    def selected(read: list[object], write: list[object], odd: list[object], seconds: float) -> tuple[list[object], ...]:
        waits.append((len(read), write, odd, seconds))
        return (read if ready else []), [], []

    monkeypatch.setattr("select.select", selected)
    asked = "The rules are loaded. Press Enter within 60 s to keep them.\n"
    answer = called(Doubled(), "gateway", "up", "--confirm", "60", stdin=line)
    assert waits == [(1, [], [], 60.0)]
    if kept:
        assert (answer.code, answer.out, answer.err) == (0, f"{asked}The gateway is up.\n", "")
        assert kernel.calls == [("up", 10.0, True)]
    else:
        assert (answer.code, answer.out, answer.err) == (1, asked, "Not confirmed: everything was taken back.\n")
        assert kernel.calls == [("up", 10.0, True), "down"]


def test_an_interrupt_in_place_of_enter_takes_all_back(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("select.select", interrupted)
    assert texts(Doubled(), "gateway", "up", "--confirm", "5")[0] == 1
    assert kernel.calls[-1] == "down"


def test_down_tells_whether_it_was_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for changed, told in (
        (True, "The gateway is down: devices go past the filter."),
        (False, "The gateway was not up; nothing was changed."),
    ):
        monkeypatch.setattr("gatewayfilter.gateway.control.take_down", lambda _kernel, _memory, changed=changed: changed)
        assert texts(Doubled(), "gateway", "down") == (0, f"{told}\n", "")
        assert called(Doubled(), "gateway", "down", "--json").json == {"changed": changed}


STATES = {
    GatewayState.UP: (0, "up, as wanted"),
    GatewayState.OPEN: (1, "open: web traffic goes past the filter"),
    GatewayState.DOWN: (1, "down"),
    GatewayState.OUTDATED: (1, "up, from other settings"),
    GatewayState.CHANGED: (1, "up, changed since"),
    GatewayState.FOREIGN: (1, "up, not by gateway up"),
}


def test_the_status_is_good_only_when_all_is_as_wanted(kernel: Kernel) -> None:
    for state, (code, words) in STATES.items():
        kernel.status_now = GatewayStatus(state, (), (4, 6), (4,), 1, 2_000, fail_open=False, watched=False)
        found, out, _ = texts(Doubled(), "gateway", "status")
        assert (found, table(out)) == (
            code,
            [
                ["what", "value"],
                ["state", words],
                ["filter listens", "IPv4 and IPv6"],
                ["kernel forwards", "IPv4"],
                ["when no worker serves", "refuse (fail closed)"],
                ["redirected", "1 connection"],
                ["QUIC refused", "2,000 datagrams"],
            ],
        )
    assert set(STATES) == set(GatewayState)
    kernel.status_now = GatewayStatus(GatewayState.UP, ("no DNS",), (), (), 0, 0, fail_open=True, watched=True)
    code, out, _ = texts(Doubled(), "gateway", "status")
    assert (code, out.splitlines()[-1]) == (1, "! no DNS")
    assert ["filter listens", "no"] in table(out)
    assert ["when no worker serves", "let past (fail open), watched"] in table(out)
    kernel.status_now = GatewayStatus(GatewayState.UP, (), (), (), 0, 0, fail_open=True, watched=False)
    assert ["when no worker serves", "let past (fail open), but nobody watches"] in table(
        texts(Doubled(), "gateway", "status")[1]
    )
    context = Doubled()
    answer = called(context, "gateway", "status", "--json", "--lan", "lan0", "--fail-open")
    assert (answer.code, answer.json["state"], answer.json["watched"]) == (0, "up", False)
    assert context.options[-1] == {"gateway__lan": ("lan0",), "gateway__fail_open": True}


def test_watch_runs_until_the_gateway_goes_down(kernel: Kernel) -> None:
    context = Doubled()
    assert texts(context, "gateway", "watch", "--lan", "lan0") == (0, "", "")
    assert kernel.calls == [("watchdog", 8080, False, ("probe", SETTINGS.proxy.listen)), ("log", "info"), "run"]
    assert context.options == [{"gateway__lan": ("lan0",), "gateway__fail_open": True}]
    kernel.watched = False
    assert texts(Doubled(), "gateway", "watch")[0] == 1


def test_the_rules_are_printed_as_they_are(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.ruleset.ruleset", lambda plan: f"table {plan.proxy_port}\n")
    assert texts(Doubled(), "gateway", "print") == (0, "table 8080\n", "")
    assert kernel.calls == []
