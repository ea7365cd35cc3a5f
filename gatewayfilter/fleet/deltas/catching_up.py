"""Catching up by deltas: a follower makes the publisher's snapshot from its own, as far as that goes.

Whatever fails, nothing is lost: the caller fetches by blocks what could not be made.
"""

import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas.chain import DeltaLink
from gatewayfilter.fleet.deltas.rebuilding import rebuild

_log = logging.getLogger(__name__)

LARGEST_DELTA: Final = 1 << 26
"""Bytes of a delta, which is held in memory: behind a larger one blocks are fetched."""
_MADE: Final = ".made"
_ROOM_BYTES: Final = 64_000_000
"""Left on the disk, as by a download."""
_FILES: Final = 4
"""Files of the size of a snapshot that need room: two that are made by deltas, the download, and what is published."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What was made: the file (`None` for none), and the bytes of deltas that were fetched."""

    path: Path | None
    fetched: int


def catch_up(folder: Path, base: Path, links: Sequence[DeltaLink], most: int, fetch: Callable[[str, int], bytes]) -> CaughtUp:
    """Returns what deltas make of a snapshot. The file is not verified, and is the caller's to remove (`discard`).

    Args:
        folder: for files.
        base: the snapshot that the first delta is applied to, verified.
        links: the deltas, in order.
        most: bytes of a snapshot, at most.
        fetch: returns a file by name and length.
    """
    fetched, present = 0, base
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        discard(folder)
        is_large = any(link.size > LARGEST_DELTA for link in links)
        if not links or is_large or shutil.disk_usage(folder).free < _FILES * most + _ROOM_BYTES:
            return CaughtUp(None, 0)
        for number, link in enumerate(links):
            data = fetch(link.name, link.size)
            fetched += len(data)
            _refuse_other(data, link)
            made = folder / f"{number % 2}{_MADE}"
            rebuild(present, data, made, most)
            present = made
    except Exception as error:  # noqa: BLE001  whatever it is, blocks are fetched
        reason = str(error) if isinstance(error, FleetError | OSError) else type(error).__name__
        _log.info("the publisher's changes could not be used, blocks are fetched: %s", reason)
        with suppress(OSError):
            discard(folder)
        return CaughtUp(None, fetched)
    return CaughtUp(present, fetched)


def _refuse_other(data: bytes, link: DeltaLink) -> None:
    if hashlib.sha256(data).hexdigest() != link.name:
        raise FleetError("a delta is not as signed")


def discard(folder: Path) -> None:
    """Removes what deltas have made."""
    for path in folder.glob(f"*{_MADE}"):
        path.unlink(missing_ok=True)
