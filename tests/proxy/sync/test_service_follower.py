"""The catalogue of services follows the operator's file; a wrong file changes nothing."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.errors import ListError
from gatewayfilter.model import Service
from gatewayfilter.proxy.sync.service_follower import ServiceFollower

ONE: Mapping[str, Service] = {"mine": Service("mine", "Mine", "我的", "games", ("mine.example",))}


class Engine:
    """Keeps the catalogues that it is given."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, Service]] = []

    def set_services(self, services: Mapping[str, Service]) -> None:
        self.given.append(services)


def test_a_file_that_changes_is_read_once_and_a_wrong_one_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, engine, now, wrong = tmp_path / "services.toml", Engine(), [7.0], list[str]()
    read = list[float]()

    def catalogue() -> Mapping[str, Service]:
        read.append(now[0])
        if wrong:
            raise ListError(wrong[0])
        return ONE

    follower = ServiceFollower(cast("FilterEngine", engine), catalogue, path, lambda: now[0])

    def follow(later_s: float) -> int:
        now[0] += later_s
        follower.follow_once()
        return len(read)

    assert follow(0.0) == 0, "it is read at the start by others"
    path.write_text("one")
    assert follow(0.49) == 0
    assert follow(0.01) == 1
    assert engine.given == [ONE]
    assert follow(5.0) == 1
    wrong.append("services.toml, line 1: no service")
    path.write_text("another")
    with caplog.at_level(logging.ERROR):
        assert follow(5.0) == 2
        assert follow(5.0) == 2, "it is told once"
    errors = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == ["services.toml, line 1: no service; the services stay as they were"]
    wrong.clear()
    path.unlink()
    assert follow(5.0) == 3
    assert engine.given == [ONE, ONE]
