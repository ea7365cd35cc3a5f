"""`check` in a network with policies: the sentences on client, pause, rules, schedules, policy, services and requests."""

from collections.abc import Sequence

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    CategoryAction,
    Client,
    EntryKind,
    Group,
    ListAction,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    QuotaKind,
    Request,
    Schedule,
    ScheduleEffect,
    Service,
    Source,
    UnknownAction,
    Window,
    parse_matcher,
    with_value,
)
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

NOON = 1_777_896_000.0  # 2026-05-04T12:00Z
CHILD = "10.0.0.2"
PEOPLE: tuple[PolicyItem, ...] = (Group("kids", "kids"), Client("child", (parse_matcher(CHILD),), "kids"))
LUNCH = (Window(11 * 60, 13 * 60),)
SERVICES = {
    "clips": Service("clips", "Clips", "短片", "video", ("clips.example",)),
    "tunes": Service("tunes", "Tunes", "音乐", "music", ("tunes.clips.example",), part_of="clips"),
}


def kids(*values: str) -> Policy:
    found = Policy("kids")
    for value in values:
        key, _, text = value.partition("=")
        found = with_value(found, key, text, categories=(), sources=())
    return found


def schedule(name: str, effect: ScheduleEffect, target: str = "") -> Schedule:
    return Schedule(name, "kids", effect, LUNCH, "UTC", target)


def told(
    *items: PolicyItem, url: str = "https://x.example/", client: str = CHILD, rules: Sequence[ManualRule] = ()
) -> dict[str, tuple[str, str]]:
    """Returns answer and sentence of each that `check` names, in order."""
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("casinos", category="gambling")), [".casino.example"])
    builder.add_keys(builder.add_source(Source("networks", category="social")), [".social.example"])
    builder.set_rules(rules)
    builder.set_policies(PolicySet.of((*PEOPLE, *items)))
    found = FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: NOON, services=SERVICES)
    answers = found.explain(Request(parse_url(url), client=client)).answers
    assert len({answer.decider for answer in answers}) == len(answers)
    return {answer.decider: (answer.answer, answer.explanation) for answer in answers}


NOTHING_SET = "no policy of this client sets anything for categories, lists, unknown pages or connections"


def test_what_is_said_where_nothing_is_set() -> None:
    assert list(told().items())[:5] == [
        ("client", ("pass", "client child, group kids, policies default")),
        ("pause", ("miss", "filtering is not paused for this client")),
        ("manual", ("miss", "none of your own rules covers this URL")),
        ("schedule", ("miss", "no schedule has an open window")),
        ("policy", ("miss", NOTHING_SET)),
    ]
    assert list(told())[5:] == ["bloom", "blacklist", "adblock", "spellings", "whitelist", "unknown"]
    stranger = told(client="192.0.2.9")["client"]
    assert stranger == ("miss", "no client has this address: group default, policies default")


@all_cases(
    ("policy", "answer", "sentence"),
    [
        (Policy("kids", categories={"social": CategoryAction.ALLOW}), "pass", "allow: social"),
        (
            Policy("kids", categories={"a": CategoryAction.BLOCK, "c": CategoryAction.REVIEW, "b": CategoryAction.BLOCK}),
            "pass",
            "block: a, b; review: c",
        ),
        (Policy("kids", {"networks": False, "casinos": True}), "pass", "source casinos: on; source networks: off"),
        (Policy("kids", unknown=UnknownAction.HOLD), "pass", "unknown: hold"),
        (Policy("kids", block_all=True), "block", "kids blocks everything"),
        (kids("tls=sni-only"), "pass", "tls: sni-only"),
        (kids("strictness=strict"), "pass", "strictness: strict"),
        (kids("strictness=relaxed"), "miss", NOTHING_SET),
        (kids("log-privacy=host"), "pass", "log: host"),
        (kids("tls=page-only", "strictness=strict", "log-privacy=host"), "pass", "tls: page-only; strictness: strict; log: host"),
        (kids("safesearch=on"), "miss", NOTHING_SET),
    ],
)
def test_what_a_policy_sets_is_named(policy: Policy, answer: str, sentence: str) -> None:
    assert told(policy)["policy"] == (answer, sentence)


def test_sources_are_left_out_while_a_pause_lasts() -> None:
    found = told(
        Policy("kids", {"casinos": False, "networks": True}, unknown=UnknownAction.BLOCK),
        Pause(PauseScope.GROUP, "kids", NOON + 60),
    )
    assert found["policy"] == ("pass", "unknown: block")
    assert found["pause"] == (
        "allow", "filtering is paused (group:kids) until 2026-05-04T12:01:00+00:00, but for malware, phishing and fraud",
    )  # fmt: skip
    whole = told(Pause(PauseScope.ALL, "", NOON + 60, harm_too=True))["pause"]
    assert whole == ("allow", "filtering is paused (all) until 2026-05-04T12:01:00+00:00")


