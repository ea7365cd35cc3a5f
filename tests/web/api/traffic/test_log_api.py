"""The log, overview, reports and checks of the API."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import EntryKind, ListAction
from tests.web.traffic_log import LAPTOP, TABLET, fill, publish, usual
from tests.web.web_fakes import Dashboard, dashboard

LOG = "/api/v1/log"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    fill(tmp_path, usual(time.time()))
    with dashboard(tmp_path) as found:
        yield found


def test_newest_decisions_come_first_and_pages_follow_each_other(web: Dashboard) -> None:
    first = web.client.get(f"{LOG}?limit=4").json()
    second = web.client.get(f"{LOG}?limit=4&after={first['next']}").json()
    numbers = [one["id"] for one in [*first["items"], *second["items"]]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 6
    assert second["next"] is None
    assert first["items"][1]["client_name"] == "Kim's tablet"


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        ("", 6),
        ("outcome=blocked", 3),
        ("outcome=allowed", 3),
        ("outcome=learned", 1),
        ("outcome=unknown", 1),
        ("client=Kim's tablet", 4),
        (f"client={LAPTOP}", 1),
        ("group=kids", 4),
        ("category=games", 1),
        ("reason=adblock", 1),
        ("site=ads.example", 1),
        ("list=easylist", 1),
        ("q=bonus", 2),
        ("since=10min", 1),
        ("since=7d&until=10min", 5),
        ("since=10min&client=Kim's tablet", 0),
    ],
)
def test_conditions(web: Dashboard, conditions: str, count: int) -> None:
    answer = web.client.get(f"{LOG}?{conditions}")
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["items"]) == count


@pytest.mark.parametrize(
    "conditions",
    [
        "outcome=perhaps",
        "client=nobody at all",
        "group=none",
        "reason=because",
        "since=soon",
        "site=a b",
        "since=9999-99-99",
        "q=" + "x" * 201,
        "limit=0",
        "after=-1",
    ],
)
def test_conditions_that_are_none(web: Dashboard, conditions: str) -> None:
    answer = web.client.get(f"{LOG}?{conditions}")
    assert answer.status_code == (404 if conditions == "group=none" else 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_one_decision(web: Dashboard) -> None:
    newest = web.client.get(f"{LOG}?limit=1").json()["items"][0]
    assert web.client.get(f"{LOG}/{newest['id']}").json() == newest
    assert web.client.get(f"{LOG}/999").status_code == 404


def test_counts_and_timelines(web: Dashboard) -> None:
    stats = web.client.get(f"{LOG}/stats?since=7d").json()
    assert (stats["decisions"], stats["blocked"]) == (6, 3)
    assert stats["tops"]["client"][0]["name"] == TABLET
    for span, parts in (("day", 24), ("week", 28), ("month", 30)):
        timeline = web.client.get(f"{LOG}/timeline?span={span}").json()
        assert len(timeline["buckets"]) == parts
        assert sum(one["blocked"] for one in timeline["buckets"]) == 3
    assert sum(one["blocked"] for one in web.client.get(f"{LOG}/timeline?client=laptop").json()["buckets"]) == 0


def test_overview_and_report(web: Dashboard) -> None:
    overview = web.client.get("/api/v1/overview").json()
    assert (overview["decisions"], overview["blocked"]) == (6, 3)
    assert overview["clients"][0]["name"] == "Kim's tablet"
    assert {one["name"] for one in overview["categories"]} == {"gambling", "ads", "games"}
    report = web.client.get("/api/v1/reports?since=7d").json()
    assert report["decisions"] == 6
    assert {one["client"] for one in report["new_devices"]} >= {TABLET}
    assert web.client.get("/api/v1/reports?since=today&until=yesterday").status_code == 422


@pytest.mark.slow
def test_check_names_every_decider_and_the_policy(tmp_path: Path) -> None:
    fill(tmp_path)
    publish(tmp_path)
    with dashboard(tmp_path) as web:
        web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".lucky.example")
        found = web.client.get("/api/v1/check?url=https://lucky.example/bonus&client=Kim's tablet").json()
        assert found["verdict"]["reason"] == "manual-block"
        assert found["client"] == "Kim's tablet"
        assert [one["decider"] for one in found["answers"]][-1] == "unknown"
        later = web.client.get("/api/v1/check?url=https://other.example/&at=2040-01-31T18:00").json()
        assert later["verdict"]["action"] == "allow"
        assert web.client.get("/api/v1/check?url=https://other.example/").json()["verdict"]["reason"] == "unknown"
        assert web.client.get("/api/v1/check?url=http://[").status_code == 422


def test_events_send_what_is_new(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.web.access.event_stream.LONGEST_S", 1.0)
    monkeypatch.setattr("gatewayfilter.web.access.event_stream.EVERY_S", 0.5)
    text = web.client.get("/api/v1/events?outcome=blocked", headers={"last-event-id": "1"}).text
    events = [dict(line.partition(": ")[::2] for line in block.splitlines()) for block in text.split("\n\n") if "event" in block]
    assert json.loads(events[0]["data"]) == {"requests": 0, "reviews": 0}
    assert events[1]["event"] == "decisions"
    assert len(json.loads(events[1]["data"])["items"]) == 3
    assert events[1]["id"] == "6"


def test_nobody_reads_without_log_in(tmp_path: Path) -> None:
    with dashboard(tmp_path, None) as web:
        for path in (
            LOG,
            f"{LOG}/stats",
            f"{LOG}/timeline",
            f"{LOG}/1",
            "/api/v1/overview",
            "/api/v1/reports",
            "/api/v1/check?url=a.b",
            "/api/v1/events",
        ):
            assert web.client.get(path).status_code == 401
