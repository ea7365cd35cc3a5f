"""The hooks of the guard: for whom a task connects, which addresses a connection may lead to, and what is aborted and logged."""

import asyncio
import errno
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Client, Server
from mitmproxy.flow import Error
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.test import tflow

from gatewayfilter.addresses.links import NO_LINKS
from gatewayfilter.config import ProxySettings
from gatewayfilter.proxy.pages.upstream_errors import INTERNAL_MESSAGE
from gatewayfilter.proxy.tunnel import reach_guard
from gatewayfilter.proxy.tunnel.reach_guard import INTERNAL, InternalAddressError, ReachGuard
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases


def infos(*addresses: str) -> list[Any]:
    return [(2, 1, 6, "", (one, 80)) for one in addresses]


class Guard:
    """A guard, the client that connects, and what was recorded."""

    def __init__(self, mode: str = "regular", *, enforced: str | None = None, engine: bool = True) -> None:
        self.counters, self.recorded, self.asked = Counters(), list[tuple[object, ...]](), list[tuple[str, ...]]()
        self.client = Client(peername=("192.168.1.5", 5), sockname=("192.168.1.1", 8080))
        self.users = {self.client.id: "kim"}
        self.connections: dict[str, Any] = {}

        def enforced_address(host: str, client: str, user: str) -> str | None:
            self.asked.append((host, client, user))
            return enforced

        recorder = SimpleNamespace(
            record=lambda request, verdict, us: self.recorded.append((request.url.host, request.user, verdict, us)),
            record_unreadable=lambda client, method, verdict, user: self.recorded.append((client, method, verdict, user)),
        )
        hosts: Any = SimpleNamespace(enforced_address=enforced_address) if engine else None
        self.guard = ReachGuard(
            ProxySettings.model_validate({"mode": mode}), self.counters, cast("Any", self.connections), cast("Any", recorder),
            lambda: NO_LINKS, hosts=hosts, logged_in=self.users,
        )  # fmt: skip

    def data(self, host: str = "site.example", port: int = 80) -> ServerConnectionHookData:
        return ServerConnectionHookData(Server(address=(host, port)), self.client)

    def within(self, call: Any, *, noted: bool = True) -> Any:
        """Calls within a task that connects for the client."""

        def run() -> Any:
            if noted:
                self.guard.server_connect(self.data())
            return call()

        return copy_context().run(run)


PARENT = "upstream:http://parent.example:3128"


def test_a_client_is_led_to_where_its_policy_has_it() -> None:
    made = Guard(enforced="safe.example")
    assert made.within(lambda: made.guard.led_to("site.example")) == "safe.example"
    assert made.asked == [("site.example", "192.168.1.5", "kim")]
    assert made.within(lambda: made.guard.led_to("site.example"), noted=False) == "site.example"
    for other in (Guard(), Guard(PARENT, enforced="safe.example"), Guard(engine=False)):
        assert other.within(lambda other=other: other.guard.led_to("site.example")) == "site.example"
    anonymous = Guard(enforced="safe.example")
    anonymous.users.clear()
    anonymous.within(lambda: anonymous.guard.led_to("site.example"))
    assert anonymous.asked[-1][2] == ""


def test_addresses_are_admitted_for_the_client_of_the_task() -> None:
    found = infos("10.0.0.1", "8.8.8.8")
    made = Guard()
    assert made.within(lambda: made.guard.admitted_here("x.com", found)) == found[1:]
    assert made.within(lambda: made.guard.admitted_here("x.com", found), noted=False) == found
    parent = Guard(PARENT)
    assert parent.within(lambda: parent.guard.admitted_here("x.com", found)) == found
    with pytest.raises(InternalAddressError):
        made.within(lambda: made.guard.admitted_here("x.com", infos("10.0.0.1")))
    assert made.counters.as_dict() == {"internal_refused": 1}
    public = infos("8.8.8.8", "8.8.4.4")
    assert made.within(lambda: made.guard.admitted_here("x.com", public)) == public
    redirected = Guard("transparent")
    assert redirected.within(lambda: redirected.guard.admitted_here("10.0.0.1", found)) == found


