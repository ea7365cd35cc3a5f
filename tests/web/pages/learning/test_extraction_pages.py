"""Extraction rules by pages and API: made, edited, tried, removed and taken back; roles; hostile pages."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from re import search

import pytest

from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.web.child_process import ChildProcess
from gatewayfilter.web.page_shelf import KEPT_S, MOST_PAGES, PageShelf
from gatewayfilter.web.services import EDIT_TIMEOUT_S
from tests.web.learning_fakes import HOSTILE, NOW
from tests.web.learning_site import ARTICLE, site
from tests.web.web_fakes import ADMIN, APPROVER, VIEWER, Dashboard, dashboard

ROOT = "/api/v1/extraction-rules"
EDITOR = "/crawler/rules/editor"
SOURCE = "urls = 'https?://news\\.example/.*'\n[fields.title]\ncss = 'h1'\n[[links]]\ncss = 'ul.more a'\n"
URL = "http://news.example/story/1"
PART = {"hx-request": "true"}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("extraction")
    with dashboard(folder, crawl__allow_networks=["127.0.0.0/8"]) as board:
        yield board
        board.services.editing.close()
        board.services.fetching.close()


@pytest.fixture(autouse=True)
def admin(board: Dashboard) -> None:
    board.who.identity = ADMIN


def put(board: Dashboard, name: str, source: str = SOURCE, **headers: str) -> int:
    return board.client.put(f"{ROOT}/{name}", json={"source": source}, headers=headers).status_code


def shelved(board: Dashboard, html: str, url: str = URL) -> dict[str, str]:
    """Puts a page into the editor; returns the fields of its form."""
    answer = board.client.post(EDITOR, data={"then": "fetch", "html": html, "address": url})
    assert answer.status_code == 200, answer.text[:500]
    key = search(r'name="page" value="([\w-]+)"', answer.text)
    assert key is not None
    return {"page": key[1], "urls": r"https?://news\.example/.*", "address": url}


@pytest.mark.slow
def test_a_rule_by_the_api(board: Dashboard) -> None:
    assert put(board, "api", SOURCE, **{"if-match": '"0"'}) == 200
    assert put(board, "api", SOURCE, **{"if-match": '"0"'}) == 412
    assert put(board, "api", SOURCE, **{"if-match": '"x"'}) == 412
    assert put(board, "api", SOURCE.replace("h1", "h2"), **{"if-match": '"1"'}) == 200
    found = board.client.get(f"{ROOT}/api")
    assert (found.json()["version"], found.json()["host"], found.headers["etag"]) == (2, "news.example", '"2"')
    board.services.store.rule_matches.add({"api": RuleMatches(1200, 3, NOW - 60)})
    listed = board.client.get(ROOT).json()[0]
    assert (listed["pages"], listed["empty"], listed["last_at"]) == (1200, 3, NOW - 60)
    shown = board.client.get("/crawler/rules").text
    assert "1,200" in shown
    assert "3 with nothing found" in shown
    assert [state["in_use"] for state in found.json()["history"]] == [False, True]
    assert board.client.get(f"{ROOT}/api", params={"version": 1}).json()["source"] == SOURCE
    assert board.client.delete(f"{ROOT}/api", headers={"if-match": '"1"'}).status_code == 412
    assert board.client.delete(f"{ROOT}/api", headers={"if-match": '"2"'}).status_code == 204
    assert board.client.delete(f"{ROOT}/api").status_code == 404
    assert "api" not in [row["name"] for row in board.client.get(ROOT).json()]
    assert board.client.post(f"{ROOT}/api/restore", json={"version": 1}).json() == {"name": "api", "before": 0, "after": 3}
    for source in ("", "urls = ", "urls='x'", "name='other'\n" + SOURCE):
        assert put(board, "bad", source) == 422, source
    half = json.dumps({"source": "comment = '\ud800'\n" + SOURCE}).encode()
    assert board.client.put(f"{ROOT}/bad", content=half, headers={"content-type": "application/json"}).status_code == 422
    assert board.client.get(f"{ROOT}/none").status_code == 404
    assert put(board, "BAD") == 422


@pytest.mark.slow
def test_changes_are_recorded_and_taken_back(board: Dashboard) -> None:
    def undo() -> int:
        entry = board.services.store.audit.page(undoable=True, limit=1)[0]
        return board.client.post(f"/api/v1/audit/{entry.entry_id}/undo").status_code

    def version() -> int:
        return int(board.client.get(f"{ROOT}/kept").json()["current"])

    put(board, "kept")
    put(board, "kept", SOURCE.replace("h1", "h2"))
    assert undo() == 200
    assert board.client.get(f"{ROOT}/kept").json()["source"] == SOURCE
    answer = board.client.post("/crawler/rules/kept/remove", headers=PART)
    assert "/undo" in answer.text
    assert version() == 0
    assert undo() == 200
    assert version() == 4
    board.client.delete(f"{ROOT}/kept")
    (board.services.settings.data_dir / "rules" / "kept.toml").write_text(SOURCE + "# by hand\n", "utf-8")
    assert undo() == 409
    actions = {entry.action for entry in board.services.store.audit.page(limit=99)}
    assert {"extraction.added", "extraction.removed", "change.undone"} <= actions


@pytest.mark.slow
def test_a_rule_is_tried_by_the_api(board: Dashboard) -> None:
    sent = board.client.post(f"{ROOT}/preview", json={"source": SOURCE, "html": ARTICLE, "url": URL}).json()
    assert sent["fields"] == [{"name": "title", "values": ["A bridge for the harbour"], "count": 1, "error": ""}]
    assert sent["links"][0]["values"] == [f"http://news.example/story/{number}" for number in (2, 3, 4)]
    assert sent["matches"] is True
    with site() as news:
        fetched = board.client.post(f"{ROOT}/preview", json={"source": SOURCE, "url": f"{news}/x"}).json()
    assert (fetched["matches"], fetched["fields"][0]["values"]) == (False, ["A bridge for the harbour"])
    for body in (
        {"html": "x"},
        {"source": SOURCE},
        {"source": "urls=", "html": "x"},
        {"source": SOURCE, "url": "http://10.0.0.1/"},
    ):
        assert board.client.post(f"{ROOT}/preview", json=body).status_code == 422, body


@pytest.mark.slow
def test_the_editor_without_scripts(board: Dashboard) -> None:
    form = shelved(board, ARTICLE) | {"name": "harbour"}
    picked = search(r'el--heading" data-n="(\d+)" data-tag="h1"', board.client.post(EDITOR, data=form).text)
    assert picked is not None
    form["picked"] = picked[1]
    page = board.client.post(EDITOR, data=form | {"then": "field:0"}).text
    assert 'name="f0-expression" type="text" value="h1.headline"' in page
    assert "A bridge for the harbour" in page.partition('id="results"')[2]
    row = {"f0-way": "css", "f0-name": "title", "f0-expression": "h1"}
    links = {"l0-way": "css", "l0-expression": "ul.more a", "l0-limit": "2"}
    page = board.client.post(EDITOR, data=form | row | links).text
    assert "http://news.example/story/3" in page
    assert "http://news.example/story/4" not in page.partition('id="results"')[2]
    page = board.client.post(EDITOR, data=form | row | {"l0-way": "css", "l0-expression": "a[["}).text
    assert "not a CSS selector" in page
    assert "A bridge for the harbour" in page.partition('id="results"')[2]
    dropped = board.client.post(EDITOR, data=form | row | links | {"then": "drop-field:0"}).text
    assert "f0-way" not in dropped
    assert "l0-way" in dropped
    for name in ("", "new", "A b", "x" * 90):
        assert board.client.post(EDITOR, data=form | row | {"name": name, "then": "save"}).status_code == 422, name
    saved = board.client.post(EDITOR, data=form | row | links | {"then": "save"})
    assert (saved.status_code, saved.headers["location"].partition("?")[0]) == (303, "/crawler/rules/harbour")
    again = board.client.post(EDITOR, data=form | row | {"then": "save", "version": "0"})
    assert again.status_code == 422
    assert "somebody has changed this since" in again.text
    assert "/audit/" in board.client.get(saved.headers["location"]).text
    text = board.client.post(EDITOR, data=form | {"then": "text", "source": SOURCE}).text
    assert 'name="l0-expression" type="text" value="ul.more a"' in text
    part = board.client.post(EDITOR, data=form | row, headers=PART | {"hx-target": "results"}).text
    assert part.lstrip().startswith("<section")
    gone = board.client.post(EDITOR, data=form | {"page": "gone"})
    assert "kept for an hour" in gone.text
    restored = board.client.post("/crawler/rules/harbour/restore", data={"version": 1, "current": 1})
    assert restored.status_code == 303
    assert "news.example" in board.client.get("/crawler/rules").text
    assert "提取规则" in board.client.get("/crawler/rules", headers={"accept-language": "zh"}).text


PAGES = [
    "<div>" * 50_000 + "x",
    "<p>hello</p>" * 15_000,
    f'<div onclick=a() title="{"x" * 150_000}">{HOSTILE}</div>',
    "<base href='http://evil.example/'><meta http-equiv=refresh content='0;url=//evil.example'><h1 onclick=a()>x</h1>",
    f'<h1 class=\'{HOSTILE[:60]}\' id="\'><script>a()</script>"><a href="javascript:alert(1)">{HOSTILE}</a></h1>',
    "<svg onload=alert(1)><script>alert(2)</script></svg><iframe srcdoc='<script>'></iframe>\0\0<p>\0</p>",
    "</div></main></body><form action=//evil.example><button name=then value=save>Save</button><input name=csrf>",
]


@pytest.mark.slow
@pytest.mark.parametrize("html", PAGES)
def test_a_hostile_page_stays_text(board: Dashboard, html: str) -> None:
    form = shelved(board, html)
    row = {"f0-way": "css", "f0-name": HOSTILE, "f0-expression": "*", "f0-many": "on", "l0-way": "css", "l0-expression": "a"}
    for number in ("0", "3", "7", "99999999"):
        page = board.client.post(EDITOR, data=form | row | {"picked": number, "name": HOSTILE, "comment": HOSTILE}).text
        for bad in (
            "<script>a",
            "<img src=x",
            "onclick=a",
            "<svg onload",
            "<iframe",
            "<form action=//",
            'href="javascript:',
            "http-equiv",
        ):
            assert bad not in page.lower() or f"&lt;{bad[1:]}" in page.lower(), bad
        assert "\0" not in page
        assert page.count("<main") == page.count("</main>") == 1
        assert page.count('name="csrf" value') == page.count("<form")


@pytest.mark.slow
def test_a_selector_that_takes_too_long_is_given_up(board: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    form = shelved(board, "<p>x" * 49_000) | {
        "f0-way": "css",
        "f0-name": "x",
        "f0-expression": "p:nth-of-type(2) ~ p:nth-of-type(n+3)",
    }
    with closing(ChildProcess(EDIT_TIMEOUT_S)) as child:
        monkeypatch.setattr(board.services, "editing", child)
        page = board.client.post(EDITOR, data=form).text
    assert f"this took longer than {EDIT_TIMEOUT_S:g} s" in page


@pytest.mark.slow
def test_roles(board: Dashboard) -> None:
    put(board, "roles")
    for who in (VIEWER, APPROVER):
        board.who.identity = who
        assert board.client.get("/crawler/rules/new").status_code == 403
        assert board.client.get(f"{ROOT}/roles").status_code == 200
        for path in ("/crawler/rules", "/crawler/rules/roles"):
            page = board.client.get(path).text
            assert "roles" in page
            assert "/crawler/rules/roles/re" not in page
            assert "/crawler/rules/editor" not in page
        assert board.client.post(EDITOR, data={}).status_code == 403
        assert board.client.post("/crawler/rules/roles/remove").status_code == 403
        assert board.client.post("/crawler/rules/roles/restore", data={"version": 1, "current": 1}).status_code == 403
        assert put(board, "roles") == 403
        assert board.client.delete(f"{ROOT}/roles").status_code == 403
        assert board.client.post(f"{ROOT}/preview", json={"source": SOURCE, "html": "x"}).status_code == 403


def test_pages_are_kept_for_an_hour() -> None:
    now = [1_000.0]
    shelf = PageShelf(lambda: now[0])
    first = shelf.put("http://a.example/", "<p>\ud800")
    assert shelf.find(first.key) is not None
    for _ in range(MOST_PAGES):
        shelf.put("", "x")
    assert shelf.find(first.key) is None
    last = shelf.put("", "y")
    now[0] += KEPT_S + 1
    assert shelf.find(last.key) is None
    assert shelf.find("none") is None
