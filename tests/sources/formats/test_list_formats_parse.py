import re
from collections.abc import Iterable
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gatewayfilter.engine.adblock.syntax.rule import AdblockReport
from gatewayfilter.sources import ListFormat, ParseReport
from gatewayfilter.sources.formats.host_names import all_ordinary
from gatewayfilter.sources.formats.line_blocks import BLOCK_SIZE, MAX_LINE_LENGTH, text_blocks, text_lines
from gatewayfilter.sources.formats.line_formats import LINE_FORMATS, read_line
from gatewayfilter.sources.formats.parse import CountingSink, parse_list
from gatewayfilter.urls import digest_of
from tests.case_tables import all_cases


class Kept(CountingSink):
    def __init__(self) -> None:
        self.keys: list[str] = []
        self.digests: list[bytes] = []

    def add_keys(self, source: int, keys: Iterable[str]) -> int:
        self.keys += keys
        return len(self.keys)

    def add_digests(self, source: int, digests: NDArray[np.uint8]) -> int:
        self.digests += [row.tobytes() for row in digests]
        return len(digests)

    def add_adblock_list(self, source: int, lines: Iterable[str]) -> AdblockReport:
        self.keys += lines
        return AdblockReport(accepted=len(self.keys))


def read(text: str | bytes, list_format: ListFormat) -> tuple[list[str], ParseReport]:
    sink = Kept()
    report = parse_list(BytesIO(text.encode() if isinstance(text, str) else text), list_format, sink)
    return sink.keys, report


HOSTS, DOMAINS, DNSMASQ, URLS, UT1 = (
    ListFormat.HOSTS,
    ListFormat.DOMAINS,
    ListFormat.DNSMASQ,
    ListFormat.URLS,
    ListFormat.UT1,
)


@all_cases(
    ("list_format", "line", "keys"),
    [
        (HOSTS, "0.0.0.0 ads.example.com", ["ads.example.com"]),
        (HOSTS, "127.0.0.1\tads.example.com", ["ads.example.com"]),
        (HOSTS, "::1 ads.example.com", ["ads.example.com"]),
        (HOSTS, "0.0.0.0  ads.example.com  # why", ["ads.example.com"]),
        (HOSTS, "0.0.0.0 a.example.com b.example.com", ["a.example.com", "b.example.com"]),
        (HOSTS, "0.0.0.0 ADS.Example.COM.", ["ads.example.com"]),
        (HOSTS, "0.0.0.0 bücher.example", ["xn--bcher-kva.example"]),
        (HOSTS, "0.0.0.0 xn--bcher-kva.example", ["xn--bcher-kva.example"]),
        (HOSTS, "0.0.0.0 203.0.113.9", ["203.0.113.9"]),
        (HOSTS, "0.0.0.0 blogspot.com", ["blogspot.com"]),
        (HOSTS, "0.0.0.0 under_score.example.com", ["under_score.example.com"]),
        (DOMAINS, "example.com", [".example.com"]),
        (DOMAINS, "*.example.com", [".example.com"]),
        (DOMAINS, ".example.com", [".example.com"]),
        (DOMAINS, "example.com # why", [".example.com"]),
        (DOMAINS, "Example.COM.", [".example.com"]),
        (DOMAINS, "例子.example", [".xn--fsqu00a.example"]),
        (DOMAINS, "203.0.113.9", ["203.0.113.9"]),
        (DOMAINS, "2001:db8::1", ["[2001:db8::1]"]),
        (DOMAINS, "github.io", ["github.io"]),
        (DOMAINS, "someone.github.io", [".someone.github.io"]),
        (DNSMASQ, "address=/example.com/0.0.0.0", [".example.com"]),
        (DNSMASQ, "address=/example.com/", [".example.com"]),
        (DNSMASQ, "address=/example.com/#", [".example.com"]),
        (DNSMASQ, "address=/example.com/::", [".example.com"]),
        (DNSMASQ, "address=/a.example/b.example/127.0.0.1", [".a.example", ".b.example"]),
        (DNSMASQ, "server=/example.com/", [".example.com"]),
        (DNSMASQ, "local=/example.com/", [".example.com"]),
        (DNSMASQ, "local=/.Example.com/", [".example.com"]),
        (URLS, "http://example.com/a?b=c#d", ["example.com/a?b=c"]),
        (URLS, "https://example.com", ["example.com/"]),
        (URLS, "http://203.0.113.9:8080/i", ["203.0.113.9:8080/i"]),
        (URLS, "example.com/%7Ea", ["example.com/~a"]),
        (UT1, "example.com/en", ["example.com/en/*"]),
        (UT1, "example.com/en/", ["example.com/en/*"]),
        (UT1, "example.com/", ["example.com/*"]),
        (UT1, "example.com", [".example.com"]),
        (UT1, "203.0.113.9/jeux", ["203.0.113.9/jeux/*"]),
    ],
)
def test_an_entry_becomes_its_keys(list_format: ListFormat, line: str, keys: list[str]) -> None:
    for text in (line, f"\ufeff{line}\r\n", f"# first\n\n{line}\n"):
        found, report = read(text, list_format)
        assert found == keys
        assert (report.accepted, report.rejected) == (len(keys), 0)


