"""The pages of the crawler, of extraction rules, of words and of reviews: what they show, and what their buttons begin."""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.errors import ClassifyError, FetchError
from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.use_cases.learning.crawler_facts import COUNTED
from gatewayfilter.web.pages.learning.crawler import View as CrawlView
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.web_fakes import ADMIN, APPROVER

JOBS = "gatewayfilter.use_cases.learning."
EDITOR = "/crawler/rules/editor"
URL = "http://www.news.example:8080/story/1"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("learning")) as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    opened.services.store.frontier.clear()
    opened.services.store.frontier.resume()


def jobs(web: Kept) -> list[tuple[str, tuple[Any, ...]]]:
    """What the child was given, without its settings."""
    found = [(job.removeprefix(JOBS), values[1:]) for job, values, _ in web.child.jobs]
    web.child.jobs.clear()
    return found


def test_the_queue_is_shown_in_pages(web: Kept) -> None:
    frontier = web.services.store.frontier
    frontier.add([CrawlRequest(f"http://h{n:03}.example/", Priority.LINK, task="forums") for n in range(101)], NOW)
    shown = web.get("/crawler")
    assert (len(shown["rows"]), shown["newer"], shown["view"], shown["active"]) == (100, "", CrawlView(), "crawler")
    assert shown["older"].startswith("/crawler?after=")
    assert [task.name for task in shown["tasks"]] == ["forums"]
    assert (shown["queue"].counts["waiting"], shown["hosts"], shown["counted"]) == (101, (), COUNTED)
    empty = {"problem": "", "written": "", "added": None, "crawled": None, "proxies": None}
    assert {name: shown[name] for name in empty} == empty
    assert shown["crawlers"].running == ()
    last = web.get(f"{shown['older']}&state=waiting")
    assert (len(last["rows"]), last["older"], last["newer"]) == (1, "", "/crawler?state=waiting")
    assert web.get("/crawler?state=done")["rows"] == ()
    assert web.get("/crawler?part=failures")["tasks"] == ()
    assert web.pages.values["rows"] == ()
    hosts = web.get("/crawler?part=hosts")
    assert (len(hosts["hosts"]), hosts["rows"], hosts["tasks"]) == (101, (), ())
    counters = web.get("/crawler?part=counters")
    assert (counters["hosts"], counters["rows"], counters["tasks"]) == ((), (), ())
    (lease,) = frontier.lease(1, 60, NOW)
    frontier.dead_letter(lease, "gone")
    assert [row.error for row in web.get("/crawler?part=failures&state=waiting")["rows"]] == ["gone"]
    assert CrawlView(part="failures", state="dead").url(after="x") == "/crawler?part=failures&state=dead&after=x"


def test_pages_are_fetched_and_queued(web: Kept) -> None:
    long = f"http://a.example/{'x' * 300}"
    web.child.results = {"add_urls": {"queued": 1, "known": 0}, "crawl_page": {"url": long}, "proxies": [1]}
    web.post("/crawler/fetch", 200, url=long, then="queue")
    values = web.pages.values
    assert (jobs(web), web.told()) == ([("crawl_jobs:add_urls", ([long], ""))], ("queue.added", long[:200], ""))
    assert (values["written"], values["added"], values["view"], values["crawled"]) == (
        long,
        {"queued": 1, "known": 0},
        CrawlView(),
        None,
    )
    web.post("/crawler/fetch", 200, url="a.example")
    values = web.pages.values
    assert (jobs(web), web.told()) == ([("crawl_jobs:crawl_page", ("a.example",))], ("page.crawled", long[:200], ""))
    assert (values["written"], values["crawled"], values["added"]) == ("a.example", {"url": long}, None)
    before = web.changes
    web.child.results = {"crawl_page": FetchError("no"), "proxies": ClassifyError("slow")}
    web.post("/crawler/fetch", 422, url="b.example")
    assert (web.pages.values["problem"], web.pages.values["written"]) == ("no", "b.example")
    web.post("/crawler/proxies", 422)
    assert (web.pages.values["problem"], web.pages.values["view"].part) == ("slow", "counters")
    web.child.results = {"proxies": [1]}
    web.post("/crawler/proxies", 200)
    assert (web.pages.values["proxies"], web.pages.values["view"].part, web.changes) == ([1], "counters", before)


