"""Other spellings of a page: what blocks it blocks them, what allows it does not allow them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.engine.path_spellings import has_spellings, spellings_of
from gatewayfilter.model import Action, EntryKind, ListAction, Reason
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.engine.test_filter_engine import engine, entry, manual, request, snapshot


@all_cases(
    ("path", "paths"),
    [
        ("/", []),
        ("/a/b.html?x=//;%2f&y=%2F", []),
        ("/%E4%BD%A0%20%0D%25/a", []),
        ("/a%3F%23", []),
        ("//a///b", ["/a/b"]),
        ("/a;v=1/b;w", ["/a/b"]),
        ("/a%2fb", ["/a/b"]),
        ("/a%5cb", ["/a/b"]),
        ("/x%2f..%2fa", ["/a"]),
        ("/x/..;/a", ["/a"]),
        ("/%61b", ["/ab"]),
        ("/f_%28film%29", ["/f_(film)"]),
        ("/a./b.", ["/a/b"]),
        ("/a%20/b%0d%0A", ["/a/b"]),
        ("/a%20b%0Ac", []),
        ("/a%2e%20;x", ["/a", "/a.%20;x"]),
        ("/a?%61=1", ["/a?a=1"]),
        ("//a;b", ["//a", "/a;b", "/a"]),
        ("/...", []),
    ],
)
def test_the_spellings(path: str, paths: list[str]) -> None:
    url = parse_url(f"http://h.example:81{path}")
    found = [other.text.removeprefix("http://h.example:81") for other in spellings_of(url)]
    assert set(found) == set(paths)


@all_cases(
    ("query", "other"),
    [
        ("", False),
        ("?", False),
        ("?q=x", False),
        ("?q=%c3%a9", False),
        ("?q=%C3%A9", False),
        ("?q=%41", True),
        ("?q=%7a&r", True),
    ],
)
def test_a_query_has_another_spelling_where_more_than_the_case_of_escapes_differs(query: str, *, other: bool) -> None:
    for path in ("/", "/a/long/path"):
        assert has_spellings(parse_url(f"http://h.example{path}{query}")) is other


@given(st.text("/;.%25abcAFf?#\\ ", max_size=40))
def test_they_are_few_other_urls_of_the_same_site(path: str) -> None:
    url = parse_url(f"http://h.example/{path}")
    others = spellings_of(url)
    assert len(others) <= 8
    assert all(other.netloc == url.netloc and other.text != url.text for other in others)
    assert has_spellings(url) or not others


SPELLINGS = [
    "//secret/1", "/secret//1", "/secret;v=1/1", "/secret/1;x", "/secret%2f1", "/%73ecret/1", "/secret./1", "/secret/1.",
    "/;/secret/1", "//secret;a/%31", "/x%2f..%2fsecret/1", "/secret%5C1", "/secret/1/", "/secret%20/1", "/secret/1%0a",
    "///secret///1///",
]  # fmt: skip
PAGE = "h.example/secret/1"
BLOCKS = {
    "url": {"black": [PAGE]},
    "prefix": {"black": ["h.example/secret/*"]},
    "learned": {"learned": [entry(PAGE)]},
    "person-url": {"rules": [manual(ListAction.BLOCK, EntryKind.URL, PAGE)]},
    "person-prefix": {"rules": [manual(ListAction.BLOCK, EntryKind.PREFIX, "h.example/secret/*")]},
    "person-wildcard": {"rules": [manual(ListAction.BLOCK, EntryKind.WILDCARD, "h.example/secret/1*")]},
    "person-regex": {"rules": [manual(ListAction.BLOCK, EntryKind.REGEX, "h[.]example/secret/1")]},
    "adblock": {"adblock": ["||h.example/secret/1"]},
}


@all_cases("path", ["/secret/1", *SPELLINGS])
@all_cases("block", BLOCKS)
def test_a_block_holds_for_all_of_them(block: str, path: str) -> None:
    asked = engine(snapshot(**BLOCKS[block]))  # type: ignore[arg-type]
    asks = request(f"http://h.example{path}")
    assert asked.decide(asks).blocked
    assert asked.explain(asks).verdict == asked.decide(asks)
    assert not asked.decide(request(f"http://h.example/other{path}")).blocked


ALLOWS = {
    "url": {"white": [PAGE]},
    "person-url": {"rules": [manual(ListAction.ALLOW, EntryKind.URL, PAGE)]},
    "learned": {"learned": [entry(PAGE, ListAction.ALLOW)]},
}


@all_cases("path", SPELLINGS)
@all_cases("allow", ALLOWS)
def test_an_allow_holds_for_none(allow: str, path: str) -> None:
    if path == "/%73ecret/1":  # has the very key (RFC 3986 §6.2.2.2)
        return
    assert engine(snapshot(**ALLOWS[allow])).decide(request(f"http://h.example{path}")).reason is Reason.UNKNOWN  # type: ignore[arg-type]


def test_who_allows_the_page_lifts_its_block_for_the_others_as_well() -> None:
    allow = manual(ListAction.ALLOW, EntryKind.URL, PAGE)
    asked = engine(snapshot(black=["h.example/secret/*"], rules=[allow]))
    assert asked.decide(request("http://h.example/secret/1")).reason is Reason.MANUAL_ALLOW
    assert asked.decide(request("http://h.example/x;/..%2f..%2fsecret/1")).action is Action.ALLOW
    assert asked.decide(request("http://h.example/secret/2")).blocked


def test_an_exception_for_the_url_holds() -> None:
    asked = engine(snapshot(adblock=["||h.example/ad", "@@||h.example/ad;ok"]))
    assert not asked.decide(request("http://h.example/ad;ok")).blocked
    assert asked.decide(request("http://h.example/ad;no")).blocked


def test_explain_names_them() -> None:
    asked = engine(snapshot(black=[PAGE]))
    said = {answer.decider: answer.explanation for answer in asked.explain(request("http://h.example//secret;x/1")).answers}
    assert said["spellings"] == f"another spelling of this URL is blocked: {PAGE} of bad"
    said = {answer.decider: answer.explanation for answer in asked.explain(request("http://h.example//fine")).answers}
    assert said["spellings"] == "nothing blocks other spellings of this URL: http://h.example/fine"


@pytest.mark.parametrize("path", ["/a" + ".%20" * 16_000 + "x", "/a" + "%20" * 21_000 + "x/%20", "/a" + "%0a." * 16_000 + "x"])
def test_many_marks_take_no_time(path: str) -> None:
    """No stopwatch: a search from each mark would not end within the test's time limit."""
    url = parse_url(f"http://h.example{path}")
    for _ in range(20):
        spellings_of(url)
