"""Answers of child processes that stay right until files change, kept in the state folder.

The first page after a start shows them before a child process runs.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gatewayfilter import __version__
from gatewayfilter.private_files import replace_file

_MOST_BYTES: Final = 2_000_000
"""Of an answer; a longer one is not kept, and a longer file is none of them."""


class KeptAnswers:
    """Rows of plain values by name.

    Args:
        folder: of this user alone; made when needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(
        self, name: str, files: Iterable[Path], make: Callable[[], list[dict[str, Any]]], further: object = ""
    ) -> list[dict[str, Any]]:
        """Returns the rows as they were made from the files as they are now; makes them where they are not kept, or not right.

        Args:
            name: of the answer.
            files: what it is made from.
            make: makes it, and may raise.
            further: what else it depends on, as text.
        """
        mark, path = _mark(files, further), self._folder / f"answer-{name}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):  # a damaged one is made again
            with path.open("rb") as file:
                kept = json.loads(file.read(_MOST_BYTES))
            if kept["mark"] == mark:
                found: list[dict[str, Any]] = kept["rows"]
                return found
        made = make()
        content = json.dumps({"mark": mark, "rows": made}).encode()
        if len(content) <= _MOST_BYTES:
            with suppress(OSError):  # on a full or read-only disk it is made again each time
                self._folder.mkdir(mode=0o700, exist_ok=True)
                replace_file(path, content)
        return made


def _mark(files: Iterable[Path], further: object) -> str:
    """Returns a digest that changes with the release, with files and with what else an answer depends on."""
    found = hashlib.sha256(f"{__version__}\n{further}\n".encode())
    for path in sorted(files):
        with suppress(OSError):
            state = path.stat()
            found.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\n".encode())
    return found.hexdigest()
