"""What becomes of requests to URLs on no list: queued, held, inspected or blocked."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.model import Action, Reason, ResourceType, Verdict
from gatewayfilter.proxy import unknown_policy
from gatewayfilter.proxy.unknown_policy import AllowUnknown, BlockUnknown, HoldUnknown, InspectUnknown
from tests.case_tables import all_cases

UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)
KNOWN = Verdict(Action.ALLOW, Reason.LEARNED)
BLOCKED = Verdict(Action.BLOCK, Reason.LEARNED)
BLOCKED_UNKNOWN = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)


class Reporter:
    """Notes what is queued."""

    def __init__(self, *, expected: bool = True, due: bool = True) -> None:
        self.queued: list[object] = []
        self._expected, self._due = expected, due

    def queue_page(self, flow_request: object) -> bool:
        self.queued.append(flow_request)
        return self._expected

    def is_due(self, _: object) -> bool:
        return self._due


def asked(kind: ResourceType = ResourceType.DOCUMENT, *, anonymous: bool = True, aliases: int = 0) -> Any:
    return SimpleNamespace(request=SimpleNamespace(resource_type=kind), anonymous=anonymous, aliases=(1,) * aliases)


@all_cases(
    ("passive", "flow_request", "queued"),
    [
        (False, asked(), True),
        (True, asked(), False),
        (True, asked(anonymous=False), True),
        (True, asked(aliases=1), True),
        (False, asked(ResourceType.SUBDOCUMENT), True),
        (False, asked(ResourceType.IMAGE), False),
    ],
)
def test_an_allowed_page_is_queued_unless_its_response_is_judged(flow_request: Any, *, passive: bool, queued: bool) -> None:
    reporter: Any = Reporter()
    flow: Any = None
    assert AllowUnknown(reporter, passive=passive).treat(flow, flow_request, UNKNOWN) is UNKNOWN
    assert reporter.queued == ([flow_request] if queued else [])
    assert AllowUnknown(None, passive=passive).treat(flow, flow_request, UNKNOWN) is UNKNOWN


@all_cases("due", [True, False])
def test_an_inspected_page_is_queued_where_it_was_queued_a_moment_ago(*, due: bool) -> None:
    reporter: Any = Reporter(due=due)
    flow: Any = None
    assert InspectUnknown(reporter).treat(flow, here := asked(), UNKNOWN) is UNKNOWN
    assert reporter.queued == ([] if due else [here])
    assert InspectUnknown(None).treat(flow, here, UNKNOWN) is UNKNOWN


def test_a_blocked_page_is_queued() -> None:
    reporter: Any = Reporter()
    flow: Any = None
    assert BlockUnknown(reporter).treat(flow, here := asked(), UNKNOWN) == BLOCKED_UNKNOWN
    assert reporter.queued == [here]
    assert BlockUnknown(None).treat(flow, here, UNKNOWN) == BLOCKED_UNKNOWN


class Held:
    """A policy that holds, with what the judge says at each look and a clock that sleeping moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *verdicts: Verdict, hold_s: float = 0.05) -> None:
        self.verdicts, self.pauses, self.now = list(verdicts), list[float](), 7.0
        self.flow: Any = SimpleNamespace(error=None)
        reporter: Any = Reporter()
        judge: Any = SimpleNamespace(verdict=lambda _: self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0])
        self.policy = HoldUnknown(reporter, judge, hold_s)
        self.at_pause: list[int] = []

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            self.at_pause.append(self.policy.held)
            self.now += seconds

        monkeypatch.setattr(unknown_policy, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(unknown_policy, "asyncio", SimpleNamespace(sleep=sleep))

    def treat(self) -> Any:
        found: Any = self.policy.treat(self.flow, asked(), UNKNOWN)
        return asyncio.run(found) if asyncio.iscoroutine(found) else found


@pytest.mark.parametrize(
    ("verdicts", "found", "pauses"),
    [
        ([KNOWN], KNOWN, 0),
        ([UNKNOWN, BLOCKED], BLOCKED, 1),
        ([UNKNOWN, UNKNOWN, KNOWN], KNOWN, 2),
        ([BLOCKED_UNKNOWN], BLOCKED_UNKNOWN, 0),
        ([UNKNOWN], UNKNOWN, 3),
    ],
)
def test_a_page_is_held_until_it_is_judged_or_its_time_is_over(
    verdicts: list[Verdict], found: Verdict, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch, *verdicts)
    assert held.treat() is found
    assert (held.pauses, held.at_pause, held.policy.held) == ([0.02] * pauses, [1] * pauses, 0)


def test_a_page_whose_time_is_just_over_is_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch, UNKNOWN, hold_s=0.0)
    assert (held.treat(), held.pauses) == (UNKNOWN, [])


def test_a_request_that_failed_is_held_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch, UNKNOWN)
    held.flow.error = "gone"
    assert (held.treat(), held.pauses) == (UNKNOWN, [])


def test_nothing_is_held_without_a_verdict_to_come_or_beyond_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch, KNOWN)
    most = unknown_policy._MOST_HELD
    held.policy.held = most
    assert held.treat() is UNKNOWN
    held.policy.held = most - 1
    assert (held.treat(), held.policy.held) == (KNOWN, most - 1)
    judge: Any = None
    for reporter in (None, Reporter(expected=False)):
        chosen: Any = reporter
        assert HoldUnknown(chosen, judge, 1.0).treat(held.flow, asked(), UNKNOWN) is UNKNOWN
