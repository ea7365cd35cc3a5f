import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.cli.patterns import Pattern, read_pattern, too_broad
from gatewayfilter.errors import GatewayFilterError, RuleError
from gatewayfilter.model import EntryKind

CASES = [
    ("example.com", EntryKind.DOMAIN, ".example.com"),
    (" Example.COM. ", EntryKind.DOMAIN, ".example.com"),
    (".example.com", EntryKind.DOMAIN, ".example.com"),
    ("*.example.com", EntryKind.DOMAIN, ".example.com"),
    ("||example.com^", EntryKind.DOMAIN, ".example.com"),
    ("bücher.example", EntryKind.DOMAIN, ".xn--bcher-kva.example"),
    ("192.0.2.7", EntryKind.HOST, "192.0.2.7"),
    ("::1", EntryKind.HOST, "[::1]"),
    ("[2001:db8::1]", EntryKind.HOST, "[2001:db8::1]"),
    ("example.com:8080", EntryKind.PREFIX, "example.com:8080/*"),
    ("[::1]:8080", EntryKind.PREFIX, "[::1]:8080/*"),
    ("https://Example.com", EntryKind.URL, "example.com/"),
    ("https://example.com/a?b=c#d", EntryKind.URL, "example.com/a?b=c"),
    ("example.com/a", EntryKind.URL, "example.com/a"),
    ("http://example.com:80/%61", EntryKind.URL, "example.com/a"),
    ("http://user:secret@example.com/x", EntryKind.URL, "example.com/x"),
    ("https://example.com/a/*", EntryKind.PREFIX, "example.com/a/*"),
    ("example.com/*", EntryKind.PREFIX, "example.com/*"),
    ("*casino*", EntryKind.WILDCARD, "*casino*"),
    ("*.cdn.*/banner*", EntryKind.WILDCARD, "*.cdn.*/banner*"),
    ("example.com/a?b=*", EntryKind.WILDCARD, "example.com/a?b=*"),
    ("*.example.com/x", EntryKind.WILDCARD, "*.example.com/x"),
    ("*.example.com:8080", EntryKind.WILDCARD, "*.example.com:8080"),
    ("/ads?[0-9]+/", EntryKind.REGEX, "ads?[0-9]+"),
]


@pytest.mark.parametrize(("text", "kind", "pattern"), CASES)
def test_what_people_write_is_read(text: str, kind: EntryKind, pattern: str) -> None:
    read = read_pattern(text)
    assert read == Pattern(kind, pattern)
    assert read_pattern(read.written(), exact=kind is EntryKind.HOST) == read
    assert read.describe()


def test_exact_means_the_host_alone() -> None:
    assert read_pattern("Example.com", exact=True) == Pattern(EntryKind.HOST, "example.com")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a b",
        "foo@bar",
        "..",
        "*.",
        "||",
        "||a.com/x^",
        "/x",
        "//",
        "/",
        "/(/",
        "/[/",
        "http://",
        "a\tb.com",
        "x" * 5000,
    ],
)
def test_what_is_no_pattern_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_pattern(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["com", "co.uk", "localhost", "*", "*.*", "http://*/x*", "/.*/", "/http/", "/e?/"])
def test_what_fits_everything_is_too_broad(text: str) -> None:
    assert too_broad(read_pattern(text))


@pytest.mark.parametrize("text", [text for text, _, _ in CASES])
def test_what_people_usually_mean_is_not_too_broad(text: str) -> None:
    assert too_broad(read_pattern(text)) == ""


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_one_of_our_errors(text: str) -> None:
    try:
        read = read_pattern(text)
    except GatewayFilterError:
        return
    too_broad(read)
    assert read_pattern(read.written(), exact=read.kind is EntryKind.HOST).text
