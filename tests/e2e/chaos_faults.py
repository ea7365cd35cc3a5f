"""The faults of `make chaos` other than kills: what each takes away, and how it is given back."""

import os
import random
import resource
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from gatewayfilter.engine.snapshot.format import read_sections
from tests.e2e.chaos_box import Box
from tests.e2e.e2e_gateway import GatewayProcess, until

COMMAND_S = 600.0
"""For a machine that is busy with other things."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault acts on.

    Attributes:
        gateway: the filter that runs.
        box: its surroundings.
        chosen: of all that is random.
        lasts_s: how long a fault lasts.
    """

    gateway: GatewayProcess
    box: Box
    chosen: random.Random
    lasts_s: float

    @property
    def database(self) -> Path:
        """The file of the database."""
        return self.gateway.state / "gatewayfilter.sqlite3"

    @property
    def snapshot(self) -> Path:
        """The file of the snapshot in force."""
        return (self.gateway.state / "snapshots" / "current").resolve()

    def workers(self) -> list[psutil.Process]:
        """The proxy workers that run."""
        return [self.child(name) for name in ("proxy-0", "proxy-1")]

    def child(self, name: str) -> psutil.Process:
        """A process as the supervisor has it: what was killed leaves its own status file behind."""

        def pid() -> int | None:
            found: int | None = self.gateway.status("supervisor").get("children", {}).get(name, {}).get("pid")
            return found if found and psutil.pid_exists(found) else None

        return psutil.Process(until(f"process {name}", pid))

    def kill(self, *processes: psutil.Process) -> None:
        """Kills processes."""
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def command(self, *arguments: str) -> None:
        """Runs a command that must work."""
        done = self.gateway.cli(*arguments, timeout_s=COMMAND_S)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"

    def refused(self, *arguments: str) -> None:
        """Runs a command that must end with a sentence."""
        done = self.gateway.cli(*arguments, timeout_s=COMMAND_S)
        assert done.returncode, f"{' '.join(arguments)} is said to have worked"
        assert "Traceback" not in done.stderr, done.stderr


