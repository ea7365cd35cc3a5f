"""Answers of the API about decisions, requests to unblock pages and bypass links: each field."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import (
    Client,
)
from gatewayfilter.use_cases.traffic.log_filters import LogFilters
from gatewayfilter.web.api.traffic import log_files
from tests.web.learning_fakes import ask
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.people_fakes import TABLET, address, household
from tests.web.traffic_log import decision
from tests.web.web_fakes import ADMIN

API = "/api/v1"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("api")
    with kept(folder / "state", filter__timezone="UTC", proxy__auth_file=folder / "users") as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    household(opened.services.store, NOW)
    yield opened

    def none(policies: Any) -> Any:
        kinds = (policies.pauses, policies.quotas, policies.schedules, policies.clients, policies.groups, policies.policies)
        return [(item, False) for kind in kinds for item in kind.values()]

    opened.services.store.policies.change(none, NOW)
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)


def sent(web: Kept, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
    """Sends a request to the API; returns what its answer holds."""
    given = {key.replace("_", "-"): text for key, text in headers.items()}
    answer = web.client.request(method, f"{API}{path}", json=body, headers=given)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else answer.headers


def got(web: Kept, path: str, **params: Any) -> Any:
    answer = web.client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(web: Kept, *items: Any) -> None:
    web.services.store.policies.change(lambda _: [(item, True) for item in items], NOW)


def policies(web: Kept) -> Any:
    return web.services.store.policies.read()


def test_the_log_has_all_facts_of_a_decision(web: Kept) -> None:
    store = web.services.store
    facts: dict[str, object] = {"source_list": "l", "rule": "r", "category": "ads", "resource_type": "script", "method": "POST"}
    store.log.write([decision(NOW - 90, f"http://n{n}.example/", "192.0.2.10", "block", "adblock", **facts) for n in range(3)])
    while store.log_counter.step():
        pass
    first = got(web, "/log", limit=2)
    item = first["items"][0]
    assert item == {
        "id": item["id"], "at": NOW - 90, "client": "192.0.2.10", "client_name": TABLET, "user": "", "method": "POST",
        "url": "http://n2.example/", "type": "script", "action": "block", "reason": "adblock", "list": "l", "rule": "r",
        "category": "ads", "elapsed_us": 12,
    }  # fmt: skip
    assert (first["next"], first["complete"], first["searched_to"]) == (item["id"] - 1, True, NOW - 90)
    assert [row["url"] for row in got(web, "/log", limit=2, after=first["next"])["items"]] == ["http://n0.example/"]
    for one in first["items"]:
        assert got(web, f"/log/{one['id']}") == one
    assert sent(web, "GET", f"/log/{item['id'] + 1}", None, 404)["detail"] == f"there is no decision {item['id'] + 1} in the log"
    stats = got(web, "/log/stats", since="2h", top=1)
    assert (stats["decisions"], stats["blocked"], stats["uncounted"], set(stats["tops"])) == (
        3, 3, 0, {"client", "host", "category", "source", "reason"},
    )  # fmt: skip
    assert (stats["tops"]["category"], len(stats["tops"]["host"])) == ([{"name": "ads", "decisions": 3, "blocked": 3}], 1)
    assert (stats["since"] <= NOW - 90, stats["until"]) == (True, stats["until"])
    for path, buckets in (("/log/timeline", "buckets"), ("/overview", "timeline")):
        found = got(web, path)
        blocked = [one for one in found[buckets] if one["blocked"]]
        assert [(one["blocked"], one["allowed"], one["unknown"], one["learned"]) for one in blocked] == [(3, 0, 0, 0)]
        assert (found["uncounted"], found["until"] > NOW - 90) == (0, True)
    overview = got(web, "/overview", span="week")
    assert (overview["decisions"], overview["blocked"], overview["since"] < NOW - 5 * 86_400) == (3, 3, True)
    assert [overview[name][0] for name in ("clients", "categories", "lists")] == [
        {"name": name, "decisions": 3, "blocked": 3} for name in (TABLET, "ads", "l")
    ]
    assert {one["name"] for one in overview["sites"]} == {f"n{n}.example" for n in range(3)}
    store.unblock.ask([UnblockRequest("http://asked.example/", "10.0.0.7", "adblock", "", "", "", "homework", NOW - 9)])
    number = store.unblock.open_requests()[0].request_id
    store.unblock.deny([number], word="no", now=NOW)
    report = got(web, "/reports", since="24h", until="2027-01-16")
    assert (
        report["decisions"],
        report["blocked"],
        report["lists"] > 0,
        report["failing"],
        report["learned"],
        report["learned_count"],
    ) == (
        3,
        3,
        True,
        [],
        [],
        0,
    )
    assert (report["blocked_by"]["source"], report["clients"][0]["decisions"]) == (
        [{"name": "l", "decisions": 3, "blocked": 3}],
        3,
    )
    asked = next(one for one in report["requests"] if one["number"] == number)
    assert asked == {
        "number": number,
        "url": "http://asked.example/",
        "who": "10.0.0.7",
        "comment": "homework",
        "state": "denied",
        "word": "no",
        "at": NOW - 9,
    }
    for until in ("yesterday", "today"):
        refused = web.client.get(f"{API}/reports", params={"since": "today", "until": until})
        assert (refused.status_code, refused.json()["detail"]) == (422, "the report ends before it begins")
    lines = web.client.get(f"{API}/log/export", params={"format": "jsonl"})
    assert (lines.headers["content-type"], lines.headers["content-disposition"]) == (
        "application/x-ndjson",
        'attachment; filename="decisions.jsonl"',
    )
    assert [json.loads(line)["url"] for line in lines.text.splitlines()] == [f"http://n{n}.example/" for n in (2, 1, 0)]
    assert '": ' not in lines.text
    assert sent(web, "POST", "/log/purge", {"before": "1h", "client": TABLET}) == {"removed": 0}
    assert web.told() == ("log.purged", TABLET, "1h")
    erased = sent(web, "POST", f"/clients/{TABLET}/erase", {"keep": True})
    assert (erased["counts"]["decisions"], erased["counts"]["clients"], TABLET in policies(web).clients) == (3, 0, True)
    assert (web.told(), sent(web, "POST", "/clients/laptop/erase", {})["counts"]["clients"]) == (("client.erased", TABLET, ""), 1)


def test_a_long_export_is_sent_in_pieces(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": number, "b": "=x"} for number in range(1_001)]
    monkeypatch.setattr(log_files, "exported_rows", lambda *_: iter(rows))
    text = web.client.get(f"{API}/log/export", params={"separator": "semicolon"})
    lines = text.text.splitlines()
    assert (len(lines), lines[1], lines[500:502], lines[-1]) == (1_002, "0;'=x", ["499;'=x", "500;'=x"], "1000;'=x")
    assert (text.headers["content-type"], text.headers["content-disposition"]) == (
        "text/csv; charset=utf-8", 'attachment; filename="decisions.csv"',
    )  # fmt: skip

    async def pieces(form: str) -> list[str]:
        sent = log_files.export(web.services, ADMIN, LogFilters(), cast("Any", form))
        return [str(piece) async for piece in sent.body_iterator]

    assert [piece.count("\n") for piece in asyncio.run(pieces("csv"))] == [501, 500, 1]
    assert len(asyncio.run(pieces("jsonl"))) == 1_001


def test_requests_and_links_have_all_their_facts(web: Kept) -> None:
    store = web.services.store
    put(web, Client("tablet", (address("10.0.0.7"),), "kids"))
    numbers = [ask(store, f"http://r{n}.example/x") for n in range(3)]
    number = numbers[-1]
    listed = got(web, "/requests", limit=1)
    assert listed["items"][0] == {
        "id": number,
        "state": "open",
        "url": "http://r2.example/x",
        "client": "10.0.0.7",
        "client_name": "tablet",
        "comment": "homework",
        "at": NOW,
        "times": 1,
        "reason": "blacklist",
        "source_list": "games list",
        "rule": ".games.example",
        "category": "games",
        "site": ".r2.example",
        "whole_site": True,
        "evidence": [],
        "review": 0,
        "decided_at": None,
        "word": "",
        "until": None,
        "scope": "",
        "rules": [],
    }
    last = got(web, "/requests", limit=2, after=listed["next"])
    assert ([one["id"] for one in last["items"]], last["next"]) == (numbers[1::-1], None)
    body = {"seconds": 60, "word": " yes ", "site": False, "group": "kids"}
    approved = sent(web, "POST", f"/requests/{number}/approve", body)
    assert (
        approved["state"],
        approved["until"],
        approved["word"],
        approved["scope"],
        len(approved["rules"]),
        approved["decided_at"],
    ) == (
        "approved",
        NOW + 60,
        "yes",
        "group:kids",
        1,
        NOW,
    )
    tag = web.client.get(f"{API}/requests/{number}").headers["etag"]
    sent(web, "POST", f"/requests/{number}/reopen", None, 412, if_match='"x"')
    sent(web, "POST", f"/requests/{number}/reopen", None, 200, if_match=f"W/{tag}")
    assert sent(web, "POST", f"/requests/{number}/approve", {"once": True}, 200, if_match="*")["until"] == NOW + 86_400
    sent(web, "POST", f"/requests/{number}/reopen")
    assert sent(web, "POST", f"/requests/{number}/approve", {"seconds": None, "everybody": True})["until"] is None
    sent(web, "POST", f"/requests/{number}/reopen")
    assert sent(web, "POST", f"/requests/{number}/deny", {"word": " no "})["word"] == "no"
    link = sent(web, "POST", f"/requests/{numbers[0]}/link", {"seconds": 60, "client": "tv", "site": True}, 201)
    assert {name: link[name] for name in ("state", "url", "pattern", "scope", "until", "once", "request")} == {
        "state": "unused",
        "url": "http://r0.example/x",
        "pattern": ".r0.example",
        "scope": "client:tv",
        "until": NOW + 60,
        "once": False,
        "request": numbers[0],
    }
    decided = got(web, "/requests", state="decided", limit=1)
    assert ([one["id"] for one in decided["items"]], decided["next"]) == ([number], number)
    made = [sent(web, "POST", "/bypass-links", {"url": f"l{n}.example", "everybody": True, "once": True}, 201) for n in range(2)]
    assert (made[1]["once"], made[1]["until"], "?link=" in made[1]["address"], made[1]["request"]) == (True, NOW + 3_600, True, 0)
    links = got(web, "/bypass-links", limit=2)
    assert ([one["id"] for one in links["items"]], links["next"]) == ([made[1]["id"], made[0]["id"]], made[0]["id"])
    last = got(web, "/bypass-links", after=links["next"])["items"]
    assert last[0]["id"] == link["id"]
    assert got(web, "/bypass-links", limit=len(last), after=links["next"]) == {"items": last, "next": None}
    assert sent(web, "DELETE", f"/bypass-links/{link['id']}")["state"] == "revoked"
    for one in numbers[:2]:
        store.unblock.deny([one], word="", now=NOW)