def test_where_an_open_connection_may_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[Any] = [infos("10.0.0.1", "8.8.8.8")]
    asked: list[tuple[object, ...]] = []

    def addresses(loop: object, host: str, port: int, *, is_open: bool) -> Any:
        asked.append((host, port, is_open))
        if isinstance(known[0], Exception):
            raise known[0]
        return known[0]

    monkeypatch.setattr(reach_guard, "known_addresses", addresses)

    def may(made: Guard, host: str = "x.com") -> Any:
        async def ask() -> Any:
            return made.guard.known_addresses(made.data(host, 81))

        return asyncio.run(ask())

    assert may(Guard()) == {"8.8.8.8"}
    assert asked == [("x.com", 81, True)]
    led = Guard(enforced="safe.example")
    may(led)
    assert (asked[-1][0], led.asked) == ("safe.example", [("x.com", "192.168.1.5", "kim")])
    assert (may(Guard(engine=False)), may(Guard(PARENT))) == ({"8.8.8.8"}, ())
    assert may(Guard("transparent"), "10.0.0.1") == {"10.0.0.1", "8.8.8.8"}
    for fault in (None, OSError(), UnicodeError()):
        known[0] = fault
        assert may(Guard()) == ()


def test_an_address_of_four_fields_is_looked_up_by_its_host_and_port(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(reach_guard, "known_addresses", lambda _loop, host, port, **_: asked.append((host, port)))
    made = Guard()
    server = Server(address=cast("Any", ("2001:db8::1", 81, 0, 0)))

    async def ask() -> Any:
        return made.guard.known_addresses(ServerConnectionHookData(server, made.client))

    assert (asyncio.run(ask()), asked) == ((), [("2001:db8::1", 81)])


def test_the_error_of_an_internal_address_is_a_sentence_for_users() -> None:
    error = InternalAddressError()
    assert (str(error), error.errno) == (INTERNAL_MESSAGE, errno.EACCES)


@all_cases(
    ("ours", "theirs", "home"),
    [("8.8.8.8", "8.8.8.8", True), ("8.8.8.8", "8.8.4.4", False), ("127.0.0.1", "127.0.0.1", False)],
)
def test_a_connection_leads_home_where_its_ends_have_one_address_that_was_not_judged_before(
    ours: str, theirs: str, *, home: bool
) -> None:
    assert Guard().guard.leads_home("192.168.1.5", "x.com", ours, theirs) is home


def test_a_connection_that_ends_at_this_machine_is_aborted() -> None:
    class Writer(asyncio.StreamWriter):
        def __init__(self) -> None:
            self._transport = SimpleNamespace(abort=lambda: ended.append(True))

        def __del__(self) -> None:
            pass

    ended: list[bool] = []
    for mode, ours, theirs, aborted in (
        ("regular", ("8.8.8.8", 5), ("8.8.8.8", 80), True),
        ("regular", ("192.168.1.1", 5), ("8.8.8.8", 80), False),
        ("regular", None, ("8.8.8.8", 80), False),
        ("regular", ("8.8.8.8", 5), None, False),
        (PARENT, ("8.8.8.8", 5), ("8.8.8.8", 80), False),
    ):
        made = Guard(mode)
        data = made.data("x.com")
        data.server.sockname, data.server.peername = ours, theirs
        made.connections[made.client.id] = SimpleNamespace(transports={data.server: SimpleNamespace(writer=Writer())})
        made.guard.server_connected(data)
        assert ended == [True] * aborted
        ended.clear()
    nowhere = Guard()
    nowhere.guard.server_connected(ServerConnectionHookData(Server(address=None), nowhere.client))


def test_what_was_refused_is_counted_and_logged() -> None:
    made = Guard()
    flow, tunnel = tflow.tflow(), tflow.ttcpflow()
    for one in (flow, tunnel):
        made.users[one.client_conn.id] = "kim"
    for message, count in (("other", 0), (INTERNAL_MESSAGE, 2)):
        flow.error = tunnel.error = Error(message)
        made.guard.error(flow)
        made.guard.tcp_error(tunnel)
        assert (len(made.recorded), made.counters["blocked"]) == (count, count)
    assert {one[1:] for one in made.recorded} == {("kim", INTERNAL, 0)}
    made.recorded.clear()
    flow.error = None
    made.guard.error(flow)
    assert made.recorded == []
    flow.error, flow.request.data.path = Error(INTERNAL_MESSAGE), b"/a b"
    made.guard.error(flow)
    assert made.recorded == [("127.0.0.1", "", INTERNAL, "kim")]
    silent = ReachGuard(ProxySettings(), made.counters, {})
    silent.error(flow)
    assert made.counters["blocked"] == 4
