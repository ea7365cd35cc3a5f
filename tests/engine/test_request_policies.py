"""Values that act on requests, in the engine: connections, learned entries by their certainty, schedules, pauses, `check`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.interfaces import RecognizedClient
from gatewayfilter.model import (
    DEFAULT,
    Client,
    EntryKind,
    Group,
    HostAction,
    LearnedEntry,
    ListAction,
    LogDetail,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Reason,
    Request,
    ResourceType,
    ResponseChange,
    Schedule,
    ScheduleEffect,
    Service,
    Source,
    Window,
    parse_matcher,
    with_value,
)
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

NOON = datetime.fromisoformat("2026-05-04T12:00+00:00").timestamp()
CHILD, ADULT = "10.0.0.2", "10.0.0.3"
LATER = NOON * 2
PEOPLE: tuple[PolicyItem, ...] = (Group("kids", "kids"), Client("child", (parse_matcher(CHILD),), "kids"))


def policy(name: str, *values: str) -> Policy:
    found = Policy(name)
    for value in values:
        key, _, text = value.partition("=")
        found = with_value(found, key, text, categories=(), sources=())
    return found


def learned(path: str, action: ListAction, certainty: float | None, detail: str = "score 9") -> LearnedEntry:
    key = f"h.example/{path}"
    category = "gambling" if action is ListAction.BLOCK else ""
    return LearnedEntry(key, action, category, f"http://{key}", detail, 0.0, LATER, certainty)


def engine(*items: PolicyItem, rules: Sequence[ManualRule] = (), off: Sequence[str] = (), now: float = NOON) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("casinos", category="gambling")), [".casino.example"])
    builder.add_keys(
        builder.add_source(Source("banks", ListAction.SPLICE, "bank")), [".bank.example", ".google.com", ".baidu.com"]
    )
    builder.add_learned([
        learned("sure", ListAction.BLOCK, 0.995),
        learned("likely", ListAction.BLOCK, 0.95),
        learned("unmeasured", ListAction.BLOCK, None),
        learned("doubt", ListAction.ALLOW, 0.5, "not blocked, in doubt: gambling, score 9"),
        learned("fine", ListAction.ALLOW, 0.1),
        learned("decided", ListAction.ALLOW, 0.0),
    ])  # fmt: skip
    builder.set_rules(rules)
    builder.set_policies(PolicySet.of((*PEOPLE, *items)))
    return FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off, clock=lambda: now)


def reason(found: FilterEngine, url: str, client: str = CHILD) -> str:
    verdict = found.decide(Request(parse_url(url), client=client))
    return f"{verdict.action} {verdict.reason}"


@all_cases(
    ("strictness", "blocked"),
    [
        ("relaxed", {"sure", "unmeasured"}),
        ("standard", {"sure", "likely", "unmeasured"}),
        ("strict", {"sure", "likely", "unmeasured", "doubt"}),
    ],
)
def test_learned_entries_by_their_certainty(strictness: str, blocked: set[str]) -> None:
    found = engine(policy("kids", f"strictness={strictness}"))
    paths = ("sure", "likely", "unmeasured", "doubt", "fine", "decided")
    assert {path for path in paths if reason(found, f"http://h.example/{path}").startswith("block")} == blocked
    assert reason(found, "http://h.example/likely", ADULT) == "block learned"
    assert reason(found, "http://h.example/doubt", ADULT) == "allow whitelist"


def test_doubt_of_a_category_that_is_off_does_not_block() -> None:
    found = engine(policy("kids", "strictness=strict"), off=["gambling"])
    assert reason(found, "http://h.example/doubt") == "allow whitelist"


CONNECTIONS = [
    (("safesearch=on",), "www.google.com", (HostAction.SPLICE, "forcesafesearch.google.com", True)),
    (("safesearch=on",), "www.google.de.", (HostAction.INTERCEPT, "forcesafesearch.google.com", True)),
    (("safesearch=bing",), "www.google.com", (HostAction.SPLICE, "", True)),
    (("safesearch=on", "search-terms=x"), "WWW.google.com", (HostAction.INTERCEPT, "forcesafesearch.google.com", True)),
    (("search-terms=x",), "www.baidu.com", (HostAction.INTERCEPT, "", True)),
    (("youtube=strict",), "music.youtube.com", (HostAction.INTERCEPT, "", True)),
    (("youtube=strict", "tls=sni-only"), "music.youtube.com", (HostAction.DENY, "", False)),
    (("youtube=strict", "tls=page-only"), "music.youtube.com", (HostAction.DENY, "", True)),
    (("tls=sni-only",), "www.casino.example", (HostAction.DENY, "", False)),
    (("tls=page-only",), "www.casino.example", (HostAction.DENY, "", True)),
    (("tls=sni-only",), "other.example", (HostAction.SPLICE, "", True)),
    (("tls=page-only",), "192.0.2.1", (HostAction.SPLICE, "", True)),
    (("tls=sni-only",), "no host", (HostAction.SPLICE, "", True)),
    (("tls=intercept",), "other.example", (HostAction.INTERCEPT, "", True)),
]


@all_cases(("values", "host", "wanted"), CONNECTIONS)
def test_connections(values: tuple[str, ...], host: str, wanted: tuple[HostAction, str, bool]) -> None:
    verdict = engine(policy("kids", *values)).decide_host(host, CHILD)
    assert (verdict.action, verdict.connect_to, verdict.shows_page) == wanted


@pytest.mark.parametrize("values", [("block-all=on",), ()])
def test_a_rule_for_a_part_does_not_open_a_blocked_host_unread(values: tuple[str, ...]) -> None:
    part = ManualRule(1, ListAction.ALLOW, EntryKind.PREFIX, "www.casino.example/press/*")
    whole = ManualRule(2, ListAction.ALLOW, EntryKind.DOMAIN, ".open.casino.example")
    found = engine(policy("kids", "tls=sni-only", *values), rules=(part, whole))
    assert found.decide_host("www.casino.example", CHILD).action is HostAction.DENY
    assert found.decide_host("open.casino.example", CHILD).action is HostAction.SPLICE


@pytest.mark.parametrize("tls", ["sni-only", "page-only"])
def test_a_rule_for_a_part_does_not_open_a_blocked_service_unread(tls: str) -> None:
    part = ManualRule(1, ListAction.ALLOW, EntryKind.PREFIX, "clips.example/lessons/*")
    kids = replace(policy("kids", f"tls={tls}"), services={"clips": True})
    found = engine(kids, rules=(part,))
    found.set_services({"clips": Service("clips", "Clips", "短片", "video", ("clips.example",))})
    verdict = found.decide_host("clips.example", CHILD)
    assert (verdict.action, verdict.verdict.reason) == (HostAction.DENY, Reason.SERVICE)


def test_a_pinned_app_may_pass_unread_to_the_enforced_address() -> None:
    verdict = engine(policy("kids", "youtube=strict")).decide_host("youtubei.googleapis.com", CHILD)
    assert (verdict.named, verdict.connect_to) == (False, "restrict.youtube.com")
    assert engine(policy("kids", "youtube=strict")).decide_host("music.youtube.com", CHILD).named


def test_only_the_clients_of_the_policy() -> None:
    found = engine(policy("kids", "safesearch=on", "search-terms=casino", "file-types=exe"))
    asked = Request(parse_url("https://www.google.com/search?q=casino"), client=ADULT)
    assert (found.change_request(asked), found.enforced(asked), found.change_response(asked, 200, {})) == (None, None, None)
    assert found.enforced_address("www.google.com", ADULT) == ""
    assert reason(found, asked.url.text, ADULT) == "allow unknown"
    assert reason(found, asked.url.text) == "block search-term"


def test_downloads_are_judged_beside_what_rules_change() -> None:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_adblock_list(builder.add_source(Source("easy")), ["press.example##.ad", "||press.example^$removeparam=x"])
    builder.set_policies(PolicySet.of((*PEOPLE, policy("kids", "file-types=exe", "safesearch=on"))))
    found = FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: NOON)
    rules = found.request_rules(CHILD)
    assert rules is not None
    page = Request(parse_url("https://press.example/"), resource_type=ResourceType.DOCUMENT, client=CHILD)
    headers = {"content-type": "text/html"}
    both, rule_alone = found.change_response(page, 200, headers), found.change_response(replace(page, client=ADULT), 200, headers)
    assert both is not None
    assert rule_alone is not None
    assert rule_alone.downloads is None
    assert both == replace(rule_alone, downloads=rules.downloads)
    other = found.change_response(replace(page, url=parse_url("https://x.example/")), 200, headers)
    assert other == ResponseChange(downloads=rules.downloads)
    changed = found.change_request(replace(page, url=parse_url("https://press.example/?x=1")))
    assert changed is not None
    assert (changed.enforced, changed.url) == (None, "https://press.example/")
    search = found.change_request(replace(page, url=parse_url("https://www.bing.com/search?q=a")))
    assert search is not None
    assert search.enforced == found.enforced(replace(page, url=parse_url("https://www.bing.com/"))) is not None


def test_connections_end_at_an_address_where_the_policy_has_one() -> None:
    found = engine(policy("kids", "safesearch=on"))
    assert found.enforced_address("WWW.google.com.", CHILD) == "forcesafesearch.google.com"
    assert found.enforced_address("x.example", CHILD) == found.enforced_address("no host", CHILD) == ""
    assert FilterEngine(Snapshot.from_bytes(SnapshotBuilder().build())).enforced_address("www.google.com", CHILD) == ""


def test_clients_are_recognized() -> None:
    found = engine(policy("kids", "safesearch=on"))
    assert found.recognize(CHILD) == RecognizedClient("child", ("client:child", "group:kids", ""))
    stranger = found.recognize("192.0.2.9")
    assert (stranger.name, stranger.scopes[-1]) == ("", "")
    none = engine(policy("kids", "safesearch=on"), replace(Policy(DEFAULT), takes_requests=False))
    assert not none.recognize("192.0.2.9").requests


def test_a_schedule_puts_any_of_them_in_force_and_a_nearer_policy_outranks_a_farther_one() -> None:
    window = (Window(11 * 60, 13 * 60),)
    use = Schedule("lunch", "kids", ScheduleEffect.USE_POLICY, window, "UTC", "lunch")
    items = (
        policy("kids", "youtube=strict"),
        policy("lunch", "youtube=off", "safesearch=on"),
        policy(DEFAULT, "tls=sni-only"),
        use,
    )
    by_hour = {hour: engine(*items, now=NOON + hour * 3600).request_rules(CHILD) for hour in (0, 2)}
    noon, later = by_hour[0], by_hour[2]
    assert noon is not None
    assert later is not None
    assert ("www.bing.com" in noon.hosts, "www.youtube.com" in noon.hosts) == (True, False)
    assert ("www.bing.com" in later.hosts, "www.youtube.com" in later.hosts) == (False, True)
    assert noon.tls == later.tls == "sni-only"


def test_a_pause_keeps_the_log_and_the_treatment_of_tls() -> None:
    values = ("safesearch=on", "search-terms=casino", "file-types=exe", "log-privacy=host", "tls=page-only")
    found = engine(policy("kids", *values), Pause(PauseScope.ALL, "", LATER))
    rules = found.request_rules(CHILD)
    assert rules is not None
    assert (rules.hosts, rules.terms, rules.downloads) == ({}, None, None)
    assert (rules.tls, found.log_detail(CHILD), found.varies_log) == ("page-only", LogDetail.HOST, True)
    assert found.log_detail(ADULT) is None
    assert reason(found, "https://www.google.com/search?q=casino") == "allow pause"


def test_values_that_change_nothing_cost_nothing() -> None:
    found = engine(policy("kids", "safesearch=off", "youtube=off", "search-terms=none", "file-types=none", "max-download-mb=0",
                          "strictness=standard", "tls=intercept"))  # fmt: skip
    assert found.request_rules(CHILD) is None
    assert not found.varies_log


def test_check_tells_what_acts_and_how() -> None:
    found = engine(
        policy("kids", "safesearch=on", "search-terms=casino", "file-types=exe,archives", "max-download-mb=5", "tls=page-only")
    )
    told = {
        answer.decider: answer.explanation
        for answer in found.explain(Request(parse_url("https://www.bing.com/search?q=casino"), client=CHILD)).answers
    }
    assert told["safesearch"].startswith("strict.bing.com, adlt=strict")
    assert told["search-terms"] == "kids blocks a search for casino"
    assert told["downloads"] == "blocked in a response: file types archives, exe; files above 5 MB"
    assert "tls: page-only" in told["policy"]
    other = found.explain(Request(parse_url("https://files.example/x.exe"), client=CHILD)).answers
    told = {answer.decider: answer.explanation for answer in other}
    assert "safesearch" not in told
    assert told["downloads"] == "kids blocks the response: exe"
