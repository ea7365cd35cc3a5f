"""Which handshakes and silent connections count as rejections of the filter's certificate."""

from types import SimpleNamespace
from typing import Any, cast

from mitmproxy import tls
from mitmproxy.connection import Client, Server
from mitmproxy.test import tflow

from gatewayfilter.model import HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener.connection_policy import InterceptAll
from gatewayfilter.proxy.listener.pinned_apps import PinnedApps
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.proxy.listener.tls_failures import TlsFailures
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import DENY, LOOK, PASS

PHONE = "192.0.2.7"


class Policy(InterceptAll):
    """Passes what it is told to, and keeps what it is asked."""

    def __init__(self) -> None:
        self.verdict: HostVerdict = LOOK
        self.told: list[tuple[object, ...]] = []

    def judge(self, client: str, target: str, name: str = "", user: str = "") -> HostVerdict:
        self.told.append((client, target, name, user))
        return self.verdict

    def may_learn(self, client: str, host: str) -> bool:
        return (client, host) != (PHONE, "blocked.example")

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int, user: str = "") -> None:
        self.told.append((client, host, port, verdict.reason))


class Noted:
    """Learns a name at the second failure, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def succeeded(self, client: str, host: str) -> None:
        self.told.append(("succeeded", client, host))

    def failed(self, client: str, host: str, *, may_learn: bool = True) -> bool:
        self.told.append(("failed", client, host, may_learn))
        return len(self.told) == 2


class Setting:
    """The addon with what it tells; time is `now`."""

    def __init__(self, *, passes: bool = True, pinned: bool = True) -> None:
        self.now, self.policy, self.pinned, self.counters = 100.0, Policy(), Noted(), Counters()
        self.unreadable: list[Any] = []
        self.services = ConnectionServices(
            self.counters,
            self.policy,
            cast("PinnedApps", self.pinned) if pinned else None,
            recorder=DecisionRecorder(self.unreadable.append),
            logged_in={"c1": "ada"},
        )
        self.addon = TlsFailures(self.services, passes=passes, clock=lambda: self.now)


def client(sni: str | None = "App.Example", identity: str = "c1") -> Client:
    made = Client(peername=(PHONE, 1), sockname=("192.0.2.1", 8080), sni=sni)
    made.id = identity
    return made


def handshake(conn: Client | Server, address: tuple[str, int] | None = ("site.example", 443)) -> tls.TlsData:
    context = SimpleNamespace(client=conn, server=Server(address=address))
    return cast("tls.TlsData", SimpleNamespace(conn=conn, context=context))


def hello(address: tuple[str, int] | None, sni: str | None) -> Any:
    context = SimpleNamespace(client=client(), server=Server(address=address))
    return SimpleNamespace(context=context, client_hello=SimpleNamespace(sni=sni), ignore_connection=False)


@all_cases(
    ("seconds", "asked", "failed"),
    [(0.0, False, True), (2.99, False, True), (3.0, False, False), (0.1, True, False)],
)
def test_who_leaves_soon_and_without_a_request_did_not_like_the_certificate(seconds: float, *, asked: bool, failed: bool) -> None:
    setting = Setting()
    here = client()
    setting.addon.tls_established_client(handshake(here))
    if asked:
        setting.addon.requestheaders(tflow.tflow(client_conn=here))
        setting.addon.requestheaders(tflow.tflow(client_conn=here))  # the next one of the connection tells nothing more
    setting.now += seconds
    setting.addon.client_disconnected(here)
    setting.addon.client_disconnected(here)
    told = [("succeeded", PHONE, "app.example")] if asked else []
    assert setting.pinned.told == told + ([("failed", PHONE, "app.example", True)] if failed else [])


def test_a_handshake_with_an_origin_is_none_of_ours() -> None:
    setting = Setting()
    origin = Server(address=("site.example", 443))
    setting.addon.tls_established_client(handshake(origin))
    setting.addon.tls_failed_client(handshake(origin))
    assert setting.addon._silent == {}
    assert setting.pinned.told == []


def test_an_aborted_handshake_counts_for_the_name_or_else_the_target() -> None:
    setting = Setting()
    for sni, address in (("app.example", ("site.example", 443)), (None, ("Site.example", 443)), (None, None), ("a b", None)):
        setting.addon.tls_failed_client(handshake(client(sni), address))
    setting.addon.tls_failed_client(handshake(client("blocked.example")))
    assert setting.pinned.told == [
        ("failed", PHONE, "app.example", True),
        ("failed", PHONE, "site.example", True),
        ("failed", PHONE, "blocked.example", False),
    ]
    assert setting.counters.as_dict() == {"tls_failed": 5, "pinned_apps_learned": 1}
    nothing_learned = Setting(pinned=False)
    nothing_learned.addon.tls_failed_client(handshake(client()))
    nothing_learned.addon.requestheaders(tflow.tflow(client_conn=client()))
    assert nothing_learned.counters.as_dict() == {"tls_failed": 1}


def test_behind_a_parent_reached_by_tls_connections_are_passed_here() -> None:
    setting = Setting()
    setting.policy.verdict = PASS
    data = hello(("Bank.example", 8443), "www.bank.example")
    setting.addon.tls_clienthello(data)
    assert data.ignore_connection is True
    assert setting.policy.told == [
        (PHONE, "bank.example", "www.bank.example", "ada"),
        (PHONE, "bank.example", 8443, Reason.SPLICELIST),
    ]
    for verdict in (LOOK, DENY):
        setting.policy.verdict = verdict
        data = hello(("bank.example", 443), None)
        setting.addon.tls_clienthello(data)
        assert data.ignore_connection is False
    assert setting.policy.told[2:] == [(PHONE, "bank.example", "", "ada")] * 2
    setting.addon.tls_clienthello(hello(None, "www.bank.example"))
    assert len(setting.policy.told) == 4
    elsewhere = Setting(passes=False)
    elsewhere.policy.verdict = PASS
    data = hello(("bank.example", 443), None)
    elsewhere.addon.tls_clienthello(data)
    assert (data.ignore_connection, elsewhere.policy.told) == (False, [])


def test_what_is_no_http_is_counted_and_logged() -> None:
    setting = Setting()
    setting.addon.unreadable_request(client())
    assert setting.counters.as_dict() == {"requests": 1, "blocked": 1, "bad_requests": 1}
    assert [(record.client, record.reason) for record in setting.unreadable] == [(PHONE, "bad-request")]
    nameless = client()
    nameless.peername = None  # type: ignore[assignment]
    setting.addon.unreadable_request(nameless)
    assert setting.unreadable[1].client == ""
