"""The stream worker as a process over doubles: its options reach what does the work, and a signal stops it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")
service = pytest.importorskip("gatewayfilter.scaleout.stream.worker.service")
pytestmark = pytest.mark.services


@pytest.mark.parametrize("is_bare", [True, False])
def test_options_reach_what_does_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_bare: bool) -> None:
    handlers: dict[int, Callable[..., None]] = {}
    made: list[tuple[Any, ...]] = []
    done: list[str] = []
    listened: list[str] = []
    numbers = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}
    monkeypatch.setattr(service, "signal", SimpleNamespace(**numbers, signal=handlers.setdefault))
    monkeypatch.setattr(service, "logging", SimpleNamespace(INFO=20, basicConfig=lambda **_: done.append("log")))
    monkeypatch.setattr(service, "set_up_process", lambda: done.append("process"))
    monkeypatch.setattr(service, "Meters", lambda: SimpleNamespace(listen=listened.append))

    def worker(*parts: Any) -> Any:
        made.append(parts)
        return SimpleNamespace(run=lambda: done.append("run"))

    monkeypatch.setattr(service, "StreamWorker", worker)
    more: dict[str, Any] = {
        "output": "out", "dead": "dead", "counts": "counts", "window_s": 30, "form": "squid", "blocked_only": True, "together": 9,
        "batch": 70, "metrics": ":9000", "properties": {"x": "y"},
    }  # fmt: skip
    options = service.ServiceOptions("b:1", ("in", "to"), "g", tmp_path, **({} if is_bare else more))
    service.serve(options, ("ads",))
    ((kafka, answering, rules, _, stop),) = made
    assert done == ["log", "process", "run"]
    assert (kafka.brokers, kafka.group, kafka.topics.incoming, rules._off) == ("b:1", "g", ("in", "to"), ("ads",))
    assert handlers.keys() == {signal.SIGINT, signal.SIGTERM}
    assert not stop.is_set()
    handlers[signal.SIGTERM](signal.SIGTERM, None)
    assert stop.is_set()
    found = (kafka.topics.decided, kafka.topics.dead, kafka.topics.counts, kafka.batch, dict(kafka.properties), listened)
    answers = (answering.splices, answering.blocked_only, answering.window_s, answering.together)
    if is_bare:
        assert found == ("", "", "", 20_000, {}, [])
        assert answers == (True, False, 0, 1), "what is not sent is not counted"
    else:
        assert found == ("out", "dead", "counts", 70, {"x": "y"}, [":9000"])
        assert answers == (False, True, 30, 9)
