"""The policy of connections by their names: which verdict holds, what is learned of devices, what is counted and logged."""

from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.config import DenyRule, TlsSettings
from gatewayfilter.model import HostAction, HostVerdict, LogRecord, Reason, Verdict
from gatewayfilter.proxy.listener import host_policy
from gatewayfilter.proxy.listener.connection_policy import INTERCEPT
from gatewayfilter.proxy.listener.host_policy import HostPolicy, is_name
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import DENY, LOOK, NAMED, PASS, FakeHosts

CLIENT = "192.0.2.7"
TABLE = {"pass.example": PASS, "deny.example": DENY, "look.example": LOOK, "named.example": NAMED, "192.0.2.9": LOOK}


class Device:
    """A device whose apps take no certificate of ours at some hosts."""

    def __init__(self, *covered: str, distrusts: bool = False) -> None:
        self._covered = covered
        self._distrusts = distrusts

    def covers(self, client: str, host: str) -> bool:
        assert client == CLIENT
        return host in self._covered

    def distrusts(self, client: str, host: str) -> bool:
        assert (client, host) == (CLIENT, "deny.example")
        return self._distrusts


class Usage:
    """Notes what is relayed."""

    def __init__(self, *, active: bool) -> None:
        self.active = active
        self.relays: list[tuple[str, ...]] = []

    def relayed(self, *what: str) -> None:
        self.relays.append(what)


def policy(device: Any = None, hosts: Any = None, settings: TlsSettings | None = None, **more: Any) -> HostPolicy:
    recorder, counters = more.pop("recorder", None), more.pop("counters", Counters())
    return HostPolicy(hosts or FakeHosts(TABLE), settings or TlsSettings(), recorder, counters, device, **more)


@all_cases(
    ("target", "name", "found"),
    [
        ("pass.example", "", PASS),
        ("pass.example", "pass.example", PASS),
        ("look.example", "", LOOK),
        ("deny.example", "", DENY),
        ("deny.example", "pass.example", DENY),
        ("pass.example", "deny.example", DENY),
        ("pass.example", "look.example", LOOK),
        ("look.example", "pass.example", LOOK),
        ("named.example", "look.example", LOOK),
        ("look.example", "named.example", NAMED),
    ],
)
def test_both_names_of_a_connection_have_to_pass(target: str, name: str, found: HostVerdict) -> None:
    assert policy().judge(CLIENT, target, name) == found


def test_nothing_passes_where_it_is_turned_off() -> None:
    off = policy(settings=TlsSettings(splice=False))
    assert off.judge(CLIENT, "pass.example") is INTERCEPT
    assert off.judge(CLIENT, "deny.example") == DENY


@all_cases(
    ("host", "learned"),
    [("look.example", True), ("named.example", False), ("deny.example", False), ("192.0.2.9", False), ("a b", False)],
)
def test_what_a_device_refuses_passes_unless_a_block_names_it(host: str, *, learned: bool) -> None:
    device = Device("look.example", "named.example", "deny.example", "192.0.2.9", "a b")
    found = policy(device).judge(CLIENT, host)
    assert (found.verdict.reason is Reason.PINNED_APP) is (found.action is HostAction.SPLICE) is learned
    assert policy(Device()).judge(CLIENT, host) == TABLE.get(host, LOOK)


def test_what_is_learned_leads_where_the_policy_has_it_lead() -> None:
    table = {"look.example": replace(LOOK, connect_to="192.0.2.99")}
    found = policy(Device("look.example"), FakeHosts(table)).judge(CLIENT, "look.example")
    assert (found.action, found.verdict.reason, found.connect_to) == (HostAction.SPLICE, Reason.PINNED_APP, "192.0.2.99")
    assert policy(Device("look.example")).judge(CLIENT, "look.example").connect_to == ""


@all_cases("at", [0.0, 1_000.0])
def test_a_failure_decrypts_and_is_logged_every_ten_seconds(at: float) -> None:
    counters, now = Counters(), [at]
    broken = policy(hosts=FakeHosts(broken=True), counters=counters, clock=lambda: now[0])
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_policy._log, "exception", told.append)
        for passed, times in ((0.0, 1), (9.9, 1), (10.0, 2), (19.9, 2), (20.0, 3)):
            now[0] = at + passed
            assert broken.judge(CLIENT, "pass.example") is INTERCEPT
            assert len(told) == times
    assert counters["hook_errors"] == 5


@all_cases(
    ("host", "may_learn"),
    [
        ("look.example", True),
        ("named.example", False),
        ("pass.example", False),
        ("deny.example", False),
        ("192.0.2.9", False),
        ("a b", False),
    ],
)
def test_what_may_be_learned(host: str, *, may_learn: bool) -> None:
    assert policy().may_learn(CLIENT, host) is may_learn


@all_cases(
    ("rule", "device", "page"),
    [
        (DenyRule.ALERT, None, False),
        (DenyRule.ALERT, Device(), False),
        (DenyRule.PAGE, None, True),
        (DenyRule.PAGE, Device(), True),
        (DenyRule.PAGE, Device(distrusts=True), False),
    ],
)
def test_when_a_block_is_shown_as_a_page(rule: DenyRule, device: Device | None, *, page: bool) -> None:
    assert policy(device, settings=TlsSettings(deny=rule)).shows_page(CLIENT, "deny.example") is page


@all_cases("active", [True, False, None])
def test_use_counts_where_there_are_quotas(*, active: bool | None) -> None:
    usage = Usage(active=active) if active is not None else None
    policy(usage=usage).count_use(CLIENT, "a.example", "ada")
    assert usage is None or usage.relays == ([(CLIENT, "a.example", "ada")] if active else [])


def test_whether_verdicts_may_change() -> None:
    class Marked(FakeHosts):
        def policy_mark(self) -> Any:
            return "mark"

    assert [policy(hosts=hosts).may_change() for hosts in (FakeHosts(), Marked())] == [False, True]


@all_cases(
    ("host", "verdict", "counted"),
    [
        ("a.example", PASS.verdict, {"requests": 1, "spliced": 1, "blocked": 0, "denied": 0}),
        ("a.example", DENY.verdict, {"requests": 1, "spliced": 0, "blocked": 1, "denied": 1}),
        ("a b", PASS.verdict, {"requests": 1, "spliced": 1, "blocked": 0, "denied": 0}),
    ],
)
def test_a_connection_is_counted_and_logged(host: str, verdict: Verdict, counted: dict[str, int]) -> None:
    records: list[LogRecord] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewayfilter.proxy.listener.host_policy.time.perf_counter_ns", lambda: 9_002_500)
        for recorder in (DecisionRecorder(records.append), None):
            counters = Counters()
            policy(recorder=recorder, counters=counters).record(CLIENT, host, 8443, verdict, 5_000_000, "ada")
            assert {name: counters[name] for name in counted} == counted
    if host == "a b":
        assert records == []
        return
    [record] = records
    assert (record.url, record.method, record.client, record.user) == ("https://a.example:8443/", "CONNECT", CLIENT, "ada")
    assert (record.action, record.reason, record.elapsed_us) == (verdict.action.value, verdict.reason.value, 4_002)


@all_cases(("host", "name"), [("a.example", True), ("192.0.2.1", False), ("[2001:db8::1]", False), ("a b", False), ("", False)])
def test_what_is_a_name(host: str, *, name: bool) -> None:
    assert is_name(host) is name
