"""The contestants of the relay benchmark: workers of ours, `gatewayfilter run`, haproxy."""

import contextlib
import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from bench_proxy import free_port, wait_for, wait_until_serving, worker_parts
from filter_process import Filter
from proxy_peers import cpu_seconds

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import ListAction, Source
from gatewayfilter.proxy.worker import run_worker

SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass
class Contestant:
    """A process that connections go through.

    Attributes:
        port: where it takes connections.
        tunnels: whether a CONNECT has to come first; without, `port` leads to the first port of the origin, `secure_port` to
            the second.
        ca: who signs what it shows in place of the origin, `None` when it shows the origin's own.
    """

    name: str
    port: int
    pid: int
    tunnels: bool = True
    ca: Path | None = None
    secure_port: int = 0

    def cpu_s(self) -> float:
        """User and system time of all its threads so far."""
        return cpu_seconds(self.pid)

    def rss_mb(self) -> float:
        """Resident memory."""
        return psutil.Process(self.pid).memory_info().rss / 1e6


@contextlib.contextmanager
def worker(folder: Path, name: str, splice: Sequence[str]) -> Iterator[Contestant]:
    """Runs one worker that passes these hosts through."""
    folder.mkdir()
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("splice", ListAction.SPLICE)), splice)
    SnapshotFolder(folder / "snapshots").publish(builder.build())
    port = free_port()
    proxy = ProxySettings(
        listen=f"127.0.0.1:{port}", upstream_ca=folder.parent / "origin-ca.pem", max_connections_per_client=8192
    )
    process = SPAWN.Process(target=run_worker, args=(0, Settings(data_dir=folder, proxy=proxy), worker_parts))
    process.start()
    try:
        wait_for(port)
        wait_until_serving(folder / "run" / "proxy-0.json")
        assert process.pid is not None
        yield Contestant(name, port, process.pid, ca=folder / "ca" / "mitmproxy-ca-cert.pem")
    finally:
        process.terminate()
        process.join(15)


@contextlib.contextmanager
def forked(folder: Path) -> Iterator[Contestant]:
    """Runs `gatewayfilter run` with one worker, forked as always, for what memory really is."""
    running = Filter(folder, "--workers", "1", settings={"GATEWAYFILTER_LEARN__ENABLED": "false"})
    running.start()
    try:
        yield Contestant("gatewayfilter run", running.port, running.workers()[0].pid)
    finally:
        running.stop()


@contextlib.contextmanager
def haproxy(folder: Path, origins: Sequence[int]) -> Iterator[Contestant | None]:
    """Runs haproxy in TCP mode, one thread, kernel splicing on."""
    command = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if command is None:
        print("haproxy is not installed: its rows are missing", file=sys.stderr)
        yield None
        return
    port, secure_port = free_port(), free_port()
    (folder / "haproxy.cfg").write_text(
        "global\n nbthread 1\n maxconn 4000\ndefaults\n mode tcp\n timeout connect 9s\n timeout client 60s\n timeout server 60s\n"
        " option splice-auto\n"
        f"listen relay\n bind 127.0.0.1:{port}\n server origin 127.0.0.1:{origins[0]}\n"
        f"listen secure\n bind 127.0.0.1:{secure_port}\n server origin 127.0.0.1:{origins[1]}\n"
    )
    process = subprocess.Popen([command, "-db", "-q", "-f", str(folder / "haproxy.cfg")])
    try:
        wait_for(port)
        yield Contestant("haproxy, TCP mode", port, process.pid, tunnels=False, secure_port=secure_port)
    finally:
        process.terminate()
        process.wait(10)
