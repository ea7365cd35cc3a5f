"""Snapshots of list files that are named on the command line."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.model import ListAction, Source
from gatewayfilter.sources.categories import Categories
from gatewayfilter.sources.download.unpack import unpack
from gatewayfilter.sources.formats.detect import HEAD_SIZE, sniff
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.publish import build_snapshot
from gatewayfilter.sources.subscription import SourceFile

_LARGEST_LIST: Final = 4_000_000_000
"""Bound for files named on the command line, in bytes, plain: it only stops decompression bombs."""


def load_lists(files: Sequence[Path], *, categories: Categories | None = None) -> Snapshot:
    """Returns a snapshot of these list files alone, in memory; sources carry the files' names, without folder.

    A file may be of any format, compressed, or a UT1 folder or archive. Its category is guessed from its path, and says
    whether its entries block or allow.

    Raises:
        ListError: one cannot be read, or is no list.
        SnapshotError: more entries than the format can hold.
    """
    known = categories or Categories.load(bundled_folder() / "categories.toml")
    with TemporaryDirectory(prefix="gatewayfilter-") as work:
        sources = [_as_source(path, Path(work) / str(number), known) for number, path in enumerate(files)]
        data, reports = build_snapshot(sources)
    for item in reports:
        if item.error:
            raise ListError(item.error)
    return Snapshot.from_bytes(data)


def _as_source(path: Path, plain: Path, categories: Categories) -> SourceFile:
    category = categories.guess(str(path))
    try:
        is_ut1 = unpack(path, plain, {category, *categories.get(category).aliases}, _LARGEST_LIST)
        with plain.open("rb") as file:
            list_format = ListFormat.UT1 if is_ut1 else sniff(file.read(HEAD_SIZE))
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from error
    except (ListError, SourceError) as error:
        raise ListError(f"cannot use {path}: {error}") from error
    action = ListAction.BLOCK if list_format is ListFormat.ADBLOCK else categories.get(category).action
    return SourceFile(Source(path.name, action, category), plain, list_format)
