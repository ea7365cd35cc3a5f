"""The process of a fleet: what it does as publisher and follower, and what it does when that fails."""

import asyncio
import json
import logging
import os
import signal
import ssl
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StartupError, StoreError
from gatewayfilter.processes import fleet, fleet_server
from gatewayfilter.processes.fleet import EXPORT_AGAIN_S, EXPORT_EVERY_S, STORE_AGAIN_S, TICK_S, _Fleet


def noted[T](log: list[Any], entry: object, result: T) -> T:
    """Takes note of something, and returns a result."""
    log.append(entry)
    return result


class Stop:
    """An event that is set after some waits."""

    def __init__(self, waits: int) -> None:
        self.left, self.waited = waits, list[float]()
        self.event = threading.Event()

    def is_set(self) -> bool:
        return self.event.is_set()

    def set(self) -> None:
        self.event.set()

    def wait(self, pause_s: float) -> bool:
        self.waited.append(pause_s)
        self.left -= 1
        if self.left <= 0:
            self.event.set()
        return self.is_set()


class Opened:
    """Stands in for the database."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, waits: int = 1, **chosen: Any) -> tuple[_Fleet, Stop, Opened]:
    found = _Fleet(Settings.model_validate({"data_dir": folder, "fleet": chosen}))
    stop, store = Stop(waits), Opened()
    monkeypatch.setattr(found, "_stop", stop)
    monkeypatch.setattr(fleet, "open_store", lambda _: store)
    monkeypatch.setattr(fleet, "low_priority", nullcontext)
    return found, stop, store


PUBLISHER: dict[str, Any] = {"listen": "127.0.0.1:8090"}


def test_the_export_is_compared_every_other_second_and_later_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process, stop, store = made(tmp_path, monkeypatch, 7, **PUBLISHER)
    ends = [None, StoreError("locked"), StoreError("locked"), StoreError("full"), KeyError("bug"), None, StoreError("locked")]

    def export(*_: object) -> None:
        if (error := ends.pop(0)) is not None:
            raise error

    monkeypatch.setattr(fleet, "export_now", export)
    process.export()
    assert stop.waited == [EXPORT_EVERY_S, *[EXPORT_AGAIN_S] * 4, EXPORT_EVERY_S, EXPORT_AGAIN_S]
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "locked", "full", "the export for followers failed", "locked",
    ]  # fmt: skip
    assert store.closed


def test_a_follower_polls_again_whatever_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process, stop, store = made(tmp_path, monkeypatch, 3)
    polls = [None, KeyError("bug"), None]

    def poll() -> None:
        if (error := polls.pop(0)) is not None:
            raise error

    monkeypatch.setattr(fleet, "follower", lambda *_: SimpleNamespace(poll=poll, wait_s=lambda: 7.0 - len(polls)))
    process.follow()
    assert stop.waited == [5.0, 6.0, 7.0]
    assert "trying again" in caplog.text
    assert store.closed


def test_a_database_that_cannot_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, store = Stop(3), Opened()
    fails = [StoreError("away"), StoreError("away")]

    def opening(_: Settings) -> Any:
        if fails:
            raise fails.pop()
        return store

    monkeypatch.setattr(fleet, "open_store", opening)
    assert fleet._opened_store(Settings(data_dir=tmp_path), stop) is cast("Any", store)  # type: ignore[arg-type]
    assert stop.waited == [STORE_AGAIN_S] * 2
    fails = [StoreError("away")]
    stop.left = 1
    with pytest.raises(StoreError):
        fleet._opened_store(Settings(data_dir=tmp_path), stop)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chosen", "state", "works"),
    [
        (PUBLISHER, "publishing", ["export"]),
        ({"follow": "https://filter.example:8090", "key": "k"}, "following", ["follow"]),
    ],
)
def test_its_part_in_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any], state: str, works: list[str]
) -> None:
    process, _, _ = made(tmp_path, monkeypatch, **chosen)
    assert process._state() == state
    assert [work.__name__ for work in process._works()] == works


class Server:
    """Stands in for the endpoint's server; `fails` ends it at once, as an address in use does."""

    def __init__(self, *, fails: bool) -> None:
        self.fails, self.should_exit, self.ended = fails, False, False

    async def serve(self) -> None:
        while not self.fails and not self.should_exit:  # noqa: ASYNC110  the flag is uvicorn's
            await asyncio.sleep(0)
        for _ in range(9 * (not self.fails)):  # requests under way
            await asyncio.sleep(0)
        self.ended = True


