"""Searching the files of lists: what is found, with its number, and what is not read at all."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gatewayfilter.model import ListAction, Source
from gatewayfilter.sources import ListFormat, SourceFile, search
from gatewayfilter.sources.formats.line_blocks import MAX_LINE_LENGTH
from gatewayfilter.sources.formats.line_formats import LineFormat, read_line
from gatewayfilter.sources.formats.list_format import SAMPLE_LENGTH
from gatewayfilter.sources.search import lines_about, lines_with_text
from gatewayfilter.urls import digest_of, parse_loose_url


def source_file(path: Path, text: str | bytes, kind: ListFormat = ListFormat.DOMAINS) -> SourceFile:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return SourceFile(Source("mine", ListAction.BLOCK, "games"), path, kind)


def numbers(item: SourceFile, host: str, listed: frozenset[str] | None = None) -> list[int]:
    return [found.line for found in lines_about(item, parse_loose_url(host), listed)]


@pytest.mark.parametrize("block", [7, 64, 1 << 20])
def test_lines_are_numbered_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(search, "_SEARCHED_AT_ONCE", block)
    names = [f"site{number}.example" for number in range(40)]
    item = source_file(tmp_path / "list", "\ufeffa.test\r\n" + "\n".join(names) + "\nA.TEST")
    assert numbers(item, "www.a.test") == [1, 42]
    assert [numbers(item, name) for name in names] == [[number] for number in range(2, 42)]
    assert [found.line for found in lines_with_text(item, "ITE3")] == [5, *range(32, 42)]
    assert numbers(source_file(tmp_path / "blank", "\na.test\n\n\na.test"), "a.test") == [2, 5]


@pytest.mark.parametrize("block", [7, 25, 64])
def test_lines_after_one_that_is_cut_are_found_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(search, "_SEARCHED_AT_ONCE", block)
    monkeypatch.setattr(search, "MAX_LINE_LENGTH", 20)
    names = [f"site{number}.example" for number in range(20)]
    item = source_file(tmp_path / "list", "x" * 90 + "\n" + "\n".join(names) + "\n" + "y" * 21 + "\na.test\n")
    assert [numbers(item, name) for name in (*names, "a.test")] == [[number] for number in (*range(2, 22), 23)]


def test_a_longer_name_is_no_hit_and_a_subdomain_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(reader: LineFormat, text: str, refused: Callable[[str], None]) -> Iterable[str] | None:
        seen.append(text)
        return read_line(reader, text, refused)

    monkeypatch.setattr(search, "read_line", noted)
    item = source_file(tmp_path / "list", "casino7.example\ncasino-x.example\ncasino.example\nx.casino.example.test\n")
    assert numbers(item, "casino.example") == [3]
    assert numbers(item, "casino") == []
    assert seen == ["casino.example", "x.casino.example.test", "casino.example", "x.casino.example.test"]


def test_a_line_of_megabytes_is_cut_and_lines_after_it_keep_their_number(tmp_path: Path) -> None:
    long = "x" * (3 << 20)
    item = source_file(tmp_path / "list", f"a.test\n{long}b.test\nc.test\n{'y' * MAX_LINE_LENGTH} d.test\nd.test\n")
    assert (numbers(item, "c.test"), numbers(item, "b.test"), numbers(item, "d.test")) == ([3], [], [5])
    short = source_file(tmp_path / "short", f"{long}\nq\n\n\nq\n\n{long}\n\nq\n\n\n")
    assert [found.line for found in lines_with_text(short, "q")] == [2, 5, 9]


def test_texts_beyond_ascii_are_found_in_capitals_too(tmp_path: Path) -> None:
    item = source_file(tmp_path / "list", "a.test\nB\u00dcCHER.example\n\u00e9t\u00e9.example\n")
    assert [found.line for found in lines_with_text(item, "b\u00fccher")] == [2]
    assert [found.line for found in lines_with_text(item, "\u00e9T\u00c9")] == [3]
    assert list(lines_with_text(item, "\u00f6")) == []
    broken = source_file(tmp_path / "broken", b"a.test\n\xff\xfea.test\nb.test\n")
    assert (numbers(broken, "b.test"), numbers(broken, "a.test")) == ([3], [1])


def test_a_list_known_not_to_have_a_url_is_not_opened(tmp_path: Path) -> None:
    item = source_file(tmp_path / "list", "a.test\n")
    item.path.unlink()
    assert numbers(item, "a.test", frozenset()) == []
    with pytest.raises(FileNotFoundError):
        numbers(item, "a.test")


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        (ListFormat.DIGESTS, f"{'0' * 32}\n{digest_of('.a.test').hex().upper()}\n", 2),
        (ListFormat.JSON, json.dumps([{"action": "block", "kind": "domain", "pattern": f".{name}.test"} for name in "ba"]), 1),
    ],
)
def test_known_keys_alone_are_looked_for(tmp_path: Path, kind: ListFormat, text: str, line: int) -> None:
    item = source_file(tmp_path / "list", text, kind)
    assert numbers(item, "www.a.test", frozenset({".a.test"})) == numbers(item, "www.a.test") == [line]
    assert numbers(item, "www.a.test", frozenset({".test"})) == [0]


@pytest.mark.parametrize(
    ("text", "host", "key"),
    [
        ("\uff45xample.com", "example.com", ".example.com"),
        ("example\u3002com", "example.com", ".example.com"),
        ("exam%70le.com", "example.com", ".example.com"),
        ("0x01020304", "1.2.3.4", "1.2.3.4"),
    ],
)
def test_a_list_known_to_have_a_url_is_named_where_its_line_is_not_found(tmp_path: Path, text: str, host: str, key: str) -> None:
    item = source_file(tmp_path / "list", f"a.test\n{text}\n")
    found = list(lines_about(item, parse_loose_url(host), frozenset({key})))
    assert [(line.line, line.text, line.key) for line in found] == [(0, key, key)]


def test_lines_are_shown_as_they_stand_there(tmp_path: Path) -> None:
    item = source_file(tmp_path / "list", "\ufeff a.test # one\n\ufeffa.test two\n" + "a.test" + "x" * 300)
    found = [(line.line, line.text) for line in lines_with_text(item, "a.test")]
    assert found == [(1, "a.test # one"), (2, "\ufeffa.test two"), (3, ("a.test" + "x" * 300)[:SAMPLE_LENGTH])]
    assert [line.line for line in lines_with_text(source_file(tmp_path / "all", "a\nb\n\nc"), "")] == [1, 2, 3, 4]
    assert list(lines_with_text(source_file(tmp_path / "empty", ""), "a")) == []
