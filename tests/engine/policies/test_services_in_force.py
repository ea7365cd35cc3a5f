"""Services and quotas in force: which services are blocked for whom and when, and what quotas count."""

from dataclasses import replace

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    APPROVED,
    Action,
    CategoryAction,
    Change,
    ChangeKind,
    Client,
    DeciderAnswer,
    EntryKind,
    Group,
    HostAction,
    ListAction,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Quota,
    QuotaKind,
    Reason,
    Request,
    ResourceType,
    Schedule,
    ScheduleEffect,
    Service,
    Source,
    Spent,
    Verdict,
    Window,
    key_of_client,
    parse_matcher,
)
from gatewayfilter.sources import load_services
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

NOON = 1_777_896_000.0  # 2026-05-04T12:00Z
MIDNIGHT = NOON + 12 * 3600
CHILD, ADULT, STRANGER = "10.0.0.2", "10.0.0.3", "10.0.0.9"
PEOPLE: tuple[PolicyItem, ...] = (
    Group("kids", "kids"),
    Client("child", (parse_matcher(CHILD),), "kids"),
    Client("adult", (parse_matcher(ADULT),)),
)
SERVICES = {
    "clips": Service(
        "clips", "Clips", "短片", "video", ("clips.example", "clips-cdn.example"), media=("media.clips-cdn.example",)
    ),
    "tunes": Service("tunes", "Tunes", "音乐", "music", ("tunes.clips.example",), part_of="clips"),
    "blocks": Service(
        "blocks", "Blocks", "方块", "games", ("blocks.example",), patterns=("blocks-*.cdn.example",), ports=(25565,)
    ),
}
HOUR = Quota("hour", "kids", QuotaKind.SERVICE, "clips", 60, "UTC")
GAMES = Quota("play", "kids", QuotaKind.CATEGORY, "games", 30, "Europe/Berlin")


def engine(*items: PolicyItem, now: float | list[float] = NOON, rules: tuple[ManualRule, ...] = ()) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("arcades", category="games")), [".arcade.example"])
    builder.add_keys(builder.add_source(Source("banks", ListAction.SPLICE, "bank")), [".clips.example"])
    builder.set_rules(rules)
    builder.set_policies(PolicySet.of((*PEOPLE, *items)))
    clock = now if isinstance(now, list) else [now]
    return FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: clock[0], services=SERVICES)


def decide(found: FilterEngine, url: str, client: str = CHILD) -> Verdict:
    request = Request(parse_url(url if "/" in url else f"https://{url}/"), client=client)
    verdict = found.decide(request)
    assert found.explain(request).verdict == verdict
    return verdict


def outcome(found: FilterEngine, url: str, client: str = CHILD) -> str:
    verdict = decide(found, url, client)
    return f"{verdict.action} {verdict.reason}"


def kids(**values: bool) -> Policy:
    return Policy("kids", services=values)


INDEX = [
    ("https://clips.example/", ("clips",)),
    ("https://www.clips.example/a", ("clips",)),
    ("https://tunes.clips.example/", ("tunes", "clips")),
    ("https://notclips.example/", ()),
    ("https://example/", ()),
    ("https://blocks-7.cdn.example/", ("blocks",)),
    ("https://blocks-7.x.cdn.example/", ()),
    ("https://a.blocks-7.cdn.example/", ()),
    ("https://any.example:25565/", ("blocks",)),
    ("https://clips.example:25565/", ("clips", "blocks")),
    ("https://192.0.2.1/", ()),
]


@all_cases(("url", "expected"), INDEX)
def test_the_services_of_a_url(url: str, expected: tuple[str, ...]) -> None:
    assert ServiceIndex(SERVICES).of(parse_url(url)) == expected
    assert NO_SERVICES.of(parse_url(url)) == ()


def test_a_blocked_service_is_blocked_for_its_clients_alone() -> None:
    found = engine(kids(clips=True))
    verdict = decide(found, "www.clips.example")
    assert (verdict.action, verdict.reason, verdict.rule) == (Action.BLOCK, Reason.SERVICE, "clips")
    assert verdict.detail == "the policy kids blocks Clips"
    assert outcome(found, "clips.example", ADULT) == outcome(found, "blocks.example") == "allow unknown"
    assert found.decide_host("clips.example", CHILD).action is HostAction.DENY
    assert found.decide_host("clips.example", CHILD).verdict.reason is Reason.SERVICE
    assert found.decide_host("clips.example", ADULT).action is HostAction.SPLICE


