"""Pages of a site on loopback, fetched now: judged, learned, and judged again by other words."""

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from gatewayfilter.classify.classifier import Explained
from gatewayfilter.config import Settings, load
from gatewayfilter.errors import ConfigError, FetchError
from gatewayfilter.extraction.rules import parse_rule
from gatewayfilter.interfaces import Page, UnblockRequest
from gatewayfilter.model import Actor, LogRecord, ReviewState, Via
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.learning import crawl_jobs
from gatewayfilter.use_cases.learning.proxy_checks import check_proxies
from gatewayfilter.use_cases.learning.single_page import extract_now, judge_now
from gatewayfilter.use_cases.learning.word_jobs import add
from gatewayfilter.use_cases.review import rejudging
from gatewayfilter.use_cases.review.rejudging import judged_today
from gatewayfilter.use_cases.review.review_answers import decide_recorded
from gatewayfilter.use_cases.review.review_deciding import Decision, ReviewMove
from gatewayfilter.use_cases.review.review_evidence import host_record
from gatewayfilter.wiring import classifier
from tests.e2e.e2e_gateway import SiteServer
from tests.use_cases.small_program import small_program

NOW = 1_800_000_000.0


class _Site(BaseHTTPRequestHandler):
    pages: ClassVar[dict[str, tuple[str, str]]] = {
        "/bad": ("text/html; charset=utf-8", "<title>Play</title><p>Free spins at our online casino <a href='/calm'>x</a></p>"),
        "/worse": ("text/html; charset=utf-8", "<title>Win</title><p>Online casino with a jackpot and free spins</p>"),
        "/calm": ("text/html; charset=utf-8", "<title>Beans</title><p>How to sow beans in the garden</p>"),
        "/data": ("application/octet-stream", "x"),
        "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /private\n"),
    }

    def do_GET(self) -> None:
        kind, text = self.pages.get(self.path, ("text/html", ""))
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    with SiteServer(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = small_program(tmp_path / "bundled", monkeypatch)
    monkeypatch.setattr("gatewayfilter.wiring.learning.bundled_folder", lambda: folder)
    options = {
        "data_dir": tmp_path / "state",
        "crawl.allow_networks": ["127.0.0.0/8"],
        "crawl.per_host_delay_s": 0,
        "crawl.archive_mb": 10,
    }
    return load(environ={}, options=options).settings


def test_a_page_is_fetched_judged_and_learned(site: str, settings: Settings, store: Store) -> None:
    found = crawl_jobs.crawl_page(settings, f"{site}/bad")
    judged = found["judgement"]
    assert (found["url"], found["final_url"], found["status"]) == (f"{site}/bad", f"{site}/bad", 200)
    assert (found["error"], found["refused"]) == ("", False)
    assert (judged["category"], judged["title"], judged["doubt"]) == ("gambling", "Play", "")
    assert judged["score"] >= judged["limit"] > 0
    assert {hit["word"] for hit in judged["evidence"]} == {"free spins", "online casino"}
    assert [entry.url for entry in store.lists.learned()] == [f"{site}/bad"]
    assert crawl_jobs.crawl_page(settings, f"{site}/calm")["judgement"]["category"] == ""
    missing = crawl_jobs.crawl_page(settings, f"{site}/none")
    assert (missing["judgement"], missing["error"] != "", missing["refused"]) == (None, True, False)
    private = crawl_jobs.crawl_page(settings, f"{site}/private")
    assert (private["judgement"], private["refused"]) == (None, True)


def test_a_page_is_judged_and_nothing_is_learned(site: str, settings: Settings, store: Store) -> None:
    page, judged = judge_now(settings, parse_loose_url(f"{site}/bad"))
    assert judged is not None
    assert (page.status, judged.category) == (200, "gambling")
    assert judge_now(settings, parse_loose_url(f"{site}/data"))[1] is None, "no page"
    assert list(store.lists.learned()) == []
    with pytest.raises(FetchError, match=r"robots\.txt"):
        judge_now(settings, parse_loose_url(f"{site}/private"))


def test_a_page_is_read_by_a_rule_and_nothing_is_learned(site: str, settings: Settings, store: Store) -> None:
    rule = parse_rule("urls = 'http://.*'\n[fields.headline]\ncss = 'title'\n[[links]]\ncss = 'a'\n", "news")
    result, links = extract_now(settings, rule, parse_loose_url(f"{site}/bad"))
    assert dict(result.extracted.fields) == {"headline": ["Play"]}
    assert [link.text for link in links] == [f"{site}/calm"]
    assert list(store.lists.learned()) == []


def test_a_task_is_judged_again_by_the_words_of_today(
    site: str, settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl_jobs.crawl_page(settings, f"{site}/bad")
    (task,) = store.reviews.tasks(ReviewState.OPEN, limit=9)
    assert judged_today(settings, store, task) is None, "the same words"
    add(settings, category="gambling", phrases=("free spins",), weight=15.0)
    again = judged_today(settings, store, task)
    assert again is not None
    assert (again.whole, again.classification.title) == (True, "Play")
    assert again.classification.score > task.classification.score
    assert again.score_breakdown is not None
    assert again.score_breakdown.category == "gambling"
    crawl = settings.crawl.model_copy(update={"archive_mb": 0})
    unarchived = judged_today(settings.model_copy(update={"crawl": crawl}), store, task)
    assert unarchived is not None
    assert unarchived.whole is False
    shutil.rmtree(settings.data_dir / "archive")
    alone = judged_today(settings, store, task)
    assert alone is not None
    assert (alone.whole, alone.classification.category, alone.classification.title) == (False, "gambling", "")
    judged: list[Page] = []
    with monkeypatch.context() as patched:
        real = classifier(settings)

        def explain(page: Page) -> Explained:
            judged.append(page)
            return real.explain(page)

        patched.setattr(rejudging, "classifier", lambda _: SimpleNamespace(explain=explain))
        assert judged_today(settings, store, task) == alone
    (page,) = judged
    assert (page.url, page.final_url, page.status, page.content_type) == (task.url, f"{site}/bad", 200, "text/plain")
    assert page.body.decode() == task.text


def test_decisions_are_recorded_with_what_takes_them_back(site: str, settings: Settings, store: Store) -> None:
    for page in ("bad", "worse"):
        crawl_jobs.crawl_page(settings, f"{site}/{page}")
    tasks = [task.task_id for task in store.reviews.tasks(ReviewState.OPEN, limit=9)]
    assert len(tasks) == 2

    def decide(move: ReviewMove, *numbers: int, note: str = "") -> int:
        decision = Decision(move, "anna", note)
        return len(decide_recorded(settings, store, Actor("anna", Via.SESSION), lambda: NOW, numbers, decision).tasks)

    assert decide(ReviewMove.REJECT, *tasks, note="a museum") == 2
    assert decide(ReviewMove.UNDO, tasks[0]) == 1
    assert decide(ReviewMove.APPROVE, 99) == 0
    undone, rejected = store.audit.page()
    assert (rejected.action, rejected.at, rejected.subject) == ("review.rejected", NOW, f"{site}/bad")
    assert rejected.detail == f"task {tasks[0]}, task {tasks[1]}: a museum"
    assert rejected.undo is not None
    assert (rejected.undo["kind"], set(rejected.undo["decided"])) == ("reviews", set(map(str, tasks)))
    assert (undone.action, undone.detail, undone.undo) == ("review.undone", f"task {tasks[0]}", None)


def test_what_is_known_of_the_host_of_a_task(site: str, settings: Settings, store: Store) -> None:
    for page in ("worse", "calm", "bad"):
        crawl_jobs.crawl_page(settings, f"{site}/{page}")
    (task,) = [task for task in store.reviews.tasks(ReviewState.OPEN, limit=9) if task.url.endswith("/bad")]
    met = [("10.0.0.1", ""), ("10.0.0.1", ""), ("10.0.0.2", ""), ("10.0.0.3", "kim"), ("10.0.0.4", "kim")]
    store.log.write(
        [LogRecord(NOW, client, "GET", f"{site}/x", "document", "allow", "unknown", user=user) for client, user in met]
    )
    store.log.write([LogRecord(NOW, "10.0.0.9", "GET", "http://other.example/", "document", "allow", "unknown")])
    found = host_record(store, task)
    assert (found.host, dict(found.harmful), found.harmless) == ("127.0.0.1", {"gambling": 1}, 1)
    assert (found.devices, found.requests, found.searched_all) == (3, 5, True)
    store.log.write([LogRecord(NOW, "10.0.0.1", "GET", f"{site}/x", "document", "allow", "unknown")] * 200)
    found = host_record(store, task)
    assert (found.requests, found.searched_all) == (200, False)


def test_a_request_about_a_page_is_closed_by_the_decision(site: str, settings: Settings, store: Store) -> None:
    crawl_jobs.crawl_page(settings, f"{site}/bad")
    store.unblock.ask([UnblockRequest(f"{site}/bad", "10.0.0.7", "learned", "learned:gambling", "", "gambling", "", NOW)])
    (task,) = store.reviews.tasks(ReviewState.OPEN, limit=9)
    decision = Decision(ReviewMove.REJECT, "anna")
    decide_recorded(settings, store, Actor("anna", Via.SESSION), lambda: NOW, [task.task_id], decision)
    assert store.unblock.open_requests() == []


@pytest.mark.parametrize("call", [check_proxies, crawl_jobs.proxies])
def test_outbound_proxies_are_shown_without_passwords(call: Callable[[Settings], object], settings: Settings) -> None:
    proxies = ("http://user:secret@127.0.0.1:9", "127.0.0.1:10")
    crawl = settings.crawl.model_copy(update={"proxies": proxies})
    shown = str(call(settings.model_copy(update={"crawl": crawl})))
    assert ("127.0.0.1:9" in shown, "127.0.0.1:10" in shown, "secret" in shown) == (True, True, False)


def test_outbound_proxies_are_checked_by_a_page(site: str, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("127.0.0.1:11\n")
    collected = settings.crawl.model_copy(update={"proxies_from": (str(tmp_path / "more"),)})
    (row,) = crawl_jobs.proxies(settings.model_copy(update={"crawl": collected}))
    assert row == {"address": "http://127.0.0.1:11", "response_ms": None, "anonymous": None, "failures": 0}
    crawl = settings.crawl.model_copy(update={"proxies": ("127.0.0.1:9",), "proxy_check_url": f"{site}/calm"})
    (row,) = crawl_jobs.proxies(settings.model_copy(update={"crawl": crawl}))
    assert row == {"address": "http://127.0.0.1:9", "response_ms": None, "anonymous": None, "failures": 1}
    odd = settings.crawl.model_copy(update={"proxies": ("no proxy",)})
    with pytest.raises(ConfigError):
        crawl_jobs.proxies(settings.model_copy(update={"crawl": odd}))
