"""Which files of an archive are the list, and how many files it may have."""

import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from gatewayfilter.errors import ListError
from gatewayfilter.sources.download import archives
from gatewayfilter.sources.download.archives import choose, opened_archive
from tests.case_tables import all_cases


@all_cases(
    ("members", "folders", "chosen"),
    [
        (["a/urls", "a/domains"], [], (["a/domains", "a/urls"], True)),
        (["lists/a/domains", "lists/b/domains"], ["b"], (["lists/b/domains"], True)),
        (["a/domains", "readme.txt", "list.txt"], ["b"], (["a/domains"], True)),
        (["domains"], [], (["domains"], True)),
        (["x/list.txt", "x/README", "LICENSE.md", "Changelog", "AUTHORS"], [], (["x/list.txt"], False)),
        ([".git/config", "__MACOSX/list.txt", "x/.hidden", "x/list"], [], (["x/list"], False)),
        (["x/a.readme"], [], (["x/a.readme"], False)),
    ],
)
def test_which_files_are_the_list(members: list[str], folders: list[str], chosen: tuple[list[str], bool]) -> None:
    assert choose(members, folders) == chosen


@all_cases(
    ("members", "folders", "why"),
    [
        (["b/domains", "a/domains"], ["c"], "name one of a, b"),
        (["b/domains", "a/domains"], ["a", "b"], "name one of a, b"),
        ([f"{letter}.txt" for letter in "fedcba"], [], r"several files \(a.txt, b.txt, c.txt, d.txt, e.txt\)"),
        (["b.txt", "a.txt"], [], r"several files \(a.txt, b.txt\)"),
        ([], [], "neither"),
    ],
)
def test_what_leaves_a_choice_is_refused(members: list[str], folders: list[str], why: str) -> None:
    with pytest.raises(ListError, match=why):
        choose(members, folders)


def _zip(path: Path, count: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("folder")
        for number in range(count):
            archive.writestr(f"{number}", b"")


def _tar(path: Path, count: int) -> None:
    with tarfile.open(path, "w") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for number in range(count):
            archive.addfile(tarfile.TarInfo(f"{number}"), BytesIO())


@pytest.mark.parametrize("pack", [_zip, _tar])
def test_an_archive_has_a_bounded_number_of_files(pack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(pack)
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 3)
    for count in (0, 3, 4):
        path = tmp_path / str(count)
        pack(path, count)
        if count == 4:
            with pytest.raises(ListError, match="more than 3 files"), opened_archive(path):
                pass
            continue
        with opened_archive(path) as archive:
            assert archive is not None
            assert archive.members == tuple(map(str, range(count)))
            for member in archive.members:
                with archive.read(member) as file:
                    assert file.read() == b""
    plain = tmp_path / "plain"
    plain.write_bytes(b"PK\x03\x03 no archive")
    with opened_archive(plain) as archive:
        assert archive is None
