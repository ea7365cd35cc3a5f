"""The pages of the overview, of the log, of its explanations and of requests: what they show, and what their forms do."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import PolicyError, StoreError
from gatewayfilter.model import (
    Action,
    Client,
    DeciderAnswer,
    EntryKind,
    Group,
    ListAction,
    Pause,
    PauseScope,
    Reason,
    ResourceType,
    Verdict,
    parse_matcher,
)
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.traffic.log_actions import Extent
from gatewayfilter.use_cases.traffic.log_filters import LogFilters
from gatewayfilter.web.pages.traffic import overview
from gatewayfilter.web.pages.traffic.overview import TopRow
from tests.web.learning_fakes import ask
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.traffic_log import LAPTOP, OTHER, TABLET, decision
from tests.web.web_fakes import ADMIN, APPROVER, VIEWER

BLOCK = Verdict(Action.BLOCK, Reason.BLACKLIST, "easylist")
LONG_AGO = NOW - 100 * 86_400
"""Of decisions that no overview and no report counts."""
CHECK = "gatewayfilter.web.access.check_job:check"


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


def test_the_overview_counts_and_leads_to_the_log(web: Kept) -> None:
    store = web.services.store
    web.services.status, web.services.health = lambda: "state", lambda: "health"
    numbers = [ask(store, f"http://r{n}.example/") for n in range(4)]
    store.policies.change(lambda _: [(Pause(PauseScope.ALL, "", NOW + 60), True)], NOW)
    try:
        shown = web.get("/")
    finally:
        store.policies.change(lambda found: [(pause, False) for pause in found.pauses.values()], NOW)
        for number in numbers:
            store.unblock.deny([number], word="", now=NOW)
    assert (shown["state"], shown["health"], shown["span"], shown["since"], shown["active"]) == (
        "state",
        "health",
        "day",
        "24h",
        "today",
    )
    assert shown["spans"] == [("day", "/"), ("week", "/?span=week"), ("month", "/?span=month")]
    assert (shown["blocked_log"], shown["whole_log"]) == ("/log?outcome=blocked&since=24h", "/log?since=24h")
    assert ([facts.request.request_id for facts in shown["waiting"]], shown["more_waiting"]) == (numbers[:0:-1], 1)
    assert (len(shown["pauses"]), shown["names"], shown["groups"], shown["may_pause"]) == (
        1,
        ["laptop", "tablet"],
        ["adults", "kids"],
        True,
    )
    assert (shown["devices"], shown["new_devices"]) == (5, 2)
    assert shown["who"] == [TopRow("tablet", 3, "/log?client=tablet&outcome=blocked&since=24h", "100%")]
    assert {row.href for row in shown["what"]} == {
        "/log?category=ads&outcome=blocked&since=24h", "/log?category=gambling&outcome=blocked&since=24h",
    }  # fmt: skip
    assert {(row.name, row.value, row.note) for row in shown["what"]} == {("Advertising", 2, ""), ("Gambling", 1, "")}
    assert {row.name for row in shown["where"]} == {"cdn.ads.example", "x.ads.example", "c.example"}
    assert {(row.name, row.value) for row in shown["why"]} == {("easylist", 2), ("learned: Gambling", 1)}
    chart = shown["chart"]
    buckets = shown["overview"].timeline.buckets
    assert (chart["at"], len(chart["edges"])) == ([one.start for one in buckets], len(buckets) + 1)
    assert chart["edges"][-1] == datetime.fromtimestamp(shown["overview"].timeline.until, UTC).strftime("%Y-%m-%dT%H:%M")
    assert (sum(chart["blocked"]), sum(chart["learned"]), sum(chart["allowed"])) == (2, 1, 4)
    web.who.identity = VIEWER
    week = web.get("/?span=week")
    assert (week["since"], week["may_pause"], week["more_waiting"], list(week["waiting"])) == ("7d", False, 0, [])
    assert sum(week["chart"]["allowed"]) == 5
    assert web.get("/?span=month")["since"] == "30d"


def test_a_report_has_its_tops_and_their_proof(web: Kept) -> None:
    shown = web.get("/reports")
    assert (shown["active"], shown["span"], shown["share"]) == ("reports", "week", 3 / 8)
    assert [value for value, _ in shown["spans"]] == ["today", "yesterday", "week", "month"]
    assert shown["spans"][0] == ("today", "/reports?span=today")
    assert (list(shown["tops"]), shown["tops"]["list"][0]) == (
        ["site", "category", "list"], TopRow("easylist", 2, "/log?list=easylist&outcome=blocked&since=30d"),
    )  # fmt: skip
    assert shown["tops"]["list"][1].name == "learned: Gambling"
    assert shown["tops"]["category"][0] == TopRow("Advertising", 2, "/log?category=ads&outcome=blocked&since=30d")
    assert ("tablet", "/log?client=tablet&since=30d") in [(one.name, url) for one, url in shown["clients"]]
    midnight = NOW - NOW % 86_400
    assert shown["report"].since == midnight - 6 * 86_400
    yesterday = web.get("/reports?span=yesterday")
    assert (yesterday["report"].since, yesterday["report"].until) == (midnight - 86_400, midnight)
    assert web.get("/reports?span=today")["report"].since == midnight
    assert web.get("/reports?span=month")["report"].since == midnight - 29 * 86_400
    far = web.services.clock
    web.services.clock = lambda: NOW - 1_000 * 86_400
    try:
        assert web.get("/reports?span=yesterday")["share"] == 0.0
    finally:
        web.services.clock = far


def test_the_log_is_shown_by_sites_or_whole(web: Kept) -> None:
    shown = web.get("/log?since=24h&outcome=blocked")
    assert ([row.host for row in shown["rows"]], shown["problem"], shown["complete"], shown["view"]) == (
        ["c.example", "x.ads.example", "cdn.ads.example"], "", True, "sites",
    )  # fmt: skip
    assert (shown["may_act"], shown["is_live"], shown["newer"], shown["older"], shown["active"]) == (True, False, "", "", "log")
    rest = "outcome=blocked&since=24h"
    assert (shown["live_url"], shown["live_page"]) == (f"/log/live?{rest}", f"/log?{rest}&live=1")
    assert (shown["sites_url"], shown["all_url"], shown["filters"]) == (
        f"/log?{rest}", f"/log?{rest}&view=all", LogFilters(outcome="blocked", since="24h"),
    )  # fmt: skip
    web.who.identity = APPROVER
    every = web.get("/log?view=all&live=1&before=3&q=example")
    assert ([row.number for row in every["rows"]], every["view"], every["may_act"], every["is_live"]) == (
        [2, 1],
        "all",
        False,
        True,
    )
    assert every["complete"] is True
    assert (every["newer"], every["live_page"]) == ("/log?q=example&view=all", "/log?q=example&view=all")
    assert web.get("/log?view=other&live=x")["view"] == "sites"
    wrong = web.get("/log?outcome=x")
    assert (wrong["rows"], wrong["older"], wrong["complete"], "is no outcome" in wrong["problem"]) == ([], "", True, True)
    titles = [title for _, title in ((option.href, option.label) for option in shown["sentence"].parts[1].options[1:])]
    assert titles == sorted(titles)
    store = web.services.store
    store.log.write([decision(LONG_AGO - n * 60, f"https://p{n}.example/") for n in range(51)])
    for view in ("", "&view=all"):
        first = web.get(f"/log?q=p{view}")
        assert len(first["rows"]) == 50
        assert first["older"] == f"/log?q=p{view}&before={first['rows'][-1].number}"
        last = web.get(first["older"])
        assert ("https://p0.example/" in {row.url for row in (*first["rows"], *last["rows"])}, last["newer"]) == (
            True,
            f"/log?q=p{view}",
        )


def test_requests_of_a_site_within_a_minute_lead_to_all_of_them(web: Kept) -> None:
    at = LONG_AGO - LONG_AGO % 60
    web.services.store.log.write([decision(at + n, f"https://www.many.example/{n}") for n in range(3)])
    (row,) = web.get("/log?q=many")["rows"]
    begin, end = (datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H%%3A%M") for moment in (at, at + 60))
    assert row.more == f"/log?q=many&client=tablet&site=many.example&since={begin}&until={end}&view=all"


def test_the_filters_read_as_a_sentence(web: Kept) -> None:
    sentence = web.get(
        "/log?client=tablet&category=ads&since=2027-01-15T08:00&until=2027-01-15T09:00&site=a.example&q=z&view=all"
    )["sentence"]
    outcome, category, who, since = sentence.parts
    assert [(part.name, part.is_set) for part in sentence.parts] == [
        ("outcome", False), ("category", True), ("client", True), ("since", True),
    ]  # fmt: skip
    assert (outcome.label, category.label, who.label, since.label) == (
        "any outcome",
        "Advertising",
        "tablet",
        "since 2027-01-15 08:00",
    )
    assert [option.label for option in who.options] == ["everybody", "group adults", "group kids", "laptop", "tablet"]
    assert [option.current for option in who.options] == [False, False, False, False, True]
    rest = "q=z&{}category=ads&site=a.example&since=2027-01-15T08%3A00&until=2027-01-15T09%3A00&view=all"
    assert who.options[0].href == f"/log?{rest.format('')}"
    assert who.options[2].href == f"/log?{rest.format('group=kids&')}"
    assert who.options[3].href == f"/log?{rest.format('client=laptop&')}"
    assert [(one.label, "until=" in one.href, "site=" in one.href) for one in sentence.others] == [
        ("until 2027-01-15 09:00", False, True), ("on the site a.example", True, False),
    ]  # fmt: skip
    assert sentence.hidden == {
        "client": "tablet", "category": "ads", "site": "a.example", "since": "2027-01-15T08:00",
        "until": "2027-01-15T09:00", "view": "all",
    }  # fmt: skip
    plain = web.get("/log?group=kids&since=today&outcome=learned&list=x&reason=adblock")["sentence"]
    assert [part.label for part in plain.parts] == ["learned", "any category", "kids", "today"]
    assert [option.current for option in plain.parts[2].options] == [False, False, True, False, False]
    assert [one.label for one in plain.others] == ["by the list x", "because of adblock"]
    empty = web.get("/log")["sentence"]
    assert (empty.parts[2].options[0].current, empty.parts[2].is_set, empty.others, empty.hidden) == (True, False, (), {})


def check(*answers: DeciderAnswer, verdict: Verdict = BLOCK) -> Any:
    return SimpleNamespace(explanation=SimpleNamespace(answers=answers, verdict=verdict))


ALLOW = Verdict(Action.ALLOW, Reason.UNKNOWN)
ANSWERS = (
    DeciderAnswer("manual", "miss", ""),
    DeciderAnswer("bloom", "maybe", "", BLOCK),
    DeciderAnswer("other", "allow", "", ALLOW),
    DeciderAnswer("none", "block", ""),
    DeciderAnswer("blacklist", "block", "", BLOCK),
    DeciderAnswer("adblock", "block", "", BLOCK),
    DeciderAnswer("unknown", "allow", "", ALLOW),
)


def test_devices_count_from_the_beginning_of_the_span_and_are_new_for_a_day(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    since = web.get("/")["overview"].since
    seen = [("10.9.0.1", NOW - 86_400, since), ("10.9.0.2", NOW - 86_399, since - 1), ("", NOW, NOW), ("user:kim", NOW, NOW)]
    facts = [SimpleNamespace(client=client, first_at=first, last_at=last) for client, first, last in seen]
    monkeypatch.setattr(type(web.services.store.log_stats), "clients", lambda _: facts)
    monkeypatch.setattr(overview, "_MOST_NAMES", 1)
    shown = web.get("/")
    assert (shown["devices"], shown["new_devices"], shown["names"]) == (2, 1, ["laptop"])


def test_a_decision_is_explained(web: Kept) -> None:
    web.child.results = {"check": check(*ANSWERS)}
    shown = web.get("/log/3/why")
    job, values, _ = web.child.jobs[-1]
    asked, client, now, at = values[1:]
    assert (job, client, now, at) == (CHECK, "tablet", NOW, None)
    assert (asked.url.text, asked.method, asked.resource_type, asked.source) == (
        "https://cdn.ads.example/a.js",
        "GET",
        ResourceType.SCRIPT,
        None,
    )
    assert [(step.wins, step.matches) for step in shown["steps"]] == [
        (False, False), (False, False), (False, True), (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    assert (shown["winner"].answer.decider, shown["problem"], shown["site"], shown["may_act"]) == (
        "blacklist",
        "",
        "ads.example",
        True,
    )
    assert (shown["row"].number, shown["record"].url, shown["found"]) == (
        3,
        "https://cdn.ads.example/a.js",
        web.child.results["check"],
    )
    assert (shown["names"], shown["groups"], shown["group"]) == (["laptop", "tablet"], ["adults", "kids"], "kids")
    assert (shown["made"], shown["undo"], shown["what_if_client"], shown["what_if_at"], shown["active"]) == (
        None,
        "",
        "",
        "",
        "log",
    )
    assert web.pages.template == "traffic/why.html"
    assert web.get("/check?url=a.example")["steps"] == shown["steps"]
    web.who.identity = APPROVER
    part = web.get("/log/3/why?client=laptop&at=2027-01-15T18:00", headers=HTMX)
    assert (web.pages.template, part["may_act"], part["what_if_client"], part["what_if_at"]) == (
        "traffic/_why.html", False, "laptop", "2027-01-15T18:00",
    )  # fmt: skip
    assert web.child.jobs[-1][1][2:] == ("laptop", NOW, datetime(2027, 1, 15, 18, tzinfo=UTC).timestamp())
    web.child.results = {"check": PolicyError("no client")}
    shown = web.get("/log/6/why")
    assert (shown["found"], shown["problem"], shown["steps"], shown["winner"], shown["group"]) == (
        None,
        "no client",
        (),
        None,
        "",
    )
    web.child.results = {"check": StoreError("away")}
    assert web.client.get("/log/6/why").status_code == 503
    web.child.results = {"check": check()}
    assert web.get("/log/1/why")["row"].number == 1
    for number in (0, 9_999, 1 << 62, (1 << 63) - 1, 1 << 63, 10**30, -1, -(10**30)):
        assert web.client.get(f"/log/{number}/why").status_code == 404
    assert web.pages.values["detail"] == "this decision is no longer in the log"
    web.services.store.log.write(
        [decision(LONG_AGO, "http://h.example:8080/", resource_type="new", method="PUT"), decision(LONG_AGO, "")]
    )
    web.child.results = {"check": check()}
    number = web.services.store.log_search.page(LogFilters(q="h.example").query(web.services.clients(), NOW), 1).records[0][0]
    shown = web.get(f"/log/{number}/why")
    assert (shown["site"], web.child.jobs[-1][1][1].resource_type, web.child.jobs[-1][1][1].method) == (
        "h.example",
        ResourceType.OTHER,
        "PUT",
    )
    assert web.get(f"/log/{number + 1}/why")["may_act"] is False


def test_rows_and_decisions_are_allowed_and_blocked(web: Kept) -> None:
    web.child.results = {"check": check()}
    store = web.services.store
    web.post("/log/3/act", 303, "/log/3/why", action="allow", whom="client:tablet", lifetime="1h")
    (rule,) = store.lists.rules()
    assert (rule.action, rule.pattern, rule.scope, rule.expires_at) == (
        ListAction.ALLOW,
        ".ads.example",
        "client:tablet",
        NOW + 3_600,
    )
    assert web.told() == ("rule.allowed", "cdn.ads.example", "client:tablet")
    web.post("/log/3/act", 200, headers=HTMX, action="block", extent=Extent.PAGE.value, lifetime="1d")
    values = web.pages.values
    assert (web.pages.template, values["made"].action, values["made"].until) == (
        "traffic/_why.html",
        ListAction.BLOCK,
        NOW + 86_400,
    )
    assert (values["undo"], values["made"].kind) == (f"/audit/{web.last_change.entry_id}/undo", EntryKind.URL)
    before = web.changes
    for data in ({"action": "splice"}, {"action": "allow", "lifetime": "2h"}):
        web.post("/log/3/act", 422, **data)
        assert web.pages.values["detail"] == "allow or block it, for 1h, 1d or ever"
    assert web.changes == before
    web.post("/log/block", 303, "/log", url="http://www.b.example/x", whom="group:kids")
    assert (web.told(), store.lists.rules()[-1].expires_at) == (("rule.blocked", "www.b.example", "group:kids"), None)
    web.post("/log/allow", 200, headers=HTMX, url="http://www.b.example/x", extent=Extent.PAGE.value)
    assert (web.pages.template, web.pages.values["undo"]) == ("traffic/_acted.html", f"/audit/{web.last_change.entry_id}/undo")
    made = web.pages.values["made"]
    assert (made.action, made.kind, made.until, web.told()[0]) == (ListAction.ALLOW, EntryKind.URL, None, "rule.allowed")
