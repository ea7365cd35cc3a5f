"""Hooks: which methods run, in which order, which of them are waited for, and what a layer is told of them."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import exceptions, http
from mitmproxy.connection import Client, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._hooks import HttpRequestHook, HttpResponseHook
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm.fastpath import hook_runner
from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager, HookRunner, free, is_at_rest

OPTIONS = Options()


class Addon:
    """Does in its hook what it is told, and notes it."""

    def __init__(self, name: str, done: list[str], result: Any = None) -> None:
        self.name, self.done, self.result = name, done, result

    def request(self, flow: http.HTTPFlow) -> Any:
        self.done.append(self.name)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result() if callable(self.result) else self.result


class Updated:
    """Has the hook that follows each."""

    name = "updated"

    def __init__(self) -> None:
        self.flows: list[object] = []

    def update(self, flows: list[object]) -> None:
        self.flows += flows


def manager(*addons: object) -> CachedAddonManager:
    made = CachedAddonManager(SimpleNamespace(options=OPTIONS, commands=None))
    made.chain = list(addons)
    return made


async def later(done: list[str], name: str, fault: Exception | None = None) -> None:
    await asyncio.sleep(0)
    done.append(name)
    if fault is not None:
        raise fault


def test_methods_run_in_order_whatever_one_of_them_does(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    faulty = Addon("faulty", done, RuntimeError("a fault"))
    made = manager(Addon("first", done), faulty, object(), Addon("odd", done, 5), Addon("last", done))
    assert made.run(HttpRequestHook(tflow.tflow())) is None
    assert done == ["first", "faulty", "odd", "last"]
    assert [record.getMessage() for record in caplog.records] == ["hook request failed"]
    assert made.run(HttpResponseHook(tflow.tflow())) is None
    halting = manager(Addon("halts", done, exceptions.AddonHalt()), Addon("never", done))
    done.clear()
    assert (halting.call("request", tflow.tflow()), done) == (None, ["halts"])


def test_methods_are_remembered_until_addons_change() -> None:
    done: list[str] = []
    made = manager(Addon("first", done))
    assert len(made.handlers("request")) == 1
    made.chain = [Addon("first", done), Addon("second", done)]
    assert len(made.handlers("request")) == 1
    for change in (made._forget, made.clear):
        made.chain = [Addon("first", done), Addon("second", done)]
        made._table["request"] = ()
        made._at_once["request"] = False
        change()
        assert ("request" in made._table, "request" in made._at_once) == (False, False)
    assert made.handlers("request") == ()
    assert made.handlers("request") is made.handlers("request")


def test_a_method_that_waits_is_finished_with_those_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    made = manager(
        Addon("first", done, lambda: later(done, "waited")),
        Addon("second", done, lambda: later(done, "too")),
        Addon("third", done),
    )
    assert made.run_at_once("request")
    rest = made.call("request", tflow.tflow())
    assert (done, made.run_at_once("request")) == (["first"], False)
    assert rest is not None
    asyncio.run(cast("Any", rest))
    assert done == ["first", "waited", "second", "too", "third"]
    for fault, logged in ((exceptions.AddonHalt(), 0), (RuntimeError("a fault"), 1)):
        done.clear()
        caplog.clear()
        halts = manager(Addon("first", done, lambda fault=fault: later(done, "waited", fault)), Addon("never", done))
        rest = halts.call("request", tflow.tflow())
        asyncio.run(cast("Any", rest))
        assert (done, [record.getMessage() for record in caplog.records]) == (
            ["first", "waited"],
            ["hook request failed"] * logged,
        )


def test_which_hooks_run_at_once() -> None:
    class Waiting:
        async def request(self, flow: http.HTTPFlow) -> None:
            pass

    done: list[str] = []
    assert manager(Addon("first", done)).run_at_once("request")
    assert manager().run_at_once("request")
    assert not manager(Addon("first", done), Waiting()).run_at_once("request")
    made = manager()
    made._at_once["request"] = False
    assert not made.run_at_once("request")


async def test_a_hook_that_waits_for_the_first_time_goes_on_beside() -> None:
    done: list[str] = []
    made = manager(Addon("first", done, lambda: later(done, "waited")))
    made.run_now("request", tflow.tflow())
    assert (done, len(made._late)) == (["first"], 1)
    await asyncio.gather(*made._late)
    await asyncio.sleep(0)
    assert (done, len(made._late)) == (["first", "waited"], 0)
    manager(Addon("quick", done)).run_now("request", tflow.tflow())
    assert done[-1] == "quick"


async def test_a_deferred_hook_is_finished_once() -> None:
    done: list[str] = []
    made = manager(Addon("first", done, lambda: later(done, "waited")), updated := Updated())
    hook = HttpRequestHook(tflow.tflow())
    assert (made.run_or_defer(hook), made.run_or_defer(hook), done) == (False, False, ["first"])
    await made.handle_lifecycle(hook)
    assert (done, made._unfinished, updated.flows) == (["first", "waited"], {}, [hook.flow])
    await made.handle_lifecycle(hook)
    assert (done, updated.flows) == (["first", "waited"] * 2, [hook.flow] * 2)
    quick = manager(Addon("quick", done))
    assert quick.run_or_defer(hook)
    await quick.trigger_event(hook)
    assert (done[-2:], quick._unfinished) == (["quick", "quick"], {})


class Top(layer.Layer):
    """Does what it is told for each event, and notes the events."""

    def __init__(self) -> None:
        super().__init__(Context(Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2)), OPTIONS))
        self.seen: list[str] = []
        self.answers: list[list[commands.Command]] = []
        self.fault: Exception | None = None

    def _handle_event(self, event: events.Event) -> Any:
        raise AssertionError(event)

    def handle_event(self, event: events.Event) -> Any:
        self.seen.append(type(event).__name__)
        yield from self.answers.pop(0) if self.answers else []
        if self.fault is not None:
            raise self.fault


def climbed(top: Top, event: events.Event, *, runs: bool = True) -> list[object]:
    addons: Any = SimpleNamespace(run_or_defer=lambda hook: runs)
    runner = HookRunner(top, addons)
    assert (runner.top, runner.context) == (top, top.context)
    return [(one.connection, one.data) if isinstance(one, commands.SendData) else one for one in runner.handle_event(event)]


@pytest.mark.parametrize("kind", [events.Start(), "data"])
def test_what_is_sent_to_one_connection_in_a_row_is_one_piece(kind: Any) -> None:
    top, other = Top(), Server(address=("site.example", 80))
    client = top.context.client
    event = events.DataReceived(client, b"x") if kind == "data" else kind
    top.answers = [
        [commands.SendData(one, data) for one, data in ((client, b"a"), (client, b"b"), (other, b"c"), (client, b"d"))]
    ]
    assert climbed(top, event) == [(client, b"ab"), (other, b"c"), (client, b"d")]


def test_hooks_are_answered_after_the_event(caplog: pytest.LogCaptureFixture) -> None:
    top = Top()
    client, hook = top.context.client, HttpRequestHook(tflow.tflow())
    top.answers = [[commands.SendData(client, b"a"), hook, commands.SendData(client, b"b")], [commands.SendData(client, b"c")]]
    assert climbed(top, events.Start()) == [(client, b"abc")]
    assert top.seen == ["Start", "HookCompleted"]
    top.answers, top.seen = [[commands.SendData(client, b"a"), hook, commands.SendData(client, b"b")]], []
    assert climbed(top, events.Start(), runs=False) == [(client, b"a"), hook, (client, b"b")]
    assert top.seen == ["Start"]
    lasting = HttpRequestHook(tflow.tflow())
    lasting.blocking = False
    top.answers, top.seen = [[lasting]], []
    assert (climbed(top, events.Start()), top.seen) == ([], ["Start"])
    close = commands.CloseConnection(client)
    top.answers = [[commands.SendData(client, b"a"), close]]
    assert climbed(top, events.Start()) == [(client, b"a"), close]


def test_log_commands_go_on_where_somebody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for level, written in ((logging.WARNING, True), (logging.DEBUG, False)):
        top = Top()
        monkeypatch.setattr(hook_runner, "_connections_log", SimpleNamespace(isEnabledFor=lambda one: one >= logging.WARNING))
        log = commands.Log("words", level)
        client = top.context.client
        top.answers = [[commands.SendData(client, b"a"), log, commands.SendData(client, b"b")]]
        assert climbed(top, events.Start()) == ([log] if written else []) + [(client, b"ab")]


def test_what_was_said_before_a_fault_goes_out() -> None:
    for answers, sent in (([b"a", b"b"], [b"ab"]), ([], [])):
        top = Top()
        top.fault = RuntimeError("a fault")
        top.answers = [[commands.SendData(top.context.client, data) for data in answers]]
        found: list[bytes] = []
        runner = HookRunner(top, cast("Any", SimpleNamespace(run_or_defer=None)))
        with pytest.raises(RuntimeError, match="a fault"):
            found.extend(one.data for one in runner.handle_event(events.Start()) if isinstance(one, commands.SendData))
        assert len(found) == 0 or found == sent
        again = Top()
        again.fault, again.answers = RuntimeError("a fault"), [[commands.SendData(top.context.client, data) for data in answers]]
        coming = iter(HookRunner(again, cast("Any", SimpleNamespace(run_or_defer=None))).handle_event(events.Start()))
        assert [next(coming).data for _ in sent] == sent  # type: ignore[attr-defined]


def test_which_connections_are_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(hook_runner, "awaits_nothing", lambda top: asked.append(top) or True)  # type: ignore[func-returns-value]
    top = Top()
    runner = HookRunner(top, cast("Any", SimpleNamespace(run_or_defer=None)))
    assert (is_at_rest(runner), is_at_rest(top), is_at_rest(None), asked) == (True, False, False, [top])
    free(top)
    assert vars(top) != {}
    free(runner)
    assert vars(top) == {}
