"""Redis servers of the tests' own, on loopback with free ports: gone with their context."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import Redis, RedisError
from redis.exceptions import RedisClusterException

from tests.e2e.e2e_gateway import MOST_STALLED_S, stalled_s
from tests.held_ports import HOST, hold_port, port_of


def why_not() -> str:
    """Returns why no server can be started here; empty when one can."""
    return "" if shutil.which("redis-server") else "no redis-server on this machine"


def held_ports(stack: ExitStack, count: int) -> list[int]:
    """Returns ports that are held until the end of the stack; a server may listen on them and on its bus port, 10,000 above."""
    ports: list[int] = []
    while len(ports) < count:
        with ExitStack() as tried:
            try:
                port = port_of(first := tried.enter_context(hold_port()))
                bus = tried.enter_context(hold_port(port + 10_000)) if port <= 55_000 else None
            except OSError:
                continue
            if bus is not None:
                tried.pop_all()
                stack.enter_context(first)
                stack.enter_context(bus)
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
        return Redis(host=HOST, port=self.port, socket_timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = _start(self.port, self.folder, self.options)


def _start(port: int, folder: Path, options: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    command = ["redis-server", "--port", str(port), "--bind", HOST, "--dir", str(folder), "--save", "", *options]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    until = time.monotonic() + 60
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
    with ExitStack() as stack:
        port = port or held_ports(stack, 1)[0]
        running = Server(port, folder, options, _start(port, folder, options))
        stack.callback(running.kill)
        yield running


@contextmanager
def cluster(folder: Path, masters: int = 3, *, replicas: bool = True) -> Iterator[list[Server]]:
    """Runs a cluster, masters first; each has one replica unless without. None is taken for dead before `notice_deaths`."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "10000", "--appendonly", "yes", "--appendfsync", "no")
    with ExitStack() as stack:
        ports = held_ports(stack, masters * (2 if replicas else 1))
        servers = [stack.enter_context(server(folder / str(port), port, *options)) for port in ports]
        addresses = [f"{HOST}:{port}" for port in ports]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"]
        done = subprocess.run(
            [*command, "--cluster-replicas", "1"] if replicas else command,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        _wait_for_cluster(servers, masters, replicas=replicas)
        yield servers


def _wait_for_cluster(servers: list[Server], masters: int, *, replicas: bool) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            states = [one.client().execute_command("CLUSTER INFO")["cluster_state"] for one in servers]
            synced = all(one.client().info("replication").get("master_link_status", "up") == "up" for one in servers) and sum(
                one.client().info("replication")["role"] == "slave" for one in servers
            ) == (masters if replicas else 0)
        except (RedisError, RedisClusterException):
            time.sleep(0.1)
            continue
        if synced and states == ["ok"] * len(servers):
            return
        time.sleep(0.1)
    raise AssertionError("the cluster does not come up")


def notice_deaths(servers: list[Server]) -> None:
    """Has the servers of a cluster take one for dead that is silent for a second; on a busy machine it may be a living one."""
    for one in servers:
        with one.client() as client:
            client.config_set("cluster-node-timeout", 1000)


def masters_of(servers: list[Server]) -> list[Server]:
    """Returns those that are masters now."""
    return [one for one in servers if one.client().info("replication")["role"] == "master"]


def wait_for_replicas(masters: list[Server]) -> None:
    """Waits until the replicas of masters have acknowledged all that was written so far."""
    until = time.monotonic() + 60
    for master in masters:
        with master.client() as client:
            written = client.info("replication")["master_repl_offset"]
            while time.monotonic() < until:
                told = client.info("replication")
                replicas = [told[f"slave{number}"] for number in range(told["connected_slaves"])]
                if replicas and all(one["offset"] >= written for one in replicas):
                    break
                time.sleep(0.05)
            else:
                raise AssertionError("the replicas lag")


def quiet_clock() -> Callable[[], float]:
    """Returns what tells the seconds from now on, without those in which a busy machine had no CPU for all that was to run."""
    began, stalled_before = time.monotonic(), stalled_s()
    return lambda: time.monotonic() - began - min(stalled_s() - stalled_before, MOST_STALLED_S)


def cluster_url(servers: list[Server]) -> str:
    """Returns the URL of a cluster, as the settings have it."""
    return "redis-cluster://" + ",".join(f"{HOST}:{one.port}" for one in servers)
