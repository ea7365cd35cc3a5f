"""Who may use the proxy: by tunnel and by request, with a password that was right before, and while one is looked at."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.test import tflow

from gatewayfilter.model import LogRecord
from gatewayfilter.proxy.auth.password_check_queue import Outcome
from gatewayfilter.proxy.auth.proxy_auth import ProxyLogin
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases

KNOWN, NEW, WRONG = "Basic known", "Basic new", "Basic wrong"


class People:
    """Users: one is remembered, another one is remembered once it was looked at."""

    def __init__(self) -> None:
        self.remembered = {KNOWN: "ada"}

    def recall(self, header: str) -> str:
        return self.remembered.get(header, "")

    def verify(self, header: str) -> bool:
        if header == NEW:
            self.remembered[NEW] = "kim"
        return header == NEW

    def digest(self, header: str) -> bytes:
        return header.encode()

    def named(self, header: str) -> str:
        return "kim" if header == WRONG else ""


class Turns:
    """Looks at passwords at once, unless it is told otherwise."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.outcome: Outcome | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    async def attempt(self, address: str, digest: bytes, verify: Callable[[], bool]) -> Outcome:
        self.asked.append((address, digest))
        self.meanwhile()
        return self.outcome or (Outcome.RIGHT if verify() else Outcome.WRONG)


class Door:
    """The addon, with what it tells."""

    def __init__(self, *, loopback: bool = True, logs: bool = True) -> None:
        self.answered: list[http.HTTPFlow] = []
        self.records: list[LogRecord] = []
        self.logged_in: dict[str, str] = {}
        self.counters, self.people, self.turns, self.frees = Counters(), People(), Turns(), False
        people: Any = self.people
        recorder = DecisionRecorder(self.records.append) if logs else None
        made = ProxyLogin(
            people,
            self.counters,
            self.answered.append,
            self.logged_in,
            loopback=loopback,
            free=lambda _: self.frees,
            recorder=recorder,
        )
        self.login = cast("Any", made)
        self.login._turns = self.turns

    def flow(self, header: str = "", *, method: str = "GET", address: str = "192.0.2.7", port: int = 443) -> Any:
        flow: Any = tflow.tflow()
        flow.request.method, flow.request.port = method, port
        flow.client_conn.peername = (address, 5000) if address else None
        flow.client_conn.id = "c1"
        if header:
            flow.request.headers["proxy-authorization"] = header
        return flow

    async def connects(self, flow: Any) -> Any:
        if (rest := self.login.http_connect(flow)) is not None:
            await rest
        return flow

    async def asks(self, flow: Any) -> Any:
        if (rest := self.login.requestheaders(flow)) is not None:
            await rest
        return flow


@all_cases(
    ("loopback", "authorization", "address", "admits"),
    [
        (True, KNOWN, "192.0.2.7", True),
        (True, NEW, "192.0.2.7", False),
        (True, "", "127.0.0.1", False),
        (False, "", "127.0.0.1", True),
        (False, "", "::1%lo", True),
        (False, "", "192.0.2.7", False),
        (False, "", "", False),
    ],
)
def test_who_may_pass_without_a_look_at_the_password(authorization: str, address: str, *, loopback: bool, admits: bool) -> None:
    door = Door(loopback=loopback)
    assert door.login.admits(authorization, address) is admits
    assert door.login.user_of(authorization) == ("ada" if authorization == KNOWN else "")


@pytest.mark.parametrize("tunnel", [True, False])
async def test_a_password_that_was_right_before_is_right(*, tunnel: bool) -> None:
    door = Door()
    flow = door.flow(KNOWN, method="CONNECT" if tunnel else "GET")
    assert (door.login.http_connect if tunnel else door.login.requestheaders)(flow) is None
    assert (flow.response, "proxy-authorization" in flow.request.headers, door.logged_in) == (None, False, {"c1": "ada"})
    inside = door.flow()
    await door.asks(inside)
    assert (inside.response is None) is tunnel, "what is inside a tunnel needs no log-in of its own"
    door.login.client_disconnected(flow.client_conn)
    assert door.logged_in == {}
    await door.asks(again := door.flow())
    assert again.response.status_code == 407
    door.login.client_disconnected(flow.client_conn)


