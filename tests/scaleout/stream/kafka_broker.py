"""A real Apache Kafka in KRaft mode on loopback, from the artifacts of `make services`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from weakref import finalize

import pytest

from tests.held_ports import hold_port, port_of

ROOT = Path(__file__).parents[3]


def services_folder() -> Path:
    """Returns the folder of fetched servers; skips where there are none."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(cache) / "gatewayfilter" if cache else ROOT / ".cache") / "services"
    if not (folder / "kafka" / ".complete").exists() or shutil.which("java") is None:
        pytest.skip("make services has not been run")
    return folder


class KafkaBroker:
    """One broker that is its own controller."""

    def __init__(self, folder: Path) -> None:
        held = [hold_port(), hold_port()]
        for one in held:
            finalize(self, one.close)
        self.port, controller = map(port_of, held)
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._config = folder / "server.properties"
        self._config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://{self.address}\ncontroller.listener.names=CONTROLLER\n"
            f"log.dirs={folder / 'data'}\nnum.partitions=4\nauto.create.topics.enable=true\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=4\ngroup.initial.rebalance.delay.ms=0\n"
            "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000\n",
            encoding="ascii",
        )
        self._run("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(self._config)).wait(180)
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["java", "-Xmx512m", "-cp", f"{services_folder()}/kafka/*", *arguments], stdout=log, stderr=log, cwd=self._folder
            )

    def start(self) -> None:
        """Starts it, and waits until clients are told of it: its port is open before its controller lets it lead partitions."""
        self._process = self._run("kafka.Kafka", str(self._config))
        end = time.monotonic() + 180  # a busy machine starts a JVM slowly
        while time.monotonic() < end:
            if self._is_told_of():
                return
            time.sleep(0.2)
        raise AssertionError((self._folder / "log").read_text(encoding="utf-8")[-2000:])

    def _is_told_of(self) -> bool:
        from confluent_kafka import KafkaException  # noqa: PLC0415  it is an extra
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return bool(AdminClient({"bootstrap.servers": self.address}).list_topics(timeout=10).brokers)
        except (OSError, KafkaException):
            return False

    def kill(self) -> None:
        """Kills it with SIGKILL."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(30)
            self._process = None
