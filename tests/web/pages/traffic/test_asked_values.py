"""The pages of requests to unblock pages, and of links: what they show, and what their forms do."""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayfilter.interfaces import RequestState, UnblockRequest
from gatewayfilter.model import (
    Client,
    Group,
    parse_matcher,
)
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.pages.traffic import requests
from tests.web.learning_fakes import ask
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.traffic_log import LAPTOP, OTHER, TABLET, decision
from tests.web.web_fakes import ADMIN


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("traffic"), filter__timezone="UTC") as web:
        store = web.services.store
        editor = PolicyEditor(store.policies)
        editor.add_group(Group("kids"))
        editor.add_group(Group("adults"))
        editor.add_client(Client("tablet", (parse_matcher(TABLET), parse_matcher("10.0.0.7")), "kids", icon="tablet"))
        editor.add_client(Client("laptop", (parse_matcher(LAPTOP),)))
        ads: dict[str, object] = {
            "source_list": "easylist",
            "rule": "||ads.example^",
            "category": "ads",
            "resource_type": "script",
        }
        store.log.write(
            [
                decision(NOW - 90_000, "https://old.example/", LAPTOP, reason="whitelist"),
                decision(NOW - 3_000, "https://news.example/today", LAPTOP, reason="whitelist"),
                decision(NOW - 1_800, "https://cdn.ads.example/a.js", TABLET, "block", "adblock", **ads),
                decision(NOW - 1_700, "https://x.ads.example/b.js", TABLET, "block", "adblock", **ads),
                decision(
                    NOW - 1_600,
                    "https://c.example/",
                    TABLET,
                    "block",
                    "learned",
                    source_list="learned:gambling",
                    category="gambling",
                ),
                decision(NOW - 60, "https://bank.example/", OTHER, "allow", "unknown"),
                decision(NOW - 50, "https://bank.example/2", "user:kim", "allow", "unknown"),
                decision(NOW - 40, "https://bank.example/3", "192.168.1.78", "allow", "unknown"),
            ]
        )
        while store.log_counter.step():
            pass
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)


