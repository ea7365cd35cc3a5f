"""Workers as processes: started, shared address, status, drained on SIGTERM."""

import http.client
import json
import logging
import multiprocessing
import resource
import socket
import time
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import psutil
import pytest
from mitmproxy.addons.disable_h2c import DisableH2C
from mitmproxy.test.tflow import tflow

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.errors import SnapshotError
from gatewayfilter.proxy.components import WorkerComponents
from gatewayfilter.proxy.file_limit import raise_file_limit
from gatewayfilter.proxy.worker import run_worker
from gatewayfilter.settings.log import LogLevel, LogSettings
from tests.proxy.proxy_fakes import Gateway


def build(settings: Settings) -> WorkerComponents:
    gateway = Gateway()
    flag = settings.data_dir / "flag"
    return WorkerComponents(
        gateway.addon(settings.proxy),
        gateway.counters,
        start=lambda: _note(flag, "started"),
        stop=lambda: _note(flag, "stopped"),
        facts=lambda: {"feed_seq": 7},
    )


def _note(flag: Path, text: str) -> None:
    flag.write_text(text)


def build_without_snapshot(_settings: Settings) -> WorkerComponents:
    raise SnapshotError("there is no good snapshot")


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with socket.socket() as holder:  # as the supervisor holds the address
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield Settings(data_dir=tmp_path, proxy=ProxySettings(listen=f"127.0.0.1:{holder.getsockname()[1]}"))


def start(index: int, settings: Settings) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=run_worker, args=(index, settings, build))
    process.start()
    return process


def status_of(index: int, settings: Settings) -> dict[str, Any]:
    """Waits until the worker serves."""
    path = settings.data_dir / "run" / f"proxy-{index}.json"
    for _ in range(9000):
        if path.exists() and (status := json.loads(path.read_text()))["state"] == "serving":
            return dict(status)
        time.sleep(0.01)
    pytest.fail("the worker does not serve")


@pytest.mark.slow
def test_two_workers_share_an_address_and_drain(settings: Settings) -> None:
    workers = [start(index, settings) for index in range(2)]
    try:
        statuses = [status_of(index, settings) for index in range(2)]
        assert [status["listen"] for status in statuses] == [settings.proxy.listen] * 2
        assert [status["pid"] for status in statuses] == [worker.pid for worker in workers]
        assert statuses[0]["feed_seq"] == 7
        assert statuses[0]["rss_bytes"] > 10_000_000
        assert statuses[0]["counters"] == {}
        soft, hard = psutil.Process(workers[0].pid).rlimit(psutil.RLIMIT_NOFILE)
        assert soft == min(hard, 65_536)
        assert (settings.data_dir / "flag").read_text() == "started"
        host, _, port = settings.proxy.listen.rpartition(":")
        for _ in range(8):  # whichever worker gets it
            connection = http.client.HTTPConnection(host, int(port), timeout=30)
            connection.request("GET", "http://blocked.example/")
            assert connection.getresponse().status == 403
            connection.close()
    finally:
        for worker in workers:
            worker.terminate()
            worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert (settings.data_dir / "flag").read_text() == "stopped"
    assert list((settings.data_dir / "run").iterdir()) == []


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(1024, 4096, 4096), (1024, 1_000_000, 65_536), (1024, resource.RLIM_INFINITY, 65_536), (4096, 4096, None)],
)
def test_open_files_are_allowed_up_to_the_hard_limit(
    soft: int, hard: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    raise_file_limit()
    assert limits == ([] if raised is None else [(raised, hard)])


@pytest.fixture(autouse=True)
def own_filters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No filter and no level of the log that another worker of this process has left, or that one of these leaves."""
    monkeypatch.setattr(logging.getLogger(), "filters", [])
    level = logging.getLogger("mitmproxy").level
    yield
    logging.getLogger("mitmproxy").setLevel(level)


def test_a_worker_that_cannot_start_says_why_and_exits_with_2(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        run_worker(0, settings, build_without_snapshot)
    assert ended.value.code == 2
    assert [record.getMessage() for record in caplog.records] == ["there is no good snapshot"]


@pytest.mark.parametrize("level", LogLevel)
def test_a_request_writes_no_line_of_mitmproxys(settings: Settings, level: LogLevel, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SystemExit):
        run_worker(0, settings.model_copy(update={"log": LogSettings(level=level)}), build_without_snapshot)
    caplog.clear()
    flow = tflow()
    flow.request.headers["upgrade"] = "h2c"
    DisableH2C().request(flow)
    logging.error("said")  # noqa: LOG015  as an addon would
    assert "upgrade" not in flow.request.headers
    assert ("h2c" in caplog.text, "said" in caplog.text) == (level is LogLevel.DEBUG, True)


def test_an_address_in_use_is_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(SystemExit) as ended:
            run_worker(0, Settings(data_dir=tmp_path, proxy=ProxySettings(listen=listen)), build)
    assert ended.value.code == 2
    assert any("failed to listen" in record.getMessage() and record.exc_info is None for record in caplog.records)
    assert (tmp_path / "flag").read_text() == "stopped"
