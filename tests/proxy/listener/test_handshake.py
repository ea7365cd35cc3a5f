"""The steps of a client's handshake; its socket, the engine, the dialer and the relay are stand-ins that note what is done."""

import errno
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener import handshake
from gatewayfilter.proxy.listener.connect_request import ConnectRequest
from gatewayfilter.proxy.listener.connection_policy import INTERCEPT, StillSpliced
from gatewayfilter.proxy.listener.handshake import ESTABLISHED, HELLO_S, ClientHandshake
from gatewayfilter.proxy.listener.protocol_detection import MOST_BLANK_BYTES
from gatewayfilter.proxy.listener.refusals import BUSY, OVERLOADED, UNRECOGNIZED_NAME, denied
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.tunnel.dialer import Way
from gatewayfilter.proxy.tunnel.poller import GONE, READ
from gatewayfilter.proxy.tunnel.reach_guard import INTERNAL, InternalAddressError
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import client_hello

PASS = HostVerdict(HostAction.SPLICE, Verdict(Action.ALLOW, Reason.SPLICELIST))
DENY = HostVerdict(HostAction.DENY, Verdict(Action.BLOCK, Reason.BLACKLIST), shows_page=False)
PAGES, HELLO = BlockPages(), client_hello("site.example")
HOST = "site.example"
CONNECT = b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example\r\n\r\n"


class Socket:
    """A client's or an origin's socket: `coming` is what it receives."""

    def __init__(self, done: list[object], name: str) -> None:
        self._done, self._name = done, name
        self.coming: list[bytes | OSError] = []
        self.broken, self.short = False, False

    def fileno(self) -> int:
        return 5

    def recv_into(self, buffer: bytearray, most: int) -> int:
        assert most == 65_536
        found = self.coming.pop(0)
        if isinstance(found, OSError):
            raise found
        buffer[: len(found)] = found
        return len(found)

    def send(self, data: bytes) -> int:
        if self.broken:
            raise OSError(errno.EPIPE, "gone")
        self._done.append(("sent", data))
        return len(data) - self.short

    def shutdown(self, how: int) -> None:
        self._done.append(("shut", how))

    def close(self) -> None:
        self._done.append(f"{self._name} closed")


class Door:
    """A connection in its handshake; `done` is what was done, in order."""

    def __init__(self, *, transparent: bool = False, can_splice: bool = True, owned: bool = True) -> None:
        self.done: list[object] = []
        self.verdicts: dict[tuple[str, str], HostVerdict] = {}
        self.judged: list[tuple[str, ...]] = []
        self.admitted, self.page, self.broken = True, True, False
        self.dialled: list[tuple[object, ...]] = []
        self.connected: Callable[[object], None] = lambda _: None
        self.relayed: dict[str, Any] = {}
        self.counters, self.undecided = Counters(), set[ClientHandshake]()
        note = self.done.append
        buffer = bytearray(65_536)
        turns = SimpleNamespace(disown=lambda number, owner: note(("disowned", number, owner)))
        poller = SimpleNamespace(
            now=100.0,
            turns=turns,
            watch=lambda number, events, call: note(("watched", number, events)),
            forget=lambda number: note("forgotten"),
            drop=lambda client: note("dropped"),
        )
        self.poller = poller
        policy = SimpleNamespace(judge=self._judge, record=self._record, shows_page=lambda *_: self.page)
        services: Any = SimpleNamespace(
            policy=policy,
            relays=SimpleNamespace(buffer=buffer, view=memoryview(buffer), counters=self.counters, start=self._start),
            poller=poller,
            dialer=SimpleNamespace(dial=self._dial),
            undecided=self.undecided,
            silent=self._limit("silent"),
            in_hello=self._limit("hello"),
            transparent=transparent,
            can_splice=can_splice,
            user_of=lambda authorization: authorization.removeprefix("Basic "),
            admits=lambda authorization, address: self.admitted and address == "10.0.0.2",
            pages=PAGES,
            hand_over=lambda one: note("handed over"),
            closed=lambda address: note(("closed", address)),
        )
        self.client, self.origin = Socket(self.done, "client"), Socket(self.done, "origin")
        owner: Any = "owner" if owned else None
        self.shake = ClientHandshake(services, cast("Any", self.client), "10.0.0.2", owner)
        self.undecided.add(self.shake)

    def _judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:
        if self.broken:
            raise RuntimeError("a fault")
        self.judged.append((client, target, name, user))
        return self.verdicts.get((target, name), INTERCEPT)

    def _record(self, client: str, host: str, port: int, verdict: Verdict, started: int, user: str = "") -> None:
        assert started > 0
        self.done.append(("record", client, host, port, verdict, user))

    def _dial(self, host: str, port: int, done: Any, prefer: str = "", *, client: str) -> Any:
        self.dialled.append((host, port, prefer, client))
        self.connected = done
        return SimpleNamespace(begin=lambda: self.done.append("dialled"), cancel=lambda: self.done.append("cancelled"))

    def _start(self, client: object, origin: object, **more: Any) -> None:
        self.relayed = more | {"ends": (client is self.client, origin is self.origin)}
        self.done.append("relayed")

    def _limit(self, name: str) -> Any:
        return SimpleNamespace(
            add=lambda one: self.done.append(f"{name} begins"), remove=lambda one: self.done.append(f"{name} ends")
        )

    def comes(self, data: bytes | OSError, events: int = READ) -> list[object]:
        """Has data come from the client; returns what is done then."""
        self.done.clear()
        self.client.coming.append(data)
        self.shake._readable(events)
        return self.done

    def origin_is(self, found: object) -> list[object]:
        """Ends the attempt to connect; returns what is done then."""
        self.done.clear()
        self.connected(found)
        return self.done

    def tunnel(self, *, ahead: bytes = b"", head: bytes = CONNECT) -> list[object]:
        """Opens a tunnel that passes through; `ahead` comes with its CONNECT."""
        self.verdicts.setdefault((HOST, ""), PASS)
        self.comes(head + ahead)
        return self.origin_is(Way(cast("Any", self.origin), b"first"))


