"""An attack on the running product: starts it, sends cases, and tells what must never happen.

A finding is one of these; each stands for something that docs/security.md promises:

- `marker`: blocked content reached the client;
- `unread-tls`: the client saw the origin's own certificate, so what it sends is read by nobody;
- `raw`: bytes that are no HTTP reached the origin;
- `unjudged`: a request reached the origin that has no row in the log of decisions;
- `stray`: an answer to one request reached the client as the answer to another;
- `learned`: something was learned of a site that never answered;
- `control`: what must pass did not, or what must be blocked was not, so that the rest means nothing;
- `hook-errors`, `worker`, `memory`: the filter itself suffered.
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import trustme

from gatewayfilter.config import known_keys
from tests.e2e.e2e_gateway import GatewayProcess, until
from tests.security.attack_case import Case, Flight, Handshake
from tests.security.attack_client import Outcome, run_case
from tests.security.attack_generator import Generator, Site
from tests.security.lenient_origin import MARKER, STRAY, VICTIM, LenientOrigin
from tests.security.lenient_reading import tokens

NAMES: Final = {
    "ok.test": "127.0.0.1", "front.test": "127.0.0.1", "blocked.test": "127.0.0.1", "sub.blocked.test": "127.0.0.1",
    "unheard.test": "127.0.0.1", "victim.test": "127.0.0.9",
}  # fmt: skip
"""What names lead to; nobody listens where the victim is."""
_CONTROL: Final = b"t0000000c0dedz"
_MOST_MORE_MB: Final = 150
"""How much the workers may grow during an attack, together."""
_AT_ONCE: Final = 12
_SHRINK_TRIES: Final = 40
_SHRUNK_OF_A_KIND: Final = 2
_LOG_S: Final = 15.0
_RESOLVER: Final = '''
"""Names of the test's sites, where the machine's resolver would be asked."""
import socket
_names, _ask = %r, socket.getaddrinfo
def getaddrinfo(host, *args, **more):
    name = host.decode() if isinstance(host, bytes) else host
    return _ask(_names.get(name, name) if isinstance(name, str) else name, *args, **more)
socket.getaddrinfo = getaddrinfo
'''


@dataclass(frozen=True, slots=True)
class Finding:
    """What must not have happened.

    Attributes:
        kind: see the module.
        number: of the case, -1 where no single one did it.
        told: the case, made as small as it still does it, and what came of it.
    """

    kind: str
    number: int
    told: str


@dataclass
class Report:
    """What an attack found.

    Attributes:
        cases: how many were sent.
        reached: requests that reached the origin.
    """

    seed: int
    cases: int = 0
    reached: int = 0
    findings: list[Finding] = field(default_factory=list)
    families: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """Returns all of it for people."""
        lines = [f"seed {self.seed}: {self.cases} cases, {self.reached} requests at the origin, {len(self.findings)} findings"]
        lines += [f"[{finding.kind}] case {finding.number}\n{finding.told}" for finding in self.findings]
        return "\n".join(lines)


@contextmanager
def product(folder: Path, authority: trustme.CA, names: Mapping[str, str] = NAMES, **settings: str) -> Iterator[GatewayProcess]:
    """Runs the filter, with names that lead to the test's sites."""
    resolver = folder / "resolver"
    resolver.mkdir()
    (resolver / "sitecustomize.py").write_text(_RESOLVER % (dict(names),))
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    networks = ",".join(sorted({f"{address}/32" for address in names.values()}))
    chosen = {
        "crawl__allow_networks": networks,
        "proxy__upstream_ca": str(folder / "authority.pem"),
        "crawl__upstream_ca": str(folder / "authority.pem"),
        "proxy__workers": "2",
        # A client can bring it about for a site that nothing blocks, with which it could speak of anything in any case.
        "tls__pinned_apps": "false",
        **({"proxy__allow_networks": networks} if "proxy.allow_networks" in dict(known_keys()) else {}),
        **settings,
    }
    gateway = GatewayProcess(folder / "state", **chosen)
    gateway.environment["PYTHONPATH"] = f"{resolver}:{gateway.environment.get('PYTHONPATH', '')}".rstrip(":")
    with gateway:
        yield gateway