@pytest.mark.parametrize("tunnel", [True, False])
@pytest.mark.parametrize(("header", "status"), [(NEW, 0), (WRONG, 407), ("", 407)])
async def test_a_new_password_is_looked_at(header: str, status: int, *, tunnel: bool) -> None:
    door = Door()
    flow = await (door.connects if tunnel else door.asks)(door.flow(header, method="CONNECT" if tunnel else "GET"))
    assert door.turns.asked == ([("192.0.2.7", header.encode())] if header else [])
    assert "proxy-authorization" not in flow.request.headers
    assert door.logged_in == ({} if status else {"c1": "kim"})
    assert (flow.response.status_code if flow.response else 0) == status
    assert door.answered == ([flow] if status and not tunnel else []), "mitmproxy answers a tunnel itself"
    assert door.counters.as_dict() == ({"logins_refused": 1} if header == WRONG else {})
    assert [(one.client, one.method, one.user, one.reason) for one in door.records] == (
        [("192.0.2.7", flow.request.method, "kim", "login-refused")] if header == WRONG else []
    )
    if status:
        assert flow.response.headers["proxy-authenticate"].startswith("Basic realm=")
        assert flow.response.headers["cache-control"] == "no-store"
    if tunnel and not status:
        assert (await door.asks(door.flow())).response is None, "what is inside needs no log-in of its own"


async def test_too_many_are_put_off_and_not_logged() -> None:
    door = Door()
    door.turns.outcome = Outcome.TOO_MANY
    flow = await door.asks(door.flow(NEW))
    assert (flow.response.status_code, flow.response.headers["retry-after"]) == (429, "10")
    assert (door.counters.as_dict(), door.records) == ({"logins_throttled": 1}, [])


async def test_a_wrong_password_is_counted_where_nothing_is_logged() -> None:
    door = Door(logs=False)
    await door.asks(door.flow(WRONG))
    assert door.counters.as_dict() == {"logins_refused": 1}


async def test_of_a_client_that_has_left_nothing_is_kept() -> None:
    door = Door()
    flow = door.flow(NEW)
    door.turns.meanwhile = lambda: setattr(flow.client_conn, "state", ConnectionState.CLOSED)
    await door.asks(flow)
    assert (door.logged_in, flow.response, door.answered) == ({}, None, [])


async def test_a_password_that_became_right_meanwhile_is_not_hashed_again() -> None:
    door = Door()
    door.turns.meanwhile = lambda: door.people.remembered.update({WRONG: "kim"})
    flow = await door.asks(door.flow(WRONG))
    assert (flow.response, door.logged_in) == (None, {"c1": "kim"})


@pytest.mark.parametrize(
    ("tunnel", "port", "passes"), [(True, 443, True), (True, 80, False), (False, 80, True), (False, 443, True)]
)
async def test_pages_of_the_filter_itself_need_no_log_in(port: int, *, tunnel: bool, passes: bool) -> None:
    door = Door()
    door.frees = True
    flow = door.flow(WRONG, method="CONNECT" if tunnel else "GET", port=port)
    await (door.connects if tunnel else door.asks)(flow)
    assert "proxy-authorization" not in flow.request.headers
    assert (flow.response is None, door.turns.asked == []) == (passes, passes)
    assert door.logged_in == {}
    door.frees = False
    assert (await door.asks(door.flow())).response.status_code == 407, "the next one does"


async def test_what_has_an_answer_is_left_alone() -> None:
    door = Door()
    flow = door.flow(WRONG)
    flow.response = http.Response.make(200)
    await door.asks(flow)
    assert (flow.response.status_code, door.turns.asked) == (200, [])


async def test_a_client_without_an_address_has_to_log_in() -> None:
    door = Door(loopback=False)
    assert (await door.asks(door.flow(address=""))).response.status_code == 407
    assert (await door.asks(door.flow(address="127.0.0.1"))).response is None
    assert door.logged_in == {"c1": ""}
