"""Blocks of whole lines: what is cut, what is skipped, and the mark at the beginning of a file."""

from collections.abc import Iterable
from io import BytesIO

import numpy as np
import pytest

from gatewayfilter.sources import ListFormat
from gatewayfilter.sources.formats import line_blocks
from gatewayfilter.sources.formats.line_blocks import text_blocks, text_lines
from gatewayfilter.sources.formats.list_format import SAMPLE_LENGTH, SAMPLE_LIMIT
from gatewayfilter.sources.formats.parse import CountingSink, parse_list
from tests.case_tables import all_cases

MARK = "\ufeff".encode()


@pytest.mark.parametrize("size", [1, 3, 5, 8, 100])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\n\na\n", ["", "", "a"]),
        (MARK + b"a\n" + MARK + b"b\n", ["a", "\ufeffb"]),
        (b"12345678\nb\n", ["12345678", "b"]),
        (b"123456789\nb\n", ["123456789", "b"]),
        (b"1234567890\nb\n", ["123456789", "b"]),
        (b"12345678901234567890\nb\n12345678901234\nc", ["123456789", "b", "123456789", "c"]),
        (b"12345678901234567890", ["123456789"]),
        (b"a\xffb\n", ["a\ufffdb"]),
    ],
)
def test_lines_wherever_blocks_end(size: int, content: bytes, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "BLOCK_SIZE", size)
    monkeypatch.setattr(line_blocks, "MAX_LINE_LENGTH", 8)
    assert list(text_lines(BytesIO(content))) == lines
    assert all(block.endswith("\n") for block in list(text_blocks(BytesIO(content)))[:-1])


def test_what_is_counted_and_not_kept() -> None:
    assert CountingSink().add_keys(0, iter(["a", "b", "a"])) == 3
    assert CountingSink().add_digests(0, np.zeros((3, 16), np.uint8)) == 3


class Keys(CountingSink):
    """Keeps the keys of a list."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add_keys(self, source: int, keys: Iterable[str]) -> int:
        self.found += keys
        return len(self.found)


@all_cases(
    ("list_format", "lines", "keys"),
    [
        (ListFormat.URLS, ["http://a.example/x", "https://b.example/y"], ["a.example/x", "b.example/y"]),
        (ListFormat.DOMAINS, ["a.example", "b.example"], [".a.example", ".b.example"]),
        (ListFormat.HOSTS, ["0.0.0.0 a.example", "0.0.0.0 b.example"], ["a.example", "b.example"]),
        (ListFormat.DNSMASQ, ["address=/a.example/", "address=/b.example/"], [".a.example", ".b.example"]),
        (ListFormat.UT1, ["a.example/x", "b.example"], ["a.example/x/*", ".b.example"]),
    ],
)
def test_blocks_of_ordinary_lines_are_read_as_single_lines_are(
    list_format: ListFormat, lines: list[str], keys: list[str]
) -> None:
    for more, comments in ((lines, 0), ([*lines, "# c"], 1), (["", *lines], 1)):
        sink = Keys()
        report = parse_list(BytesIO("\n".join([*more, "not\ta b|c"]).encode()), list_format, sink)
        alone = Keys()
        whole = parse_list(BytesIO("\n".join(more).encode()), list_format, alone)
        assert sink.found == alone.found == keys
        assert (report.accepted, report.rejected, report.comments) == (2, 1, comments)
        assert (whole.accepted, whole.rejected, whole.comments, whole.taken) == (2, 0, comments, tuple(keys))
        assert report.samples[0][:2] == (len(more) + 1, "not\ta b|c")


def test_so_many_entries_and_faults_are_kept_for_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "BLOCK_SIZE", 64)
    names = [f"host{number}.example" for number in range(100)]
    report = parse_list(BytesIO("\n".join(names).encode()), ListFormat.DOMAINS, Keys())
    assert report.taken == tuple(f".{name}" for name in names[:SAMPLE_LIMIT])
    assert (report.accepted, report.rejected, report.samples) == (100, 0, ())
    bad = parse_list(BytesIO(b"\n".join([b"a b|c" * 100] * 100)), ListFormat.DOMAINS, Keys())
    assert [(line, text) for line, text, _ in bad.samples] == [
        (number + 1, ("a b|c" * 100)[:SAMPLE_LENGTH]) for number in range(SAMPLE_LIMIT)
    ]
    assert (bad.accepted, bad.rejected, bad.taken) == (0, 100, ())
    digests = parse_list(BytesIO(b"\n".join([b"AB" * 16] * 3 + [b"# c", b"", b"x"])), ListFormat.DIGESTS, Keys())
    assert digests.taken == ("ab" * 16,) * 3
    assert (digests.accepted, digests.duplicates, digests.comments, digests.rejected) == (1, 2, 2, 1)
    assert digests.samples == ((6, "x", "not an MD5 in 32 hexadecimal digits"),)