@all_cases(
    ("list_format", "line"),
    [
        (HOSTS, "0.0.0.0 0.0.0.0"),
        (HOSTS, "127.0.0.1 localhost"),
        (HOSTS, "127.0.0.1 localhost localhost.localdomain"),
        (HOSTS, "::1 ip6-localhost ip6-loopback"),
        (HOSTS, "255.255.255.255 broadcasthost"),
        (HOSTS, "fe80::1%lo0 localhost"),
        (HOSTS, "# 0.0.0.0 example.com"),
        (HOSTS, "   "),
        (DOMAINS, "! comment"),
        (DNSMASQ, "; comment"),
    ],
)
def test_what_says_nothing_is_a_comment(list_format: ListFormat, line: str) -> None:
    found, report = read(line, list_format)
    assert found == []
    assert (report.comments, report.rejected) == (1, 0)


@all_cases(
    ("list_format", "line", "why"),
    [
        (HOSTS, "0.0.0.0 *.example.com", "wildcard"),
        (HOSTS, "192.168.1.5 nas.example.com", "real address"),
        (HOSTS, "0.0.0.0 com", "public suffix"),
        (HOSTS, "0.0.0.0 co.uk", "public suffix"),
        (HOSTS, "0.0.0.0", "without a name"),
        (HOSTS, "ads.example.com", "address"),
        (HOSTS, "0.0.0.0 a\0b.example.com", "control"),
        (DOMAINS, "com", "public suffix"),
        (DOMAINS, "co.uk", "public suffix"),
        (DOMAINS, "a.ck", "public suffix"),
        (DOMAINS, "*", "not a host"),
        (DOMAINS, "a.*.example", "wildcard"),
        (DOMAINS, "-a.example.com", "not a host"),
        (DOMAINS, "a..example.com", "not a host"),
        (DOMAINS, "a" * 64 + ".example", "not a host"),
        (DOMAINS, ".".join(["a" * 50] * 5) + ".example.com", "not a host"),
        (DOMAINS, "two words", "not a host"),
        (DOMAINS, "a" * 70_000, "longer"),
        (DOMAINS, "||example.com^", "not a host"),
        (DOMAINS, "xn--\u00e9.example", "not a host"),
        (DNSMASQ, "address=/example.com/192.0.2.1", "real address"),
        (DNSMASQ, "server=/example.com/8.8.8.8", "forwards to a server"),
        (DNSMASQ, "address=/#/0.0.0.0", "not a host"),
        (DNSMASQ, "address=/com/0.0.0.0", "public suffix"),
        (DNSMASQ, "conf-dir=/etc", "no address="),
        (URLS, "ftp://example.com/x", "not an http"),
        (URLS, "http://", "not an http"),
        (URLS, "http://com/x", "public suffix"),
        (UT1, "a b.example/x", "neither"),
        (ListFormat.DIGESTS, "00ff", "MD5"),
    ],
)
def test_a_bad_line_is_counted_with_its_number_and_reason(list_format: ListFormat, line: str, why: str) -> None:
    found, report = read(f"\n{line}\n", list_format)
    assert found == []
    assert (report.accepted, report.rejected) == (0, 1)
    ((number, text, reason),) = report.samples
    assert number == 2
    assert line.strip().startswith(text)
    assert why in reason


