"""The Spark job as a process over doubles of Spark: restarts, signals, its end, and the settings of its session."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import GatewayFilterError

pyspark_errors = pytest.importorskip("pyspark.errors")
pytest.importorskip("confluent_kafka")
service = pytest.importorskip("gatewayfilter.scaleout.spark.service")
pytestmark = pytest.mark.services


class Builder:
    """Notes the settings of a session."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.name = ""

    def appName(self, name: str) -> Builder:  # noqa: N802  Spark's name, as below
        self.name = name
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> str:  # noqa: N802
        return "session"


class Query:
    """A query that ends, fails, or runs until it is stopped."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.calls: list[str] = []

    def awaitTermination(self, seconds: int) -> bool:  # noqa: N802  Spark's name, as below
        assert seconds == 1, "a signal is noticed soon"
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return bool(end)

    def processAllAvailable(self) -> None:  # noqa: N802
        self.calls.append("all")

    def stop(self) -> None:
        self.calls.append("stop")


class Event:
    """Is set by a signal, or after so many waits."""

    def __init__(self) -> None:
        self.waits, self.most = 0, 9

    def wait(self, _: float) -> bool:
        self.waits += 1
        return self.waits > self.most

    def set(self) -> None:
        self.most = 0


def served(
    monkeypatch: pytest.MonkeyPatch, queries: list[Query], now: list[float], *, once: bool = False
) -> tuple[Any, dict[int, Any]]:
    left, handlers = iter(queries), dict[int, Any]()
    event, times = Event(), iter(now)
    spark: Any = SimpleNamespace(stop=lambda: handlers.setdefault(0, "stopped"))
    monkeypatch.setattr(service, "SparkJob", lambda *_: SimpleNamespace(start=lambda: next(left)))
    monkeypatch.setattr(service, "Event", lambda: event)
    monkeypatch.setattr(service, "signal", SimpleNamespace(
        SIGTERM=signal.SIGTERM, SIGINT=signal.SIGINT, signal=handlers.setdefault
    ))  # fmt: skip
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=times.__next__))
    try:
        service.serve(spark, SimpleNamespace(), once=once)
    finally:
        assert handlers[0] == "stopped"
    return event, handlers


def test_a_job_that_fails_is_started_again_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> Query:
        return Query(pyspark_errors.PySparkException("why" + "x" * 600 + "\nmore"))

    with pytest.raises(GatewayFilterError, match=r"^the Spark job ended: whyx{497}$"):
        served(monkeypatch, [failing() for _ in range(3)], [0.0] * 9)
    ended = Query(False, True)
    event, handlers = served(monkeypatch, [failing(), failing(), ended], [0.0] * 9)
    assert (ended.calls, event.waits) == ([], 4)
    for number in (signal.SIGTERM, signal.SIGINT):
        event.most = 9
        handlers[number]()
        assert event.most == 0
    # one that ran for long counts as started well
    steady = [0.0, 0.0, 0.0, 301.0, 0.0, 0.0, 0.0]
    served(monkeypatch, [failing(), failing(), failing(), Query(True)], steady)
    with pytest.raises(GatewayFilterError):
        served(monkeypatch, [failing() for _ in range(3)], [0.0, 300.0] * 3)


def test_a_job_is_stopped_or_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Query(*[False] * 20)
    event, _ = served(monkeypatch, [running], [0.0] * 9)
    assert (running.calls, event.waits) == (["stop"], 10)
    once = Query()
    served(monkeypatch, [once], [0.0] * 9, once=True)
    assert once.calls == ["all", "stop"]


def test_a_session_has_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # what the session sets goes with the test
        monkeypatch.delenv(name)

    def chosen(*values: Any) -> dict[str, str]:
        builder = Builder()
        monkeypatch.setattr(service, "SparkSession", SimpleNamespace(builder=builder))
        assert service.session(*values) == "session"
        assert builder.name == "gatewayfilter"
        return builder.settings

    bare = chosen()
    assert {"spark.master", "spark.driver.host", "spark.jars"}.isdisjoint(bare)
    assert (bare["spark.ui.enabled"], bare["spark.sql.session.timeZone"]) == ("false", "UTC")
    assert all(Path(os.environ[name]).name.startswith("python") for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"))
    assert chosen("local[2]", "a.jar", {"spark.ui.enabled": "true", "spark.x": "y"}) == bare | {
        "spark.master": "local[2]", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": "a.jar", "spark.ui.enabled": "true", "spark.x": "y",
    }  # fmt: skip
    assert chosen("spark://m:7077") == bare | {"spark.master": "spark://m:7077"}