def block(gateway: GatewayProcess, site: Site, *, unknown: bool) -> None:
    """Blocks what the attack is after, in all workers; where unknown sites are blocked, only `ok.test/ok/` is open."""
    places = [f"ok.test:{port}" if port not in {80, 443} else "ok.test" for port in (site.plain, site.tls)]
    steps = [["--block", "blocked.test", *(f"{place}/secret/*" for place in places)]]
    if not unknown:
        steps.append(["--allow", *(f"{place}/ok/*" for place in places)])
    for step in steps:
        done = gateway.cli("list", "add", *step)
        assert done.returncode == 0, done.stderr
    for status in (gateway.state / "run").glob("proxy-*.json"):
        gateway.await_rules(status.stem)


@dataclass(frozen=True, slots=True)
class Plan:
    """What an attack is to be.

    Attributes:
        seed: of its cases.
        seconds: how long cases are sent.
        unknown: `proxy.unknown` of the filter.
        first, most: number of the first case, and how many.
        least, least_reached: how many cases are sent, and requests reach the origin, before the time is over.
    """

    seed: int
    seconds: float
    unknown: str = "allow"
    first: int = 0
    most: int = 10**9
    least: int = 0
    least_reached: int = 0


class Attack:
    """Sends cases to a running filter, and judges what comes of them.

    Args:
        gateway: the filter.
        origin: the site that co-operates.
        site: where it is for the client.
        address: where the client connects to; `None` for the site's own address (transparent).
        seed: of the cases.
    """

    def __init__(
        self, gateway: GatewayProcess, origin: LenientOrigin, site: Site, seed: int, address: tuple[str, int] | None = None
    ) -> None:
        self._gateway = gateway
        self._origin = origin
        self._site = site
        self._address = address
        self._generator = Generator(seed, site)
        self._by_mark: dict[str, tuple[int, Case]] = {}
        self._learns = False
        self._found: dict[tuple[str, str], int] = {}
        self.report = Report(seed)

    async def send(self, plan: Plan) -> None:
        """Sends cases for some seconds, several at once."""
        end = time.monotonic() + plan.seconds
        numbers = iter(range(plan.first, plan.first + plan.most))

        async def work() -> None:
            while (time.monotonic() < end or self._is_short_of(plan)) and (number := next(numbers, -1)) >= 0:
                await self._one(number)

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))

    def _is_short_of(self, plan: Plan) -> bool:
        return self.report.cases < plan.least or len(self._origin.seen.requests) < plan.least_reached

    async def try_controls(self, *, learns: bool) -> None:
        """Sends what must pass and what must be blocked: without these an attack that finds nothing would mean nothing."""
        connect = Flight(b"CONNECT ok.test:%d HTTP/1.1\r\nHost: ok.test\r\n\r\n" % self._site.tls)
        if self._site.transparent:
            connect = Flight(b"")
        page = b"GET /ok/casino/%b HTTP/1.1\r\nHost: ok.test\r\nAccept: text/html\r\n\r\n" % _CONTROL
        for request, expected in ((page, b"Golden Reef"), (page.replace(b"/ok/", b"/secret/"), b" 403 ")):
            case = Case("control", (Flight(request),), connect, (Handshake("ok.test"),), secure=True)
            outcome = await self._run(case, lambda said, expected=expected: expected in said)  # type: ignore[misc]
            if expected not in outcome.received:
                self.report.findings.append(Finding("control", -1, f"{request!r} got {outcome.received[:300]!r}"))
        self._learns = learns

    async def _one(self, number: int) -> None:
        case = self._generator.case(number)
        for mark in case.marks():
            self._by_mark[mark] = number, case
        outcome = await self._run(case)
        self.report.cases += 1
        self.report.families[case.family] = self.report.families.get(case.family, 0) + 1
        kind = self._verdict(case, outcome)
        if kind:
            alike = self._found.get((kind, case.family), 0)
            self._found[kind, case.family] = alike + 1
            small, last = await self._shrink(case, kind) if alike < _SHRUNK_OF_A_KIND else (case, outcome)
            self.report.findings.append(Finding(kind, number, f"{small.describe()}\n  got {last.received[:300]!r}"))

    async def _run(self, case: Case, settled: Callable[[bytes], bool] | None = None) -> Outcome:
        address = self._address or (self._site.address, self._site.tls if case.secure else self._site.plain)
        return await run_case(case, address, settled)

    def _verdict(self, case: Case, outcome: Outcome) -> str:
        got = outcome.received
        if MARKER in got:
            return "marker"
        if self._origin.certificate in outcome.certificates:
            return "unread-tls"
        if b"raw <!--end-->" in got:
            return "raw"
        for flight, answer in zip(
            case.flights[1:], outcome.answers[-len(case.flights) + 1 :] if case.flights[1:] else [], strict=False
        ):
            own = set(tokens(flight.data))
            if any(mark not in own for mark in tokens(_after_stray(answer))):
                return "stray"
        return ""

    async def _shrink(self, case: Case, kind: str) -> tuple[Case, Outcome]:
        outcome = await self._run(case)
        tries = 0
        again = True
        while again and tries < _SHRINK_TRIES:
            again = False
            for smaller in case.simpler():
                tries += 1
                found = await self._run(smaller)
                if self._verdict(smaller, found) == kind:
                    case, outcome, again = smaller, found, True
                    break
                if tries >= _SHRINK_TRIES:
                    break
        return case, outcome

    def close(self, before: "Health") -> Report:
        """Ends the attack: looks at what the filter logged and learned, and how it is."""
        report = self.report
        report.reached = len(self._origin.seen.requests)
        self._check_log()
        self._check_learned()
        report.findings += before.compare(Health.of(self._gateway))
        return report

    def _check_log(self) -> None:
        with suppress(AssertionError):
            until("log of all", lambda: not self._missing(), _LOG_S)
        for mark in sorted(self._missing())[:20]:
            number, case = self._by_mark.get(mark, (-1, None))
            self.report.findings.append(Finding("unjudged", number, case.describe() if case is not None else mark))
        for data in self._origin.seen.raw[:10]:
            number, case = next((self._by_mark[mark] for mark in tokens(data) if mark in self._by_mark), (-1, None))
            self.report.findings.append(Finding("raw", number, f"{data!r}\n{case.describe() if case is not None else ''}"))

    def _missing(self) -> set[str]:
        """Returns the marks of requests that reached the origin and are not in the log."""
        rows = query(self._gateway.state, "SELECT url FROM decisions")
        return set(self._origin.seen.requests) - {mark for (url,) in rows for mark in tokens(str(url).encode())} - {"?"}

    def _check_learned(self) -> None:
        known = f"SELECT 1 FROM page_verdicts WHERE url LIKE '%{_CONTROL.decode()}%'"
        try:
            until("verdict", lambda: not self._learns or query(self._gateway.state, known), _LOG_S)
        except AssertionError:
            self.report.findings.append(Finding("control", -1, "nothing is learned of a page that passed by its own name"))
        for table, column in (("learned_entries", "key"), ("page_verdicts", "url")):
            for (value,) in query(self._gateway.state, f"SELECT {column} FROM {table}"):
                if VICTIM.decode() in str(value):
                    number, case = next(
                        (self._by_mark[mark] for mark in tokens(str(value).encode()) if mark in self._by_mark), (-1, None)
                    )
                    told = f"{table}: {value}\n{case.describe() if case is not None else ''}"
                    self.report.findings.append(Finding("learned", number, told))