@pytest.mark.timeout(30)
@pytest.mark.parametrize("fails", [False, True])
def test_it_serves_until_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    process, stop, _ = made(tmp_path, monkeypatch, **PUBLISHER)
    server = Server(fails=fails)
    worked = threading.Event()
    monkeypatch.setattr(process, "_server", lambda: server)

    def export() -> None:
        worked.set()
        if not fails:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(process, "export", export)
    told = list[dict[str, Any]]()
    removed = list[bool]()
    monkeypatch.setattr(
        process, "_status", SimpleNamespace(write=lambda **facts: told.append(facts), remove=lambda: removed.append(True))
    )
    before = signal.getsignal(signal.SIGTERM)
    waited, wait = list[float](), asyncio.wait

    def noting(tasks: Any, timeout: float) -> Any:
        waited.append(timeout)
        return wait(tasks, timeout=timeout)

    monkeypatch.setattr("gatewayfilter.processes.fleet.asyncio.wait", noting)
    try:
        if fails:
            monkeypatch.setattr(fleet, "TICK_S", 0.01)
            with pytest.raises(StartupError, match=r"cannot listen on fleet\.listen 127\.0\.0\.1:8090"):
                asyncio.run(process.run())
        else:
            asyncio.run(process.run())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert worked.is_set()
    assert waited == [3], "a server that does not end ends with the process"
    assert (stop.is_set(), server.should_exit, server.ended, removed) == (True, True, True, [True])
    assert told[0] == {"state": "publishing", "listen": "127.0.0.1:8090", "counters": {}}


def test_a_follower_serves_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, stop, _ = made(tmp_path, monkeypatch, follow="https://filter.example:8090", key="k")
    ended = asyncio.Event()
    ended.set()

    def follow() -> None: ...

    monkeypatch.setattr(process, "follow", follow)
    asyncio.run(process._run(ended))
    assert stop.is_set()
    assert not (tmp_path / "run" / "fleet.json").exists()


def test_reports_of_members_alone_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process, stop, _ = made(tmp_path, monkeypatch, 4, **PUBLISHER)
    monkeypatch.setattr(fleet, "members", lambda _: SimpleNamespace(all=lambda: [SimpleNamespace(name="north")]))
    written = list[set[str]]()
    fails: list[Exception] = [OSError(28, "No space left on device"), GatewayFilterError("broken")]

    def write(names: set[str]) -> None:
        written.append(names)
        if fails:
            raise fails.pop()

    with caplog.at_level(logging.DEBUG):
        process._keep_board(SimpleNamespace(write=write))  # type: ignore[arg-type]
    assert stop.waited == [TICK_S] * 4
    assert written == [{"north"}] * 3
    assert caplog.text.count("were not written") == 2


def test_the_server_has_tls_but_on_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[Any, ...]]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def found(*facts: Any) -> ssl.SSLContext:
        asked.append(facts)
        if facts[0]:
            raise OSError(2, "No such file")
        return context

    monkeypatch.setattr(fleet_server, "context_of", found)
    for listen, tls in (("127.0.0.1:8090", None), ("0.0.0.0:8091", context)):
        settings = Settings.model_validate({"data_dir": tmp_path, "fleet": {"listen": listen, "names": ["filter.lan"]}})
        server = fleet_server.fleet_server(settings, print)
        config = server.config
        assert (f"{config.host}:{config.port}", config.ssl) == (listen, tls)
        assert (config.limit_concurrency, config.h11_max_incomplete_event_size) == (fleet_server.MAX_CONNECTIONS, 16_384)
        assert config.log_level == "error"
        assert config.loaded
    assert asked == [(None, None, tmp_path / "ca", {"0.0.0.0", "filter.lan"})]
    settings = settings.model_copy(update={"fleet": settings.fleet.model_copy(update={"certificate": tmp_path / "no.pem"})})
    with pytest.raises(StartupError, match=r"fleet\.certificate\): .*No such file"):
        fleet_server.fleet_server(settings, print)


def test_what_the_server_answers_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, stop, _ = made(tmp_path, monkeypatch, 1, **PUBLISHER)
    given = list[Any]()
    monkeypatch.setattr(fleet_server, "fleet_server", lambda *found: noted(given, found, "server"))
    kept = threading.Event()
    monkeypatch.setattr(process, "_keep_board", lambda board: kept.set())
    assert process._server() == "server"  # type: ignore[comparison-overlap]
    assert kept.wait(10)
    assert given[0][0] is process._settings
    assert type(given[0][1]).__name__ == "FleetEndpoint"
    assert json.dumps(stop.waited) == "[]"