def test_every_host_of_the_catalogue_is_decided_as_a_whole() -> None:
    found = engine(Policy("kids", services=dict.fromkeys(catalogue := load_services(bundled_folder() / "services.toml"), True)))
    found.set_services(catalogue)
    for name, service in catalogue.items():
        for host in service.hosts:
            for asked in (host, f"www.{host}"):
                verdict = found.decide_host(asked, CHILD)
                assert verdict.action is HostAction.DENY, (name, asked)
                assert verdict.verdict.rule in {name, service.part_of}
            assert found.decide_host(host, ADULT).action is not HostAction.DENY


NIGHT = (Window(20 * 60, 6 * 60),)
ALLOW_CLIPS = ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".clips.example", scope="client:child")
BY_NIGHT = Schedule("night", "kids", ScheduleEffect.BLOCK_SERVICE, NIGHT, "UTC", "clips")
BY_DAY = Schedule("day", "kids", ScheduleEffect.ALLOW_SERVICE, (Window(0, 1440),), "UTC", "clips")
LEVELS: list[tuple[str, tuple[PolicyItem, ...], float, str, str]] = [
    ("part of it allowed", (kids(clips=True, tunes=False),), NOON, "tunes.clips.example", "allow unknown"),
    ("the rest blocked", (kids(clips=True, tunes=False),), NOON, "clips.example", "block service"),
    ("part of it alone", (kids(tunes=True),), NOON, "clips.example", "allow unknown"),
    ("with the whole", (kids(clips=True),), NOON, "tunes.clips.example", "block service"),
    ("default", (Policy("default", services={"clips": True}),), NOON, "clips.example", "block service"),
    ("nearer allow", (Policy("default", services={"clips": True}), kids(clips=False)), NOON, "clips.example", "allow unknown"),
    ("pause", (kids(clips=True), Pause(PauseScope.CLIENT, "child", NOON + 60)), NOON, "clips.example", "allow pause"),
    ("before the window", (kids(), BY_NIGHT), NOON, "clips.example", "allow unknown"),
    ("in the window", (kids(), BY_NIGHT), NOON + 9 * 3600, "clips.example", "block schedule"),
    ("schedule over value", (kids(clips=True), BY_DAY), NOON, "clips.example", "allow unknown"),
    ("allow over block", (kids(), BY_DAY, BY_NIGHT), NOON + 9 * 3600, "clips.example", "allow unknown"),
    ("block-all over service", (replace(kids(clips=True), block_all=True),), NOON, "clips.example", "block policy"),
    ("unknown id", (kids(gone=True),), NOON, "clips.example", "allow unknown"),
]  # fmt: skip


@all_cases(("items", "now", "host", "expected"), [case[1:] for case in LEVELS])
def test_what_outranks_what(items: tuple[PolicyItem, ...], now: float, host: str, expected: str) -> None:
    assert outcome(engine(*items, now=now), host) == expected


def test_a_manual_rule_outranks_a_service() -> None:
    found = engine(kids(clips=True), rules=(ALLOW_CLIPS,))
    assert outcome(found, "clips.example") == "allow manual-allow"
    assert found.decide_host("clips.example", CHILD).action is HostAction.INTERCEPT


def test_parts_of_an_approved_site_are_explained() -> None:
    rule = ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".other.example", group=APPROVED)
    found = engine(kids(), BY_NIGHT, now=NOON + 9 * 3600, rules=(rule,))
    url, page = parse_url("https://clips.example/a.png"), parse_url("https://other.example/")
    told = found.explain(Request(url, page, ResourceType.IMAGE, client=CHILD))
    assert not told.verdict.blocked
    assert told.answers[-1].decider == "parts"


def test_a_schedule_that_uses_another_policy_blocks_its_services() -> None:
    use = Schedule("homework", "kids", ScheduleEffect.USE_POLICY, NIGHT, "UTC", "strict")
    found = engine(kids(), Policy("strict", services={"clips": True}), use, now=NOON + 9 * 3600)
    assert outcome(found, "clips.example") == "block schedule"
    assert decide(found, "clips.example").detail == "homework blocks Clips"


def test_another_catalogue_is_in_force_at_once() -> None:
    found = engine(kids(clips=True))
    assert outcome(found, "other.example") == "allow unknown"
    found.set_services({"clips": replace(SERVICES["clips"], hosts=("other.example",))})
    assert outcome(found, "other.example") == "block service"
    assert outcome(found, "clips.example") == "allow unknown"


def test_hosts_are_not_looked_up_while_no_policy_concerns_services() -> None:
    found = engine()
    decide(found, "clips.example")
    assert found.state.services is NO_SERVICES
    found.apply([Change(1, ChangeKind.POLICY_PUT, policy=kids(clips=True))])
    assert outcome(found, "clips.example") == "block service"
    found.apply([Change(2, ChangeKind.POLICY_PUT, policy=kids())])
    assert found.state.services is NO_SERVICES
    assert outcome(found, "clips.example") == "allow unknown"