def _after_stray(answer: bytes) -> bytes:
    return b"".join(part[:14] for part in answer.split(STRAY)[1:])


def query(state: Path, statement: str) -> list[tuple[object, ...]]:
    """Asks the filter's database."""
    with sqlite3.connect(f"file:{state / 'gatewayfilter.sqlite3'}?mode=ro", uri=True, timeout=10) as database:
        rows = database.execute(statement).fetchall()
    database.close()
    return rows


@dataclass(frozen=True, slots=True)
class Health:
    """How the workers are.

    Attributes:
        pids: of each worker.
        megabytes: their resident memory, together.
        hook_errors, log_dropped: their counters.
    """

    pids: dict[str, int]
    megabytes: int
    hook_errors: int
    log_dropped: int

    @classmethod
    def of(cls, gateway: GatewayProcess) -> "Health":
        """Asks the workers' status files, and the kernel."""
        time.sleep(1.5)  # they are written every second
        files = sorted((gateway.state / "run").glob("proxy-*.json"))
        status = {path.stem: gateway.status(path.stem) for path in files}
        counters = [one.get("counters", {}) for one in status.values()]
        pids = {name: int(one.get("pid", 0)) for name, one in status.items()}
        memory = sum(psutil.Process(pid).memory_info().rss for pid in pids.values() if psutil.pid_exists(pid))
        return cls(
            pids,
            memory >> 20,
            sum(one.get("hook_errors", 0) for one in counters),
            sum(one.get("log_dropped", 0) for one in counters),
        )

    def compare(self, now: "Health") -> list[Finding]:
        """Returns what went wrong since."""
        found = []
        if now.pids != self.pids:
            found.append(Finding("worker", -1, f"workers {self.pids} became {now.pids}"))
        if now.hook_errors:
            found.append(Finding("hook-errors", -1, f"{now.hook_errors} hooks failed: the filter's log has the traceback"))
        if now.log_dropped:
            found.append(Finding("log", -1, f"{now.log_dropped} decisions found the log's queue full"))
        if now.megabytes > self.megabytes + _MOST_MORE_MB:
            found.append(Finding("memory", -1, f"{self.megabytes} MB became {now.megabytes} MB"))
        return found


