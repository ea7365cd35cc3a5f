"""Answers of the API about rules, lists and what is learned: each field, what is begun, and what is recorded."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.model import ListAction
from gatewayfilter.use_cases.lists.source_changes import find_source
from gatewayfilter.web.api.lists.sources import version_of
from gatewayfilter.web.source_worker import JobState
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.web_fakes import ADMIN

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


def test_rules_are_listed_added_and_changed(web: Kept) -> None:
    added = sent(
        web,
        "POST",
        "/rules",
        {
            "patterns": ["a.example", "b.example"],
            "action": "allow",
            "exact": True,
            "comment": "c",
            "group": "g",
            "expires_at": NOW + 9,
        },
        201,
    )["items"]
    assert [item["rule"]["pattern"] for item in added] == ["|a.example", "|b.example"]
    assert web.told() == ("rule.added", "a.example, b.example", "")
    first = added[0]["rule"]
    assert first == {
        "id": first["id"], "action": "allow", "kind": "host", "pattern": "|a.example", "comment": "c", "group": "g",
        "expires_at": NOW + 9, "enabled": True, "scope": "",
    }  # fmt: skip
    assert {name: added[0][name] for name in ("whole_site", "mixed_scripts")} == {"whole_site": "", "mixed_scripts": ""}
    listed = got(web, "/rules", limit=1)
    assert ([item["id"] for item in listed["items"]], listed["next"], listed["total"]) == (
        [added[1]["rule"]["id"]],
        added[1]["rule"]["id"],
        2,
    )
    listed = got(web, "/rules", limit=1, after=listed["next"])
    assert (listed["items"][0]["id"], listed["next"]) == (first["id"], None)
    for query, total in (
        ({"q": "b.ex"}, 1),
        ({"action": "block"}, 0),
        ({"group": "g"}, 2),
        ({"group": ""}, 0),
        ({"scope": ""}, 2),
        ({"enabled": False}, 0),
    ):
        assert got(web, "/rules", **query)["total"] == total
    assert got(web, "/rules/groups") == {"items": [{"group": "g", "rules": 2, "enabled": 2}]}
    one = f"/rules/{first['id']}"
    tag = web.client.get(f"{API}{one}").headers["etag"]
    changed = sent(web, "PATCH", one, {"comment": "d", "enabled": False}, if_match=tag)
    assert changed == first | {"comment": "d", "enabled": False}
    assert web.told() == ("rule.changed", first["pattern"], "")
    assert web.client.get(f"{API}{one}").headers["etag"] != tag
    sent(web, "PATCH", one, {"comment": "e"}, 412, if_match=tag)
    assert sent(web, "PATCH", one, {"group": "", "expires_at": None, "action": "block", "pattern": first["pattern"]}) == first | {
        "comment": "d", "enabled": False, "group": "", "expires_at": None, "action": "block",
    }  # fmt: skip
    sent(web, "PATCH", one, {"pattern": "com"}, 422)
    assert sent(web, "PATCH", one, {"pattern": "com", "force": True, "comment": "", "enabled": True})["pattern"] == "com"
    assert sent(web, "POST", "/rules/switch", {"group": "g", "enabled": False}) == {"rules": 1, "changed": 1}
    assert web.told() == ("rule.switched", "group g", "off")
    ids = [first["id"], added[1]["rule"]["id"]]
    assert sent(web, "POST", "/rules/switch", {"ids": ids, "enabled": True}) == {"rules": 2, "changed": 1}
    assert web.told() == ("rule.switched", f"{ids[0]}, {ids[1]}", "on")
    before = web.changes
    assert sent(web, "POST", "/rules/switch", {"enabled": True}) == {"rules": 0, "changed": 0}
    assert web.changes == before
    tag = web.client.get(f"{API}{one}").headers["etag"]
    sent(web, "DELETE", one, None, 412, if_match='"x"')
    sent(web, "DELETE", one, None, 204, if_match=tag)
    assert web.told() == ("rule.removed", "com", "")
    sent(web, "GET", one, None, 404)


def test_rules_are_tested_imported_and_exported(web: Kept) -> None:
    test = sent(web, "POST", "/rules/test", {"rules": "a.example\n((", "urls": "http://a.example/", "action": "allow"})
    assert [(line["line"], line["text"], line["kind"], line["action"], line["broad"]) for line in test["lines"]] == [
        (1, "a.example", "rule", "allow", False), (2, "((", "wrong", None, False),
    ]  # fmt: skip
    assert (test["lines"][0]["tried"], test["urls"]) == (
        [{"url": "http://a.example/", "applies": True}], [{"url": "http://a.example/", "action": "allow"}],
    )  # fmt: skip
    assert (bool(test["lines"][0]["meaning"]), test["lines"][1]["meaning"], bool(test["lines"][1]["error"])) == (True, "", True)
    assert (test["looked_at"], test["lines"][0]["logged"], test["lines"][0]["hosts"]) == (0, 0, [])
    file = {"text": "a.example\n((\nb.example", "comment": "c", "group": "g", "action": "allow", "expires_at": NOW + 9}
    counts = {"rules": 2, "new": 2, "changed": 0, "same": 0, "rejected": 1}
    found = sent(web, "POST", "/rules/import", file | {"preview": True})
    assert ({name: found[name] for name in counts}, found["stored"], web.services.store.lists.rules()) == (counts, False, [])
    assert [(one["line"], one["text"], bool(one["why"])) for one in found["samples"]] == [(2, "((", True)]
    assert sent(web, "POST", "/rules/import", file)["stored"] is True
    assert [(rule.group, rule.comment, rule.expires_at, rule.action) for rule in web.services.store.lists.rules()] == [
        ("g", "c", NOW + 9, ListAction.ALLOW)
    ] * 2
    assert web.told() == ("rule.imported", "2", "")
    again = sent(web, "POST", "/rules/import", {"text": "a.example\n" + "((\n" * 21, "preview": True})
    assert (len(again["samples"]), again["rejected"]) == (20, 21)
    exported = web.client.get(f"{API}/rules/export?file_format=csv&action=block")
    assert (exported.text.count("\n"), exported.headers["content-disposition"][:22]) == (1, 'attachment; filename="')


def test_lists_have_all_their_facts(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    items = sorted(web.services.subscriptions.all(), key=lambda item: item.definition.name)
    names = [item.definition.name for item in items]
    every = got(web, "/lists")
    assert ([item["name"] for item in every["items"]], every["next"]) == (names, None)
    assert got(web, "/lists", limit=len(names))["next"] is None
    first = got(web, "/lists", limit=len(names) - 1)
    assert first["next"] == names[-2]
    assert [item["name"] for item in got(web, "/lists", after=names[-2])["items"]] == [names[-1]]
    item = next(item for item in items if item.report is not None)
    assert item.report is not None
    shown = got(web, f"/lists/{item.definition.name}")
    assert shown == {
        "name": item.definition.name,
        "address": item.definition.address,
        "category": item.definition.category,
        "action": item.definition.action,
        "format": item.definition.list_format,
        "enabled": True,
        "bundled": True,
        "pending": False,
        "entries": item.report.accepted,
        "checked_at": item.state.checked_at,
        "changed_at": item.state.changed_at,
        "next_at": item.next_due_at,
        "failures": item.state.failures,
        "problem": "",
    }
    unread = replace(
        item,
        report=None,
        definition=replace(item.definition, list_format=None),
        state=replace(item.state, error="away", failures=2),
    )
    monkeypatch.setattr("gatewayfilter.web.api.lists.sources.find_source", lambda *_: unread)
    shown = got(web, f"/lists/{item.definition.name}")
    assert (shown["entries"], shown["format"], shown["problem"], shown["failures"]) == (0, "", "away", 2)
    assert version_of(unread) != version_of(item)
    rows = got(web, "/lists/catalogue")
    assert [row["name"] for row in rows["items"]] == list(web.services.subscriptions.catalog)
    entry = next(iter(web.services.subscriptions.catalog.values()))
    assert rows["items"][0] == {
        "name": entry.name,
        "title": entry.title,
        "category": entry.category,
        "licence": entry.licence,
        "homepage": entry.homepage,
        "description": entry.description,
        "description_zh": entry.description_zh,
        "entries": entry.entries,
        "added": entry.name in names,
    }
    bundle = next(iter(web.services.subscriptions.bundles.values()))
    assert rows["bundles"][0] == {
        "name": bundle.name, "title": bundle.title, "title_zh": bundle.title_zh, "lists": list(bundle.lists),
        "missing": list(web.services.subscriptions.missing(bundle.name)),
    }  # fmt: skip


def test_work_on_lists_is_begun(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"https://lists.example/{'x' * 300}"
    begun = sent(
        web, "POST", "/lists", {"addresses": [url], "name": "mine", "category": "ads", "action": "allow", "interval_h": 3}, 202
    )
    assert begun == {
        "number": 7,
        "kind": "subscribe",
        "subject": url[:300],
        "running": True,
        "started_at": 5.0,
        "ended_at": 0.0,
        "results": [],
        "error": "",
    }
    options = {"name": "mine", "category": "ads", "action": "allow", "interval_h": 3.0}
    assert web.worker.begun.pop() == ("subscribe", url[:300], ([url], options), {})
    assert (web.told(), web.last_change.undo) == (
        ("list.added", url[:300], ""),
        {"kind": "sources", "items": [[None, {"name": "mine"}]]},
    )
    sent(web, "POST", "/lists", {"addresses": [url, f"{url}2"], "name": "mine"}, 202)
    assert web.worker.begun.pop()[2][1] == {"name": "", "category": "", "action": "", "interval_h": 0.0}
    before = web.changes
    sent(web, "POST", "/lists", {"addresses": [url], "preview": True}, 202)
    assert (web.worker.begun.pop()[:3], web.changes) == (
        ("preview", url[:300], (url, {"name": "", "category": "", "action": "", "interval_h": 0.0})), before,
    )  # fmt: skip
    sent(web, "POST", "/lists", {"addresses": ["/etc/passwd"]}, 422)
    name = web.services.subscriptions.names()[0]
    sent(web, "POST", "/lists/update", {"names": [name]}, 202)
    assert (web.worker.begun.pop(), web.told()) == (("update", name, ([name],), {}), ("list.updated", name, ""))
    sent(web, "POST", "/lists/update", {"names": ["none"]}, 404)
    for full in (True, False):
        sent(web, "POST", "/lists/publish", {"full": full}, 202)
        assert (web.worker.begun.pop(), web.told()) == (
            ("publish", "", (), {"full": full}), ("list.published", "", "full" if full else ""),
        )  # fmt: skip
    sent(web, "POST", "/lists/publish", {}, 202)
    assert web.worker.begun.pop()[3] == {"full": False}
    web.worker.state = JobState(3, "update", "s", 1.0, 2.0, ({"name": "a"},), "away")
    assert got(web, "/lists/work") == {
        "number": 3,
        "kind": "update",
        "subject": "s",
        "running": False,
        "started_at": 1.0,
        "ended_at": 2.0,
        "results": [{"name": "a"}],
        "error": "away",
    }
    sent(web, "PATCH", f"/lists/{name}", {"enabled": False}, 202)
    assert (web.worker.begun.pop(), web.told()) == (("switch", name, (name,), {"enabled": False}), ("list.switched", name, "off"))
    undo = web.last_change.undo
    assert undo is not None
    assert [state["enabled"] for state in undo["items"][0]] == [True, False]
    sent(web, "PATCH", f"/lists/{name}", {"enabled": True}, 202)
    assert (web.told()[2], web.last_change.undo) == ("on", None)
    sent(web, "DELETE", f"/lists/{name}", None, 412, if_match='"x"')
    refused = sent(web, "DELETE", f"/lists/{name}", None, 422)
    assert refused["detail"] == f"{name} comes with the program: switch it off"
    item = find_source(web.services.settings, name)
    own = replace(item, definition=replace(item.definition, bundled=False))
    monkeypatch.setattr("gatewayfilter.web.api.lists.sources.find_source", lambda *_: own)
    sent(web, "DELETE", f"/lists/{name}", None, 202, if_match=f'"{version_of(own)}"')
    assert (web.worker.begun.pop(), web.told()) == (("remove", name, (name,), {}), ("list.removed", name, ""))
    assert (web.last_change.undo or {})["items"][0][1] is None


def test_entries_are_counted_and_searched(web: Kept) -> None:
    counts = {"own": [], "own_expired": 1, "own_off": 2, "learned": [], "snapshot": {"blacklist": 3}}
    found = {"own": [], "learned": [], "lists": [], "unreadable": ["x"]}
    web.child.results = {"count_entries": counts, "search_entries": found, "search_files": found | {"unreadable": []}}
    assert got(web, "/entries/counts") == counts
    assert done(web) == ("gatewayfilter.web.access.check_job:count_entries", (NOW,), {})
    assert got(web, "/entries/search", text="a.example") == found
    assert done(web) == ("gatewayfilter.web.access.check_job:search_entries", ("a.example", NOW), {})
    assert web.child.jobs == []
    assert got(web, "/entries/search", text="a.example", partial=True)["unreadable"] == []
    assert done(web) == (f"{JOBS}lists.list_jobs:search_files", ("a.example",), {"partial": True})
    assert web.child.jobs == []
    web.child.results["search_entries"] = None
    assert got(web, "/entries/search", text="a.example")["unreadable"] == []
    assert done(web)[2] == {"partial": False}
    assert web.client.get(f"{API}/entries/search", params={"text": "a\0"}).status_code == 422