type Inflict = Callable[[Scene], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        name: of the report.
        inflict: begins it, and ends it.
        serves: whether pages are answered while it lasts; what is blocked is blocked always.
        gap: whether it may leave no worker for a moment.
        accepts: whether connections are taken while it lasts.
        logs: whether each request that was answered while it lasted is in the log afterwards.
        boxed: whether it needs namespaces.
        brief: whether it belongs to the short form.
    """

    name: str
    inflict: Inflict
    serves: bool = True
    gap: bool = False
    accepts: bool = True
    logs: bool = True
    boxed: bool = False
    brief: bool = True


@contextmanager
def _full_disk(scene: Scene) -> Iterator[None]:
    filler = scene.box.folder / "filler"
    try:
        with filler.open("wb") as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        scene.refused("publish")
        time.sleep(scene.lasts_s)
        yield
    finally:
        filler.unlink(missing_ok=True)


@contextmanager
def _read_only_disk(scene: Scene) -> Iterator[None]:
    place, made = str(scene.box.folder), scene.box.folder.with_name("read-only")
    made.mkdir(exist_ok=True)
    # Over it: a disk with files open for writing is not remounted by hand, only by a fault.
    for step in (["--bind", place, str(made)], ["-o", "remount,ro,bind", str(made)], ["--move", str(made), place]):
        subprocess.run(["mount", *step], check=True)
    try:
        scene.kill(scene.workers()[0])
        scene.refused("list", "add", "--block", "refused.test")
        until("worker on a read-only disk", lambda: scene.gateway.status("proxy-1").get("state") == "serving")
        time.sleep(scene.lasts_s)
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def _locked_database(scene: Scene) -> Iterator[None]:
    with closing(sqlite3.connect(scene.database, isolation_level=None, timeout=30)) as connection:
        connection.execute("begin exclusive")
        time.sleep(3 * scene.lasts_s)
        yield


@contextmanager
def _lost_database(scene: Scene) -> Iterator[None]:
    scene.command("publish")
    for suffix in ("", "-wal", "-shm"):
        scene.database.with_name(scene.database.name + suffix).unlink(missing_ok=True)
    until("another database", scene.database.exists)
    yield


@contextmanager
def _replaced_database(scene: Scene) -> Iterator[None]:
    older = scene.box.folder / "older.sqlite3"
    with closing(sqlite3.connect(scene.database)) as source, closing(sqlite3.connect(older)) as copy:
        source.backup(copy)
    time.sleep(scene.lasts_s)
    for suffix in ("-wal", "-shm"):
        scene.database.with_name(scene.database.name + suffix).unlink(missing_ok=True)
    older.rename(scene.database)
    yield


@contextmanager
def _damaged_database(scene: Scene) -> Iterator[None]:
    """The only fault that the filter does not mend by itself: a person stops it, and has the database made again."""
    scene.command("publish")
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = scene.database.stat().st_size
    with scene.database.open("r+b") as file:
        for _ in range(20):
            file.seek(4096 * scene.chosen.randrange(1, size // 4096))
            file.write(scene.chosen.randbytes(2048))
        if scene.chosen.random() < 0.5:
            file.seek(0)
            file.write(bytes(100))
    scene.kill(scene.workers()[0], scene.child("learner"))
    until("worker", lambda: scene.gateway.status("proxy-0").get("state") == "serving")
    time.sleep(scene.lasts_s)
    yield
    scene.gateway.stop()
    scene.command("db", "repair")
    scene.gateway.start()


@contextmanager
def _until_made_anew(scene: Scene, *killed: psutil.Process) -> Iterator[None]:
    """Kills workers, which then meet the damage, and waits for the snapshot that takes the place of the damaged one."""
    damaged = scene.snapshot
    scene.kill(*killed)
    yield
    until("snapshot made anew", lambda: scene.snapshot != damaged, 30.0)


@contextmanager
def _flipped_snapshot(scene: Scene) -> Iterator[None]:
    bloom = read_sections(scene.snapshot.read_bytes())["bloom"]
    with scene.snapshot.open("r+b") as file:
        file.seek(bloom.offset + 24)
        file.write(bytes(bloom.length - 24))
    with _until_made_anew(scene, scene.chosen.choice(scene.workers())):
        yield


@contextmanager
def _truncated_snapshot(scene: Scene) -> Iterator[None]:
    os.truncate(scene.snapshot, scene.snapshot.stat().st_size - 100)
    with _until_made_anew(scene, scene.chosen.choice(scene.workers())):
        yield


@contextmanager
def _all_snapshots_truncated(scene: Scene) -> Iterator[None]:
    for path in scene.snapshot.parent.glob("*.gfs"):
        os.truncate(path, path.stat().st_size // 2)
    with _until_made_anew(scene, *scene.workers()):
        yield


@contextmanager
def _no_ca(scene: Scene) -> Iterator[None]:
    shutil.rmtree(scene.gateway.state / "ca")
    scene.kill(scene.chosen.choice(scene.workers()))
    yield


@contextmanager
def _clock(scene: Scene) -> Iterator[None]:
    for offset_s in (7200, -86_400, 50 * 86_400):
        scene.box.set_clock(offset_s)
        time.sleep(1.0 + scene.lasts_s)  # the library reads the file once a second
    try:
        yield
    finally:
        scene.box.set_clock(0)
        time.sleep(1.1)


@contextmanager
def _away(scene: Scene, take: Callable[[], None], give_back: Callable[[], None]) -> Iterator[None]:
    """Takes something of the surroundings away for a while."""
    take()
    try:
        time.sleep(scene.lasts_s)
        yield
    finally:
        give_back()


def _no_dns(scene: Scene) -> AbstractContextManager[None]:
    return _away(scene, lambda: scene.box.resolve(answers=False), lambda: scene.box.resolve(answers=True))


def _no_origin(scene: Scene) -> AbstractContextManager[None]:
    return _away(scene, scene.box.end_origin, scene.box.start_origin)


def _no_network(scene: Scene) -> AbstractContextManager[None]:
    return _away(scene, lambda: scene.box.link(up=False), lambda: scene.box.link(up=True))


@contextmanager
def _limited(scene: Scene, limit: int, value: Callable[[psutil.Process], int]) -> Iterator[None]:
    """Limits all processes that were forked; those that end and come again are not limited."""
    before = {process: process.rlimit(limit) for process in (*scene.workers(), scene.child("learner"))}
    for process, (_, hard) in before.items():
        process.rlimit(limit, (min(value(process), hard) if hard > 0 else value(process), hard))
    try:
        yield
    finally:
        for process, bounds in before.items():
            with suppress(psutil.NoSuchProcess):
                process.rlimit(limit, bounds)


@contextmanager
def _no_descriptors(scene: Scene) -> Iterator[None]:
    host, _, port = scene.gateway.address.rpartition(":")
    opened: list[socket.socket] = []
    with _limited(scene, resource.RLIMIT_NOFILE, lambda process: process.num_fds() + 6):
        try:
            for _ in range(60):
                opened.append(socket.create_connection((host, int(port)), 5))
                opened[-1].sendall(b"GET http://blocked.gatewayfilter.test/ HTTP/1.1\r\n")
            time.sleep(scene.lasts_s)
            yield
        finally:
            for one in opened:
                one.close()


@contextmanager
def _no_memory(scene: Scene) -> Iterator[None]:
    with _limited(scene, resource.RLIMIT_AS, lambda process: process.memory_info().vms + (1 << 20)):
        time.sleep(2 * scene.lasts_s)
        yield


FAULTS = (
    Fault("full disk", _full_disk, boxed=True),
    Fault("read-only disk", _read_only_disk, logs=False, boxed=True),
    Fault("locked database", _locked_database),
    Fault("lost database", _lost_database, logs=False, brief=False),
    Fault("older database", _replaced_database, logs=False, brief=False),
    Fault("damaged database", _damaged_database, gap=True, logs=False, brief=False),
    Fault("flipped snapshot", _flipped_snapshot, logs=False, brief=False),
    Fault("truncated snapshot", _truncated_snapshot, logs=False, brief=False),
    Fault("all snapshots truncated", _all_snapshots_truncated, gap=True, logs=False, brief=False),
    Fault("no CA", _no_ca, logs=False, brief=False),
    Fault("clock", _clock, boxed=True, brief=False),
    Fault("no DNS", _no_dns, serves=False, boxed=True),
    Fault("no origin", _no_origin, serves=False),
    Fault("no network", _no_network, serves=False, boxed=True),
    Fault("no descriptors", _no_descriptors, gap=True, accepts=False),
    Fault("no memory", _no_memory, gap=True, logs=False),
)