@all_cases(
    ("items", "answer", "sentence"),
    [
        ([schedule("lunch", ScheduleEffect.BLOCK_ALL)], "block", "in force: lunch; lunch blocks everything"),
        ([schedule("lunch", ScheduleEffect.ALLOW_CATEGORY, "social")], "pass", "in force: lunch"),
        (
            [
                Policy("kids", categories={"social": CategoryAction.ALLOW, "gambling": CategoryAction.ALLOW}),
                schedule("noon", ScheduleEffect.BLOCK_CATEGORY, "social"),
                schedule("lunch", ScheduleEffect.BLOCK_CATEGORY, "gambling"),
            ],
            "pass",
            "in force: noon, lunch; lunch blocks gambling; noon blocks social",
        ),
        ([Policy("kids", block_all=True), schedule("lunch", ScheduleEffect.ALLOW_CATEGORY, "social")], "pass", "in force: lunch"),
    ],
)
def test_schedules_in_force_are_named(items: list[PolicyItem], answer: str, sentence: str) -> None:
    found = told(*(items if any(isinstance(item, Policy) for item in items) else [Policy("kids"), *items]))
    assert found["schedule"] == (answer, sentence)
    if answer == "block":
        assert found["policy"][0] == "miss", "it is the schedule's"


OWN, KIDS = "client:child", "group:kids"


def _rule(action: ListAction, scope: str, pattern: str = ".x.example") -> ManualRule:
    return ManualRule(1, action, EntryKind.DOMAIN, pattern, scope=scope)


def test_rules_of_each_scope_are_named() -> None:
    found = told(rules=[_rule(ListAction.BLOCK, OWN), _rule(ListAction.ALLOW, KIDS), _rule(ListAction.BLOCK, "client:other")])
    assert list(found)[:5] == ["client", "pause", OWN, KIDS, "manual"]
    assert found[OWN] == ("block", "the rule .x.example blocks it")
    assert found[KIDS] == ("allow", "the rule .x.example allows it")
    other = told(rules=[_rule(ListAction.BLOCK, KIDS, ".y.example")])
    assert other[KIDS] == ("miss", "no rule for these clients covers this URL")
    assert OWN not in other


def test_deciders_are_told_by_the_lists_of_the_policy_and_rules_of_people_whatever_lists_count() -> None:
    lifted = Policy("kids", categories={"gambling": CategoryAction.ALLOW})
    found = told(lifted, url="https://casino.example/")
    assert found["blacklist"] == ("pass", "casinos lists .casino.example, but its category gambling is switched off")
    paused = told(Policy("kids"), Pause(PauseScope.ALL, "", NOON + 60), rules=[_rule(ListAction.BLOCK, "")])
    assert paused["manual"] == ("block", "a person's rule blocks .x.example")


HOUR = Quota("hour", "kids", QuotaKind.SERVICE, "clips", 60, "UTC")
SONGS = Quota("songs", "kids", QuotaKind.SERVICE, "tunes", 60, "UTC")


@all_cases(
    ("items", "url", "wanted"),
    [
        ([kids()], "https://clips.example/", ("pass", "belongs to clips, which no policy blocks")),
        ([kids()], "https://tunes.clips.example/", ("pass", "belongs to tunes, clips, which no policy blocks")),
        (
            [kids(), SONGS, HOUR],
            "https://tunes.clips.example/",
            ("pass", "belongs to tunes, clips, which no policy blocks; minutes are left of hour, songs"),
        ),
        ([kids(), HOUR], "https://x.example/", None),
        ([kids(), HOUR, Pause(PauseScope.ALL, "", NOON + 60)], "https://clips.example/", None),
    ],
)
def test_services_are_named(items: list[PolicyItem], url: str, wanted: tuple[str, str] | None) -> None:
    some = Policy("other", services={"clips": True})  # else no policy concerns services
    assert told(*items, some, url=url).get("service") == wanted


def test_a_blocked_service_is_named() -> None:
    answer, sentence = told(Policy("kids", services={"clips": True}), url="https://tunes.clips.example/")["service"]
    assert answer == "block"
    assert sentence.startswith("belongs to tunes, clips: ")


@all_cases(
    ("values", "url", "decider", "wanted"),
    [
        (["search-terms=casino"], "https://x.example/?q=casino", "search-terms", ("miss", "no search engine")),
        (["search-terms=casino"], "https://www.bing.com/search?q=cat", "search-terms", ("miss", "no term is searched for")),
        (
            ["search-terms=casino"],
            "https://www.bing.com/search?q=casino",
            "search-terms",
            ("block", "kids blocks a search for casino"),
        ),
        (["file-types=exe"], "https://x.example/a.exe", "downloads", ("pass", "kids blocks the response: exe")),
        (["file-types=exe"], "https://x.example/a", "downloads", ("pass", "blocked in a response: file types exe")),
        (["safesearch=on"], "https://x.example/", "safesearch", None),
        (["safesearch=on"], "https://www.bing.com/", "search-terms", None),
        (["safesearch=on"], "https://www.bing.com/", "downloads", None),
        (["search-terms=casino"], "https://www.bing.com/", "safesearch", None),
    ],
)
def test_what_acts_on_requests_is_named(values: list[str], url: str, decider: str, wanted: tuple[str, str] | None) -> None:
    assert told(kids(*values), url=url).get(decider) == wanted


def test_safe_search_passes_and_is_summed_up() -> None:
    answer, sentence = told(kids("safesearch=on"), url="https://www.bing.com/search?q=x")["safesearch"]
    assert answer == "pass"
    assert sentence.startswith("strict.bing.com")
