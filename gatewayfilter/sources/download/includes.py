"""`!#include`: inserts the parts of an Adblock list that are in files of their own.

A part must lie in the list's own folder or below: a list on a shared host has no authority over other lists there. As in
uBlock Origin, parts may include parts, conditions around an include count, and each part is bounded like a list.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urljoin, urlsplit

from gatewayfilter.engine.adblock.syntax.preprocessor import Preprocessor
from gatewayfilter.errors import ListError, RuleError, SourceError
from gatewayfilter.private_files import private
from gatewayfilter.sources.formats.line_blocks import MAX_LINE_LENGTH

MAX_DEPTH: Final = 5
MAX_PARTS: Final = 50
_MARK: Final = b"!#include"

type Get = Callable[[str, Path], None]
"""(address, where to write) → gets one part; raises `SourceError` or `ListError`."""


def has_includes(file: BinaryIO) -> bool:
    """Returns whether a list includes others; reads it to its end."""
    return any(is_begin and piece.startswith(_MARK) for piece, is_begin in _pieces(file))


def _pieces(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yields lines with their ends, longer ones than any rule in pieces, and whether each is the beginning of a line."""
    is_begin = True
    while piece := file.readline(MAX_LINE_LENGTH):
        yield piece, is_begin
        is_begin = piece.endswith(b"\n")


def expand_includes(path: Path, address: str, work: Path, get: Get, max_bytes: int) -> int:
    """Puts the parts into a list, in place. A part that cannot be had leaves its line and a comment with the reason.

    Args:
        path: of the list.
        address: where it came from: a web address, or a path.
        work: a folder for the parts.
        get: gets a part.
        max_bytes: of the whole list.

    Returns:
        How many parts were put in.

    Raises:
        SourceError: the whole is larger than `max_bytes`.
    """
    target = work / "expanded"
    expansion = _Expansion(work, get)
    size = 0
    with open(target, "wb", opener=private) as out:
        for line in expansion.lines(path, address, depth=0):
            size += len(line)
            if size > max_bytes:
                raise SourceError(f"with the lists that it includes it is larger than {max_bytes:,} bytes")
            out.write(line)
    target.replace(path)
    return expansion.parts


class _Expansion:
    def __init__(self, work: Path, get: Get) -> None:
        self._work = work
        self._get = get
        self._tried = 0
        self._open: set[str] = set()
        self.parts = 0

    def lines(self, path: Path, address: str, *, depth: int) -> Iterator[bytes]:
        """Yields the lines of a file and of what it includes."""
        self._open.add(address)
        preprocessor = Preprocessor()
        with path.open("rb") as file:
            raw = b"\n"
            for raw, is_begin in _pieces(file):
                if not is_begin or not raw.startswith(b"!#") or not _wants_part(preprocessor, raw):
                    yield raw
                    continue
                line = raw if raw.endswith(b"\n") else raw + b"\n"
                name = raw[len(_MARK) :].decode("utf-8", "replace").strip()
                yield from self._part(line, name, address, depth=depth)
            if not raw.endswith(b"\n"):
                yield b"\n"
        self._open.discard(address)

    def _part(self, line: bytes, name: str, address: str, *, depth: int) -> Iterator[bytes]:
        try:
            wanted = self._allowed(name, address, depth)
            part = self._work / f"part-{self._tried}"
            self._get(wanted, part)
        except (SourceError, ListError, OSError) as error:
            yield line
            yield f"! not included: {error}\n".encode()
            return
        self.parts += 1
        yield f"! begin of {name}\n".encode()
        yield from self.lines(part, wanted, depth=depth + 1)
        yield f"! end of {name}\n".encode()
        part.unlink(missing_ok=True)

    def _allowed(self, name: str, address: str, depth: int) -> str:
        wanted = part_address(address, name)
        if wanted in self._open:
            raise SourceError("it includes itself")
        if depth >= MAX_DEPTH:
            raise SourceError(f"it is nested deeper than {MAX_DEPTH}")
        if self._tried >= MAX_PARTS:
            raise SourceError(f"a list includes at most {MAX_PARTS} others")
        self._tried += 1
        return wanted


def _wants_part(preprocessor: Preprocessor, raw: bytes) -> bool:
    try:
        return preprocessor.directive(raw.decode("utf-8", "replace")) == _MARK.decode()
    except RuleError:  # the reader of the rules reports it
        return False


def part_address(address: str, name: str) -> str:
    """Returns the address of a part.

    Args:
        address: of the list that includes it, on the web or in the file system.
        name: as the list writes it.

    Raises:
        SourceError: it is outside of the list's folder.
    """
    parts = name.split("/")
    if not name or any(part in {"", ".", ".."} for part in parts) or any(mark in name for mark in "\\?#%:\x00"):
        raise SourceError(f"{name[:100]!r} is no file in the list's folder")
    if not urlsplit(address).netloc:
        folder = Path(address).parent.resolve()
        found = (folder / name).resolve()
        if not found.is_relative_to(folder):
            raise SourceError(f"{name[:100]!r} is no file in the list's folder")
        return str(found)
    return urljoin(address, name)
