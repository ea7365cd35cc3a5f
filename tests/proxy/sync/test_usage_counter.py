"""The usage counter: each minute once, of what counts alone, within its bounds."""

from dataclasses import replace

import pytest

from gatewayfilter.model import Action, QuotasUsed, QuotaUse, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.sync import usage_counter
from gatewayfilter.proxy.sync.usage_counter import UsageCounter, no_usage
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

ALLOWED = Verdict(Action.ALLOW, Reason.UNKNOWN)


class Quotas:
    """Counts what is asked for a host `clips.example`, as use of `hour`."""

    def __init__(self) -> None:
        self.present = True

    def has_quotas(self) -> bool:
        return self.present

    def quotas_used(self, request: Request, verdict: Verdict, *, own: bool) -> QuotasUsed | None:
        assert not verdict.blocked
        client = f"client:{request.user}" if request.user else f"address:{request.client}"
        return QuotasUsed(client, ("hour",)) if own and request.url.host == "clips.example" else None


def request(kind: ResourceType = ResourceType.DOCUMENT, client: str = "10.0.0.2") -> Request:
    return Request(parse_url("https://clips.example/"), None, kind, client=client)


def counter(clock: list[float]) -> UsageCounter:
    return UsageCounter(Quotas(), Counters(), lambda: clock[0])


def test_a_minute_is_taken_once() -> None:
    clock = [600.0]
    usage = counter(clock)
    assert usage.active
    for _ in range(3):
        usage.request(request(), ALLOWED)
    usage.running(request(ResourceType.OTHER))
    usage.relayed("10.0.0.2", "clips.example", "")
    assert usage.take(10) == [QuotaUse("address:10.0.0.2", "hour", 10)]
    clock[0] += 60
    usage.relayed("10.0.0.2", "clips.example", "")
    assert len(usage) == 1
    assert usage.take(10) == [QuotaUse("address:10.0.0.2", "hour", 11)]
    assert usage.take(10) == []


@all_cases("kind", ResourceType)
def test_requests_of_the_users_own_doing_count(kind: ResourceType) -> None:
    usage = counter([600.0])
    usage.request(request(kind), ALLOWED)
    assert len(usage) == (kind in {ResourceType.DOCUMENT, ResourceType.MEDIA, ResourceType.WEBSOCKET})


@all_cases("host", ["", "a b", "\ud800", "other.example", "[::1", "x" * 3000])
def test_hosts_of_any_kind_are_read(host: str) -> None:
    usage = counter([600.0])
    usage.relayed("10.0.0.2", host, "")
    assert len(usage) == 0


def test_what_is_too_much_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_counter, "_MOST", 3)
    counters = Counters()
    usage = UsageCounter(Quotas(), counters, lambda: 600.0)
    for number in range(5):
        usage.request(request(client=f"10.0.0.{number}"), ALLOWED)
    assert len(usage.take(10)) == 3
    assert counters.as_dict()["quota_uses_dropped"] == 2


def test_many_addresses_do_not_use_up_the_room_of_known_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_counter, "_MOST", 3)
    usage = counter([600.0])
    for number in range(5):
        usage.request(request(client=f"10.0.0.{number}"), ALLOWED)
    usage.request(replace(request(), user="kim"), ALLOWED)
    assert usage.take(10)[-1] == QuotaUse("client:kim", "hour", 10)


def test_it_follows_whether_there_are_quotas() -> None:
    quotas = Quotas()
    usage = UsageCounter(quotas, Counters())
    quotas.present = False
    usage.refresh()
    assert not usage.active
    assert not no_usage().active
    no_usage().request(request(), ALLOWED)


class Several(Quotas):
    """Every request uses the quotas that its path names."""

    def quotas_used(self, request: Request, verdict: Verdict, *, own: bool) -> QuotasUsed | None:
        return QuotasUsed(f"client:{request.user}", tuple(request.url.path.strip("/").split(",")))


def used(path: str, user: str = "kim") -> Request:
    return Request(parse_url(f"https://clips.example/{path}"), None, ResourceType.DOCUMENT, client="10.0.0.2", user=user)


def test_each_quota_of_a_request_counts_by_itself() -> None:
    usage = UsageCounter(Several(), Counters(), lambda: 600.0)
    usage.request(used("one"), ALLOWED)
    usage.request(used("one,two"), ALLOWED)
    assert usage.take(1) == [QuotaUse("client:kim", "one", 10)]
    assert usage.take(5) == [QuotaUse("client:kim", "two", 10)]


def test_what_could_not_be_written_comes_first_again() -> None:
    usage = UsageCounter(Several(), Counters(), lambda: 600.0)
    usage.request(used("one,two,three"), ALLOWED)
    usage.take_back(usage.take(2))
    assert [use.quota for use in usage.take(5)] == ["one", "two", "three"]


@all_cases(("user", "room"), [("kim", 6), ("", 3)])
def test_the_room_for_what_waits_and_for_what_is_remembered(user: str, room: int) -> None:
    class ByAddress(Several):
        def quotas_used(self, request: Request, verdict: Verdict, *, own: bool) -> QuotasUsed | None:
            client = f"client:{request.user}" if request.user else f"address:{request.client}"
            return QuotasUsed(client, tuple(request.url.path.strip("/").split(",")))

    clock, counters = [600.0], Counters()
    paths = ",".join(map(str, range(room)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage_counter, "_MOST", 3)
        usage = UsageCounter(ByAddress(), counters, lambda: clock[0])
        usage.request(used(paths, user), ALLOWED)
        assert (len(usage), counters["quota_uses_dropped"]) == (room, 0)
        usage.request(used("x,y", user), ALLOWED)
        assert (len(usage), counters["quota_uses_dropped"]) == (room, 2)
        assert len(usage.take(10)) == room
        usage.request(used("x", user), ALLOWED)
        assert (len(usage), counters["quota_uses_dropped"]) == (0, 3), "as many of one minute are remembered"
        clock[0] = 660.0
        usage.request(used(paths, user), ALLOWED)
        assert len(usage) == room
        clock[0] = 720.0
        usage.request(used("x", user), ALLOWED)
        assert (len(usage), counters["quota_uses_dropped"]) == (room, 4), "as many wait"


def test_nothing_is_counted_before_there_are_quotas() -> None:
    quotas = Quotas()
    quotas.present = False
    assert not UsageCounter(quotas, Counters()).active
