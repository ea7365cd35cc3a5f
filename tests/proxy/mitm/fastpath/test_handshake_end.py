"""What came with the end of a client's handshake goes on at once, and in which order it is sent; the handshake is a stand-in."""

from typing import Any

import pytest
from mitmproxy.connection import Server
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.fastpath import tls_path
from gatewayfilter.proxy.mitm.fastpath.tls_path import deliver
from tests.proxy.mitm.fastpath.test_tls_steps import Inner, Tunnel, contexts

__all__ = ["contexts"]

ORIGIN = Server(address=("site.example", 80))
START = events.Start()


class Shaking(Tunnel):
    """A TLS layer whose handshake ends with the next data; `chosen` is what the undecided layer inside becomes."""

    def __init__(self, contexts: tuple[SSL.Context, SSL.Context], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(contexts)
        self.layer.tunnel_state = TunnelState.ESTABLISHING
        self.conn.tls_version = "TLSv1.3"
        self.undecided: Any = layer.NextLayer(self.context)
        self.layer.child_layer = self.undecided
        self.request = events.DataReceived(self.conn, b"request")
        self.asked: list[object] = []
        self.chosen: Any = [commands.SendData(ORIGIN, b"asks")]
        self.result: Any = ([commands.SendData(self.conn, b"ticket")], [START, self.request])
        monkeypatch.setattr(tls_path, "shake_hands", lambda tls, event: self.result)
        monkeypatch.setattr(tls_path, "choose", self._choose)

    def _choose(self, undecided: object, event: object) -> Any:
        self.asked.append((undecided, event))
        return self.chosen

    def ends(self, *waited: events.Event) -> list[tuple[object, bytes]]:
        """Has the handshake end; returns what is sent, and opens what was sealed for the client."""
        self.result = self.result[0], list(waited)
        made = self.comes(b"the end of a handshake")
        return [
            (
                one.connection,
                one.data if one.data.startswith(b"ticket") or one.connection is ORIGIN else self.pair.opened(one.data),
            )
            for one in made
        ]


@pytest.fixture
def shaking(contexts: tuple[SSL.Context, SSL.Context], monkeypatch: pytest.MonkeyPatch) -> Shaking:
    return Shaking(contexts, monkeypatch)


def test_a_step_after_which_another_one_follows(shaking: Shaking) -> None:
    assert shaking.ends() == [(shaking.conn, b"ticket")]
    assert (shaking.fast, shaking.undecided.events, shaking.asked) == (True, [], [])
    shaking.result = iter([commands.SendData(shaking.conn, b"alert")])
    assert deliver(shaking.layer, shaking.request) is shaking.result


def test_a_handshake_behind_which_nothing_came(shaking: Shaking) -> None:
    assert shaking.ends(START) == [(shaking.conn, b"ticket")]
    assert (shaking.fast, shaking.undecided.events, shaking.asked) == (True, [START], [])


def test_session_tickets_wait_for_the_answer_where_a_request_came_behind_the_handshake(shaking: Shaking) -> None:
    assert shaking.ends(START, shaking.request) == [(ORIGIN, b"asks")]
    assert (shaking.fast, shaking.undecided.events, shaking.asked) == (True, [START], [(shaking.undecided, shaking.request)])
    assert tls_path._to_send(shaking.layer.tls) == b"ticket"


@pytest.mark.parametrize("why", ["TLS 1.2", "an answer", "steps that follow"])
def test_session_tickets_go_ahead_of_what_follows(shaking: Shaking, why: str) -> None:
    follows = [(ORIGIN, b"asks")]
    if why == "TLS 1.2":
        shaking.conn.tls_version = "TLSv1.2"
    elif why == "an answer":
        shaking.chosen = [commands.SendData(shaking.conn, data) for data in (b"answer", b"its body")]
        follows = [(shaking.conn, b"answer"), (shaking.conn, b"its body")]
    else:
        shaking.chosen = iter(shaking.chosen)
    assert shaking.ends(START, shaking.request) == [(shaking.conn, b"ticket"), *follows]
    assert (shaking.fast, shaking.asked) == (why != "steps that follow", [(shaking.undecided, shaking.request)])


def test_a_layer_that_is_decided_gets_all_that_waited(shaking: Shaking) -> None:
    inner = shaking.layer.child_layer = Inner(shaking.context)
    inner.answers = [commands.SendData(shaking.conn, b"hello")]
    made = shaking.ends(START, shaking.request)
    assert made == [(shaking.conn, b"ticket"), (shaking.conn, b"hello"), (shaking.conn, b"hello")]
    assert (shaking.fast, inner.seen, shaking.asked) == (False, ["Start", b"request"], [])


def test_an_undecided_layer_handles_more_than_a_beginning_by_itself(shaking: Shaking) -> None:
    seen: list[events.Event] = []

    def handle(event: events.Event) -> list[commands.Command]:
        seen.append(event)
        return []

    vars(shaking.undecided)["handle_event"] = handle
    closed = events.ConnectionClosed(shaking.conn)
    assert shaking.ends(START, shaking.request, closed) == [(shaking.conn, b"ticket")]
    assert (seen, shaking.asked) == ([START, shaking.request, closed], [])