def test_requests_are_shown_waiting_and_answered(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    store = web.services.store
    asked = [UnblockRequest(f"http://w{n}.example/", f"10.0.1.{n}", "blacklist", "", "", "", "", NOW) for n in range(21)]
    for one in asked:
        store.unblock.ask([one])  # of one device a few wait at most
    numbers = sorted(request.request_id for request in store.unblock.open_requests())
    shown = web.get("/requests")
    assert ([facts.request.request_id for facts in shown["facts"]], shown["more"]) == (numbers[:0:-1], 1)
    assert (shown["last"], shown["active"], shown["view"]) == ([], "requests", "waiting")
    shown = web.get(f"/requests/{numbers[3]}")
    assert (shown["item"].request.request_id, shown["waiting"], shown["active"]) == (numbers[3], 20, "requests")
    for number in numbers:
        store.unblock.deny([number], word="", now=NOW)
    shown = web.get("/requests")
    assert ([facts.request.request_id for facts in shown["last"]], shown["facts"], shown["more"]) == (numbers[:-6:-1], [], 0)
    first = web.get("/requests/answered")
    assert ([facts.request.request_id for facts in first["facts"]], first["newer"], first["view"]) == (
        numbers[:0:-1],
        "",
        "answered",
    )
    assert first["older"] == f"/requests/answered?after={numbers[1]}"
    last = web.get(first["older"])
    assert (next(facts.request.request_id for facts in last["facts"]), last["newer"]) == (numbers[0], "/requests/answered")
    everything = len(store.unblock.decided(1_000))
    for size, older in ((everything - 1, True), (everything, False)):
        monkeypatch.setattr(requests, "_A_PAGE", size)
        shown = web.get("/requests/answered")
        assert (len(shown["facts"]), bool(shown["older"])) == (size, older)


def test_links_are_made_for_somebody_and_revoked(web: Kept) -> None:
    web.post("/requests/links", 422, url="a.example", whom="nobody")
    assert web.pages.values["detail"] == "choose whom the link is for"
    web.post("/requests/links", 200, url=" a.example/x ", whom="client:tablet", lasts="1w", once="on", site="on")
    values = web.pages.values
    ((link, state), *_) = values["links"]
    assert (link.scope, link.until, link.once, link.pattern, state) == (
        "client:tablet",
        NOW + 7 * 86_400,
        True,
        ".a.example",
        "unused",
    )
    assert ("?link=" in values["address"], values["clients"], values["groups"], values["view"]) == (
        True, ["laptop", "tablet"], ["adults", "kids"], "links",
    )  # fmt: skip
    web.post("/requests/links", 200, url="b.example/x", whom="group:kids", lasts="1d")
    link = web.pages.values["links"][0][0]
    assert (link.scope, link.until, link.once, link.pattern) == ("group:kids", NOW + 86_400, False, "b.example/x")
    web.post("/requests/links", 200, url="c.example", whom="everybody")
    assert (web.pages.values["links"][0][0].scope, web.pages.values["links"][0][0].until) == ("", NOW + 3_600)
    web.post(f"/requests/links/{link.link_id}/revoke", 303, "/requests/links")
    assert (web.told()[0], {one.link_id: state for one, state in web.get("/requests/links")["links"]}[link.link_id]) == (
        "link.revoked", "revoked",
    )  # fmt: skip
    assert web.pages.values["address"] == ""


def test_the_newest_links_are_shown(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MOST_LINKS", 2)
    for name in "abc":
        web.post("/requests/links", 200, url=f"{name}.example/", whom="everybody")
    assert [link.url for link, _ in web.get("/requests/links")["links"]] == ["http://c.example/", "http://b.example/"]


def test_requests_are_answered_once(web: Kept) -> None:
    store = web.services.store

    def answer(number: int, status: int = 200, location: str = "", headers: dict[str, str] | None = HTMX, **form: str) -> Any:
        web.post(f"/requests/{number}/answer", status, location, headers=headers, **form)
        return store.unblock.find(number)

    number = ask(store, "http://n.example/x", client=TABLET)
    seen = web.get(f"/requests/{number}")["item"].revision
    found = answer(number, 303, f"/requests/{number}", None, answer="no", word=" later ")
    assert (found.state, found.word) == (RequestState.DENIED, "later")
    late = answer(number, answer="1h", seen=seen)
    assert (late.state, web.pages.template, web.pages.values["told"], web.pages.values["item"].request.state) == (
        RequestState.DENIED, "traffic/_request_answered.html", "conflict", RequestState.DENIED,
    )  # fmt: skip
    answer(number, 409, headers=None, answer="1h", seen=seen)
    web.post(f"/requests/{number}/reopen", 200, headers=HTMX)
    assert (web.pages.values["told"], web.pages.values["address"], web.pages.values["waiting"]) == ("reopened", "", 0)
    approved = answer(number, answer="1d", part="site", word="yes")
    assert (approved.until, approved.word, approved.scope, web.pages.values["told"]) == (
        NOW + 86_400,
        "yes",
        "client:tablet",
        "done",
    )
    assert [rule.pattern for rule in store.lists.rules()] == [".n.example"]
    web.post(f"/requests/{number}/reopen", 303, f"/requests/{number}")
    assert answer(number, answer="ever", part="page", whom="group:kids").scope == "group:kids"
    (rule,) = store.lists.rules()
    assert (rule.pattern, rule.expires_at) == ("n.example/x", None)
    web.post(f"/requests/{number}/reopen", 409, seen="x")
    web.post(f"/requests/{number}/reopen", 303, f"/requests/{number}")
    answer(number, answer="once", whom="everybody")
    link = store.bypass.links(1)[0]
    assert (link.once, link.until, link.scope, web.pages.values["address"]) == (True, NOW + 86_400, "", "")
    web.post(f"/requests/{number}/reopen", 303, f"/requests/{number}")
    answer(number, headers=None, answer="link", part="page")
    link = store.bypass.links(1)[0]
    assert (web.pages.template, web.pages.values["told"], "?link=" in web.pages.values["address"]) == (
        "traffic/request.html",
        "done",
        True,
    )
    assert (link.once, link.until, link.pattern) == (False, NOW + 3_600, "n.example/x")
