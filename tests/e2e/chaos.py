"""Chaos: kill -9 of random processes of a running filter under traffic, and other faults. `make chaos`; its short form is a test.

Each kill and each fault is followed by checks of what must always hold: what is blocked stays blocked, what is allowed stays
allowed with the right body, rules that were acknowledged stay in force, the CA is the same, requests that were answered are in
the log, workers come back within seconds, and nothing is left over at the end.
"""

import argparse
import http.client
import random
import sqlite3
import ssl
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psutil

from tests.e2e import e2e_gateway
from tests.e2e.chaos_box import BODY, PAGES, Box, move_into_namespaces
from tests.e2e.chaos_faults import COMMAND_S, FAULTS, Fault, Scene
from tests.e2e.e2e_gateway import free_port, has_ended, stalled_s, until

BLOCKED = "http://blocked.gatewayfilter.test/"
RECOVERY_S = 5.0
"""After this a process that is not back is a fault. Not counted is the time in which the machine had no CPU for it (`until`)."""
_TRIES = 3
_BUS_ERROR = "Fatal Python error: Bus error"
KINDS = ("worker", "learner", "fork server", "supervisor", "other", "both workers")
WEIGHTS = (8, 4, 4, 1, 3, 1)


@dataclass(slots=True)
class Findings:
    """What came of a run. Times in seconds."""

    kills: Counter[str] = field(default_factory=Counter)
    inflicted: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    exchanges: int = 0
    broken: int = 0
    logged: int = 0
    faults: list[str] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    start_cpu_s: list[float] = field(default_factory=list)
    bus_errors: int = 0
    unserved_s: float = 0.0
    unserved_without_excuse_s: float = 0.0
    added: int = 0
    elapsed_s: float = 0.0
    stalled_s: float = 0.0

    def report(self) -> str:
        """Returns the findings as lines of text."""
        lines = [f"{sum(self.kills.values())} kills in {self.elapsed_s:.0f} s: {dict(self.kills)}"]
        lines += [f"{sum(self.inflicted.values())} other faults: {dict(self.inflicted)}; left out: {self.left_out or 'none'}"]
        lines += [f"{self.exchanges} exchanges, {self.broken} broken connections, {self.added} rules added and checked"]
        lines += [f"{self.logged} requests were answered during faults, and found in the log"]
        lines += [
            f"no worker served for {self.unserved_s:.1f} s, of it where one should have {self.unserved_without_excuse_s:.1f} s"
        ]
        lines += [f"something waited for a CPU in {self.stalled_s:.0f} of {self.elapsed_s:.0f} s"]
        if self.start_cpu_s:
            lines.append(f"CPU time of a worker from its start until it serves: median {_median(self.start_cpu_s):.2f} s")
        if self.bus_errors:
            lines.append(f"{self.bus_errors} workers read a snapshot beyond its new end, and were ended by the system")
        for kind, taken in self.recoveries.items():
            lines.append(f"back after {kind}: median {_median(taken):.1f} s, most {max(taken):.1f} s")
        return "\n".join([*lines, *(self.faults or ["no fault"])])


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


