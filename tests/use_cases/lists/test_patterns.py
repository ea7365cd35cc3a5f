import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import GatewayFilterError, UrlError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.use_cases.lists.patterns import (
    Pattern,
    host_of_key,
    mixed_scripts,
    pattern_of_key,
    read_pattern,
    read_url,
    verb_of,
)
from tests.case_tables import all_cases

EVERY_KIND = [
    ("example.com", EntryKind.DOMAIN, ".example.com", "example.com and its subdomains"),
    ("|example.com", EntryKind.HOST, "example.com", "the host example.com"),
    ("192.0.2.7", EntryKind.HOST, "192.0.2.7", "the host 192.0.2.7"),
    ("https://example.com/a?b", EntryKind.URL, "example.com/a?b", "the page example.com/a?b"),
    ("example.com/a/*", EntryKind.PREFIX, "example.com/a/*", "example.com/a/ and everything below it"),
    ("*casino*", EntryKind.WILDCARD, "*casino*", "every URL that fits *casino*"),
    ("/ads?[0-9]+/", EntryKind.REGEX, "ads?[0-9]+", "every URL in which /ads?[0-9]+/ is found"),
]


@pytest.mark.parametrize(("text", "kind", "pattern", "words"), EVERY_KIND)
def test_what_people_write_is_read_described_and_written_back(text: str, kind: EntryKind, pattern: str, words: str) -> None:
    read = read_pattern(text)
    assert read == Pattern(kind, pattern)
    assert read.describe() == words
    assert read_pattern(read.written()) == read


@pytest.mark.parametrize(
    ("text", "words"), [("a.test/x", "the page a.test/x with any query"), ("a.test/x?y", "the page a.test/x?y")]
)
def test_a_block_of_a_page_stands_for_more(text: str, words: str) -> None:
    assert read_pattern(text).describe(ListAction.BLOCK) == words
    assert "any query" not in read_pattern(text).describe(ListAction.ALLOW)


@pytest.mark.parametrize(
    ("text", "site"),
    [("https://example.com/", "example.com"), ("http://a.test:8080", "a.test:8080"), ("http://a.test/x", ""), ("a.test/*", "")],
)
def test_a_start_page_is_told_from_the_site(text: str, site: str) -> None:
    assert read_pattern(text).whole_site == site


@pytest.mark.parametrize(
    ("key", "kind", "host"),
    [
        (".example.com", EntryKind.DOMAIN, "example.com"),
        ("example.com", EntryKind.HOST, "example.com"),
        ("[::1]", EntryKind.HOST, "[::1]"),
        ("[::1]:8080/x", EntryKind.URL, "[::1]"),
        ("example.com:8080/x?y", EntryKind.URL, "example.com"),
        ("example.com/x/*", EntryKind.PREFIX, "example.com"),
    ],
)
def test_list_keys_are_patterns(key: str, kind: EntryKind, host: str) -> None:
    assert pattern_of_key(key) == Pattern(kind, key)
    assert host_of_key(key) == host


def test_a_page_may_have_a_star_in_its_url() -> None:
    assert read_url("http://example.com/a*b") == Pattern(EntryKind.URL, "example.com/a*b")
    with pytest.raises(UrlError):
        read_url("http://")


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_one_of_our_errors(text: str) -> None:
    try:
        read = read_pattern(text)
    except GatewayFilterError:
        return
    assert read.describe()


@pytest.mark.parametrize(
    ("action", "verb"),
    [
        (ListAction.BLOCK, "blocks"),
        (ListAction.ALLOW, "allows"),
        (ListAction.SPLICE, "passes unread the connections to"),
    ],
)
def test_what_a_rule_does_in_words(action: ListAction, verb: str) -> None:
    assert verb_of(action) == verb


@all_cases(
    ("text", "shown"),
    [
        ("example.com", ""),
        ("\u043f\u0440\u0438\u043c\u0435\u0440.example", ""),
        ("b\u00fccher.example", ""),
        ("日本のカタカナ.example", ""),
        ("3-\u043f\u0440\u0438\u043c\u0435\u04401.example", ""),
        ("ex\u0430mple.test", "ex\u0430mple.test"),
        ("|www.ex\u0430mple.test", "www.ex\u0430mple.test"),
        ("ex\u0430mple.test:8443/x", "ex\u0430mple.test"),
        ("ex\u0430mple.test/x/*", "ex\u0430mple.test"),
        ("日本a.example", "日本a.example"),
        ("*xn--a*", ""),
    ],
)
def test_names_of_several_alphabets_are_shown_as_they_read(text: str, shown: str) -> None:
    assert mixed_scripts(read_pattern(text)) == shown
