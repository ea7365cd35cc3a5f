"""The index of archived pages that are evidence: until when, and where they are stored. A log: an entry costs one write."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Pin:
    until: float
    place: str


class EvidenceIndex:
    """Notes of pinned pages. Not for several threads at a time.

    Args:
        path: the log; lines that cannot be read are passed over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pins: dict[str, _Pin] = {}
        self._by_segment: dict[str, set[str]] = {}
        self._lines = 0
        self._read: tuple[int, int] = (0, 0)
        self.refresh()

    def __len__(self) -> int:
        return len(self._pins)

    def refresh(self) -> None:
        """Takes in what other processes noted since. One `stat` of the file when there is nothing new."""
        try:
            status = self._path.stat()
        except OSError:
            return
        if (status.st_ino, status.st_size) != self._read:
            self._pins.clear()
            self._by_segment.clear()
            self._load()
            self._read = (status.st_ino, status.st_size)

    def pin(self, reference: str, until: float) -> None:
        """Notes a page; the later of two ends counts.

        Raises:
            OSError: it could not be written.
        """
        known = self._pins.get(reference)
        if known is None or until > known.until:
            self._note(reference, _Pin(until, known.place if known else reference))

    def move(self, reference: str, place: str) -> None:
        """Records where a pinned page is stored now.

        Raises:
            OSError: it could not be written.
        """
        self._note(reference, replace(self._pins[reference], place=place))

    def place_of(self, reference: str) -> str:
        """Returns where a page is stored."""
        pin = self._pins.get(reference)
        return reference if pin is None else pin.place

    def in_segment(self, segment: str) -> list[str]:
        """Returns the references of the pinned pages that lie in a segment."""
        return sorted(self._by_segment.get(segment, ()))

    def drop_expired(self, now: float) -> None:
        """Forgets pins that have run out, and rewrites the log when most of its lines are of no use.

        Raises:
            OSError: it could not be written.
        """
        for reference, pin in list(self._pins.items()):
            if pin.until <= now:
                self._forget(reference)
        if self._lines > 2 * len(self._pins) + 1000:
            aside = self._path.with_suffix(".new")
            aside.write_text("".join(_line(reference, pin) for reference, pin in self._pins.items()), encoding="utf-8")
            aside.chmod(0o600)
            aside.replace(self._path)
            self._lines = len(self._pins)
            self._note_size()

    def _note(self, reference: str, pin: _Pin) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, _line(reference, pin).encode())
        finally:
            os.close(descriptor)
        self._set(reference, pin)
        self._lines += 1
        self._note_size()

    def _note_size(self) -> None:
        status = self._path.stat()
        self._read = (status.st_ino, status.st_size)

    def _set(self, reference: str, pin: _Pin) -> None:
        self._forget(reference)
        self._pins[reference] = pin
        self._by_segment.setdefault(pin.place.partition(":")[0], set()).add(reference)

    def _forget(self, reference: str) -> None:
        pin = self._pins.pop(reference, None)
        if pin is not None:
            self._by_segment[pin.place.partition(":")[0]].discard(reference)

    def _load(self) -> None:
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            try:
                note: Mapping[str, object] = json.loads(line)
                self._set(str(note["page"]), _Pin(float(str(note["until"])), str(note["at"])))
            except (ValueError, KeyError, TypeError):  # the last line, when the power went
                continue
        self._lines = len(lines)


def _line(reference: str, pin: _Pin) -> str:
    return json.dumps({"page": reference, "until": pin.until, "at": pin.place}, separators=(",", ":")) + "\n"
