"""The compiled twin of urls.py: the same URLs as by the WHATWG rules, the same names as in Python."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.covering_names import host_names, is_same_site, names_by, same_site_by
from gatewayfilter.errors import UrlError
from gatewayfilter.urls import (
    MAX_URL_LENGTH,
    Url,
    host_suffixes,
    is_ip_literal,
    parse_any_url,
    parse_url,
    registrable_by,
    registrable_domain,
    suffix_rules,
)

COMPILED: Any = load("gatewayfilter._urls")
pytestmark = pytest.mark.skipif(COMPILED is None, reason="the module is not built")

_labels = st.sampled_from(
    ["a", "www", "-", "_x", "b-", "xn--a", "xn--mnchen-3ya", "Ax", "1", "0x1", "1a", "com", "co", "uk", "github", "io", "ck",
     "kawasaki", "city", "jp", "compute", "amazonaws", "example", "", "é", "xn-", "axn--b", "a" * 64, "b" * 200]
)  # fmt: skip
_hosts = st.lists(_labels, min_size=1, max_size=6).map(".".join)
_addresses = st.lists(
    st.sampled_from(["0", "1", "01", "9", "10", "099", "127", "255", "256", "1000", "", "a"]), min_size=3, max_size=5
)
_ports = st.sampled_from(["", ":", ":80", ":443", ":8080", ":0", ":1", ":08", ":65535", ":65536", ":99999", ":123456", ":8o"])
_rests = st.lists(
    st.sampled_from(
        [*"/aZ09-._~:/?#[]@!$&'()*+,;=%^|{}`\\\"<> \t\n\0é例", "%2e", "%2E", "%2F", "%41", "/.", "//", "..", "./", ":80"]
    ),
    max_size=8,
).map("".join)
_schemes = st.sampled_from(["http://", "https://", "HTTP://", "ws://", "http:/", "http:", "https://u@", "", " http://", "ftp://"])
_urls = st.one_of(
    st.builds("{}{}{}/{}".format, _schemes, _hosts | _addresses.map(".".join), _ports, _rests),
    st.builds("{}{}/{}".format, _schemes, _hosts, _rests),
    st.builds("{}{}{}".format, _schemes, _hosts, _rests),
    st.text(),
)


def _outcome(url: Url) -> list[object]:
    return [url.scheme, url.host, url.netloc, url.port, url.path, url.query, url.text, url.key, url.digest]


@given(_urls)
@example("https://a.test/?")
@example("https://a.test/x?y#")
@example("http://a.test/" + "a" * (MAX_URL_LENGTH - 14))
@example("http://a.test/" + "a" * (MAX_URL_LENGTH - 13))
@example("http://a.test/a%2")
@example("http://a.1/")
@example("http://a.test:80/:80/")
@example("https://a.test:443/x?y")
@example("https://a.test:80/x")
@example("http://a.test:443/x")
@example("http://a.test:80")
@example("http://a.test:8080/")
@example("https://127.0.0.1:8443/x?y")
@example("http://127.0.0.1")
@example("http://0.0.0.255:65535/")
@example("http://1.2.3.256/")
@example("http://1.2.3.04/")
@example("http://1.2.3.4.5/")
@example("http://a.1.2.3.4/")
@example("http://1.2.3/")
@example("http://1.2.3.4a/")
@example("http://a.test:443/:80/")
@example(f"http://{'a.' * 125}com/")
@example(f"http://{'a.' * 126}com/")
@settings(max_examples=30)
def test_a_plain_url_is_what_the_whatwg_rules_give(text: str) -> None:
    plain = COMPILED.plain_url(Url, text)
    try:
        expected = parse_any_url(text)
    except UrlError:
        assert plain is None
        with pytest.raises(UrlError):
            parse_url(text)
        return
    assert _outcome(parse_url(text)) == _outcome(expected)
    assert plain is None or plain.text in {text, text.replace(":80/", "/", 1), text.replace(":443/", "/", 1)}


def test_most_urls_are_plain_and_what_is_no_text_is_not() -> None:
    for text in (
        "https://a.test/",
        "http://www.a-b.example.com/x/y.js?z=%20&v=1.2,3|4",
        "https://a.test/?",
        "https://a_b.test/%zz",
        "http://127.0.0.1/",
        "https://192.168.255.10:8443/x",
        "http://a.test:8080/",
    ):
        assert COMPILED.plain_url(Url, text) is not None, text
    assert COMPILED.plain_url(Url, b"https://a.test/") is None


@given(_hosts, _hosts)
@example("kawasaki.jp", "a.kawasaki.jp")
@example("city.kawasaki.jp", "a.city.kawasaki.jp")
@example("com", "a.com")
@example("ample.com", "example.com")
@example("a.github.io", "b.github.io")
@example("", "a")
@example("1.1", "1.1")
@settings(max_examples=30)
def test_names_are_those_of_python(host: str, other: str) -> None:
    rules = suffix_rules()
    if is_ip_literal(host) or is_ip_literal(other) or not (host + other).isascii():
        return
    assert COMPILED.suffixes(host) == host_suffixes.__wrapped__(host)
    assert COMPILED.registrable(host, *rules) == registrable_by(host, *rules)
    assert COMPILED.names(host, *rules) == names_by(host, *rules)
    assert COMPILED.same_site(host, other, *rules) == same_site_by(host, other, *rules)
    one, two = f"x.{host}", f"{other}.{host}"
    if not is_ip_literal(two):  # of 1.1 and 1.1
        assert COMPILED.same_site(one, two, *rules) == same_site_by(one, two, *rules)


def test_a_host_beyond_ascii_has_names_too() -> None:
    assert host_names("b.é.test") == ("b.é.test", "é.test", "test", "b.é.*", "é.*")
    assert registrable_domain("b.é.test") == "é.test"
    assert is_same_site("b.é.test", "é.test")


def test_an_ip_literal_is_of_no_other_site() -> None:
    for host, other in (("192.0.2.1", "2.1"), ("192.0.2.1", "192.0.2.2"), ("[2001:db8::1]", "com"), ("192.0.2.1", "com")):
        assert not is_same_site(host, other), (host, other)
        assert not is_same_site(other, host), (host, other)
    assert is_same_site("192.0.2.1", "192.0.2.1")


@pytest.mark.parametrize("name", ["registrable", "names"])
def test_a_host_beyond_ascii_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="ASCII"):
        getattr(COMPILED, name)("é.test", *suffix_rules())