def test_bytes_that_are_not_utf8_are_rejected() -> None:
    found, report = read(b"caf\xe9.example\nok.example.com\n# caf\xe9\n", DOMAINS)
    assert found == [".ok.example.com"]
    assert (report.rejected, report.comments) == (1, 1)


def test_good_names_beside_a_bad_one_on_a_hosts_line_count() -> None:
    found, report = read("0.0.0.0 a.example.com *.example.com b.example.com", HOSTS)
    assert found == ["a.example.com", "b.example.com"]
    assert report.rejected == 1


def test_duplicates_are_counted_over_the_whole_list() -> None:
    _, report = read("a.example\nb.example\nA.example\n*.b.example\na.example\n", DOMAINS)
    assert (report.accepted, report.duplicates) == (2, 3)


def test_samples_are_bounded() -> None:
    _, report = read("???\n" * 50, DOMAINS)
    assert (report.rejected, len(report.samples)) == (50, 10)


def test_digests_are_taken_as_they_are() -> None:
    sink = Kept()
    digest = digest_of(".example.com")
    text = f"# ours\n{digest.hex()}\n{digest.hex().upper()}\n"
    report = parse_list(BytesIO(text.encode()), ListFormat.DIGESTS, sink)
    assert sink.digests == [digest, digest]
    assert (report.accepted, report.duplicates, report.comments) == (1, 1, 1)


def test_an_adblock_list_is_handed_through_line_by_line() -> None:
    found, report = read("! one\r\n||two.example^\n\nthree", ListFormat.ADBLOCK)
    assert found == ["! one", "||two.example^", "", "three"]
    assert report.accepted == 4


@all_cases("tail", ["", "\n", "\nafter.example.com"])
def test_a_gigantic_line_is_cut_and_what_follows_is_read(tail: str) -> None:
    class Endless(BytesIO):
        longest = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size == BLOCK_SIZE
            return super().read(size)

    text = f"before.example.com\n{'x' * (5 * BLOCK_SIZE)}{tail}"
    lines = list(text_lines(Endless(text.encode())))
    assert max(map(len, lines)) == MAX_LINE_LENGTH + 1
    assert [line for line in lines if not line.startswith("x")] == ["before.example.com", *tail.split()]
    found, report = read(text, DOMAINS)
    assert found == [".before.example.com", *(f".{name}" for name in tail.split())]
    assert report.rejected == 1


def test_the_bulk_way_and_the_careful_way_agree() -> None:
    names = [f"host-{number}.example{number % 7}.com" for number in range(40_000)]
    odd = {17: "com", 20_000: "", 30_000: "Upper.example.com"}
    mixed = [odd.get(number, name) for number, name in enumerate(names)]
    found, report = read("\n".join(mixed), DOMAINS)
    wanted = [f".{name.lower()}" for name in mixed if name not in {"com", ""}]
    assert found == wanted
    assert report.samples == ((18, "com", "a public suffix or a name without a dot"),)
    assert report.comments == 1


