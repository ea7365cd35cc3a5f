"""Redis servers of the tests' own, on loopback with free ports: gone with their context."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import Redis, RedisError
from redis.exceptions import RedisClusterException

HOST = "127.0.0.1"


def why_not() -> str:
    """Returns why no server can be started here; empty when one can."""
    return "" if shutil.which("redis-server") else "no redis-server on this machine"


def free_ports(count: int) -> list[int]:
    """Free ports whose cluster bus port (10,000 above) is free, too."""
    ports: list[int] = []
    while len(ports) < count:
        with ExitStack() as stack:
            try:
                first = stack.enter_context(socket.create_server((HOST, 0)))
                port = first.getsockname()[1]
                if port > 55_000 or port in ports:
                    continue
                stack.enter_context(socket.create_server((HOST, port + 10_000)))
            except OSError:
                continue
            ports.append(port)
    return ports


@dataclass
class Server:
    """A running server.

    Attributes:
        port: on loopback.
        process: of it, to be killed by tests.
    """

    port: int
    folder: Path
    options: tuple[str, ...]
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    def client(self) -> "Redis":
        return Redis(host=HOST, port=self.port, socket_timeout=5)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = _start(self.port, self.folder, self.options)


def _start(port: int, folder: Path, options: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    command = ["redis-server", "--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", "", *options]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            with Redis(host=HOST, port=port, socket_timeout=5) as client:
                client.ping()
        except RedisError:
            time.sleep(0.02)
        else:
            return process
    process.kill()
    raise AssertionError((folder / "log").read_text())


@contextmanager
def server(folder: Path, port: int = 0, *options: str) -> Iterator[Server]:
    """Runs one server."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_ports(1)[0]
    running = Server(port, folder, options, _start(port, folder, options))
    try:
        yield running
    finally:
        running.kill()


@contextmanager
def cluster(folder: Path, masters: int = 3, *, replicas: bool = True) -> Iterator[list[Server]]:
    """Runs a cluster, masters first; each has one replica unless without."""
    ports = free_ports(masters * (2 if replicas else 1))
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--appendonly", "yes", "--appendfsync", "no")
    with ExitStack() as stack:
        servers = [stack.enter_context(server(folder / str(port), port, *options)) for port in ports]
        addresses = [f"{HOST}:{port}" for port in ports]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"]
        done = subprocess.run(
            [*command, "--cluster-replicas", "1"] if replicas else command,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        _wait_for_cluster(servers, masters, replicas=replicas)
        yield servers


def _wait_for_cluster(servers: list[Server], masters: int, *, replicas: bool) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            states = [one.client().execute_command("CLUSTER INFO")["cluster_state"] for one in servers]
            synced = all(one.client().info("replication").get("master_link_status", "up") == "up" for one in servers) and sum(
                one.client().info("replication")["role"] == "slave" for one in servers
            ) == (masters if replicas else 0)
        except (RedisError, RedisClusterException):
            continue
        if synced and states == ["ok"] * len(servers):
            return
        time.sleep(0.1)
    raise AssertionError("the cluster does not come up")


def cluster_url(servers: list[Server]) -> str:
    """Returns the URL of a cluster, as the settings have it."""
    return "redis-cluster://" + ",".join(f"{HOST}:{one.port}" for one in servers)
