"""Chaos: kill -9 of random processes of a running filter under traffic. `make chaos`; a short form is a slow test.

Each kill is followed by checks of what must always hold: what is blocked stays blocked, what is allowed stays allowed
with the right body, rules that were acknowledged stay in force, workers come back, and nothing is left over at the end.
"""

import argparse
import random
import socket
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.e2e.e2e_gateway import GatewayProcess, Origin, until

BLOCKED = "http://blocked.gatewayfilter.test/"
BODY = b"<p>" + b"beans in May " * 40 + b"</p>"
RECOVERY_S = 60.0
"""After this a process that is not back is a fault; the times are in the report."""
KINDS = ("worker", "learner", "fork server", "supervisor", "other", "both workers")
WEIGHTS = (8, 4, 4, 1, 3, 1)


@dataclass(slots=True)
class Findings:
    """What came of a run. Times in seconds."""

    kills: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    broken: int = 0
    faults: list[str] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    unserved_s: float = 0.0
    unserved_without_supervisor_kills_s: float = 0.0
    added: int = 0
    elapsed_s: float = 0.0

    def report(self) -> str:
        """Returns the findings as lines of text."""
        lines = [f"{sum(self.kills.values())} kills in {self.elapsed_s:.0f} s: {dict(self.kills)}"]
        lines += [f"{self.exchanges} exchanges, {self.broken} broken connections, {self.added} rules added and checked"]
        lines += [f"no worker served for {self.unserved_s:.1f} s, of it without a kill of the supervisor or of all workers "]
        lines[-1] += f"{self.unserved_without_supervisor_kills_s:.1f} s"
        for kind, taken in self.recoveries.items():
            times = sorted(taken)
            lines.append(f"back after {kind}: median {times[len(times) // 2]:.1f} s, most {times[-1]:.1f} s")
        return "\n".join([*lines, *(self.faults or ["no fault"])])


