"""The page spool: a bounded folder of files that passes pages from the proxy to the learner. Each file is read once.

The proxy copies a page while it passes (proxy/response/page_capture.py), `PageSpool` writes it from a thread, and the learner
classifies it (crawl/spool_reader.py), usually a fraction of a second later. If a page does not fit, its URL goes to the frontier.
"""

import itertools
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from gatewayfilter.content_encoding import EncodingError, as_shown, decode_up_to
from gatewayfilter.interfaces import Page, PassedResponse

_log = logging.getLogger(__name__)

MOST_DECODED: Final = 2_000_000
MOST_FILES: Final = 500
MOST_BYTES: Final = 64_000_000
"""Limits of the folder, for all workers together."""
_MOST_QUEUED_BYTES: Final = 16_000_000
_SUFFIX: Final = ".page"
_LOOK_EVERY_S: Final = 0.5
_STOP_S: Final = 3.0


class PageSpool:
    """Implements `PassedSink`: puts pages into a bounded queue, from which its thread writes files.

    Args:
        folder: created with mode 0700.
        on_dropped: called in the thread with the URL of a page that could not be written.
    """

    def __init__(self, folder: Path, on_dropped: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_dropped = on_dropped
        self._queue: SimpleQueue[PassedResponse | None] = SimpleQueue()
        self._queued_bytes = 0
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._looked_at = -_LOOK_EVERY_S
        self._room = MOST_FILES, MOST_BYTES
        self._thread = threading.Thread(target=self._run, name="page-spool", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Writes the queued pages and ends the thread."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(_STOP_S)

    def passed(self, response: PassedResponse) -> bool:
        """Accepts a page, or returns False when the queue is full."""
        if not self._thread.is_alive() or self._queued_bytes + len(response.body) > _MOST_QUEUED_BYTES:
            return False
        with self._lock:
            self._queued_bytes += len(response.body)
        self._queue.put(response)
        return True

    def _run(self) -> None:
        failure: str | None = ""  # logged when it begins: each page that passes would be a line
        while (response := self._queue.get()) is not None:
            try:
                self._write(response)
                failure = ""
            except OSError as error:
                if failure != error.strerror:
                    _log.warning("cannot hand pages to the learner: %s", error.strerror)
                failure = error.strerror
                self._on_dropped(response.url)
            finally:
                with self._lock:
                    self._queued_bytes -= len(response.body)

    def _write(self, response: PassedResponse) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._has_room(len(response.body)):
            self._on_dropped(response.url)
            return
        known = {"url": response.url, "status": response.status, "headers": dict(response.headers), "said": response.said}
        head = json.dumps(known).encode()
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(self._numbers)}"
        aside = self._folder / f".{name}"
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(len(head).to_bytes(4, "big") + head + response.body)
            aside.rename(self._folder / f"{name}{_SUFFIX}")
        except OSError:
            aside.unlink()
            raise

    def _has_room(self, size: int) -> bool:
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            sizes = [entry.stat().st_size for entry in _entries(self._folder)]
            self._room = MOST_FILES - len(sizes), MOST_BYTES - sum(sizes)
        files, room = self._room
        if files <= 0 or room < size:
            return False
        self._room = files - 1, room - size
        return True


def waiting_pages(folder: Path) -> list[Path]:
    """Returns the files to be read, the oldest first."""
    return sorted((folder / entry.name for entry in _entries(folder)), key=lambda path: path.name)


def read_page(path: Path) -> Page | None:
    """Returns the page in a file, decoded and bounded; `None` for one that is damaged or cannot be decoded."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:4], "big")
        head = json.loads(data[4 : 4 + length])
        # Without `said` it was written by a version that did not check the page's origin.
        return _page(head["url"], head["status"], head["headers"], data[4 + length :], head["said"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def page_of(response: PassedResponse) -> Page | None:
    """Returns a response as a page to be classified, `None` when its content encoding cannot be decoded."""
    return _page(response.url, response.status, response.headers, response.body, response.said)


def _page(url: str, status: int, headers: Mapping[str, str], passed: bytes, said: str) -> Page | None:
    try:
        body, cut = decode_up_to(passed, as_shown(headers.get("content-encoding", "")), MOST_DECODED)
    except EncodingError:
        return None
    return Page(url, url, status, dict(headers), body, cut, secondhand=True, said=said)


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as found:
        yield from (entry for entry in found if entry.name.endswith(_SUFFIX))
