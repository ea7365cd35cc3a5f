"""The step of a handshake that reads the ClientHello: when it is taken at once, and what its hooks decide."""

from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Client
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import tls as tls_layers
from mitmproxy.proxy.layers.tls import TlsClienthelloHook
from mitmproxy.tls import ClientHelloData

from gatewayfilter.proxy.mitm.fastpath import beginning
from gatewayfilter.proxy.mitm.fastpath.context import FastPath, FastPathContext, FrozenOptions
from tests.case_tables import all_cases

OPTIONS = Options()
HELLO: Any = SimpleNamespace(sni="site.example", alpn_protocols=[b"h2"])


class Step:
    """A TLS layer that gets the first data of a client.

    Attributes:
        told: hooks that ran.
        deeds: what a hook does with its subject.
        waiting: the hook that cannot be run at once.
        events: what the layer itself was given.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.deeds: dict[str, Any] = {"tls_start_client": lambda start: setattr(start, "ssl_conn", "made")}
        self.waiting = ""
        self.events: list[events.Event] = []
        hooks: Any = SimpleNamespace(run_at_once=lambda name: name != self.waiting, run_now=self._run)
        self.client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
        self.plain = Context(self.client, OPTIONS)
        context = FastPathContext.of(self.plain, FastPath(hooks, FrozenOptions(OPTIONS), keeps_bodies=False))
        self.layer: Any = SimpleNamespace(
            context=context,
            conn=self.client,
            is_dtls=False,
            recv_buffer=bytearray(),
            client_hello_parsed=False,
            tls=None,
            proto_name="TLS",
            handle_event=self._handle,
            on_handshake_error=lambda why: iter([f"error {why}"]),
            _handshake_finished=lambda why: iter([f"finished {why}"]),
        )

    def _run(self, name: str, subject: Any) -> None:
        self.told.append(name)
        if name in self.deeds:
            self.deeds[name](subject)

    def _handle(self, event: events.Event) -> Any:
        self.events.append(event)
        if isinstance(event, events.DataReceived):
            yield from self.first if hasattr(self, "first") else ["slowly"]
        else:
            yield "replied"

    def takes(self) -> Any:
        """Returns what follows from the client's data: `"exchanged"` with it where the handshake goes on."""
        found = beginning.shake_hands(self.layer, events.DataReceived(self.client, b"hello"))
        return found if isinstance(found, tuple) else list(found)


@pytest.fixture(autouse=True)
def _rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginning, "_exchange", lambda tls, data, hooks: ("exchanged", data, tls.tls))
    monkeypatch.setattr(beginning, "process", lambda _, made: made)
    monkeypatch.setattr(tls_layers, "parse_client_hello", lambda data: HELLO)


@all_cases(
    "change",
    [
        lambda step: setattr(step.layer, "context", step.plain),
        lambda step: setattr(step.layer, "is_dtls", True),
        lambda step: step.layer.recv_buffer.extend(b"half"),
        lambda step: setattr(step, "waiting", "tls_clienthello"),
        lambda step: setattr(step, "waiting", "tls_start_client"),
        lambda step: setattr(step, "waiting", "tls_established_client"),
    ],
)
def test_what_is_not_usual_is_left_to_mitmproxy(change: Any) -> None:
    step = Step()
    change(step)
    assert (step.takes(), step.told, step.layer.client_hello_parsed) == (["slowly"], [], False)


def test_a_hello_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step()
    step.waiting = "request"
    assert step.takes() == ("exchanged", b"hello", "made")
    assert (step.told, step.events) == (["tls_clienthello", "tls_start_client"], [])
    assert (step.client.sni, step.client.alpn_offers, step.layer.client_hello_parsed) == ("site.example", [b"h2"], True)
    monkeypatch.setattr(tls_layers, "parse_client_hello", None)
    assert step.takes() == ("exchanged", b"hello", "made")
    assert len(step.told) == 2


@pytest.mark.parametrize("broken", [True, False])
def test_a_hello_that_is_broken_or_not_complete_is_left_to_mitmproxy(monkeypatch: pytest.MonkeyPatch, *, broken: bool) -> None:
    def parse(_: bytes) -> None:
        if broken:
            raise ValueError("no hello")

    monkeypatch.setattr(tls_layers, "parse_client_hello", parse)
    step = Step()
    assert (step.takes(), step.told, step.layer.client_hello_parsed) == (["slowly"], [], False)


def test_without_a_context_the_connection_is_closed() -> None:
    step = Step()
    del step.deeds["tls_start_client"]
    log, close, *more = step.takes()
    assert (log.message, log.level) == ("No TLS context was provided, failing connection.", 40)
    assert isinstance(close, commands.CloseConnection)
    assert close.connection is step.client
    assert more == ["error connection closed early", "finished connection closed early"]
    assert step.layer.tls is None


@pytest.mark.parametrize("name", ["ignore_connection", "establish_server_tls_first"])
def test_what_a_hook_decides_of_a_hello_is_told_to_mitmproxy(name: str) -> None:
    step = Step()
    step.deeds["tls_clienthello"] = lambda found: setattr(found, name, True)
    again = TlsClienthelloHook(ClientHelloData(step.plain, HELLO))
    other = TlsClienthelloHook(ClientHelloData(step.plain, HELLO))
    vars(step)["first"] = ["before", again, other]
    assert step.takes() == ["before", other, "replied"]
    decided = again.data.ignore_connection, again.data.establish_server_tls_first
    assert decided == (name == "ignore_connection", name == "establish_server_tls_first")
    assert (step.told, step.layer.client_hello_parsed) == (["tls_clienthello"], False)
    (_, reply) = step.events
    assert isinstance(reply, events.HookCompleted)
    assert reply.command is again
