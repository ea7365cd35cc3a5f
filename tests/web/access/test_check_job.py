"""Checks of URLs in the child process, where there are no lists."""

import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter import wiring
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request
from gatewayfilter.urls import parse_url
from gatewayfilter.web.access import check_job
from tests.web.web_fakes import loaded_for

NO_LISTS = "no lists are in force yet: the filter publishes them when it starts"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "state"
    check_job._checker.cache_clear()


@pytest.mark.parametrize("at", [None, 1.0])
def test_that_there_are_no_lists_yet_is_said_whenever_a_check_is_for(at: float | None, state: Path) -> None:
    settings = pickle.dumps(loaded_for(state).settings)
    with pytest.raises(SnapshotError) as refused:
        check_job.check(settings, Request(parse_url("http://a.test/")), "", 0.0, at)
    assert str(refused.value) == NO_LISTS


@pytest.mark.parametrize("at", [None, 1.0])
def test_another_fault_of_the_lists_is_named_itself(at: float | None, state: Path) -> None:
    settings = loaded_for(state).settings
    folder = wiring.snapshot_folder(settings)
    with closing(wiring.open_store(settings)) as store:
        wiring.publish_now(settings, store)
    current = folder.current()
    assert current is not None
    for snapshot in current.parent.glob(f"*{current.suffix}"):
        snapshot.write_bytes(b"damaged")
    with pytest.raises(SnapshotError) as refused:
        check_job.check(pickle.dumps(settings), Request(parse_url("http://a.test/")), "", 0.0, at)
    assert str(refused.value) != NO_LISTS
    assert refused.value.__cause__ is not refused.value
