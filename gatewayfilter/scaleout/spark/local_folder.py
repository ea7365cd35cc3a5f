"""A folder of Parquet files that driver and workers reach as a folder of their own, as a disk or NFS.

The workers write the files of a micro-batch (`partition_answers`) below `_work`, into a folder of this try; then the driver moves
those of records and dead letters into place, and adds up the counts, which are complete last. A micro-batch that is run again
replaces its folders; workers of a driver that was killed write into the folder of their try, which is gone.
"""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet

from gatewayfilter.scaleout.spark.partition_answers import ROWS
from gatewayfilter.scaleout.spark.partition_counts import COUNT, COUNTS, DEAD, RECORDS

if TYPE_CHECKING:
    from pathlib import Path

_KEYS: Final = ["window", "rules_version", "dimension", "value"]


class LocalFolder:
    """A folder of Parquet files.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self) -> Path:
        """Returns the folder for the files of a try, and removes those of others."""
        works = self._path / "_work"
        shutil.rmtree(works, ignore_errors=True)
        return works / uuid.uuid4().hex

    def commit(self, work: Path, number: int) -> None:
        """Puts the files of a try into place.

        Args:
            work: the folder of the try.
            number: of the micro-batch.
        """
        for part in (RECORDS, DEAD):
            source, target = work / part, self._path / part / f"batch={number}"
            source.mkdir(parents=True, exist_ok=True)
            for draft in source.glob("_*"):  # of a task that failed
                draft.unlink(missing_ok=True)
            if not any(source.iterdir()):  # so that readers find the columns
                parquet.write_table(ROWS.empty_table(), source / "part-00000.parquet", store_schema=False)
            _replace(source, target)
            (target / "_SUCCESS").touch()
        self._add_up(work / COUNTS, self._path / COUNTS / f"batch={number}")
        shutil.rmtree(work.parent, ignore_errors=True)

    def _add_up(self, source: Path, target: Path) -> None:
        source.mkdir(parents=True, exist_ok=True)
        tables = [parquet.ParquetFile(file).read() for file in sorted(source.glob("part-*"))]
        if not tables:
            return
        added = pa.concat_tables(tables).group_by(_KEYS).aggregate([("records", "sum"), ("blocked", "sum")])
        for file in source.iterdir():
            file.unlink()
        added = added.rename_columns([*_KEYS, "records", "blocked"]).select(COUNT.names)
        parquet.write_table(added, source / "part-00000.parquet", store_schema=False)
        (source / "_SUCCESS").touch()
        _replace(source, target)


def _replace(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
