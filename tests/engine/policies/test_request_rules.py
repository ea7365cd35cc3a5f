"""Values that act on requests, compiled: searches that are posted, downloads, and which policy is named."""

from gatewayfilter.engine.policies.request_rules import RequestRules, first_values, request_rules
from gatewayfilter.model import LogDetail, Policy, Reason, Request, TlsHandling, Verdict, with_value
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

YOUTUBE = "https://www.youtube.com/youtubei/v1/search"
GOOGLE = "https://www.google.com/search"


def policy(name: str, *values: str) -> Policy:
    found = Policy(name)
    for value in values:
        key, _, text = value.partition("=")
        found = with_value(found, key, text, categories=(), sources=())
    return found


def rules_of(*policies: Policy, paused: bool = False) -> RequestRules | None:
    return request_rules(first_values(policies), paused=paused)


def judged(*values: str, url: str = YOUTUBE, body: bytes | None = None) -> Verdict | None:
    rules = rules_of(policy("kids", *values))
    assert rules is not None
    change = rules.change_of(Request(parse_url(url), method="POST"))
    assert change is not None
    assert change.form is not None
    return change.form.judge(body)


UNREADABLE = "the search cannot be read"


@all_cases(
    ("url", "body", "detail"),
    [
        (YOUTUBE, None, UNREADABLE),
        (YOUTUBE, b"{", UNREADABLE),
        (YOUTUBE, b'{"query": "free casino"}', "search for casino"),
        (YOUTUBE, b'{"query": "cats"}', ""),
        (YOUTUBE.upper().replace("HTTPS://WWW.YOUTUBE.COM", "https://www.youtube.com"), b"{", UNREADABLE),
        ("https://www.youtube.com/other", b"{", ""),
        ("https://www.youtube.com/other", None, UNREADABLE),
        (GOOGLE, b"q=casino", "search for casino"),
        (GOOGLE, b"q=cats&r=casino", ""),
        (GOOGLE, b'{"query": "casino"}', ""),
    ],
)
def test_what_is_posted_is_judged(url: str, body: bytes | None, detail: str) -> None:
    found = judged("search-terms=casino", url=url, body=body)
    assert (found.detail if found is not None else "") == detail
    if found is not None:
        assert (found.reason, found.rule, found.blocked) == (Reason.SEARCH_TERM, "kids", True)


def test_nothing_is_judged_without_terms() -> None:
    assert judged("safesearch=on", "youtube=strict", url=GOOGLE, body=None) is None
    rules = rules_of(policy("kids", "safesearch=on"))
    assert rules is not None
    assert rules.judge_search(parse_url(f"{GOOGLE}?q=casino")) is None
    change = rules.change_of(Request(parse_url(GOOGLE), method="POST"))
    assert change is not None
    assert change.form is not None
    assert (change.form.judges, change.form.is_search) == (False, False)


def test_forms_are_judged_where_they_are_posted() -> None:
    rules = rules_of(policy("kids", "search-terms=casino"))
    assert rules is not None
    got = rules.change_of(Request(parse_url(GOOGLE)))
    assert got is not None
    assert (got.form, got.enforced) == (None, None)
    assert rules.change_of(Request(parse_url("https://x.example/"), method="POST")) is None
    posted = rules.change_of(Request(parse_url(GOOGLE), method="POST"))
    assert posted is not None
    assert posted.form is not None
    assert (posted.form.judges, posted.form.is_search) == (True, False)


@all_cases(
    ("nearest", "farther", "wanted"),
    [
        (["file-types=exe"], [], ("near", frozenset({"exe"}), 0)),
        (["max-download-mb=5"], [], ("near", frozenset(), 5_000_000)),
        (["max-download-mb=5"], ["file-types=exe"], ("far", frozenset({"exe"}), 5_000_000)),
        (["file-types=exe"], ["max-download-mb=5"], ("near", frozenset({"exe"}), 5_000_000)),
        (["file-types=none"], ["max-download-mb=5"], ("far", frozenset(), 5_000_000)),
        (["file-types=none", "max-download-mb=0"], ["file-types=exe", "max-download-mb=5"], None),
        ([], [], None),
    ],
)
def test_downloads_name_the_policy_of_their_types(
    nearest: list[str], farther: list[str], wanted: tuple[str, frozenset[str], int] | None
) -> None:
    rules = rules_of(policy("near", *nearest, "tls=page-only"), policy("far", *farther))
    assert rules is not None
    found = rules.downloads
    assert (None if found is None else (found.policy, found.types, found.most_bytes)) == wanted


def test_groups_of_media_block_media_types_that_are_not_known() -> None:
    rules = rules_of(policy("kids", "file-types=video,exe"))
    assert rules is not None
    assert rules.downloads is not None
    assert rules.downloads.media == frozenset({"video"})
    assert rules.downloads.named == frozenset({"video", "exe"})
    assert {"mp4", "exe"} <= rules.downloads.types


def test_the_policy_that_sets_tls_or_terms_is_named() -> None:
    rules = rules_of(policy("near", "tls=sni-only"), policy("far", "tls=page-only", "search-terms=casino", "log-privacy=host"))
    assert rules is not None
    assert (rules.tls, rules.tls_policy, rules.terms_policy) == (TlsHandling.SNI_ONLY, "near", "far")
    assert (rules.log_detail, rules.blocks_doubt) == (LogDetail.HOST, False)
    only = rules_of(policy("near", "strictness=strict"))
    assert only is not None
    assert (only.tls_policy, only.terms_policy, only.blocks_doubt, only.terms) == ("", "", True, None)


def test_a_pause_leaves_tls_and_the_log() -> None:
    values = policy("kids", "safesearch=on", "search-terms=casino", "file-types=exe", "strictness=strict")
    assert rules_of(values, paused=True) is None
    assert rules_of(values, paused=False) is not None
    found = rules_of(values, policy("far", "tls=page-only"), paused=True)
    assert found == RequestRules(tls=TlsHandling.PAGE_ONLY, tls_policy="far")
