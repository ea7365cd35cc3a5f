"""The beginning of a connection step by step: when the short way is taken, and what layers are told of it."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Client, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.layers.tls import ClientTLSLayer, TlsEstablishedClientHook, TLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.tls import TlsData

from gatewayfilter.proxy.mitm.fastpath import beginning
from gatewayfilter.proxy.mitm.fastpath.context import FastPath, FastPathContext, FrozenOptions
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer

OPTIONS = Options()
LOG = commands.Log("words", logging.INFO)


class Undecided:
    """A layer that waits for the choice of the next one.

    Attributes:
        told: hooks that ran.
        chosen: what they choose.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.chosen: Any = None
        self.at_once = True
        hooks: Any = SimpleNamespace(run_at_once=lambda name: self.at_once and name == "next_layer", run_now=self._run)
        self.client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
        plain = Context(self.client, OPTIONS)
        self.plain = plain
        made: Any = layer.NextLayer(FastPathContext.of(plain, FastPath(hooks, FrozenOptions(OPTIONS), keeps_bodies=False)))
        made.events.append(events.Start())
        made.handle_event = lambda event: ["slowly"]
        self.layer = made
        self.event = events.DataReceived(self.client, b"data")

    def _run(self, name: str, subject: Any) -> None:
        self.told.append(name)
        assert subject.events[-1] is self.event, "it chooses by what came"
        subject.layer = self.chosen

    def decided(self) -> Any:
        return beginning.choose(self.layer, self.event)


class Seen:
    """Notes the events of a layer."""

    def __init__(self, kind: type[layer.Layer], **given: Any) -> None:
        self.kinds: list[str] = []
        self.layer: Any = object.__new__(kind)
        vars(self.layer).update(given, handle_event=self._handle)

    def _handle(self, event: events.Event) -> Any:
        self.kinds.append(type(event).__name__)
        yield from [LOG] if isinstance(event, events.DataReceived) else []


@pytest.mark.parametrize(
    "change",
    [
        lambda one: setattr(one.layer, "context", one.plain),
        lambda one: setattr(one.layer, "_paused", "a hook"),
        lambda one: setattr(one, "event", events.DataReceived(Server(address=None), b"data")),
        lambda one: one.layer.events.clear(),
        lambda one: one.layer.events.append(events.Start()),
        lambda one: one.layer.events.__setitem__(0, one.event),
        lambda one: setattr(one, "at_once", False),
    ],
    ids=["no fast path", "paused", "of an origin", "not begun", "begun twice", "begun with data", "hooks wait"],
)
def test_what_is_not_usual_is_left_to_mitmproxy(change: Any) -> None:
    one = Undecided()
    change(one)
    assert (one.decided(), one.told) == (["slowly"], [])


def test_without_a_choice_it_waits_for_more() -> None:
    one = Undecided()
    assert (list(one.decided()), one.told) == ([], ["next_layer"])
    assert [type(event).__name__ for event in one.layer.events] == ["Start", "DataReceived"]


@pytest.mark.parametrize(
    ("kind", "mode", "alpn", "short"),
    [
        (FastHttpLayer, HTTPMode.regular, None, True),
        (FastHttpLayer, HTTPMode.transparent, b"http/1.1", True),
        (FastHttpLayer, HTTPMode.transparent, b"h2", False),
        (FastHttpLayer, HTTPMode.upstream, None, False),
        (ClientTLSLayer, None, None, True),
        (ClientTLSLayer, None, b"h2", True),
        (layer.NextLayer, HTTPMode.regular, None, False),
    ],
)
def test_what_the_chosen_layer_is_told(kind: type[layer.Layer], mode: object, alpn: bytes | None, *, short: bool) -> None:
    one, seen = Undecided(), Seen(kind, mode=mode)
    one.chosen, one.client.alpn = seen.layer, alpn
    found = one.decided()
    assert one.layer.events == []
    assert one.layer.handle_event == one.layer._handle_event == one.layer._handle == seen.layer.handle_event
    if short:
        assert (found, seen.kinds) == (seen.layer, ["Start"]), "who asked hands the data on"
    else:
        assert (list(found), seen.kinds) == ([LOG], ["Start", "DataReceived"])


class Handshake:
    """A handshake that goes on as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *says: commands.Command, done: bool, error: str | None = None) -> None:
        self.hooks: list[tuple[str, object]] = []
        self.waits = [events.Start()]

        def steps(_: object, data: bytes) -> Any:
            assert data == b"from the client"
            yield from says
            return done, error

        monkeypatch.setattr(TLSLayer, "receive_handshake_data", steps)
        monkeypatch.setattr(beginning, "process", lambda _, made: made)
        self.tls: Any = SimpleNamespace(
            tunnel_state=TunnelState.ESTABLISHING,
            _event_queue=self.waits,
            on_handshake_error=lambda why: iter([f"error {why}"]),
            _handshake_finished=lambda why: iter([f"finished {why}"]),
        )

    def goes_on(self) -> Any:
        hooks: Any = SimpleNamespace(run_now=lambda name, data: self.hooks.append((name, data)))
        found = beginning._exchange(self.tls, b"from the client", hooks)
        return found if isinstance(found, tuple) else list(found)


CLIENT = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
SENT = commands.SendData(CLIENT, b"to the client")


def test_a_handshake_that_is_not_done_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Handshake(monkeypatch, SENT, done=False)
    assert one.goes_on() == ([SENT], [])
    assert (one.tls.tunnel_state, one.tls._event_queue) == (TunnelState.ESTABLISHING, one.waits)


def test_the_end_of_a_handshake_frees_what_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    data = TlsData(CLIENT, cast("Any", None))
    one = Handshake(monkeypatch, SENT, TlsEstablishedClientHook(data), done=True)
    assert one.goes_on() == ([SENT], one.waits)
    assert (one.hooks, one.tls.tunnel_state, one.tls._event_queue) == (
        [("tls_established_client", data)],
        TunnelState.OPEN,
        [],
    )


@pytest.mark.parametrize(
    ("says", "done", "error", "follows"),
    [
        ([SENT], False, "bad", [SENT, "error bad", "finished bad"]),
        ([SENT, LOG], True, None, [SENT, LOG, "finished None"]),
        ([LOG, SENT], False, None, [SENT, LOG]),
        ([LOG], False, "bad", [LOG, "error bad", "finished bad"]),
    ],
)
def test_what_follows_where_more_is_to_be_done(
    says: list[commands.Command], error: str | None, follows: list[object], monkeypatch: pytest.MonkeyPatch, *, done: bool
) -> None:
    one = Handshake(monkeypatch, *says, done=done, error=error)
    assert one.goes_on() == follows
    assert (one.tls.tunnel_state, one.tls._event_queue) == (TunnelState.ESTABLISHING, one.waits)
