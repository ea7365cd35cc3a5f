"""The number of entries of the snapshot in use, without its tables: for the dashboard, which does without numpy."""

import json
import mmap
from contextlib import closing
from pathlib import Path
from typing import Final

from gatewayfilter.engine.snapshot.format import read_sections, read_verified
from gatewayfilter.errors import SnapshotError

POINTER: Final = "current"
"""Name of the link to the snapshot in use, in the folder of snapshots."""


def published_sizes(folder: Path) -> tuple[int, int]:
    """Returns the numbers of blocked entries and of Adblock rules of the snapshot in use, 0 where it cannot be read.

    Args:
        folder: of the snapshots.
    """
    try:
        with (folder / POINTER).open("rb") as file, closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
            meta = json.loads(read_verified(data, read_sections(data)["meta"]))
        return int(meta["blacklist"]), int(meta["adblock_rules"])
    except (OSError, ValueError, KeyError, SnapshotError):
        return 0, 0
