"""The backlog of pages that wait to be scanned: references into the archive, in order, on disk.

Source: [url-filter] the file buffer that lets a fast crawler run ahead of a slower scanner.

The journal has a line a page; a cursor beside it marks up to where it has been scanned. Both are written before anything relies
on them, so a process that is killed goes on where it was: the page it was at is scanned once more.
"""

import os
import threading
from collections import deque
from pathlib import Path

_CURSOR_DIGITS = 16


class Backlog:
    """A queue of references that survives its process. Threads may share one; each crawler has a journal of its own.

    Args:
        path: the journal; its folder is made with mode 0700 when the first reference comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cursor_path = path.with_suffix(".cursor")
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._cursor = 0
        self._load()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, reference: str) -> None:
        """Appends a reference; when this returns it outlives the process.

        Raises:
            OSError: it could not be written.
        """
        line = f"{reference}\n".encode()
        with self._lock:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                end = os.fstat(descriptor).st_size
                if os.write(descriptor, line) != len(line):  # a full disk: what was written is no line
                    os.ftruncate(descriptor, end)
                    raise OSError(28, "No space left on device")
            finally:
                os.close(descriptor)
            self._waiting.append(reference)

    def adopt(self, path: Path) -> int:
        """Takes over what waits in the journal of a crawler that is no more, and removes that. Returns how many pages.

        A process that is killed meanwhile adopts again: pages may be scanned twice, none is lost.

        Raises:
            OSError: it could not be written or removed.
        """
        other = Backlog(path)
        count = len(other)
        while (reference := other.first()) is not None:
            self.put(reference)
            other.advance()
        path.unlink(missing_ok=True)
        path.with_suffix(".cursor").unlink(missing_ok=True)
        return count

    def first(self) -> str | None:
        """Returns the reference that has waited longest, `None` when there is none; it stays until `advance`."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def advance(self) -> None:
        """Takes the first reference out: it has been scanned.

        Raises:
            OSError: the cursor could not be written; after a restart the page is scanned once more.
        """
        with self._lock:
            self._cursor += len(self._waiting.popleft().encode()) + 1
            if self._waiting:
                self._write_cursor()
            else:  # the journal first: a cursor beyond its end means the beginning
                os.truncate(self._path, 0)
                self._cursor = 0
                self._write_cursor()

    def _write_cursor(self) -> None:
        descriptor = os.open(self._cursor_path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, f"{self._cursor:0{_CURSOR_DIGITS}d}".encode(), 0)
        finally:
            os.close(descriptor)

    def _load(self) -> None:
        try:
            journal = self._path.read_bytes()
        except OSError:
            return
        try:
            cursor = int(self._cursor_path.read_bytes())
        except (OSError, ValueError):
            cursor = 0
        if not 0 <= cursor <= len(journal) or (cursor and journal[cursor - 1 : cursor] != b"\n"):
            cursor = 0
            self._write_cursor()  # at once: what is appended now must not grow up to a cursor that means nothing
        whole, _, torn = journal[cursor:].rpartition(b"\n")
        if torn:  # the process died while it wrote this line, so nothing relies on it
            os.truncate(self._path, len(journal) - len(torn))
        self._cursor = cursor
        self._waiting.extend(whole.decode(errors="replace").split("\n") if whole else ())
