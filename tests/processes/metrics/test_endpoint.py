"""GET /metrics: bounded, for its own names alone, and nothing but the counters."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from gatewayfilter.config import Settings, load
from gatewayfilter.errors import ConfigError
from gatewayfilter.processes.metrics import endpoint
from gatewayfilter.processes.metrics.endpoint import MAX_CONNECTIONS, MetricsEndpoint
from gatewayfilter.use_cases.metrics.exposition import StatusCollector


@pytest_asyncio.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    (tmp_path / "proxy-0.json").write_text(json.dumps({"pid": 1, "counters": {"requests": 5}, "secret": "s3cr3t"}))
    server = await asyncio.start_server(
        MetricsEndpoint(StatusCollector(tmp_path), "filter.lan").serve, "127.0.0.1", 0, limit=8192
    )
    async with server:
        yield server.sockets[0].getsockname()[1]


async def ask(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode("latin-1"))
    try:
        return (await reader.read()).decode()
    except ConnectionError:
        return ""
    finally:
        writer.close()


async def test_the_counters(port: int) -> None:
    for host in ("127.0.0.1", f"127.0.0.1:{port}", "[::1]:9190", "localhost:1", "Filter.LAN", "192.0.2.1"):
        answer = await ask(port, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")
        assert answer.startswith("HTTP/1.1 200"), host
        assert 'gatewayfilter_requests_total{process="proxy-0"} 5.0' in answer
        assert "s3cr3t" not in answer


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example:9190\r\n\r\n", 421),
        ("GET /metrics HTTP/1.0\r\n\r\n", 421),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET /metrics/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("nonsense\r\n\r\n", 400),
        ("GET /metrics HTTP/1.1\r\n\r\n", 400),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /" + "a" * 20_000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
)
async def test_what_is_refused(request_text: str, status: int, port: int) -> None:
    answer = await ask(port, request_text)
    assert answer.startswith(f"HTTP/1.1 {status}") or (status == 400 and not answer)
    assert "requests_total" not in answer


async def test_slow_clients_and_too_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "HEAD_TIMEOUT_S", 60.0)
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS)]
    for _, writer in held:
        writer.write(b"GET /met")
    await asyncio.sleep(0.1)
    assert await ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") == ""
    reader, writer = held.pop()  # the last of those that are served
    writer.write(b"rics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    monkeypatch.setattr(endpoint, "HEAD_TIMEOUT_S", 0.1)
    slow_reader, slow_writer = await asyncio.open_connection("127.0.0.1", port)
    slow_writer.write(b"GET /met")
    with suppress(ConnectionError):
        assert await slow_reader.read() == b""
    slow_writer.close()
    monkeypatch.setattr(endpoint, "HEAD_TIMEOUT_S", 60.0)
    for reader, writer in held:
        writer.write_eof()
        await reader.read()  # to the end: its place is free
        writer.close()
    assert (await ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")).startswith("HTTP/1.1 200")


@pytest.mark.timeout(30)
def test_it_serves_and_exports_until_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[Any]()
    polls = [None, None, signal.SIGTERM]

    class Collector:
        def __init__(self, folder: Path) -> None:
            assert folder == tmp_path / "run"

        def poll(self) -> None:
            done.append("poll")
            if (number := polls.pop(0)) is not None:
                signal.raise_signal(number)

    class Exporter:
        def __init__(self, _: object, url: str) -> None:
            done.append(url)

        def export(self) -> bool:
            done.append("export")
            return False

    monkeypatch.setattr(endpoint, "StatusCollector", Collector)
    monkeypatch.setattr(endpoint, "OtlpExporter", Exporter)
    monkeypatch.setattr(endpoint, "_POLL_S", 0.01)
    monkeypatch.setattr(endpoint, "begin_child", done.append)
    before = signal.getsignal(signal.SIGTERM)
    chosen: dict[str, Any] = {"otlp": "http://127.0.0.1:4318", "otlp_every_s": 3600, "listen": "127.0.0.1:0"}
    try:
        for metrics in (chosen, {"listen": "127.0.0.1:0"}):
            settings = Settings.model_validate({"data_dir": tmp_path, "metrics": metrics})
            endpoint.run_metrics(settings)
            assert done[0] is settings
            assert done.count("poll") == 3
            assert done.count("export") == done.count("http://127.0.0.1:4318") == ("otlp" in metrics)
            done.clear()
            polls[:] = [None, None, signal.SIGTERM]
        with socket.create_server(("127.0.0.1", 0)) as taken:
            chosen["listen"] = f"127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(SystemExit) as ended:
                endpoint.run_metrics(Settings.model_validate({"data_dir": tmp_path, "metrics": chosen}))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 2


def test_exports_follow_each_other_at_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[object]()

    async def sleep(pause_s: float) -> None:
        done.append(pause_s)
        if len(done) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(endpoint, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    exporter = SimpleNamespace(export=lambda: done.append("export"))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(endpoint._export_regularly(cast("Any", exporter), 15.0))
    assert done == ["export", 15.0] * 2


@pytest.mark.parametrize("value", ["9190", "host", "::1:9190", "127.0.0.1:99999"])
def test_addresses_that_are_none(value: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listen"):
        load(options={"metrics.listen": value}, environ={})


async def test_an_answer_is_not_kept_by_anybody(port: int) -> None:
    head, _, body = (await ask(port, "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")).partition("\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.lower().split("\r\n")[1:])
    assert fields.pop("content-type").startswith("text/plain")
    assert fields == {
        "content-length": str(len(body)), "cache-control": "no-store", "x-content-type-options": "nosniff", "connection": "close",
    }  # fmt: skip


async def test_a_client_that_reads_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "HEAD_TIMEOUT_S", 0.01)
    done = list[str]()

    async def drain() -> None:
        done.append("drain")
        await asyncio.Event().wait()

    writer = SimpleNamespace(
        write=lambda _: None, drain=drain, close=lambda: done.append("close"),
        transport=SimpleNamespace(abort=lambda: done.append("abort")),
    )  # fmt: skip
    reader = asyncio.StreamReader()
    reader.feed_data(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    served = MetricsEndpoint(StatusCollector(tmp_path), "filter.lan")
    await served.serve(reader, cast("Any", writer))
    assert done == ["drain", "abort", "close"]
    assert served._open == 0


async def test_a_client_that_ends_early_gets_no_answer(tmp_path: Path) -> None:
    written = list[bytes]()
    reader = asyncio.StreamReader()
    reader.feed_eof()
    writer = SimpleNamespace(write=written.append, close=lambda: None, transport=SimpleNamespace(abort=lambda: None))
    await MetricsEndpoint(StatusCollector(tmp_path), "filter.lan").serve(reader, cast("Any", writer))
    assert written == []