def test_line_numbers_go_on_over_blocks() -> None:
    text = "a.example.com\n" * 60_000 + "bad line\n"
    assert len(list(text_blocks(BytesIO(text.encode())))) > 1
    _, report = read(text, DOMAINS)
    assert report.samples[0][0] == 60_001


@given(st.binary(max_size=300), st.sampled_from(ListFormat))
def test_nothing_raises_and_every_line_counts(data: bytes, list_format: ListFormat) -> None:
    sink = CountingSink()
    report = parse_list(BytesIO(data), list_format, sink)
    assert report.accepted >= 0
    if list_format in {DOMAINS, URLS, UT1}:
        lines = data.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n").split("\n") if data else []
        assert report.accepted + report.duplicates + report.comments + report.rejected == len(lines)


_URL_PARTS = st.lists(
    st.sampled_from([*"aZ09_~=&;,+!$*|()[]@:?/-.'{}^#", "%41", "%C3%a9", "%2E", "%2F", "%7C", "%", "..", "./", "/..", "b.html"]),
    max_size=8,
)


def taken_in_bulk(line: str) -> list[str] | None:
    ordinary = LINE_FORMATS[URLS].ordinary
    match = ordinary.fullmatch(line) if ordinary else None
    return ["".join(match.groups())] if match and all_ordinary([match[1]]) else None


@settings(max_examples=30)
@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(
        ["a.example.com", "1.2.3.4", "256.1.1.1", "01.2.3.4", "com", "a.co.uk", "xn--p1ai.com", "A.example.com", "x-.com"]
    ),
    st.sampled_from(["", "", "", ":80", ":443", ":8080", ":65535", ":65536", ":08", ":0", ":"]),
    _URL_PARTS,
)
def test_urls_taken_in_bulk_are_those_that_the_parser_makes(scheme: str, host: str, port: str, parts: list[str]) -> None:
    line = f"{scheme}://{host}{port}/{''.join(parts)}"
    if (keys := taken_in_bulk(line)) is not None:
        assert read_line(LINE_FORMATS[URLS], line, pytest.fail) == keys


@all_cases(
    "line",
    ["http://a.example.com/x.php?y=1&z=%2F", "https://1.2.3.4:8080/bin.sh", "http://a.example.com/", "http://1.2.3.4/a//b|c"],
)
def test_what_lists_of_urls_mostly_hold_is_taken_in_bulk(line: str) -> None:
    assert taken_in_bulk(line) == [line.partition("://")[2]]


@all_cases(
    "line",
    [
        "http://a.example.com",
        "http://a.example.com/x?",
        "http://a.example.com/../x",
        "http://a.example.com/%41",
        "http://a.example.com:80/x",
    ],
)
def test_what_is_not_canonical_is_looked_at_closely(line: str) -> None:
    assert taken_in_bulk(line) is None
    assert read(line, URLS)[1].accepted == 1


_LABEL = st.from_regex(re.compile(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", re.ASCII), fullmatch=True)
_NAME = st.builds(lambda labels: ".".join([*labels, "example", "org"]), st.lists(_LABEL, min_size=1, max_size=3))


@settings(max_examples=30)
@given(st.lists(_NAME.filter(lambda name: "xn--" not in name and "--" not in name), min_size=1, max_size=30))
def test_names_survive_every_host_format(names: list[str]) -> None:
    assert read("\n".join(f"0.0.0.0 {name}" for name in names), HOSTS)[0] == names
    for form, list_format in (("{}", DOMAINS), ("address=/{}/0.0.0.0", DNSMASQ), ("{}", UT1)):
        text = "\n".join(form.format(name) for name in names)
        assert read(text, list_format)[0] == [f".{name}" for name in names]


@all_cases("line", ["\x85", "\u2003 # a comment"])
@all_cases("list_format", LINE_FORMATS)
def test_lines_of_unusual_blanks_are_blank(list_format: ListFormat, line: str) -> None:
    assert read_line(LINE_FORMATS[list_format], line, lambda _: None) is None