class Chaos:
    """One run.

    Args:
        folder: empty, for the state.
        seed: of what is killed, and when.
        clients: how many request in a loop.
        clock: whether the filter runs with a clock that can be set, which makes it slower.
    """

    def __init__(self, folder: Path, seed: int, clients: int = 4, *, clock: bool = False) -> None:
        self.findings = Findings()
        self._random = random.Random(seed)
        self._box = Box(folder)
        listen = f"127.0.0.1:{free_port()}"
        self._gateway = e2e_gateway.GatewayProcess(
            self._box.folder / "state", proxy__workers="2", proxy__listen=listen, **self._box.settings
        )
        self._gateway.log = folder / "filter.log"
        if clock:
            self._gateway.environment |= self._box.environment
        self._clock = clock and self._box.clock is not None
        self._ca = ""
        self._trusted: ssl.SSLContext | None = None
        self._stop = threading.Event()
        self._served_at = time.monotonic()
        self._excused = False
        self._excused_at = 0.0
        self._outage_until = 0.0
        self._numbers = count()
        self._answered: list[str] = []
        self._clients = [threading.Thread(target=self._request, args=(seed + number,)) for number in range(clients)]

    def run(
        self, kills: int, most_s: float, rounds: int = 0, lasts_s: float = 3.0, *, brief: bool = False, only: str = ""
    ) -> Findings:
        """Kills, and inflicts each fault in some rounds, until all is done or the time is over; then checks what is left.

        Args:
            kills: how many.
            most_s: seconds until it ends, whatever is done.
            rounds: how often each of the other faults is inflicted.
            lasts_s: how long most of them last.
            brief: leaves out those that take long.
            only: leaves out those without this in their name.
        """
        began, stalled = time.monotonic(), stalled_s()
        faults = [fault for fault in FAULTS if only in fault.name and (fault.brief or not brief)]
        possible = [fault for fault in faults if self._can(fault)]
        self.findings.left_out = [fault.name for fault in faults if fault not in possible]
        plan = [fault for _ in range(rounds) for fault in self._random.sample(possible, len(possible))]
        try:
            self._gateway.start()
            self._ca = (self._gateway.state / "ca" / "mitmproxy-ca-cert.pem").read_text()
            self._served_at = time.monotonic()
            for client in self._clients:
                client.start()
            while (done := sum(self.findings.kills.values())) < kills or plan:
                if time.monotonic() - began > most_s:
                    break
                if plan and (done >= kills or self._random.random() < len(plan) / (len(plan) + kills - done)):
                    self._inflict(plan.pop(), lasts_s)
                    if not brief:
                        self._add_rule(f"after{sum(self.findings.inflicted.values())}.test")
                else:
                    self._round(done)
            self._stop.set()
            for client in self._clients:
                client.join()
            self._end()
        finally:
            self._stop.set()
            self._box.close()
            self.findings.elapsed_s = time.monotonic() - began
            self.findings.stalled_s = stalled_s() - stalled
        return self.findings

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _can(self, fault: Fault) -> bool:
        return (self._clock if fault.name == "clock" else self._box.whole) or not fault.boxed

    def _inflict(self, fault: Fault, lasts_s: float) -> None:
        self.findings.inflicted[fault.name] += 1
        started = time.monotonic()
        self._excused = fault.gap or not fault.serves
        self._answered = []
        scene = Scene(self._gateway, self._box, self._random, lasts_s)
        try:
            if not fault.serves:
                self._outage_until = float("inf")
            with fault.inflict(scene):
                shown = self._patiently(BLOCKED, 0 if fault.gap and fault.accepts else 403)
                if shown != 403 and (shown or fault.accepts):
                    self.findings.faults.append(f"{shown} for {BLOCKED} during {fault.name}")
            began = time.monotonic()
            until(f"recovery from {fault.name}", self._is_well, RECOVERY_S)
            self.findings.recoveries.setdefault(fault.name, []).append(time.monotonic() - began)
        except (AssertionError, OSError, psutil.Error, sqlite3.Error) as error:
            self.findings.faults.append(f"{fault.name}: {error}")
            self._say(self.findings.faults[-1])
        answered, self._answered = self._answered, []
        self._outage_until = time.monotonic() + 1.0
        self._end_excuse()
        self._say(f"{fault.name}: {time.monotonic() - started:.1f} s")
        if fault.logs:
            self._find_in_log(fault.name, answered)

    def _patiently(self, url: str, wanted: int) -> int:
        """Returns the status of a page; where connections break, of the first answer within some seconds.

        Where pages are served meanwhile, one that breaks with the worker that was killed is tried again, as a browser does.
        """
        if wanted:
            return next((status for _ in range(_TRIES) if (status := self._status_of(url))), 0)
        try:
            return until(f"answer for {url}", lambda: self._status_of(url), 20.0)
        except AssertionError:
            return 0

    def _is_well(self) -> bool:
        """Returns whether pages are answered, also with the first CA, and all workers serve."""
        number = next(self._numbers) % len(PAGES)
        if self._fetch(f"{self._box.base}/{number}") != (200, BODY) or self._status_of(BLOCKED) != 403:
            return False
        return self._status_of(BLOCKED.replace("http:", "https:")) == 403 and self._is_whole({}, [])

    def _find_in_log(self, name: str, answered: list[str]) -> None:
        def missing() -> set[str]:
            with closing(sqlite3.connect(self._gateway.state / "gatewayfilter.sqlite3", timeout=10)) as connection:
                return set(answered) - {url for (url,) in connection.execute("SELECT url FROM decisions")}

        try:
            until(f"log of what was answered during {name}", lambda: not missing(), 10.0)
            self.findings.logged += len(answered)
        except AssertionError as error:
            self.findings.faults.append(f"{error}: {len(missing())} of {len(answered)} are missing")

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
        if (number + 1) % 20 == 0:
            self._say(f"{number + 1} kills")
        began = time.monotonic()
        if kind == "supervisor":
            self._restart()
        try:
            until(f"recovery after a kill of the {kind}", lambda: self._is_whole(before, victims), RECOVERY_S)
            self._note_start_cpu(kind, before)
        except AssertionError as error:
            self.findings.faults.append(str(error))
        self.findings.recoveries.setdefault(kind, []).append(time.monotonic() - began)
        self._end_excuse()
        time.sleep(self._random.uniform(0.1, 0.6))

    def _end_excuse(self) -> None:
        """Ends the time in which no worker needs to serve; the next answer is the first one after it."""
        if self._excused:
            self._excused, self._excused_at = False, time.monotonic()

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
        if not now:
            return False
        gone = {victim.pid for victim in victims}
        if set(now) < set(before) or gone & set(now.values()):
            return False
        states = [self._gateway.status(name) for name in ("proxy-0", "proxy-1")]
        return all(
            state.get("state") == "serving" and state.get("pid") == now.get(f"proxy-{index}")
            for index, state in enumerate(states)
        )

    def _note_start_cpu(self, kind: str, before: dict[str, int]) -> None:
        """Notes what the start of each new worker took: it has just begun to serve."""
        for name, pid in self._pids().items():
            if "worker" in kind and name.startswith("proxy-") and pid != before.get(name):
                with suppress(psutil.NoSuchProcess):
                    times = psutil.Process(pid).cpu_times()
                    self.findings.start_cpu_s.append(times.user + times.system)

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
        if self._gateway.cli("list", "add", "--block", host, timeout_s=COMMAND_S).returncode == 0:
            self.findings.added += 1
            try:
                until(f"block of {host}", lambda: self._status_of(f"http://{host}/") == 403, 15.0)
            except AssertionError as error:
                self.findings.faults.append(str(error))

    def _request(self, seed: int) -> None:
        chosen = random.Random(seed)
        while not self._stop.is_set():
            blocked = chosen.random() < 0.3
            url = BLOCKED if blocked else f"{self._box.base}/{next(self._numbers) % len(PAGES)}"
            began = time.monotonic()
            outage = began < self._outage_until
            status, body = self._fetch(url)
            if status == 0:
                self.findings.broken += 1
                time.sleep(0.02)
                continue
            self._note_served(began)
            self.findings.exchanges += 1
            if blocked and status != 403:
                self.findings.faults.append(f"opened: {status} for {url}")
            if not blocked and status == 200:
                self._answered.append(url)
            failed = (outage or began < self._outage_until) and status in {502, 504}
            if not blocked and (status != 200 or body != BODY) and not failed:
                self.findings.faults.append(f"wrong answer: {status}, {len(body)} bytes for {url}")
            time.sleep(0.02)

    def _note_served(self, began: float) -> None:
        gap = began - self._served_at
        if gap > 0.5:
            self.findings.unserved_s += gap
            if not self._excused and self._excused_at < self._served_at:
                self.findings.unserved_without_excuse_s += gap
        self._served_at = max(self._served_at, time.monotonic())

    def _status_of(self, url: str) -> int:
        return self._fetch(url)[0]

    def _fetch(self, url: str) -> tuple[int, bytes]:
        """Returns status and body; 0 where the connection broke. By `http.client`: an opener takes three times the CPU."""
        scheme, _, rest = url.partition("://")
        host, port = self._gateway.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=self._trust())
            connection.set_tunnel(rest.partition("/")[0])
        try:
            connection.request("GET", f"/{rest.partition('/')[2]}" if scheme == "https" else url)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, ValueError, EOFError):
            return 0, b""
        except http.client.HTTPException as error:
            self.findings.faults += [] if "IncompleteRead" in repr(error) or "Remote" in repr(error) else [repr(error)]
            return 0, b""
        finally:
            connection.close()

    def _trust(self) -> ssl.SSLContext:
        if self._trusted is None:
            self._trusted = ssl.create_default_context(cadata=self._ca)
        return self._trusted

    def _end(self) -> None:
        for number in range(0, sum(self.findings.kills.values()), 5):
            host = f"rule{number}.test"
            shown = self._status_of(f"http://{host}/")
            if shown not in {403, 502, 0}:
                self.findings.faults.append(f"the rule of {host} is lost: {shown}")
        if not self.findings.exchanges:
            self.findings.faults.append("no client had an answer")
        assert self._gateway.process is not None
        processes = psutil.Process(self._gateway.process.pid).children(recursive=True)
        if (code := self._gateway.stop()) != 0:
            self.findings.faults.append(f"the filter ended with {code}")
        _, left = psutil.wait_procs(processes, 10)
        self.findings.faults += [f"left over: {process}" for process in left if not has_ended(process)]
        with closing(sqlite3.connect(self._gateway.state / "gatewayfilter.sqlite3")) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchone()
            if found != ("ok",):
                self.findings.faults.append(f"the database is damaged: {found}")
        told = self._gateway.log.read_text()
        if any("truncated" in name for name in self.findings.inflicted):  # a page of a file that ends before it: no way to go on
            self.findings.bus_errors = told.count(_BUS_ERROR)
            told = told.replace(_BUS_ERROR, "")
        for sign in ("Traceback", "Fatal Python error"):
            if sign in told:
                self.findings.faults.append(f"a fault of the program in the log: {told[told.index(sign) :][:8000]}")


def main() -> int:
    """Runs the long form and prints the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--rounds", type=int, default=3, help="how often each of the other faults is inflicted")
    parser.add_argument("--clock", action="store_true", help="the filter runs with libfaketime, and its clock is set as well")
    parser.add_argument("--only", default="", help="only faults with this in their name")
    parser.add_argument("--brief", action="store_true", help="the short form of the tests")
    options = parser.parse_args()
    move_into_namespaces()
    e2e_gateway.MOST_STALLED_S = 600.0  # nobody waits for it, and other things may keep the machine busy
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(Path(folder), options.seed, clients=2 if options.brief else 4, clock=options.clock)
        lasts_s = 0.3 if options.brief else 3.0
        found = chaos.run(options.kills, options.minutes * 60, options.rounds, lasts_s, brief=options.brief, only=options.only)
    sys.stdout.write(f"{found.report()}\n")
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
