"""Canonical URLs, list keys, hosts."""

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import (
    MAX_PREFIXES,
    MAX_URL_LENGTH,
    canonical_host,
    digest_of,
    host_suffixes,
    is_ip_literal,
    is_public_suffix,
    parse_loose_url,
    parse_url,
    prefix_key,
    redacted,
    registrable_domain,
    unescaped,
)
from tests.case_tables import all_cases

CANONICAL = [
    ("http://Example.COM", "http://example.com/"),
    ("HTTP://EXAMPLE.com:80/", "http://example.com/"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("http://example.com./a", "http://example.com/a"),
    ("http://user:secret@example.com/", "http://example.com/"),
    ("http://example.com/a/./b/../c", "http://example.com/a/c"),
    ("http://example.com/%2e%2e/a", "http://example.com/a"),
    ("http://example.com/a#fragment", "http://example.com/a"),
    ("http://example.com/a?b#c?d", "http://example.com/a?b"),
    ("http://example.com/a?", "http://example.com/a?"),
    ("http://example.com?#x", "http://example.com/?"),
    ("http://example.com/a#?", "http://example.com/a"),
    ("http://example.com?x=1", "http://example.com/?x=1"),
    ("http://münchen.de/ä", "http://xn--mnchen-3ya.de/%C3%A4"),
    ("http://例子.测试/路", "http://xn--fsqu00a.xn--0zwm56d/%E8%B7%AF"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://[::0001]:8080/", "http://[::1]:8080/"),
    ("http:\\\\example.com\\a", "http://example.com/a"),
    ("http://example.com/a b", "http://example.com/a%20b"),
    ("http://example.com/%zz", "http://example.com/%zz"),
    (" \thttp://example.com/\n", "http://example.com/"),
    ("ws://example.com:80/chat", "ws://example.com/chat"),
]

REFUSED = [
    "",
    "example.com/a",
    "//example.com/a",
    "ftp://example.com/",
    "javascript:alert(1)",
    "data:text/html,x",
    "about:blank",
    "http://",
    "http://exa mple.com/",
    "http://example.com:99999/",
    "http://[::1/",
    "http://a..b/",
    "http://a../",
    "http://../",
    "http://example.com/" + "a" * MAX_URL_LENGTH,
    "http://" + "a." * 127 + "com/",
    "http://example.com/\ud800",
]


@all_cases(("text", "canonical"), CANONICAL)
def test_canonical_form(text: str, canonical: str) -> None:
    url = parse_url(text)
    assert url.text == canonical
    assert parse_url(url.text) == url


@all_cases("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(UrlError):
        parse_url(text)


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    for candidate in (text, f"http://{text}", f"http://example.com/{text}"):
        try:
            url = parse_url(candidate)
        except UrlError:
            continue
        assert parse_url(url.text).key == url.key
        assert len(url.digest) == 16
        assert url.prefix_keys()[-1] == f"{url.netloc}/*"


def test_key_has_no_scheme_and_digest_is_its_md5() -> None:
    url = parse_url("https://Example.com/a?b=1")
    assert url.key == "example.com/a?b=1"
    assert url.key == parse_url("http://example.com/a?b=1").key
    assert url.digest == hashlib.md5(b"example.com/a?b=1", usedforsecurity=False).digest() == digest_of("example.com/a?b=1")


@all_cases(
    ("one", "other", "same"),
    [
        ("http://x.com/%61", "http://x.com/a", True),
        ("http://x.com/%7Ea", "http://x.com/~a", True),
        ("http://x.com/%c3%a4", "http://x.com/%C3%A4", True),
        ("http://x.com/a%2Fb", "http://x.com/a/b", False),
        ("http://x.com/A", "http://x.com/a", False),
        ("http://x.com/a?q=%41", "http://x.com/a?q=A", True),
        ("http://x.com/a?", "http://x.com/a", True),
        ("http://x.com:8080/a", "http://x.com/a", False),
    ],
)
def test_escapes_do_not_evade_a_key(one: str, other: str, *, same: bool) -> None:
    assert (parse_url(one).digest == parse_url(other).digest) is same
    assert (parse_url(one).key == parse_url(other).key) is same


def test_prefix_keys_cover_the_path_and_nothing_else() -> None:
    url = parse_url("http://x.com:8080/a/b/c.html?q=/z")
    assert url.prefix_keys() == ("x.com:8080/a/b/c.html/*", "x.com:8080/a/b/*", "x.com:8080/a/*", "x.com:8080/*")
    assert url.prefix_keys("y.com")[-1] == "y.com:8080/*"
    assert prefix_key(parse_url("http://x.com/a/b/")) == prefix_key(parse_url("http://x.com/a/b?q")) == "x.com/a/b/*"
    assert prefix_key(parse_url("http://x.com/a")) in parse_url("http://x.com/a/b").prefix_keys()
    assert prefix_key(parse_url("http://x.com/a")) not in parse_url("http://x.com/ab").prefix_keys()


def test_prefix_keys_are_bounded_and_keep_the_shortest() -> None:
    keys = parse_url("http://x.com/" + "a/" * 1000).prefix_keys()
    assert len(keys) == MAX_PREFIXES
    assert keys[-2:] == ("x.com/a/*", "x.com/*")


@all_cases(
    ("text", "host"),
    [
        ("Example.COM.", "example.com"),
        ("1.0.0.1", "1.0.0.1"),
        ("::1", "[::1]"),
        ("[2001:DB8::1]", "[2001:db8::1]"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_canonical_host(text: str, host: str) -> None:
    assert canonical_host(text) == host


@all_cases("text", ["", "a b", "x/y", "-a.com", "foo:80", "a..b", "user@host", "exa*mple.com", "a" * 64 + ".com", "x?y", "\x00"])
def test_no_host(text: str) -> None:
    with pytest.raises(UrlError):
        canonical_host(text)


@all_cases("text", ["ok" + "\xad" * 2000 + ".test", " " * 1025, "a" * 60_000])
def test_long_hosts_are_refused_before_anything_is_remembered(text: str) -> None:
    before = canonical_host.cache_info().currsize
    with pytest.raises(UrlError):
        canonical_host(text)
    assert canonical_host.cache_info().currsize == before


@given(st.text())
def test_any_text_is_a_host_or_refused(text: str) -> None:
    try:
        host = canonical_host(text)
    except UrlError:
        return
    assert canonical_host(host) == host
    assert parse_url(f"http://{host}/").host == host


def test_host_suffixes() -> None:
    assert host_suffixes("a.b.co.uk") == ("a.b.co.uk", "b.co.uk", "co.uk", "uk")
    assert host_suffixes("10.0.0.1") == ("10.0.0.1",)
    assert host_suffixes("[::1]") == ("[::1]",)


def test_ip_literals() -> None:
    assert is_ip_literal("10.0.0.1")
    assert is_ip_literal("[::1]")
    assert not is_ip_literal("a.1x")
    assert not is_ip_literal("example.com")


def test_public_suffixes_are_those_of_the_package() -> None:
    peer = PublicSuffixList()
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        rules = {line.split()[0].lstrip("!").removeprefix("*.") for line in lines if line.strip() and not line.startswith("//")}
    assert len(rules) > 9_000
    hosts = [canonical_host(f"{below}{rule}") for rule in rules for below in ("", "a.", "b.a.")]
    hosts += ["localhost", "a.invalid", "b.a.invalid", f"{'a.' * 120}co.uk", f"{'a.' * 120}invalid"]
    for host in hosts:
        assert registrable_domain(host) == (peer.privatesuffix(host) or host)
        assert is_public_suffix(host) == (peer.privatesuffix(host) is None)


@given(
    st.text(alphabet="%0123456789abcdefABCDEFgzGZ-._~/", max_size=30).filter(
        lambda path: not re.search("%[0-9A-Fa-f]?%", path)  # an escape behind half of one makes another: `%%330` is `%30`
    )
)
def test_a_key_has_the_escapes_that_its_characters_need_in_upper_case(path: str) -> None:
    key = parse_url(f"http://a.example/{path}").key
    for escape in re.findall("%[0-9A-Fa-f]{2}", key):
        assert escape == escape.upper()
        assert not re.fullmatch(r"[A-Za-z0-9._~-]", chr(int(escape[1:], 16)))
    assert unescaped(key) == unescaped(f"a.example{parse_url(f'http://a.example/{path}').path}")


def test_registrable_domains() -> None:
    assert registrable_domain("a.b.co.uk") == "b.co.uk"
    assert registrable_domain("x.github.io") == "x.github.io"
    assert registrable_domain("10.0.0.1") == "10.0.0.1"
    assert registrable_domain("localhost") == "localhost"
    assert is_public_suffix("co.uk")
    assert not is_public_suffix("b.co.uk")
    assert not is_public_suffix("10.0.0.1")


def test_a_person_may_leave_the_scheme_away() -> None:
    assert parse_loose_url(" example.com/x ").text == "http://example.com/x"
    assert parse_loose_url("https://example.com").text == "https://example.com/"


def test_redacted_has_no_query() -> None:
    assert redacted("http://x.com/a?token=secret") == "http://x.com/a?…"
    assert redacted("http://x.com/a") == "http://x.com/a"
