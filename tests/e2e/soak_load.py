"""The load of `make soak`: devices with addresses of their own on loopback, in processes beside the filter.

A device requests at a rate (an open loop: what is late is still counted from when it was due), or as fast as its connections are
answered. Latencies are in seconds.
"""

import asyncio
import multiprocessing
import random
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

BODY = b"<p>" + b"beans in May " * 300 + b"</p>"
_MOST_WAITED_S = 30.0


@dataclass(frozen=True, slots=True)
class Load:
    """What one process sends.

    Attributes:
        proxy: port of the filter.
        ca: file of its certificate.
        http: port of the origin; `https` its port with TLS.
        devices: source addresses.
        connections: of each device at once.
        rate: requests a second of all devices together; 0 for as many as are answered.
        seconds: how long.
        fresh: share of requests that open a connection.
        tls: share of connections that are tunnels.
        unknown: share of requests for pages that were not requested before.
        seed: of what is requested.
    """

    proxy: int
    ca: str
    http: int
    https: int
    devices: tuple[str, ...]
    connections: int
    rate: float
    seconds: float
    fresh: float = 0.1
    tls: float = 0.5
    unknown: float = 0.02
    seed: int = 7


@dataclass(slots=True)
class Outcome:
    """What came of a load.

    Attributes:
        latencies: of answers with a page.
        ended: when each of them came, by the monotonic clock.
        answers: count by status; of what broke by the name of the error.
        wrong: answers that must not be.
    """

    latencies: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Adds what came of another load."""
        self.latencies += other.latencies
        self.ended += other.ended
        self.answers += other.answers
        self.wrong += other.wrong

    def percentile(self, share: float, since: float = 0.0) -> float:
        """Returns a latency in ms, of the answers that came after a time of the monotonic clock."""
        chosen = sorted(taken for taken, at in zip(self.latencies, self.ended, strict=True) if at >= since)
        return 1000 * chosen[min(int(share * len(chosen)), len(chosen) - 1)] if chosen else 0.0


class _Line:
    """One connection of a device through the filter."""

    def __init__(self, load: Load, device: str, tls: ssl.SSLContext, chosen: random.Random) -> None:
        self._load, self._device, self._tls, self._random = load, device, tls, chosen
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._inside = False

    async def request(self) -> str:
        """Requests a page, and returns what was answered, or what was wrong with the answer after `wrong: `."""
        if self._random.random() < self._load.fresh:
            self.close()
        if self._streams is None and (refused := await self._open()) != "200":
            return refused
        assert self._streams is not None
        reader, writer = self._streams
        blocked = not self._inside and self._random.random() < 0.05
        page = self._random.randrange(1 << 30) if self._random.random() < self._load.unknown else self._random.randrange(50)
        host = "blocked.gatewayfilter.test" if blocked else f"127.0.0.1:{self._load.https if self._inside else self._load.http}"
        target = f"/page/{page}" if self._inside else f"http://{host}/page/{page}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n\r\n".encode())
        status, body = await _read(reader)
        if status == "503":
            self.close()
        elif blocked != (status == "403") or (status == "200" and body != BODY):
            return f"wrong: {status} with {len(body)} bytes for {host}{target}"
        return status

    async def _open(self) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._load.proxy, local_addr=(self._device, 0))
        self._streams = reader, writer
        self._inside = self._random.random() < self._load.tls
        if not self._inside:
            return "200"
        writer.write(f"CONNECT 127.0.0.1:{self._load.https} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        status, _ = await _read(reader, has_body=False)
        if status != "200":
            self.close()
            return status
        await writer.start_tls(self._tls, server_hostname="127.0.0.1")
        return "200"

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _read(reader: asyncio.StreamReader, *, has_body: bool = True) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = head[9:12]
    length = head.partition("content-length: ")[2].partition("\r\n")[0]
    return status, await reader.readexactly(int(length)) if length and (has_body or status != "200") else b""


class _Device:
    def __init__(self, load: Load, address: str, tls: ssl.SSLContext, outcome: Outcome) -> None:
        self._load, self._outcome = load, outcome
        self._random = random.Random(f"{load.seed} {address}")
        self._lines = [_Line(load, address, tls, self._random) for _ in range(load.connections)]
        self._every_s = len(load.devices) / load.rate if load.rate else 0.0
        self._due: asyncio.Queue[float] = asyncio.Queue()

    async def run(self, ends: float) -> None:
        workers = [asyncio.create_task(self._work(line, ends)) for line in self._lines]
        if self._every_s:
            due = time.monotonic() + self._random.random() * self._every_s
            while due < ends:
                await asyncio.sleep(max(due - time.monotonic(), 0.0))
                self._due.put_nowait(due)
                due += self._random.expovariate(1 / self._every_s)
        else:
            await asyncio.sleep(max(ends - time.monotonic(), 0.0))
        await asyncio.wait(workers, timeout=5.0)
        for worker in workers:
            worker.cancel()
        for line in self._lines:
            line.close()

    async def _work(self, line: _Line, ends: float) -> None:
        while time.monotonic() < ends:
            due = time.monotonic()
            if self._every_s:
                try:
                    due = await asyncio.wait_for(self._due.get(), max(ends - due, 0.01))
                except TimeoutError:
                    return
            try:
                answer = await asyncio.wait_for(line.request(), _MOST_WAITED_S)
            except (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError) as error:
                answer = f"broken: {type(error).__name__}"
                line.close()
                await asyncio.sleep(0.05)
            self._note(answer, due)
            if answer == "503":
                await asyncio.sleep(0.5)

    def _note(self, answer: str, due: float) -> None:
        now = time.monotonic()
        kind = "wrong" if answer.startswith("wrong") else answer
        self._outcome.answers[kind] += 1
        if kind == "wrong":
            self._outcome.wrong.append(answer)
        elif kind in {"200", "403"}:
            self._outcome.latencies.append(now - due)
            self._outcome.ended.append(now)


async def _run(load: Load) -> Outcome:
    tls = ssl.create_default_context(cafile=load.ca)
    outcome = Outcome()
    ends = time.monotonic() + load.seconds
    await asyncio.gather(*(_Device(load, address, tls, outcome).run(ends) for address in load.devices))
    return outcome


def _child(load: Load, line: Connection) -> None:
    line.send(asyncio.run(_run(load)))
    line.close()


class Running:
    """Loads that run in processes of their own, at once."""

    def __init__(self, loads: Sequence[Load]) -> None:
        self._lines: list[Connection] = []
        context = multiprocessing.get_context("spawn")
        for load in loads:
            near, far = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(load, far), daemon=True)
            process.start()
            far.close()
            self._lines.append(near)

    def results(self) -> list[Outcome]:
        """Waits for the ends; returns what came of each load."""
        return [line.recv() for line in self._lines]


def run(*loads: Load) -> list[Outcome]:
    """Runs loads at once and returns what came of each."""
    return Running(loads).results()