DROPPED = [("disowned", 5, "owner"), "dropped", ("closed", "10.0.0.2")]
GIVEN = ["forgotten", "handed over"]
NO_LIMITS = ["silent ends", "hello ends"]


def answered(answer: bytes) -> list[object]:
    return [("sent", answer), ("shut", 1), *DROPPED]


def record(verdict: Verdict, host: str = HOST, port: int = 443, user: str = "") -> tuple[object, ...]:
    return ("record", "10.0.0.2", host, port, verdict, user)


def test_it_waits_for_its_first_bytes() -> None:
    door = Door()
    door.shake.begin()
    assert door.done == [("watched", 5, READ)]
    for seconds, over in ((599.0, False), (600.0, True)):
        assert door.shake.expired(100.0 + seconds, 600.0) == over
    door.poller.now = 200.0
    assert door.comes(BlockingIOError()) == door.comes(InterruptedError()) == []
    assert door.comes(b"CONN") == []
    assert (door.shake.data, door.shake.since) == (b"CONN", 200.0)
    door.poller.now = 210.0
    assert door.comes(b"ECT ") == []
    assert (door.shake.data, door.shake.since) == (b"CONNECT ", 200.0)
    for seconds, over in ((HELLO_S - 0.5, False), (HELLO_S, True)):
        assert door.shake.expired(200.0 + seconds, 600.0) == over
    assert door.comes(b"") == DROPPED
    assert door.undecided == set()
    assert door.comes(ConnectionResetError()) == DROPPED[:2], "it was counted as closed before"


@all_cases(("data", "answer"), [(HELLO, BUSY), (b"GET / HTTP/1.1", OVERLOADED), (b"G", OVERLOADED)])
def test_during_an_overload_it_is_refused(data: bytes, answer: bytes) -> None:
    door = Door(owned=False)
    assert door.comes(data) == [("sent", answer), ("shut", 1), ("disowned", 5, None), *DROPPED[1:]]
    gone = Door(owned=False)
    gone.client.broken = True
    assert gone.comes(data) == [("disowned", 5, None), *DROPPED[1:]]


