"""The crawler's pages and API: queue, failures, hosts, counters, a page fetched now, roles, hostile texts."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.interfaces import CrawlRequest, Priority, QueueState
from gatewayfilter.scaleout.redis.no_holds import NoHolds
from gatewayfilter.web.services import WebServices
from tests.web.learning_fakes import HOSTILE
from tests.web.web_fakes import ADMIN, APPROVER, VIEWER, Dashboard, dashboard

ROOT = "/api/v1/crawler"


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as board:
        fill(board.services)
        yield board
        board.services.fetching.close()


def fill(services: WebServices) -> None:
    """Queues three pages, one of which was given up."""
    now = time.time()
    frontier = services.store.frontier
    frontier.add([CrawlRequest("http://dead.example/", Priority.MANUAL)], now)
    (lease,) = frontier.lease(1, 60, now)
    frontier.dead_letter(lease, f"no answer {HOSTILE}")
    long = "http://b.example/" + "x" * 3000
    frontier.add([CrawlRequest("http://a.example/", Priority.LINK, task="forums"), CrawlRequest(long, Priority.VISIT)], now)


def test_the_queue_and_its_parts(board: Dashboard) -> None:
    page = board.client.get("/crawler").text
    assert "http://a.example/" in page
    assert "Crawl tasks" in page
    assert "No crawler runs now" in page
    failures = board.client.get("/crawler?part=failures").text
    assert "http://dead.example/" in failures
    assert "no answer" in failures
    assert "<img src=x" not in failures
    assert "<script>alert" not in failures
    hosts = board.client.get("/crawler?part=hosts").text
    assert hosts.index("dead.example") < hosts.index("a.example")
    assert "http://a.example/" not in board.client.get("/crawler?state=done").text
    assert "队列" in board.client.get("/crawler", headers={"accept-language": "zh"}).text
    for bad in ("state=x", "part=x", "after=" + "9" * 90):
        assert board.client.get(f"/crawler?{bad}").status_code == 422
    assert board.client.get("/crawler?after=<script>").status_code == 422


def test_counters_of_the_crawlers_that_run(board: Dashboard) -> None:
    run = board.services.settings.data_dir / "run"
    run.mkdir(exist_ok=True)
    counters = {"pages_fetched": 41, "dns_hits": 3, "dns_misses": 1, "requests": 7}
    (run / "learner.json").write_text(json.dumps({"pid": os.getpid(), "at": time.time(), "counters": counters}), "utf-8")
    page = board.client.get("/crawler?part=counters").text
    assert "41" in page
    assert "75%" in page
    found = board.client.get(f"{ROOT}/status").json()
    assert (found["running"], found["counters"]["pages_fetched"], found["dns_hit_share"]) == (["learner"], 41, 0.75)
    assert "requests" not in found["counters"]
    (run / "learner.json").write_text('{"pid": "x", "counters": 7', "utf-8")
    assert board.client.get(f"{ROOT}/status").json()["running"] == []


def test_pause_retry_and_clear(board: Dashboard) -> None:
    assert board.client.post("/crawler/pause").status_code == 303
    assert "the queue is paused" in board.client.get("/crawler").text
    assert board.services.store.frontier.paused_since() is not None
    assert board.client.post(f"{ROOT}/queue/resume").json() == {"paused": False, "changed": True}
    assert board.client.post(f"{ROOT}/queue/resume").json() == {"paused": False, "changed": False}
    assert board.client.post(f"{ROOT}/queue/retry").json() == {"urls": 1}
    assert board.client.post(f"{ROOT}/queue/clear", params={"task": "forums"}).json() == {"urls": 1}
    assert board.client.post(f"{ROOT}/queue/clear", params={"task": "none"}).status_code == 404
    assert board.client.post("/crawler/clear").status_code == 303
    assert board.services.store.frontier.show(9) == []
    actions = [entry.action for entry in board.services.store.audit.page(limit=50)]
    assert sorted(actions) == ["queue.cleared", "queue.cleared", "queue.paused", "queue.resumed", "queue.retried"]


def test_one_task_and_one_host_are_paused(board: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    client, frontier = board.client, board.services.store.frontier
    assert client.post("/crawler/pause", data={"task": "forums"}).headers["location"] == "/crawler"
    assert client.post("/crawler/pause", data={"host": "b.example"}).headers["location"] == "/crawler?part=hosts"
    assert frontier.lease(9, 60, time.time()) == []
    page, hosts = client.get("/crawler").text, client.get("/crawler?part=hosts").text
    assert "Go on fetching forums" in page
    assert "Go on fetching b.example" in hosts
    assert "Pause fetching of a.example" in hosts
    assert "继续抓取 forums" in client.get("/crawler", headers={"accept-language": "zh"}).text
    held = client.get(f"{ROOT}/queue").json()["held"]
    assert [(hold["kind"], hold["name"]) for hold in held] == [("host", "b.example"), ("task", "forums")]
    assert client.get(f"{ROOT}/tasks").json()[0]["held_since"] == held[1]["since"]
    assert client.get(f"{ROOT}/hosts").json()[0]["host"] == "b.example"
    assert {row["held"] for row in client.get(f"{ROOT}/queue/urls", params={"state": "waiting"}).json()["items"]} == {True}
    assert client.post(f"{ROOT}/queue/pause", params={"task": "forums"}).json() == {"paused": True, "changed": False}
    assert client.post(f"{ROOT}/queue/resume").json() == {"paused": False, "changed": False}
    assert client.post(f"{ROOT}/queue/resume", params={"task": "forums"}).json() == {"paused": False, "changed": True}
    assert client.post("/crawler/resume", data={"host": "http://B.example/x"}).status_code == 303
    assert frontier.holds.all() == []
    for bad, status in [({"task": "none"}, 404), ({"host": HOSTILE}, 422), ({"task": "forums", "host": "a.example"}, 422)]:
        for path in ("/crawler/pause", f"{ROOT}/queue/pause"):
            answer = client.post(path, data=bad) if path == "/crawler/pause" else client.post(path, params=bad)
            assert answer.status_code == status, (path, bad)
            assert path.startswith("/api") or "<img src=x" not in answer.text
    monkeypatch.setattr(frontier, "holds", NoHolds())
    answer = client.post("/crawler/pause", data={"host": "a.example"})
    assert (answer.status_code, "queue.url" in answer.text) == (422, True)
    assert "queue.url" in client.post(f"{ROOT}/queue/pause", params={"host": "a.example"}).json()["detail"]


def test_the_api_reads_page_by_page(board: Dashboard) -> None:
    counts = board.client.get(f"{ROOT}/queue").json()
    assert (counts["waiting"], counts["dead"], counts["paused_since"]) == (2, 1, None)
    first = board.client.get(f"{ROOT}/queue/urls", params={"limit": 2}).json()
    rest = board.client.get(f"{ROOT}/queue/urls", params={"limit": 2, "after": first["next"]}).json()
    urls = [item["url"] for item in first["items"] + rest["items"]]
    assert urls == [row.url for row in board.services.store.frontier.show(9)]
    assert rest["next"] is None
    dead = board.client.get(f"{ROOT}/queue/urls", params={"state": QueueState.DEAD.value}).json()
    assert [item["url"] for item in dead["items"]] == ["http://dead.example/"]
    assert [task["name"] for task in board.client.get(f"{ROOT}/tasks").json()] == ["forums"]
    assert [host["host"] for host in board.client.get(f"{ROOT}/hosts").json()] == ["dead.example", "a.example", "b.example"]
    for after in ("x", "1_2", "nan_nan_nan", "1_inf_1", "1_1e999_1", "99999999999_1_1"):
        assert board.client.get(f"{ROOT}/queue/urls", params={"after": after}).status_code == 422, after


def test_roles(board: Dashboard) -> None:
    for who in (VIEWER, APPROVER):
        board.who.identity = who
        page = board.client.get("/crawler").text
        assert "/crawler/fetch" not in page
        assert "/crawler/clear" not in page
        for path in ("pause", "resume", "retry", "clear"):
            assert board.client.post(f"/crawler/{path}").status_code == 403
            assert board.client.post(f"{ROOT}/queue/{path}").status_code == 403
        assert board.client.post("/crawler/fetch", data={"url": "http://a.example/"}).status_code == 403
        assert board.client.post(f"{ROOT}/fetch", json={"url": "http://a.example/"}).status_code == 403
        assert board.client.post(f"{ROOT}/proxies/check").status_code == 403
    board.who.identity = None
    assert board.client.get(f"{ROOT}/queue").status_code == 401
    board.who.identity = ADMIN


@pytest.mark.slow
def test_an_address_is_guarded_and_queued(board: Dashboard) -> None:
    page = board.client.post("/crawler/fetch", data={"url": "http://127.0.0.1:9/"}).text
    assert "Refused" in page
    found = board.client.post(f"{ROOT}/fetch", json={"url": "http://10.0.0.1/"}).json()
    assert found["refused"]
    assert found["judgement"] is None
    for bad in (HOSTILE, "javascript:alert(1)", "file:///etc/passwd", "http://[::1", "http://" + "a" * 300, "\x00"):
        answer = board.client.post("/crawler/fetch", data={"url": bad})
        assert answer.status_code in {200, 422}, bad
        assert "<img src=x" not in answer.text
        assert "root:" not in answer.text
    queued = board.client.post(f"{ROOT}/queue/urls", json={"urls": ["new.example/x"]}).json()
    assert queued == {"queued": 1, "known": 0}
    assert board.client.post(f"{ROOT}/queue/urls", json={"urls": ["http://127.0.0.1/"]}).status_code == 422
    assert board.client.post(f"{ROOT}/queue/urls", json={"urls": ["n.example"], "task": "none"}).status_code == 404
    page = board.client.post("/crawler/fetch", data={"url": "http://new.example/x", "then": "queue"}).text
    assert "It was in the queue already" in page
    assert board.client.post(f"{ROOT}/proxies/check").json() == []
    assert "crawl.proxies" in board.client.post("/crawler/proxies").text