def used(found: FilterEngine, url: str, client: str = CHILD, *, own: bool = True) -> tuple[str, ...]:
    request = Request(parse_url(url), client=client)
    sums = found.quotas_used(request, found.decide(request), own=own)
    return sums.quotas if sums is not None else ()


def test_what_a_quota_counts() -> None:
    found = engine(kids(), HOUR, GAMES)
    assert found.has_quotas()
    assert used(found, "https://www.clips.example/watch") == ("hour",)
    assert used(found, "https://www.clips.example/poll", own=False) == ()
    assert used(found, "https://media.clips-cdn.example/1", own=False) == ("hour",)
    assert used(found, "https://blocks.example/") == ("play",)
    assert used(found, "https://arcade.example/") == ("play",)
    assert used(found, "https://other.example/") == ()
    assert used(found, "https://clips.example/", ADULT) == ()
    assert not engine(kids()).has_quotas()


def test_a_quota_of_a_category_lifts_its_lists_until_it_is_used_up() -> None:
    now = [NOON]
    found = engine(kids(), GAMES, now=now)
    assert outcome(found, "arcade.example") == "allow policy"
    assert outcome(found, "arcade.example", ADULT) == "block blacklist"
    found.apply([Change(1, ChangeKind.POLICY_PUT, policy=Spent("play", "client:child", NOON + 60, MIDNIGHT))])
    assert outcome(found, "arcade.example") == outcome(found, "blocks.example")[:5] + " policy"
    now[0] += 60
    assert outcome(found, "arcade.example") == outcome(found, "blocks.example") == "block quota"
    denied = found.decide_host("arcade.example", CHILD)
    assert (denied.action, denied.verdict.reason, denied.named, denied.because) == (
        HostAction.DENY, Reason.QUOTA, True, denied.verdict,
    )  # fmt: skip
    now[0] = MIDNIGHT
    assert outcome(found, "arcade.example") == "allow policy"


def test_a_category_that_the_policy_blocks_stays_blocked() -> None:
    found = engine(Policy("kids", categories={"games": CategoryAction.BLOCK}), GAMES)
    assert outcome(found, "arcade.example") == "block blacklist"
    assert outcome(found, "blocks.example") == "allow unknown"


def test_a_quota_that_is_used_up_blocks_until_the_next_day() -> None:
    now = [NOON]
    spent = Spent("hour", key_of_client("child"), NOON + 60, MIDNIGHT)
    found = engine(kids(clips=False), HOUR, spent, now=now)
    mark = found.policy_mark()
    assert outcome(found, "clips.example") == "allow unknown"
    now[0] += 60
    assert found.policy_mark() != mark
    verdict = decide(found, "clips.example")
    assert (verdict.reason, verdict.rule) == (Reason.QUOTA, "hour")
    assert verdict.detail == "60 minutes of clips are used up until 2026-05-05 00:00"
    assert found.decide_host("clips.example", CHILD).action is HostAction.DENY
    assert used(found, "https://clips.example/") == ()
    assert outcome(found, "clips.example", ADULT) == "allow unknown"
    now[0] = MIDNIGHT
    assert outcome(found, "clips.example") == "allow unknown"


def test_clients_that_are_not_recognized_are_counted_by_address() -> None:
    quota = replace(HOUR, policy="default")
    found = engine(quota, Spent("hour", key_of_client("", STRANGER), NOON - 60, MIDNIGHT))
    assert outcome(found, "clips.example", STRANGER) == "block quota"
    assert outcome(found, "clips.example", "10.0.0.10") == "allow unknown"
    assert outcome(found, "clips.example", CHILD) == "allow unknown"
    again = found.quotas_used(
        Request(parse_url("https://clips.example/"), client="10.0.0.10"), decide(found, "x.example"), own=True
    )
    assert again == ("address:10.0.0.10", ("hour",))
    known = engine(quota, Spent("hour", key_of_client("", CHILD), NOON - 60, MIDNIGHT))
    assert outcome(known, "clips.example", CHILD) == "allow unknown"


def test_what_was_used_up_of_a_removed_quota_has_no_effect() -> None:
    found = engine(kids(), Spent("hour", key_of_client("child"), NOON - 60, MIDNIGHT))
    assert outcome(found, "clips.example") == "allow unknown"


def explained(found: FilterEngine, url: str) -> dict[str, DeciderAnswer]:
    return {answer.decider: answer for answer in found.explain(Request(parse_url(url), client=CHILD)).answers}


def test_explanations_name_service_and_quota() -> None:
    found = engine(kids(), HOUR)
    told = explained(found, "https://clips.example/")
    assert told["service"].answer == "pass"
    assert "minutes are left of hour" in told["service"].explanation
    assert "service" not in explained(found, "https://x.example/")
