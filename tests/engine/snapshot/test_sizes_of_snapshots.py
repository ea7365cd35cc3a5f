"""The sizes of the snapshot in use: 0 where there is none that can be read."""

from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.engine.snapshot.sizes import POINTER, published_sizes


@pytest.mark.parametrize("content", [None, b"", b"no snapshot"])
def test_none_where_there_is_no_snapshot(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / POINTER).write_bytes(content)
    assert published_sizes(tmp_path) == (0, 0)


def test_of_an_empty_snapshot(tmp_path: Path) -> None:
    (tmp_path / POINTER).write_bytes(SnapshotBuilder().build())
    assert published_sizes(tmp_path) == (0, 0)
