"""A state folder on a read-only disk, and one whose parts are removed while the filter runs."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.e2e_gateway import GatewayProcess, Origin, until

pytestmark = pytest.mark.slow

BLOCKED = "http://blocked.gatewayfilter.test/"


@contextmanager
def own_disk(place: Path) -> Iterator[tuple[str, ...]]:
    """Mounts a file system of its own in a mount namespace of its own; yields what runs a command in there."""
    place.mkdir()
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"mount -t tmpfs none {place} && echo ready && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        if holder.stdout.readline() != "ready\n":
            pytest.skip("mounting in a namespace is not allowed")
        yield ("nsenter", "--target", str(holder.pid), "--mount", "--")
    finally:
        holder.stdin.close()
        holder.wait(60)
        holder.stdout.close()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nsenter") is None, reason="needs root")
def test_a_read_only_disk(tmp_path: Path, http_site: Origin) -> None:
    place = tmp_path / "disk"
    with own_disk(place) as inside:
        gateway = GatewayProcess(place / "state", proxy__workers="2")
        gateway.prefix = inside
        gateway.state = Path(f"/proc/{inside[2]}/root{place}/state")
        with gateway:
            assert gateway.get(f"{http_site.base}/garden/1").status == 200
            # Over it, because a disk with files open for writing is not remounted by hand, only by a fault; made elsewhere, where
            # nobody opens a file before it is read-only.
            made = tmp_path / "read-only"
            made.mkdir()
            subprocess.run([*inside, "mount", "--bind", str(place), str(made)], check=True)
            subprocess.run([*inside, "mount", "-o", "remount,ro,bind", str(made)], check=True)
            subprocess.run([*inside, "mount", "--move", str(made), str(place)], check=True)
            before = [child.pid for child in (gateway.child("proxy-0"), gateway.child("proxy-1"))]
            for pid in before:
                os.kill(pid, 9)
            until("a worker", lambda: answers(gateway), 20.0)
            assert gateway.get(f"{http_site.base}/garden/2").status == 200
            checked = gateway.cli("check", BLOCKED)
            assert (checked.returncode, checked.stderr) == (1, "")
            assert gateway.stop() == 0
            gateway.start()  # on the read-only disk
            assert gateway.get(BLOCKED).status == 403
            assert gateway.get(f"{http_site.base}/garden/3").status == 200
            checked = gateway.cli("check", BLOCKED)
            assert (checked.returncode, checked.stderr) == (1, "")
            assert gateway.stop() == 0
            told = gateway.log.read_text()
            assert "Traceback" not in told
            assert "is read-only: filtering without learning or logging" in told
            subprocess.run([*inside, "umount", str(place)], check=True)
            gateway.start()
            assert gateway.cli("list", "add", "--block", "lucky.test").returncode == 0
            until("block", lambda: gateway.get("http://lucky.test/").status == 403)


@contextmanager
def suspended(gateway: GatewayProcess) -> Iterator[None]:
    """Stops all processes of the filter meanwhile."""
    assert gateway.process is not None
    supervisor = psutil.Process(gateway.process.pid)
    family = [supervisor, *supervisor.children(recursive=True)]
    for member in family:
        with suppress(psutil.NoSuchProcess):  # the learner has work done by processes that end
            member.suspend()
    try:
        yield
    finally:
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.resume()


def answers(gateway: GatewayProcess) -> bool:
    """Returns whether a worker answers."""
    try:
        return gateway.get(BLOCKED).status == 403
    except OSError:
        return False


@pytest.mark.parametrize("part", ["folder", "file"])
def test_a_ca_that_is_removed_is_put_back(state: Path, part: str) -> None:
    with GatewayProcess(state, proxy__workers="2") as gateway:
        ca = state / "ca"
        content = (ca / "mitmproxy-ca.pem").read_bytes()
        if part == "folder":
            shutil.rmtree(ca)
        else:
            (ca / "mitmproxy-ca.pem").unlink()
        first = gateway.child("proxy-0")
        first.kill()
        until("new worker", lambda: gateway.status("proxy-0").get("pid", first.pid) != first.pid, 15.0)
        until("serving", lambda: gateway.status("proxy-0").get("state") == "serving", 15.0)
        assert (ca / "mitmproxy-ca.pem").read_bytes() == content
        assert "it was put back" in gateway.log.read_text()


@pytest.mark.parametrize("fate", ["lost", "older"])
def test_a_database_that_is_lost_or_replaced_while_it_runs(state: Path, fate: str) -> None:
    """People's rules come back from the snapshot, or are those of the older copy; what is added then is in force at once."""

    def blocked(host: str) -> bool:
        return gateway.get(f"http://{host}/").reason == "manual-block"

    def add(host: str) -> None:
        done = gateway.cli("list", "add", "--block", host)
        assert done.returncode == 0, done.stderr

    with GatewayProcess(state, proxy__workers="2") as gateway:
        database = state / "gatewayfilter.sqlite3"
        add("first.test")
        older = state.with_name("older.sqlite3")
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(older)) as copy:
            source.backup(copy)
        add("second.test")
        assert gateway.cli("publish").returncode == 0
        until("block", lambda: blocked("second.test"))
        with suspended(gateway):  # nobody makes a database, or uses one of two, between these steps
            for suffix in ("", "-wal", "-shm"):
                database.with_name(database.name + suffix).unlink(missing_ok=True)
            if fate == "older":
                older.rename(database)
        until("another database", database.exists)
        add("third.test")
        until("block", lambda: all(blocked("third.test") for _ in range(6)), 30.0)
        kept = {"first.test", "third.test"} | ({"second.test"} if fate == "lost" else set())
        until("rules", lambda: all(blocked(host) for host in kept for _ in range(6)))
        until("end of others", lambda: blocked("second.test") == (fate == "lost"), 30.0)
        assert {rule["pattern"].removeprefix(".") for rule in gateway.json("list", "show")} >= kept
        assert "Traceback" not in gateway.log.read_text()


def test_a_log_of_the_database_that_is_cut_while_it_runs(state: Path, http_site: Origin) -> None:
    """What it held is lost; log, commands and rules go on without a restart."""
    with GatewayProcess(state, proxy__workers="2") as gateway:
        database = state / "gatewayfilter.sqlite3"
        assert gateway.cli("list", "add", "--block", "first.test").returncode == 0
        assert gateway.cli("publish").returncode == 0
        until("block", lambda: gateway.get("http://first.test/").reason == "manual-block")
        until("log", lambda: "first.test" in gateway.cli("log", "search", "first.test").stdout)
        os.truncate(database.with_name(f"{database.name}-wal"), 0)
        done = gateway.cli("list", "add", "--block", "second.test")
        assert done.returncode == 0, done.stderr
        until("block", lambda: all(gateway.get("http://second.test/").reason == "manual-block" for _ in range(6)), 30.0)
        assert gateway.get(f"{http_site.base}/garden/1").status == 200
        until("log", lambda: "/garden/1" in gateway.cli("log", "search", "/garden/1").stdout)
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("pragma wal_checkpoint(passive)")
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert "was cut by another program" in gateway.log.read_text()
        assert "Traceback" not in gateway.log.read_text()
