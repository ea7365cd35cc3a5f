"""The archive of fetched pages: WARC segments on disk, the buffer between fetching and scanning, and the evidence for reviewers.

Source: [url-filter] the file buffer that decouples a fast crawler from a slower scanner; [page-dedup steps 1-2] crawl, archive,
unpack. The format is WARC 1.1 (ISO 28500) with one Zstandard frame a record, as common tools read it (`.warc.zst`).
"""

import fcntl
import logging
import os
import re
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from uuid import UUID

import zstandard

from gatewayfilter.crawl.buffer.evidence_index import EvidenceIndex
from gatewayfilter.interfaces import Page

_log = logging.getLogger(__name__)

SEGMENT_BYTES = 16_000_000
"""Of a segment before the next one begins: what is removed at once to make room."""
_LEVEL = 1
"""Of the compression: pages become a fifth of their size at some 2 µs a KB."""
_MOST_DECODED = 60_000_000
_NAME = re.compile(r"(?:pages|evidence)-\d{13}-[0-9a-f]{8}\.warc\.zst")
_REFERENCE = re.compile(rf"({_NAME.pattern}):(\d{{1,15}}):(\d{{1,10}})")
_HOP_BY_HOP = frozenset({"content-encoding", "transfer-encoding", "content-length"})


class WarcArchive:
    """Implements `interfaces.PageArchive`. Threads may share one; each process writes segments of its own, beside the others.

    A segment that was being written when its process died is read as far as it is whole. A process holds the segment in which its
    newest page is, by a lock on it: what was kept just now is not removed before it can be pinned, however slow the process is.

    Args:
        folder: where segments lie; made with mode 0700 when the first page comes.
        max_bytes: of all segments; the oldest go first, pages that are evidence excepted.
        clock: Unix seconds.
    """

    def __init__(self, folder: Path, max_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._clock = clock
        self._pins = EvidenceIndex(folder / "pins.jsonl")
        self._lock = threading.Lock()
        self._packing = threading.Lock()
        self._current: Path | None = None
        self._release: Callable[[], object] = _hold_nothing
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)

    def keep(self, page: Page, fetched_at: float) -> str:
        """Appends a page; returns the reference under which it is found again. About 0.5 ms for 180 KB.

        Raises:
            OSError: it could not be written.
        """
        return self.append_all((self.pack(page, fetched_at),))[0]

    def pack(self, page: Page, fetched_at: float) -> bytes:
        """Returns the compressed record of a page."""
        record = _record(page, fetched_at)
        with self._packing:
            return self._compressor.compress(record)

    def append_all(self, records: Sequence[bytes]) -> list[str]:
        """Appends pages that were packed, in one write a segment; returns the references under which they are found again.

        Raises:
            OSError: not all of them could be written.
        """
        references: list[str] = []
        with self._lock:
            while len(references) < len(records):
                segment = self._segment()
                places, end = _append(segment, records[len(references) :])
                references += [f"{segment.name}:{offset}:{length}" for offset, length in places]
                if end >= SEGMENT_BYTES:
                    self._current = None
                    with self._alone():
                        self._pins.refresh()
                        self._prune()
        return references

    def read(self, reference: str) -> Page | None:
        """Returns a page, `None` when it has been removed to make room or its segment is damaged."""
        with self._lock:
            frame = self._frame(self._pins.place_of(reference))
            if frame is None:  # another process may have moved it since
                self._pins.refresh()
                frame = self._frame(self._pins.place_of(reference))
        if frame is None:
            return None
        try:
            return _page(zstandard.ZstdDecompressor().decompress(frame, max_output_size=_MOST_DECODED))
        except (zstandard.ZstdError, ValueError, KeyError, IndexError):
            return None

    def pin(self, reference: str, until: float) -> None:
        """Keeps a page that is evidence at least until then (Unix seconds), whatever the size cap.

        Raises:
            OSError: the note of it could not be written.
        """
        with self._lock, self._alone():
            self._pins.refresh()
            self._pins.pin(reference, until)

    def size_bytes(self) -> int:
        """Returns what all segments take."""
        return sum(size for _, size in self._segments())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other processes from changing pins and removing segments meanwhile."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _segment(self) -> Path:
        if self._current is not None and not self._current.exists():
            self._current = None  # another process made room: new pages must not be written where other pages were
        if self._current is None:
            self._current = self.folder / self._name("pages")
            self._hold(self._current)
        return self._current

    def _hold(self, segment: Path) -> None:
        """Begins a segment that no process removes until the next one is begun, or until this process ends."""
        self._release()
        with self._alone():  # who removes segments would find this one free in between
            descriptor = os.open(segment, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._release = weakref.finalize(self, os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)

    def _name(self, kind: str) -> str:
        return f"{kind}-{int(self._clock() * 1000):013d}-{secrets.token_hex(4)}.warc.zst"

    def _segments(self) -> Iterator[tuple[Path, int]]:
        """Yields segments with their sizes, the oldest first; by the time in their names, evidence and pages alike."""
        found = [path for path in self.folder.glob("*.warc.zst") if _NAME.fullmatch(path.name)]
        for path in sorted(found, key=lambda path: path.name.partition("-")[2]):
            try:
                yield path, path.stat().st_size
            except FileNotFoundError:
                continue

    def _prune(self) -> None:
        """Removes the oldest segments above the size cap; their pinned pages move into a segment of evidence first."""
        now = self._clock()
        self._pins.drop_expired(now)
        segments = list(self._segments())
        excess = sum(size for _, size in segments) - self._max_bytes
        for segment, size in segments:
            pinned = self._pins.in_segment(segment.name)
            if segment.name.startswith("evidence-"):
                if not pinned:
                    segment.unlink(missing_ok=True)
                continue
            if excess <= 0:
                break
            if _is_held(segment):
                continue
            moved = self._move_pinned(pinned) if pinned else 0
            segment.unlink(missing_ok=True)
            excess -= size - moved

    def _move_pinned(self, pinned: list[str]) -> int:
        """Copies pinned pages into a new segment. Returns its size."""
        evidence = self.folder / self._name("evidence")
        size = 0
        for reference in pinned:
            frame = self._frame(self._pins.place_of(reference))
            if frame is not None:
                ((offset, length),), size = _append(evidence, (frame,))
                self._pins.move(reference, f"{evidence.name}:{offset}:{length}")
        return size

    def _frame(self, place: str) -> bytes | None:
        match = _REFERENCE.fullmatch(place)
        if match is None:
            return None
        name, offset, length = match[1], int(match[2]), int(match[3])
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(offset)
                frame = file.read(length)
        except OSError:
            return None
        return frame if len(frame) == length else None


def _hold_nothing() -> None:
    """Stands for the release of a segment before there is one."""


def _is_held(segment: Path) -> bool:
    try:
        descriptor = os.open(segment, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _append(path: Path, frames: Sequence[bytes]) -> tuple[list[tuple[int, int]], int]:
    """Appends to a file of our own, mode 0600, as many frames as fill a segment.

    Returns:
        Where each begins and its length, and the end of the file.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        begin = end = os.fstat(descriptor).st_size
        places: list[tuple[int, int]] = []
        for frame in frames:
            places.append((end, len(frame)))
            end += len(frame)
            if end >= SEGMENT_BYTES:
                break
        if os.writev(descriptor, frames[: len(places)]) != end - begin:  # a disk that is nearly full: no whole records
            os.ftruncate(descriptor, begin)
            raise OSError(28, "No space left on device")
    finally:
        os.close(descriptor)
    return places, end


def _record(page: Page, fetched_at: float) -> bytes:
    """Returns the WARC response record of a page; its body is kept decoded, so the headers about its encoding are removed."""
    try:
        phrase = HTTPStatus(page.status).phrase
    except ValueError:
        phrase = ""
    headers = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in page.headers.items() if name not in _HOP_BY_HOP)
    http_head = f"HTTP/1.1 {page.status} {phrase}\r\n{headers}content-length: {len(page.body)}\r\n\r\n".encode(errors="replace")
    date = datetime.fromtimestamp(fetched_at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{UUID(bytes=secrets.token_bytes(16), version=4).urn}>",
        "WARC-Date": date,
        "WARC-Target-URI": page.final_url,
        "GatewayFilter-Asked-URI": page.url,
        "GatewayFilter-Elapsed-ms": str(page.elapsed_ms),
        "Content-Type": "application/http;msgtype=response",
        "Content-Length": str(len(http_head) + len(page.body)),
    }
    if page.truncated:
        fields["WARC-Truncated"] = "length"
    if page.secondhand:
        fields["GatewayFilter-Secondhand"] = "yes"
    head = "WARC/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    return b"".join((head.encode(errors="replace"), http_head, page.body, b"\r\n\r\n"))  # a page is large: copied once


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _page(record: bytes) -> Page:
    """Reads a record of ours.

    Raises:
        ValueError: it is none.
    """
    head, _, rest = record.partition(b"\r\n\r\n")
    fields = _fields(head)
    block = rest[: int(fields["content-length"])]
    http_head, separator, body = block.partition(b"\r\n\r\n")
    if not separator or len(block) != int(fields["content-length"]):
        raise ValueError("the record is cut off")
    status = int(http_head.split(b" ", 2)[1])
    headers = _fields(http_head)
    headers.pop("content-length", None)
    return Page(
        fields["gatewayfilter-asked-uri"],
        fields["warc-target-uri"],
        status,
        headers,
        body,
        "warc-truncated" in fields,
        int(fields["gatewayfilter-elapsed-ms"]),
        secondhand="gatewayfilter-secondhand" in fields,
    )


def _fields(head: bytes) -> dict[str, str]:
    lines = head.decode(errors="replace").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
