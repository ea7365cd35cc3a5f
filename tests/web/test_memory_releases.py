"""When the web process gives memory back."""

import asyncio
from pathlib import Path

import pytest

from gatewayfilter.web import server
from gatewayfilter.web.child_warmer import ChildWarmer
from gatewayfilter.web.memory import ReleaseTimes, resident_bytes
from tests.web.web_fakes import loaded_for


class Machine:
    """Its clock and the memory in use, as the test sets them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.used = 100_000_000

    def times(self) -> ReleaseTimes:
        return ReleaseTimes(lambda: self.used, lambda: self.now)


@pytest.mark.parametrize(
    ("passed_s", "grown", "due"),
    [
        (0.0, 0, False),
        (14.9, 999_999, False),
        (15.0, 0, True),
        (0.9, 50_000_000, False),
        (1.0, 1_000_000, True),
        (15.0, -5_000_000, True),
    ],
)
def test_it_is_due_from_time_to_time_and_soon_after_growth(passed_s: float, grown: int, *, due: bool) -> None:
    machine = Machine()
    times = machine.times()
    machine.now, machine.used = passed_s, machine.used + grown
    assert times.due is due


def test_growth_counts_from_what_a_release_left() -> None:
    machine = Machine()
    times = machine.times()
    due: list[bool] = []
    for now, used, releases in ((2.0, 110_000_000, True), (4.0, 110_000_000, False), (4.0, 112_000_000, False)):
        machine.now, machine.used = now, used
        due.append(times.due)
        if releases:
            times.released()
    assert due == [True, False, True]


def test_this_process_has_memory() -> None:
    assert 10_000_000 < resident_bytes() < 100_000_000_000


def test_what_is_kept_is_kept_before_threads_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread holds at that moment would never be collected."""
    done: list[str] = []
    monkeypatch.setattr(server, "limit_heaps", lambda: None)
    monkeypatch.setattr(server, "pages_of_process", lambda: _NoPages)
    monkeypatch.setattr(server, "keep_imported", lambda: done.append("kept"))
    monkeypatch.setattr(ChildWarmer, "begin", lambda *_: done.append("begun"))
    monkeypatch.setattr(server, "_run", lambda *_, tls: done.append(f"served, TLS {tls}"))
    monkeypatch.setattr(asyncio, "run", lambda _: None)
    server.serve(loaded_for(tmp_path / "state", web__listen="127.0.0.1:0"))
    assert done == ["kept", "begun", "served, TLS False"]


class _NoPages:
    """Templates that are not kept small: they are those of the test's process."""

    @staticmethod
    def keep_small(folder: Path) -> None:
        """Does nothing."""