@all_cases(
    "data",
    [
        HELLO,
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"CONNECTS",
        b"CONNECT site.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        b"CONNECT " + b"x" * (65_536 - 8) + b"y",
        b"\r\n" * (MOST_BLANK_BYTES // 2 + 1) + CONNECT,
    ],
)
def test_what_names_no_host_is_for_mitmproxy(data: bytes) -> None:
    door = Door()
    for at in range(0, len(data), 60_000):
        done = door.comes(data[at : at + 60_000])
    assert (done, door.judged, door.undecided, door.shake.answered) == (GIVEN, [], set(), False)


def test_a_head_is_read_to_its_end_and_within_its_bounds() -> None:
    door = Door()
    assert door.comes(b"\r\n\r\n" + CONNECT[:-1]) == []
    assert door.shake.data == CONNECT[:-1]
    blank = Door()
    blank.verdicts[HOST, ""] = PASS
    assert blank.comes(b"\r\n" * (MOST_BLANK_BYTES // 2) + CONNECT) == ["dialled"]
    assert door.comes(CONNECT[-1:] + b"more") == GIVEN
    assert door.judged == [("10.0.0.2", HOST, "", "")]
    assert (door.shake.opened, door.shake.head_bytes) == (ConnectRequest(HOST, 443, verbatim=True), len(CONNECT))
    long = Door()
    long.comes(b"CONNECT " + b"x" * 60_000)
    assert long.comes(b"x" * (65_536 - 60_008)) == []
    other = Door()
    assert other.comes(CONNECT.replace(b"site.example:", b"SITE.example:")) == GIVEN
    assert (other.judged[0][1], other.shake.opened, other.shake.head_bytes) == (HOST, None, 0)
    refused = Door()
    refused.admitted = False
    assert (refused.comes(CONNECT), refused.judged, refused.shake.opened) == (GIVEN, [], None)


def test_what_a_host_is_by_its_name() -> None:
    for splices, verdict, done in (
        (True, PASS, ["dialled"]),
        (False, PASS, GIVEN),
        (True, DENY, [record(DENY.verdict), *answered(denied(Reason.BLACKLIST))]),
        (True, replace(DENY, shows_page=True), GIVEN),
        (True, INTERCEPT, GIVEN),
    ):
        door = Door(can_splice=splices)
        door.verdicts[HOST, ""] = verdict
        assert door.comes(CONNECT) == done
    plain = Door()
    plain.verdicts[HOST, ""] = replace(DENY, shows_page=True)
    plain.page = False
    assert plain.comes(CONNECT)[0] == record(DENY.verdict)
    user = Door()
    user.verdicts[HOST, ""] = DENY
    done = user.comes(CONNECT.replace(b"\r\n\r\n", b"\r\nProxy-Authorization: Basic kim\r\n\r\n"))
    assert (user.judged, done[0]) == ([("10.0.0.2", HOST, "", "kim")], record(DENY.verdict, user="kim"))


def test_where_it_is_connected_to() -> None:
    door = Door()
    door.verdicts[HOST, ""] = PASS
    door.comes(CONNECT)
    assert door.dialled == [(HOST, 443, "", "10.0.0.2")]
    assert not door.shake.expired(100.0 + HELLO_S, 600.0), "it waits for the origin"
    led = Door()
    led.verdicts[HOST, ""] = replace(PASS, connect_to="safe.example")
    led.comes(CONNECT)
    assert led.dialled == [("safe.example", 443, "", "10.0.0.2")]


def test_a_client_that_goes_on_or_leaves_while_its_origin_is_connected_to() -> None:
    door = Door()
    door.verdicts[HOST, ""] = PASS
    door.comes(CONNECT)
    assert door.comes(b"x") == ["forgotten"]
    assert door.client.coming == [b"x"], "it stays in the socket"
    assert door.comes(b"x", READ | GONE) == ["cancelled", *DROPPED]


@pytest.mark.parametrize("internal", [True, False])
def test_an_origin_that_cannot_be_reached(*, internal: bool) -> None:
    door = Door()
    door.verdicts[HOST, ""] = PASS
    door.comes(CONNECT)
    first, (kind, page), *rest = cast(
        "list[Any]", door.origin_is(InternalAddressError() if internal else OSError(111, "refused"))
    )
    assert (first, kind, rest) == (record(INTERNAL if internal else PASS.verdict), "sent", [("shut", 1), *DROPPED])
    assert page.startswith(b"HTTP/1.1 ")
    assert door.counters["origin_errors"] == int(not internal)


def test_a_tunnel_is_answered_and_waits_for_its_hello() -> None:
    door = Door()
    assert door.tunnel() == [("sent", ESTABLISHED), "silent begins", ("watched", 5, READ)]
    assert door.shake.expired(10_000.0, 600.0) is False, "tunnels have limits of their own"
    assert door.comes(HELLO[:1]) == ["silent ends", "hello begins"]
    assert door.comes(HELLO[1:9]) == []
    assert door.comes(HELLO[9:]) == [
        *NO_LIMITS,
        record(PASS.verdict),
        ("disowned", 5, "owner"),
        "relayed",
    ]
    assert door.undecided == set()
    relayed, held = door.relayed, door.relayed["holds"]
    assert (relayed["to_origin"], relayed["to_client"], relayed["ends"]) == (HELLO, b"first", (True, True))
    assert held == StillSpliced(held.policy, "10.0.0.2", HOST, 443, HOST, "", always=False)
    assert relayed["passed"] == held.count_use
    door.done.clear()
    cast("partial[None]", relayed["on_end"])()
    assert door.done == [("closed", "10.0.0.2")]


def test_a_hello_that_came_with_its_connect() -> None:
    door = Door()
    assert door.tunnel(ahead=HELLO)[-2:] == [("disowned", 5, "owner"), "relayed"]
    assert ("watched", 5, READ) not in door.done
    begun = Door()
    assert begun.tunnel(ahead=HELLO[:5]) == [
        *(("sent", ESTABLISHED), "silent begins", "silent ends", "hello begins", ("watched", 5, READ)),
    ]


@pytest.mark.parametrize("fault", ["broken", "short"])
def test_a_client_that_cannot_be_answered(fault: str) -> None:
    door = Door()
    setattr(door.client, fault, True)
    done = door.tunnel()
    assert [one for one in done if one != ("sent", ESTABLISHED)] == ["origin closed", *DROPPED]


def test_what_is_inside_a_tunnel_has_to_agree() -> None:
    given = [*NO_LIMITS, "origin closed", *GIVEN]
    for data in (b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x16garbage"):
        door = Door()
        door.tunnel()
        assert (door.comes(data), door.shake.answered, door.judged) == (given, True, [("10.0.0.2", HOST, "", "")])
    for verdict, relayed in ((PASS, True), (INTERCEPT, False), (DENY, False)):
        door = Door()
        door.tunnel(head=CONNECT.replace(b"\r\n\r\n", b"\r\nProxy-Authorization: Basic kim\r\n\r\n"))
        door.verdicts[HOST, "other.example"] = verdict
        done = door.comes(client_hello("other.example"))
        assert door.judged[1:] == [("10.0.0.2", HOST, "other.example", "kim")]
        assert (done == given) == (not relayed)
        assert not relayed or door.relayed["holds"].name == "other.example"
    unnamed = Door()
    unnamed.tunnel()
    assert unnamed.comes(client_hello(None))[-1] == "relayed"
    assert (unnamed.relayed["holds"].name, len(unnamed.judged)) == ("", 1)
    elsewhere = Door()
    elsewhere.tunnel()
    elsewhere.verdicts[HOST, "other.example"] = replace(PASS, connect_to="safe.example")
    kind, *what = cast("Any", elsewhere.comes(client_hello("other.example"))[3])
    assert (kind, what[3].reason, what[3].action) == ("record", Reason.SAFESEARCH, Action.BLOCK)
    assert elsewhere.done[:3] + elsewhere.done[4:] == [*NO_LIMITS, "origin closed", *answered(UNRECOGNIZED_NAME)]


def test_a_fault_of_the_engine_ends_a_tunnel() -> None:
    door = Door()
    door.tunnel()
    door.broken = True
    with pytest.raises(RuntimeError):
        door.comes(client_hello("other.example"))
    assert door.done == [*NO_LIMITS, "origin closed", *DROPPED]


def test_a_tunnel_that_is_out_of_time_is_for_mitmproxy() -> None:
    door = Door()
    door.shake.out_of_time()
    assert door.done == []
    door.tunnel()
    door.done.clear()
    door.shake.out_of_time()
    assert door.done == [*NO_LIMITS, "origin closed", *GIVEN]
    assert door.shake.answered
    dropped = Door()
    dropped.tunnel()
    dropped.done.clear()
    dropped.shake.drop()
    assert dropped.done == [*NO_LIMITS, "origin closed", *DROPPED]


@pytest.fixture
def redirected(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, int]], Door]:
    def made(to: tuple[str, int]) -> Door:
        monkeypatch.setattr(handshake, "original_destination", lambda client: to)
        return Door(transparent=True)

    return made


def test_a_redirected_connection_is_named_by_its_hello(redirected: Callable[[tuple[str, int]], Door]) -> None:
    door = redirected(("192.0.2.1", 8443))
    door.verdicts[HOST, ""] = PASS
    assert door.comes(HELLO[:9]) == []
    assert door.comes(HELLO[9:]) == ["dialled"]
    assert (door.dialled, door.judged) == ([(HOST, 8443, "192.0.2.1", "10.0.0.2")], [("10.0.0.2", HOST, "", "")])
    assert door.origin_is(Way(cast("Any", door.origin))) == [
        *(record(PASS.verdict, port=8443), ("disowned", 5, "owner"), "relayed"),
    ]
    held = door.relayed["holds"]
    assert (door.relayed["to_origin"], door.relayed["to_client"]) == (HELLO, b"")
    assert (held.host, held.port, held.name, held.always) == (HOST, 8443, "", False)
    pinned = redirected(("192.0.2.1", 443))
    pinned.verdicts[HOST, ""] = replace(PASS, verdict=Verdict(Action.ALLOW, Reason.PINNED_APP), connect_to="safe.example")
    pinned.comes(HELLO)
    pinned.origin_is(Way(cast("Any", pinned.origin)))
    assert (pinned.relayed["holds"].always, pinned.relayed["holds"].connect_to) == (True, "safe.example")
    assert pinned.dialled == [("safe.example", 443, "192.0.2.1", "10.0.0.2")]


def test_redirected_connections_without_a_name_are_judged_by_their_address(redirected: Callable[[tuple[str, int]], Door]) -> None:
    for address, host in (("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]")):
        door = redirected((address, 443))
        door.comes(client_hello(None))
        assert door.judged == [("10.0.0.2", host, "", "")]


def test_what_a_redirected_connection_is_by_its_name(
    redirected: Callable[[tuple[str, int]], Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    for verdict, done in (
        (DENY, [record(DENY.verdict), *answered(UNRECOGNIZED_NAME)]),
        (replace(DENY, shows_page=True), GIVEN),
        (INTERCEPT, GIVEN),
    ):
        door = redirected(("192.0.2.1", 443))
        door.verdicts[HOST, ""] = verdict
        assert door.comes(HELLO) == done
    for found, ends in (
        (InternalAddressError(), [record(INTERNAL), *answered(UNRECOGNIZED_NAME)]),
        (OSError(111, "refused"), [record(PASS.verdict), *DROPPED]),
    ):
        door = redirected(("192.0.2.1", 443))
        door.verdicts[HOST, ""] = PASS
        door.comes(HELLO)
        assert door.origin_is(found) == ends
        assert door.counters["origin_errors"] == int(not isinstance(found, InternalAddressError))
    for data in (CONNECT, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"):
        door = redirected(("192.0.2.1", 443))
        door.verdicts[HOST, ""] = PASS
        assert (door.comes(data), door.judged) == (GIVEN, [])
    door = redirected(("192.0.2.1", 443))
    monkeypatch.setattr(handshake, "original_destination", lambda client: (_ for _ in ()).throw(OSError))
    assert door.comes(HELLO) == GIVEN
    unspliced = Door(transparent=True, can_splice=False)
    monkeypatch.setattr(handshake, "original_destination", lambda client: ("192.0.2.1", 443))
    unspliced.verdicts[HOST, ""] = PASS
    assert unspliced.comes(HELLO) == GIVEN
