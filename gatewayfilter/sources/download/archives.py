"""The search for the list in a tar or zip archive: a UT1 category, or the one file that is a list."""

import tarfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from gatewayfilter.errors import ListError

PARTS = ("domains", "urls")
"""The files of a UT1 category, in the order in which they are kept."""

_MOST_MEMBERS = 20_000
_NO_LISTS = ("readme", "license", "licence", "copying", "copyright", "changelog", "authors")
"""How the names of files begin that lie beside a list."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive.

    Attributes:
        members: the path of each file in it; no folders, links or devices.
    """

    members: tuple[str, ...]
    _file: tarfile.TarFile | zipfile.ZipFile

    def read(self, member: str) -> IO[bytes]:
        """Opens a file of the archive.

        Raises:
            ListError: it is encrypted, or packed by a method that Python does not support.
        """
        try:
            if isinstance(self._file, zipfile.ZipFile):
                return self._file.open(member)
            found = self._file.extractfile(member)
        except (RuntimeError, NotImplementedError) as error:
            raise ListError(f"{PurePosixPath(member).name} in the archive cannot be unpacked: {error}") from error
        if found is None:
            raise ListError(f"{PurePosixPath(member).name} in the archive is no file")
        return found


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive | None]:
    """Yields the archive that a plain file is, `None` when it is none.

    Raises:
        ListError: it holds too many files. tarfile.TarError, zipfile.BadZipFile: it is damaged.
    """
    with path.open("rb") as head:
        is_zip = head.read(4) in {b"PK\x03\x04", b"PK\x05\x06"}
    if is_zip:
        with zipfile.ZipFile(path) as archive:
            yield Archive(_checked(tuple(item.filename for item in archive.infolist() if not item.is_dir())), archive)
    elif tarfile.is_tarfile(path):
        with tarfile.open(path, "r:") as archive:
            names: list[str] = []
            for member in archive:
                if member.isfile():
                    names.append(member.name)
                _checked(names)
            yield Archive(tuple(names), archive)
    else:
        yield None


def _checked[T: Collection[str]](names: T) -> T:
    if len(names) > _MOST_MEMBERS:
        raise ListError(f"the archive holds more than {_MOST_MEMBERS:,} files")
    return names


def choose(members: Collection[str], folders: Collection[str]) -> tuple[list[str], bool]:
    """Chooses the files that are the list.

    Args:
        members: paths in the archive.
        folders: which category to take of several, by any of these names.

    Returns:
        The paths, and whether they are a UT1 category.

    Raises:
        ListError: nothing or too much to choose from.
    """
    categories: dict[str, dict[str, str]] = {}
    for member in members:
        path = PurePosixPath(member)
        if path.name in PARTS:
            categories.setdefault(path.parent.name, {})[path.name] = member
    if categories:
        return _category(categories, folders), True
    lists = [member for member in members if _may_be_a_list(PurePosixPath(member))]
    if len(lists) > 1:
        named = ", ".join(sorted(PurePosixPath(member).name for member in lists)[:5])
        raise ListError(f"the archive holds several files ({named}); unpack it and add the one you mean")
    if not lists:
        raise ListError("the archive holds neither `domains` nor `urls` nor any other list")
    return lists, False


def _category(categories: Mapping[str, Mapping[str, str]], folders: Collection[str]) -> list[str]:
    wanted = [name for name in categories if name in folders] or list(categories)
    if len(wanted) > 1:
        raise ListError(f"the archive holds several categories; name one of {', '.join(sorted(categories))}")
    chosen = categories[wanted[0]]
    return [chosen[part] for part in PARTS if part in chosen]


def _may_be_a_list(path: PurePosixPath) -> bool:
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and not path.name.lower().startswith(_NO_LISTS)