def test_the_queue_is_paused_retried_and_emptied(web: Kept) -> None:
    frontier = web.services.store.frontier
    frontier.add(
        [CrawlRequest("http://a.example/", Priority.LINK, task="forums"), CrawlRequest("http://b.example/", Priority.LINK)], NOW
    )
    web.post("/crawler/pause", 303, "/crawler")
    assert (frontier.paused_since(), web.told()) == (NOW, ("queue.paused", "", ""))
    before = web.changes
    web.post("/crawler/pause", 303, "/crawler")
    assert web.changes == before
    web.post("/crawler/resume", 303, "/crawler")
    assert (frontier.paused_since(), web.told()) == (None, ("queue.resumed", "", ""))
    web.post("/crawler/resume", 303, "/crawler")
    assert web.changes == before + 1
    web.post("/crawler/pause", 303, "/crawler?part=hosts", host="a.example")
    assert web.told() == ("queue.paused", "a.example", "")
    web.post("/crawler/resume", 303, "/crawler?part=hosts", host="a.example")
    assert web.told() == ("queue.resumed", "a.example", "")
    web.post("/crawler/pause", 303, "/crawler", task="forums")
    assert web.told() == ("queue.paused", "forums", "")
    web.post("/crawler/resume", 303, "/crawler", task="forums")
    for step in ("pause", "resume"):
        web.post(f"/crawler/{step}", 422, task="forums", host="a.example")
        assert (web.pages.values["problem"], web.pages.values["view"].part) == ("name a crawl task or a host, not both", "hosts")
        web.post(f"/crawler/{step}", 422, host="http://[")
        assert web.pages.values["problem"]
    (lease,) = frontier.lease(1, 60, NOW)
    frontier.dead_letter(lease, "gone")
    web.post("/crawler/retry", 303, "/crawler?state=waiting")
    assert web.told() == ("queue.retried", "", "1 URLs")
    web.post("/crawler/clear", 404, task="none")
    web.post("/crawler/clear", 303, "/crawler", task="forums")
    assert (web.told(), frontier.stats(NOW)["waiting"]) == (("queue.cleared", "forums", "1 URLs"), 1)
    web.post("/crawler/clear", 303, "/crawler")
    assert web.told() == ("queue.cleared", "", "1 URLs")


def rule(**more: Any) -> dict[str, Any]:
    form = {"urls": "u", "comment": "c", "fields": [], "links": []}
    return {"name": "shop", "version": 3, "current": 3, "form": form, "source": "s", "history": []} | more


def test_rules_are_shown_by_host(web: Kept) -> None:
    folder = web.services.settings.data_dir / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "a.toml").write_text("x")
    rows = [("z", "a.example"), ("b", ""), ("a", ""), ("a", "b.example"), ("a", "a.example")]
    web.child.results = {"list_rules": [{"name": name, "host": host} for name, host in rows]}
    shown = web.get("/crawler/rules")
    assert [(row["name"], row["host"]) for row in shown["rules"]] == [
        ("a", "a.example"), ("z", "a.example"), ("a", "b.example"), ("a", ""), ("b", ""),
    ]  # fmt: skip
    assert (shown["new"], shown["active"], web.pages.template) == ("new", "crawler", "learning/extraction_rules.html")


def test_a_rule_is_edited_by_admins_and_read_by_others(web: Kept) -> None:
    page = web.services.shelf.put(URL, "<p>")
    web.child.results = {
        "show_rule": rule(), "preview": {"picked": None, "fields": [], "links": []}, "outline": {"o": 1}, "suggested_urls": ["s"],
    }  # fmt: skip
    shown = web.get(f"/crawler/rules/shop?saved=7&page={page.key}")
    form = shown["form"]
    assert web.pages.template == "learning/extraction_editor.html"
    assert (form.name, form.version, form.urls, form.comment, form.page, form.address) == ("shop", 3, "u", "c", page.key, URL)
    assert (shown["rule"]["name"], shown["undo"], shown["outline"], shown["suggested"]) == (
        "shop",
        "/audit/7/undo",
        {"o": 1},
        ["s"],
    )
    assert (shown["problem"], shown["action"], shown["source"]) == ("", "", "")
    shown = web.get("/crawler/rules/shop?page=none")
    assert (shown["form"].page, shown["form"].address, shown["undo"], shown["outline"]) == ("", "", "", None)
    jobs(web)
    web.child.results["show_rule"] = rule(version=2)
    shown = web.get("/crawler/rules/shop?version=2&saved=0")
    assert jobs(web) == [("extraction_jobs:show_rule", ("shop", 2))]
    assert (web.pages.template, shown["rule"]["version"], shown["undo"]) == ("learning/extraction_rule.html", 2, "")
    web.child.results["show_rule"] = rule()
    web.who.identity = APPROVER
    web.get("/crawler/rules/shop")
    assert web.pages.template == "learning/extraction_rule.html"