class Chaos:
    """One run.

    Args:
        folder: empty, for the state.
        seed: of what is killed, and when.
        clients: how many request in a loop.
    """

    def __init__(self, folder: Path, seed: int, clients: int = 4) -> None:
        self.findings = Findings()
        self._random = random.Random(seed)
        self._origin = Origin({f"/{number}": ("text/html", BODY) for number in range(50)})
        self._gateway = GatewayProcess(folder / "state", proxy__workers="2", proxy__listen=f"127.0.0.1:{_free_port()}")
        self._stop = threading.Event()
        self._served_at = time.monotonic()
        self._excused = False
        self._clients = [threading.Thread(target=self._request, args=(seed + number,)) for number in range(clients)]

    def run(self, kills: int, most_s: float) -> Findings:
        """Kills until the number or the time is reached, then checks what is left."""
        began = time.monotonic()
        try:
            self._gateway.start()
            self._served_at = time.monotonic()
            for client in self._clients:
                client.start()
            while sum(self.findings.kills.values()) < kills and time.monotonic() - began < most_s:
                self._round(sum(self.findings.kills.values()))
            self._stop.set()
            for client in self._clients:
                client.join()
            self._end()
        finally:
            self._stop.set()
            self._origin.close()
            self.findings.elapsed_s = time.monotonic() - began
        return self.findings

    def _round(self, number: int) -> None:
        if number % 5 == 0:
            self._add_rule(f"rule{number}.test")
        (kind,) = self._random.choices(KINDS, WEIGHTS)
        victims = list(self._victims(kind))
        if not victims:
            return
        # A kill of the supervisor, of all workers, or of the only one that serves just then leaves none: that is excused.
        self._excused = kind in {"supervisor", "both workers"}
        before = self._pids()
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        self.findings.kills[kind] += 1
        began = time.monotonic()
        if kind == "supervisor":
            self._restart()
        try:
            until(f"recovery after a kill of the {kind}", lambda: self._is_whole(before, victims), RECOVERY_S)
        except AssertionError as error:
            self.findings.faults.append(str(error))
        self.findings.recoveries.setdefault(kind, []).append(time.monotonic() - began)
        self._excused = False
        time.sleep(self._random.uniform(0.1, 0.6))

    def _victims(self, kind: str) -> Iterator[psutil.Process]:
        pids = self._pids()
        assert self._gateway.process is not None
        if kind == "supervisor":
            yield psutil.Process(self._gateway.process.pid)
        elif kind in {"worker", "both workers"}:
            names = ("proxy-0", "proxy-1") if kind != "worker" else (self._random.choice(("proxy-0", "proxy-1")),)
            for name in names:
                if pids.get(name):
                    with suppress(psutil.NoSuchProcess):
                        yield psutil.Process(pids[name])
        elif kind == "learner":
            if pids.get("learner"):
                with suppress(psutil.NoSuchProcess):
                    yield psutil.Process(pids["learner"])
        else:
            known = set(pids.values())
            wanted = "forkserver" if kind == "fork server" else "resource_tracker"
            with suppress(psutil.NoSuchProcess):
                for process in psutil.Process(self._gateway.process.pid).children(recursive=True):
                    if process.pid not in known and wanted in " ".join(process.cmdline()):
                        yield process
                        return

    def _pids(self) -> dict[str, int]:
        children = self._gateway.status("supervisor").get("children", {})
        return {name: int(child["pid"]) for name, child in children.items() if child["pid"]}

    def _is_whole(self, before: dict[str, int], victims: list[psutil.Process]) -> bool:
        now = self._pids()
        gone = {victim.pid for victim in victims}
        if set(now) < set(before) or gone & set(now.values()):
            return False
        states = [self._gateway.status(name) for name in ("proxy-0", "proxy-1")]
        return all(
            state.get("state") == "serving" and state.get("pid") == now.get(f"proxy-{index}")
            for index, state in enumerate(states)
        )

    def _restart(self) -> None:
        assert self._gateway.process is not None
        self._gateway.process.wait(10)
        assert self._gateway.process.stdout is not None
        self._gateway.process.stdout.close()
        for _ in range(3):  # on a machine that is busy with other things a start may outlast the limit of the tests
            try:
                self._gateway.start()
            except AssertionError as error:
                self.findings.faults.append(f"start after a kill of the supervisor: {error}")
            else:
                return

    def _add_rule(self, host: str) -> None:
        if self._gateway.cli("list", "add", "--block", host).returncode == 0:
            self.findings.added += 1
            try:
                until(f"block of {host}", lambda: self._status_of(f"http://{host}/") == 403, 15.0)
            except AssertionError as error:
                self.findings.faults.append(str(error))

    def _request(self, seed: int) -> None:
        chosen = random.Random(seed)
        while not self._stop.is_set():
            path = f"/{chosen.randrange(50)}"
            blocked = chosen.random() < 0.3
            url = BLOCKED if blocked else self._origin.base + path
            began = time.monotonic()
            status, body = self._fetch(url)
            if status == 0:
                self.findings.broken += 1
                time.sleep(0.02)
                continue
            self._note_served(began)
            self.findings.exchanges += 1
            if blocked and status != 403:
                self.findings.faults.append(f"opened: {status} for {url}")
            if not blocked and (status != 200 or body != BODY):
                self.findings.faults.append(f"wrong answer: {status}, {len(body)} bytes for {url}")
            time.sleep(0.02)

    def _note_served(self, began: float) -> None:
        gap = began - self._served_at
        if gap > 0.5:
            self.findings.unserved_s += gap
            if not self._excused:
                self.findings.unserved_without_supervisor_kills_s += gap
        self._served_at = max(self._served_at, time.monotonic())

    def _status_of(self, url: str) -> int:
        return self._fetch(url)[0]

    def _fetch(self, url: str) -> tuple[int, bytes]:
        proxies = urllib.request.ProxyHandler({"http": f"http://{self._gateway.address}"})
        try:
            with urllib.request.build_opener(proxies).open(url, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, b""
        except (OSError, ValueError, EOFError):
            return 0, b""
        except Exception as error:  # noqa: BLE001  http.client has many, all of them a connection that broke
            self.findings.faults += [] if "IncompleteRead" in repr(error) or "Remote" in repr(error) else [repr(error)]
            return 0, b""

    def _end(self) -> None:
        for number in range(0, sum(self.findings.kills.values()), 5):
            host = f"rule{number}.test"
            shown = self._status_of(f"http://{host}/")
            if shown not in {403, 502, 0}:
                self.findings.faults.append(f"the rule of {host} is lost: {shown}")
        assert self._gateway.process is not None
        processes = psutil.Process(self._gateway.process.pid).children(recursive=True)
        if (code := self._gateway.stop()) != 0:
            self.findings.faults.append(f"the filter ended with {code}")
        _, left = psutil.wait_procs(processes, 10)
        left = [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
        self.findings.faults += [f"left over: {process}" for process in left]
        with closing(sqlite3.connect(self._gateway.state / "gatewayfilter.sqlite3")) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchone()
            if found != ("ok",):
                self.findings.faults.append(f"the database is damaged: {found}")
        if "Traceback" in (told := self._gateway.log.read_text()):
            self.findings.faults.append(f"a traceback in the log: {told[told.index('Traceback') :][:500]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def main() -> int:
    """Runs the long form and prints the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        found = Chaos(Path(folder), options.seed).run(options.kills, options.minutes * 60)
    sys.stdout.write(f"{found.report()}\n")
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
