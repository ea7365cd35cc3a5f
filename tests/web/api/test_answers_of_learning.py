"""Answers of the API about the crawler, words, extraction rules and reviews: each field, and what a child process is given."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.web.source_worker import JobState
from tests.web.learning_fakes import NOW as ASKED_AT
from tests.web.learning_fakes import add_task, ask
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.web_fakes import ADMIN, VIEWER

API = "/api/v1"
JOBS = "gatewayfilter.use_cases."


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("api")) as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.worker.begun.clear()
    opened.worker.state = JobState()
    opened.who.identity = ADMIN
    opened.services.store.frontier.clear()
    opened.services.store.frontier.resume()


def sent(web: Kept, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
    """Sends a request to the API; returns what its answer holds."""
    answer = web.client.request(
        method, f"{API}{path}", json=body, headers={key.replace("_", "-"): text for key, text in headers.items()}
    )
    assert answer.status_code == status, answer.text
    assert answer.content or "content-type" not in answer.headers
    return answer.json() if answer.content else answer.headers


def got(web: Kept, path: str, **params: Any) -> Any:
    answer = web.client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def done(web: Kept) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """What the child did last, without the settings."""
    job, values, named = web.child.jobs.pop()
    assert values[0] in (web.services.settings, pickle.dumps(web.services.settings))
    return job, values[1:], named


def test_the_crawler_by_the_api(web: Kept) -> None:
    frontier = web.services.store.frontier
    crawler = "/crawler"
    long = f"http://a.example/{'x' * 300}"
    frontier.add(
        [CrawlRequest("http://a.example/", Priority.LINK, task="forums"), CrawlRequest("http://b.example/", Priority.LINK)], NOW
    )
    queue = got(web, f"{crawler}/queue")
    assert (queue["waiting"], queue["due"], queue["paused_since"], queue["held"]) == (2, 2, None, [])
    page = got(web, f"{crawler}/queue/urls", limit=1, state="waiting")
    row = page["items"][0]
    assert row == {
        "url": row["url"],
        "state": "waiting",
        "priority": Priority.LINK,
        "attempts": 0,
        "not_before": row["not_before"],
        "error": "",
        "task": row["task"],
        "depth": 0,
        "held": False,
    }
    last = got(web, f"{crawler}/queue/urls", limit=1, after=page["next"])
    assert ({row["url"], last["items"][0]["url"]}, last["next"]) == ({"http://a.example/", "http://b.example/"}, None)
    assert got(web, f"{crawler}/queue/urls", state="dead")["items"] == []

    def step(name: str, **given: str) -> Any:
        return web.client.post(f"{API}{crawler}/queue/{name}", params=given).json()

    for given, subject in (({}, ""), ({"task": "forums"}, "forums"), ({"host": "a.example"}, "a.example")):
        assert step("pause", **given) == {"paused": True, "changed": True}
        assert web.told() == ("queue.paused", subject, "")
        before = web.changes
        assert step("pause", **given) == {"paused": True, "changed": False}
        assert web.changes == before
        facts = got(web, f"{crawler}/queue")
        assert (facts["paused_since"], [(hold["name"], hold["since"]) for hold in facts["held"]]) == (
            (NOW, []) if not subject else (None, [(subject, NOW)])
        )
        assert [task["held_since"] for task in got(web, f"{crawler}/tasks")] == [NOW if subject == "forums" else None]
        assert step("resume", **given) == {"paused": False, "changed": True}
        assert web.told() == ("queue.resumed", subject, "")
        before = web.changes
        assert step("resume", **given) == {"paused": False, "changed": False}
        assert web.changes == before
    (task,) = got(web, f"{crawler}/tasks")
    assert task == {
        "name": "forums",
        "strategy": None,
        "links": 0,
        "urls": {"waiting": 1, "leased": 0, "done": 0, "dead": 0},
        "held_since": None,
    }
    (lease, *_) = frontier.lease(1, 60, NOW)
    frontier.dead_letter(lease, "gone")
    host = got(web, f"{crawler}/hosts", limit=1)[0]
    assert host == {
        "host": host["host"],
        "waiting": 0,
        "failed": 1,
        "tries": host["tries"],
        "next_at": 0.0,
        "error": "gone",
        "held_since": None,
    }
    assert host["tries"] >= 1
    assert sent(web, "POST", f"{crawler}/queue/retry") == {"urls": 1}
    assert web.told() == ("queue.retried", "", "1 URLs")
    answer = web.client.post(f"{API}{crawler}/queue/clear?task=forums")
    assert (answer.json(), web.told()) == ({"urls": 1}, ("queue.cleared", "forums", "1 URLs"))
    assert web.client.post(f"{API}{crawler}/queue/clear?task=none").status_code == 404
    assert sent(web, "POST", f"{crawler}/queue/clear") == {"urls": 1}
    assert web.told() == ("queue.cleared", "", "1 URLs")
    status = got(web, f"{crawler}/status")
    assert (status["running"], status["dns_hit_share"], status["learning"]) == ([], None, web.services.settings.learn.enabled)
    crawled = {"url": long, "final_url": "", "status": 0, "error": "e", "refused": True, "elapsed_ms": 3, "judgement": None}
    proxy = {"address": "p", "response_ms": 2.0, "anonymous": None, "failures": 1}
    web.child.results = {"add_urls": {"queued": 1, "known": 2}, "crawl_page": crawled, "proxies": [proxy]}
    assert sent(web, "POST", f"{crawler}/queue/urls", {"urls": [long], "task": "t"}) == {"queued": 1, "known": 2}
    assert (done(web), web.told()) == (
        (f"{JOBS}learning.crawl_jobs:add_urls", ([long], "t"), {}),
        ("queue.added", long[:200], "1 URLs"),
    )
    assert sent(web, "POST", f"{crawler}/fetch", {"url": "a.example"}) == crawled
    assert (done(web)[1], web.told()) == (("a.example",), ("page.crawled", long[:200], ""))
    assert sent(web, "POST", f"{crawler}/proxies/check") == [proxy]


RULE = {
    "name": "shop", "version": 2, "urls": "u", "host": "h", "fields": ["f"], "links": 1, "written_at": 3.0, "error": "",
}  # fmt: skip
MATCHES = {"pages": 0, "empty": 0, "last_at": 0.0}


def test_extraction_rules_by_the_api(web: Kept) -> None:
    change = {"name": "shop", "before": 1, "after": 2}
    detail = RULE | {"source": "s", "current": 2, "history": [{"version": 2, "written_at": 3.0, "in_use": True}]}
    page = {"matches": True, "fields": [], "links": []}
    web.child.results = {
        "list_rules": [RULE], "show_rule": detail, "save_rule": change, "restore_rule": change, "read_page": page,
        "remove_rule": {"name": "shop", "before": 2, "after": 0}, "fetch_page": {"url": "http://b/", "html": "<b>"},
    }  # fmt: skip
    folder = web.services.settings.data_dir / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "a.toml").write_text("x")
    assert got(web, "/extraction-rules") == [RULE | MATCHES]
    web.child.jobs.clear()
    answer = web.client.get(f"{API}/extraction-rules/shop?version=2")
    assert (answer.json(), answer.headers["etag"]) == (detail | MATCHES, '"2"')
    assert done(web)[1] == ("shop", 2)
    answer = web.client.put(f"{API}/extraction-rules/shop", json={"source": "s"}, headers={"if-match": 'W/"1"'})
    assert (answer.json(), answer.headers["etag"], done(web)[1]) == (change, '"2"', ("shop", "s", 1))
    answer = web.client.post(f"{API}/extraction-rules/shop/restore", json={"version": 1})
    assert (answer.json(), answer.headers["etag"], done(web)[1]) == (change, '"2"', ("shop", 1, None))
    sent(web, "DELETE", "/extraction-rules/shop", None, 204, if_match='"2"')
    assert (done(web)[1], web.told()[0]) == (("shop", 2), "extraction.removed")
    assert sent(web, "POST", "/extraction-rules/preview", {"source": "s", "html": "<p>", "url": "http://a/"}) == page | {
        "url": "http://a/"
    }
    assert (done(web)[1], web.child.jobs) == (("<p>", "http://a/", "s"), [])
    assert sent(web, "POST", "/extraction-rules/preview", {"source": "s", "url": "http://a/"})["url"] == "http://b/"
    assert (done(web)[1], done(web)[1]) == (("<b>", "http://b/", "s"), ("http://a/",))
    assert sent(web, "POST", "/extraction-rules/preview", {"source": "s"}, 422)["detail"] == "send the page, or its address"
    assert sent(web, "POST", "/extraction-rules/preview", {"source": "s", "html": "<p>"})["url"] == ""


def test_words_by_the_api(web: Kept) -> None:
    row = {"kind": "word", "phrase": "x", "weight": 2.0, "own": True}
    judged = {
        "category": "", "doubt": "", "score": 1.0, "limit": 20.0, "scores": {}, "certainty": None, "title": "t", "evidence": [],
        "breakdown": None,
    }  # fmt: skip
    imported = {"category": "a", "read": 2, "changed": 1, "rejected": 0, "samples": []}
    category = {"category": "a", "words": 1, "context": 0, "combinations": 0, "limit": 20.0, "short_share": 0.5, "min_words": 2}
    web.child.results = {
        "find_words": {"rows": [row], "total": 3}, "judge": judged, "add": 2, "remove": {"removed": 1, "missing": ["y"]},
        "import_file": imported, "export": "[words]", "categories": [category],
    }  # fmt: skip
    assert got(web, "/words") == [category]
    query = {"q": "x", "kind": "word", "language": "zh", "own": True, "after": 1, "limit": 1}
    assert got(web, "/words/a", **query) == {"items": [row], "total": 3, "next": 2}
    job, values, named = done(web)
    assert (job, values, named) == (
        f"{JOBS}learning.word_jobs:find_words",
        ("a",),
        {"text": "x", "kind": "word", "language": "zh", "own": True, "after": 1, "limit": 1},
    )
    assert got(web, "/words/a", after=2, limit=1)["next"] is None
    assert (got(web, "/words/a")["next"], done(web)[2]["own"]) == (None, False)
    assert sent(web, "POST", "/words/test", {"content": "c", "html": True, "url": "u"}) == judged
    assert done(web)[1:] == (("c",), {"html": True, "url": "u"})
    assert sent(web, "POST", "/words/a/add", {"phrases": ["p"], "context": True}) == {"changed": 2}
    assert done(web)[2] == {"category": "a", "phrases": ("p",), "weight": 5.0, "context": True, "exception": False}
    assert sent(web, "POST", "/words/a/remove", {"phrases": ["p"]}) == {"removed": 1, "missing": ["y"]}
    assert (done(web)[1], web.told()) == (("a", ["p"]), ("words.removed", "a", "p"))
    assert sent(web, "POST", "/words/a/import", {"text": "x", "name": "n.toml", "weight": 3}) == imported
    assert done(web)[1] == (b"x", "n.toml", "a", 3.0)
    exported = web.client.get(f"{API}/words/a/export?own=true")
    assert (exported.text, exported.headers["content-disposition"], done(web)[2]) == (
        "[words]", 'attachment; filename="a.toml"', {"own": True},
    )  # fmt: skip
    web.client.get(f"{API}/words/a/export")
    assert done(web)[2] == {"own": False}


def test_the_model_by_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    model = {"used": True, "examples": 3, "harmful": 1, "auc": 0.9, "trained_at": 7.0}
    report: dict[str, Any] = {"weeks": [], "lowered": []}
    web.child.results = {"status": model, "train": model, "remove": False, "false_block_report": report}
    assert got(web, "/model") == model
    made: list[tuple[Any, ...]] = []

    def child(*given: Any) -> Any:
        made.append(given)
        return web.child

    monkeypatch.setattr("gatewayfilter.web.api.learning.second_opinion.ChildProcess", child)
    assert sent(web, "POST", "/model/train") == model
    assert (done(web)[1], made, web.told()) == ((NOW,), [(120.0,)], ("model.trained", "model", "3 texts"))
    before = web.changes
    assert sent(web, "DELETE", "/model", None, 404)["detail"] == "there is no model"
    assert web.changes == before
    web.child.results["remove"] = True
    assert "content-type" not in sent(web, "DELETE", "/model", None, 204)
    assert web.told() == ("model.off", "model", "")
    assert got(web, "/model/false-blocks", weeks=2) == report
    assert done(web)[1] == (NOW - 14 * 86_400,)
    got(web, "/model/false-blocks")
    assert done(web)[1] == (NOW - 84 * 86_400,)


def test_reviews_by_the_api(web: Kept) -> None:
    store = web.services.store
    number, asked = add_task(store), ask(store, "http://casino.example/play")
    second = add_task(store, "http://z.example/", text="other", title="T", words=(("bonus", 10.0, "title"),))
    facts = {
        "id": number,
        "kind": "page",
        "state": "open",
        "url": "http://casino.example/play",
        "final_url": "",
        "category": "gambling",
        "title": "Online Casino",
        "score": 42.0,
        "limit": 20.0,
        "certainty": 0.97,
        "blocked": True,
        "doubtful": False,
        "group": number,
        "created_at": ASKED_AT,
        "decided_at": None,
        "decided_by": "",
    }
    listed = got(web, "/reviews", limit=1)
    assert (listed["items"], listed["next"]) == ([facts | {"asked": 1}], str(number))
    assert [item["id"] for item in got(web, "/reviews", after=listed["next"])["items"]] == [second]
    assert [item["id"] for item in got(web, "/reviews", asked=True)["items"]] == [number]
    assert got(web, "/reviews", category="games")["items"] == got(web, "/reviews", state="approved")["items"] == []
    assert [item["id"] for item in got(web, "/reviews", group_of=second, state="all")["items"]] == [second]
    shown = got(web, f"/reviews/{number}")
    assert {name: shown[name] for name in facts} == facts
    assert (shown["text"][:7], shown["requests"], shown["same_content"], shown["alike"], shown["steps"]) == (
        "welcome",
        [asked],
        [],
        [],
        [],
    )
    assert (shown["host_harmful"], shown["host_harmless"], shown["devices"]) == ({}, 0, 0)
    assert [term["weight"] for term in shown["terms"]] == [36.0, 8.0, -2.0]
    assert [(term["base"], term["factor"]) for term in got(web, f"/reviews/{second}")["terms"]] == [(3.333, 3.0)]
    assert got(web, "/reviews/groups", limit=1) == {"items": []}
    stats = got(web, "/reviews/stats")
    assert (stats["open"], stats["counts"][0]["category"]) == (2, "gambling")
    done_ = sent(web, "POST", f"/reviews/{number}/decide", {"move": "change", "category": "games", "note": "n"})
    assert (done_["tasks"][0]["state"], done_["tasks"][0]["category"], done_["tasks"][0]["decided_by"], done_["refused"]) == (
        "approved", "games", "Ada", [],
    )  # fmt: skip
    steps = got(web, "/reviews/steps", limit=1)["items"]
    assert steps == [{"task": number, "at": steps[0]["at"], "who": "Ada", "action": "change", "undone": False, "note": "n"}]
    assert sent(web, "POST", f"/reviews/{number}/decide", {"move": "redo"}, 422)["detail"]
    undone = sent(web, "POST", "/reviews/decide", {"move": "undo", "tasks": [number, 0, 2**53 + 1, 2**54]})
    assert (undone["tasks"][0]["state"], undone["refused"]) == ("open", [])
    last = sent(web, "POST", "/reviews/decide", {"move": "undo", "tasks": [2**53]})
    assert (last["tasks"], len(last["refused"])) == ([], 1)
    sent(web, "POST", "/reviews/decide", {"move": "reject", "tasks": [number, second]})
    web.child.results = {"phrases": [{"phrase": "p", "word": "w", "category": "c", "pages": 2}]}
    assert got(web, "/reviews/phrases", limit=3) == {"items": web.child.results["phrases"]}
    assert done(web)[1] == (3,)
    assert isinstance(got(web, "/fingerprints"), dict)
    web.who.identity = VIEWER
    sent(web, "POST", f"/reviews/{number}/decide", {"move": "undo"}, 403)