def attack_explicit(plan: Plan) -> Report:
    """Attacks the filter as an explicit proxy on loopback. Returns what was found."""
    authority = trustme.CA()

    async def run(gateway: GatewayProcess) -> Report:
        host, _, port = gateway.address.rpartition(":")
        async with LenientOrigin(authority).running() as origin:
            return await attack_site(plan, gateway, origin, "127.0.0.1", (host, int(port)))

    with (
        tempfile.TemporaryDirectory(prefix="gf-attack-") as made,
        product(Path(made), authority, proxy__unknown=plan.unknown) as gateway,
    ):
        return asyncio.run(run(gateway))


async def attack_site(
    plan: Plan, gateway: GatewayProcess, origin: LenientOrigin, site: str, address: tuple[str, int] | None
) -> Report:
    """Attacks a running filter; without an address of it connections to the site are redirected to it. Returns what was found."""
    place = Site(site, origin.plain, origin.tls, transparent=address is None)
    block(gateway, place, unknown=plan.unknown == "allow")
    attack = Attack(gateway, origin, place, plan.seed, address)
    before = Health.of(gateway)
    await attack.try_controls(learns=plan.unknown == "allow")
    await attack.send(plan)
    report = attack.close(before)
    report.findings += [Finding("traceback", -1, line) for line in tracebacks(gateway.log)]
    return report


def tracebacks(log: Path) -> list[str]:
    """Returns the lines of the filter's log that tell of a fault of its own."""
    return [line[:3000] for line in log.read_text(errors="replace").splitlines() if "Traceback" in line][:5]