def test_rules_are_restored_and_removed(web: Kept) -> None:
    web.child.results = {
        "restore_rule": {"name": "shop", "before": 3, "after": 4}, "remove_rule": {"name": "shop", "before": 4, "after": 0},
    }  # fmt: skip
    answer = web.client.post("/crawler/rules/shop/restore", data={"version": "1", "current": "3"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/crawler/rules/shop?saved={web.last_change.entry_id}")
    assert jobs(web) == [("extraction_jobs:restore_rule", ("shop", 1, 3))]
    web.post("/crawler/rules/shop/remove", 303, "/crawler/rules")
    assert jobs(web) == [("extraction_jobs:remove_rule", ("shop", None))]
    web.post("/crawler/rules/shop/remove", 200, headers=HTMX)
    assert (web.pages.template, web.pages.values) == (
        "learning/_extraction_removed.html", {"name": "shop", "undo": f"/audit/{web.last_change.entry_id}/undo"},
    )  # fmt: skip


FIELD = {"f0-way": "css", "f0-name": "title", "f0-expression": "h1"}
LINKS = {"l0-way": "css", "l0-expression": "a"}
FOUND: dict[str, Any] = {
    "picked": {
        "name": "p", "attribute": "", "fields": [{"way": "css", "expression": ".p", "count": 1}], "links": [{"expression": "b"}],
    },
    "fields": [{"marked": [1]}], "links": [{"marked": [2]}, {"marked": [3]}],
}  # fmt: skip


def edited(web: Kept, status: Any = 200, headers: Any = None, **fields: str) -> dict[str, Any]:
    answer = web.client.post(EDITOR, data={name.replace("_", "-"): value for name, value in fields.items()}, headers=headers)
    assert answer.status_code == status, web.pages.values
    return web.pages.values


def test_the_editor_takes_a_page_and_proposes_name_and_urls(web: Kept) -> None:
    web.child.results = {
        "preview": FOUND, "outline": {"o": 1}, "suggested_urls": ["site", "page"], "fetch_page": {"url": URL, "html": "<p>x"},
        "source_of_form": "toml",
    }  # fmt: skip
    assert web.get("/crawler/rules/new")["form"].version == 0
    shown = edited(web, then="fetch", address="news.example", picked="4")
    form = shown["form"]
    assert (form.address, form.urls, form.name, form.picked, shown["problem"], shown["action"]) == (
        URL, "site", "news-example", -1, "", "fetch",
    )  # fmt: skip
    kept_page = web.services.shelf.find(form.page)
    assert (kept_page.url, kept_page.html, shown["outline"], shown["suggested"]) == (URL, "<p>x", {"o": 1}, ["site", "page"])
    assert (shown["active"], shown["marks"], shown["found"], shown["source"]) == (
        "crawler", {"f0": [1], "l0": [2], "l1": [3]}, FOUND, "",
    )  # fmt: skip
    shown = edited(web, then="fetch", html="<b>", urls="mine", name="own", headers=HTMX)
    assert (web.pages.template, shown["form"].address, shown["form"].urls, shown["form"].name) == (
        "learning/_extraction_editor.html", "", "mine", "own",
    )  # fmt: skip
    assert shown["outline"] == {"o": 1}
    answer = web.client.post(EDITOR, data={"then": "fetch", "html": "<b>", "address": URL}, headers=HTMX)
    assert (answer.headers["hx-retarget"], answer.headers["hx-reswap"]) == ("#editor", "outerHTML")
    assert web.pages.values["form"].address == URL
    web.child.results["suggested_urls"] = []
    assert edited(web, then="fetch", html="<b>", address=f"http://{'x' * 80}.example/")["form"].name == "x" * 60
    assert web.pages.values["form"].urls == ""
    shown = edited(web, 422, then="fetch")
    assert (shown["problem"], shown["action"], shown["found"]) == ("Write the address of a page, or paste one.", "", None)
    shown = edited(web, 422, page="gone")
    assert (shown["problem"], shown["suggested"], shown["marks"]) == ("The page is kept for an hour. Fetch it again.", [], {})


def test_the_editor_changes_its_rows(web: Kept) -> None:
    page = web.services.shelf.put(URL, "<p>")
    web.child.results = {"preview": FOUND, "outline": {}, "suggested_urls": [], "source_of_form": "toml"}
    shown = edited(web, page=page.key, then="field:0", picked="3", **FIELD)
    assert [row["expression"] for row in shown["form"].fields] == ["h1", ".p"]
    previews = [values for job, values in jobs(web) if job == "extraction_preview:preview"]
    assert [(html, url, picked) for html, url, _, picked in previews] == [("<p>", URL, 3)] * 2
    assert (shown["source"], shown["outline"], shown["action"]) == ("toml", {}, "field:0")
    assert [row["expression"] for row in edited(web, page=page.key, then="links:0", **LINKS)["form"].links] == ["a", "b"]
    for action, fields, links in (("add-field", 2, 1), ("add-links", 1, 2), ("drop-field:0", 0, 1), ("drop-links:0", 1, 0)):
        jobs(web)
        form = edited(web, page=page.key, then=action, **FIELD, **LINKS)["form"]
        assert (len(form.fields), len(form.links)) == (fields, links)
        assert [job for job, _ in jobs(web)].count("extraction_preview:preview") == 2
        form = edited(web, then=action, **FIELD, **LINKS)["form"]
        assert (len(form.fields), len(form.links), [job for job, _ in jobs(web)].count("extraction_preview:preview")) == (
            fields,
            links,
            0,
        )
    for action, picked in (("pick:7", 7), ("pick:x", -1), ("pick:1234567", -1), ("pick:", -1)):
        shown = edited(web, page=page.key, then=action, picked="3")
        assert (shown["form"].picked, shown["action"]) == (picked, action)
    assert edited(web, page=page.key, then="pick:123456")["form"].picked == 123_456
    assert edited(web, then="drop-links:0", **LINKS)["source"] == ""
    assert edited(web, **LINKS)["source"] == "toml"
    shown = edited(web, headers=HTMX, page=page.key, then="pick:1")
    assert (web.pages.template, shown["partial"], shown["outline"]) == ("learning/_extraction_panel.html", True, None)
    shown = edited(web, headers={**HTMX, "hx-target": "results"}, page=page.key, then="pick:1")
    assert (web.pages.template, shown["partial"]) == ("learning/_extraction_results.html", False)
    web.child.results["preview"] = ClassifyError("too slow")
    shown = edited(web, 422, page=page.key, then="pick:1")
    assert (shown["problem"], shown["found"], shown["marks"]) == ("too slow", None, {})


def test_the_editor_takes_a_rule_as_text_and_saves(web: Kept) -> None:
    form = {"urls": "u", "comment": "c", "fields": [], "links": []}
    change = {"name": "shop", "before": 0, "after": 1}
    web.child.results = {"form_of_source": form, "source_of_form": "toml", "save_rule": change, "suggested_urls": []}
    shown = edited(web, then="text", source="text")
    assert (jobs(web), shown["form"].urls, shown["action"]) == ([("extraction_jobs:form_of_source", ("text",))], "u", "text")
    sent = {"then": "save-text", "name": "shop", "source": "a\r\nb", "page": "k", "version": "3"}
    answer = web.client.post(EDITOR, data=sent)
    assert answer.headers["location"] == f"/crawler/rules/shop?saved={web.last_change.entry_id}&page=k"
    assert jobs(web) == [("extraction_jobs:save_rule", ("shop", "a\nb\n", 3))]
    answer = web.post(EDITOR, 200, headers=HTMX, then="save", name="shop", urls="u")
    assert answer.headers["hx-redirect"] == f"/crawler/rules/shop?saved={web.last_change.entry_id}&page="
    assert jobs(web) == [
        ("extraction_jobs:source_of_form", ({"urls": "u", "comment": "", "fields": [], "links": []},)),
        ("extraction_jobs:save_rule", ("shop", "toml", 0)),
    ]
    for name in ("", "new"):
        assert edited(web, 422, then="save", name=name)["problem"] == "Give the rule a name of its own."
    assert jobs(web) == []
    answer = web.client.post(EDITOR, data={"then": "save", "name": "new", "version": "1"})
    assert answer.status_code == 303
    web.child.results |= {"form_of_source": ClassifyError("bad"), "save_rule": ClassifyError("worse")}
    assert (edited(web, 422, then="text", source="x")["problem"], web.pages.values["action"]) == ("bad", "text")
    assert (edited(web, 422, then="save", name="shop")["problem"], web.pages.values["action"]) == ("worse", "")
