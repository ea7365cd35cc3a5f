"""`!#include`: what is put in, and what is not."""

import gzip
from pathlib import Path

import pytest

from gatewayfilter.errors import SourceError
from gatewayfilter.sources import Subscriptions
from gatewayfilter.sources.download.includes import MAX_DEPTH, MAX_PARTS, expand_includes, has_includes, part_address

ADDRESS = "https://lists.example/folder/main.txt"


class Shelf:
    """Parts by address; notes what is asked for."""

    def __init__(self, parts: dict[str, str]) -> None:
        self.parts = parts
        self.asked: list[str] = []

    def get(self, address: str, path: Path) -> None:
        self.asked.append(address)
        if address not in self.parts:
            raise SourceError("the server says 404")
        path.write_text(self.parts[address], encoding="utf-8")


def expanded(tmp_path: Path, text: str, shelf: Shelf, max_bytes: int = 1_000_000) -> list[str]:
    path = tmp_path / "list"
    path.write_text(text, encoding="utf-8")
    expand_includes(path, ADDRESS, tmp_path, shelf.get, max_bytes)
    return path.read_text(encoding="utf-8").splitlines()


def test_a_part_stands_where_the_list_wants_it(tmp_path: Path) -> None:
    shelf = Shelf({"https://lists.example/folder/sub/part.txt": "||b.example^\n||c.example^"})
    assert expanded(tmp_path, "||a.example^\n!#include sub/part.txt\n||d.example^", shelf) == [
        "||a.example^",
        "! begin of sub/part.txt",
        "||b.example^",
        "||c.example^",
        "! end of sub/part.txt",
        "||d.example^",
    ]


def test_parts_include_parts_relative_to_themselves(tmp_path: Path) -> None:
    shelf = Shelf(
        {
            "https://lists.example/folder/sub/part.txt": "!#include more.txt\n",
            "https://lists.example/folder/sub/more.txt": "||deep.example^\n",
        }
    )
    assert "||deep.example^" in expanded(tmp_path, "!#include sub/part.txt\n", shelf)


def test_conditions_around_an_include_count(tmp_path: Path) -> None:
    shelf = Shelf({"https://lists.example/folder/yes.txt": "||yes.example^\n"})
    text = "!#if env_mobile\n!#include no.txt\n!#else\n!#include yes.txt\n!#endif\n"
    lines = expanded(tmp_path, text, shelf)
    assert shelf.asked == ["https://lists.example/folder/yes.txt"]
    assert "!#include no.txt" in lines


@pytest.mark.parametrize(
    "name",
    [
        "../other.txt",
        "sub/../../other.txt",
        "/other.txt",
        "//other.example/x.txt",
        "https://other.example/x.txt",
        "x.txt?y",
        "..%2fother.txt",
        "a\\b.txt",
        "",
        ".",
    ],
)
def test_parts_elsewhere_are_not_asked_for(tmp_path: Path, name: str) -> None:
    shelf = Shelf({})
    lines = expanded(tmp_path, f"!#include {name}\n||a.example^\n", shelf)
    assert shelf.asked == []
    assert lines[0] == f"!#include {name}".rstrip() or lines[0] == f"!#include {name}"
    assert lines[1].startswith("! not included: ")
    assert lines[2] == "||a.example^"


def test_a_part_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    assert expanded(tmp_path, "!#include gone.txt\n", Shelf({})) == ["!#include gone.txt", "! not included: the server says 404"]


def test_a_list_that_includes_itself_ends(tmp_path: Path) -> None:
    shelf = Shelf({"https://lists.example/folder/part.txt": "!#include part.txt\n!#include main.txt\n||a.example^\n"})
    lines = expanded(tmp_path, "!#include part.txt\n", shelf)
    assert lines.count("! not included: it includes itself") == 2
    assert shelf.asked == ["https://lists.example/folder/part.txt"]


def test_depth_and_number_are_bounded(tmp_path: Path) -> None:
    parts = {f"https://lists.example/folder/{number}.txt": f"!#include {number + 1}.txt\n" for number in range(20)}
    expanded(tmp_path, "!#include 0.txt\n", shelf := Shelf(parts))
    assert len(shelf.asked) == MAX_DEPTH
    many = {f"https://lists.example/folder/{number}.txt": "||a.example^\n" for number in range(MAX_PARTS + 10)}
    expanded(tmp_path, "".join(f"!#include {number}.txt\n" for number in range(MAX_PARTS + 10)), shelf := Shelf(many))
    assert len(shelf.asked) == MAX_PARTS


def test_the_whole_is_bounded(tmp_path: Path) -> None:
    shelf = Shelf({"https://lists.example/folder/big.txt": "||a.example^\n" * 1_000})
    with pytest.raises(SourceError, match="larger than 1,000 bytes"):
        expanded(tmp_path, "!#include big.txt\n", shelf, max_bytes=1_000)


def test_parts_of_a_local_list_lie_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "secret.txt").write_text("||a.example^", encoding="utf-8")
    (tmp_path / "lists" / "link.txt").symlink_to(tmp_path / "secret.txt")
    main = str(tmp_path / "lists" / "main.txt")
    assert part_address(main, "part.txt") == str(tmp_path / "lists" / "part.txt")
    with pytest.raises(SourceError):
        part_address(main, "link.txt")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"<!DOCTYPE html><html><body>404</body></html>", "it is a web page, not a list"),
        (gzip.compress(b"||b.example^\n" * 100)[:-9], "its compressed data is damaged or cut off"),
        (gzip.compress(bytes(200_000)), "it is larger than 100,000 bytes"),
        (b"||b.example^\n" * 10_000, "it is larger than 100,000 bytes"),
        (None, "there is no such file"),
    ],
    ids=["web page", "cut gzip", "large when unpacked", "large", "absent"],
)
def test_a_bad_part_leaves_the_list_usable(tmp_path: Path, subscriptions: Subscriptions, content: bytes | None, why: str) -> None:
    (tmp_path / "main.txt").write_text("||a.example^\n!#include part.txt\n||c.example^\n", encoding="utf-8")
    if content is not None:
        (tmp_path / "part.txt").write_bytes(content)
    subscriptions._settings = subscriptions._settings.model_copy(update={"max_bytes": 100_000})
    result = subscriptions.add(str(tmp_path / "main.txt"), name="main")
    assert result.report is not None
    assert result.report.accepted == 2
    assert f"! not included: {why}" in subscriptions.get("main").list_path.read_text(encoding="utf-8")


def test_a_compressed_part_is_unpacked(tmp_path: Path, subscriptions: Subscriptions) -> None:
    (tmp_path / "main.txt").write_text("||a.example^\n!#include part.txt.gz\n", encoding="utf-8")
    (tmp_path / "part.txt.gz").write_bytes(gzip.compress(b"||b.example^\n"))
    subscriptions.add(str(tmp_path / "main.txt"), name="main")
    assert "||b.example^\n" in subscriptions.get("main").list_path.read_text(encoding="utf-8")


def test_lists_without_parts_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"||a.example^\n! #include x\n")
    with path.open("rb") as file:
        assert not has_includes(file)
    path.write_bytes(b"||a.example^\n!#include x\n")
    with path.open("rb") as file:
        assert has_includes(file)


def test_a_directive_that_cannot_be_read_is_left_to_the_reader_of_rules(tmp_path: Path) -> None:
    shelf = Shelf({})
    for line in ("!#if (((", "!#endif", "!#else"):
        assert expanded(tmp_path, f"||a.example^\n{line}\n", shelf) == ["||a.example^", line]
    assert shelf.asked == []
