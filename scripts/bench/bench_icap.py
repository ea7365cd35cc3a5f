"""Pages a second of the ICAP server: RESPMOD with previews over kept-alive connections, on loopback.

    python scripts/bench/bench_icap.py [--requests N] [--rounds N] [--pages N]

The pages are on no list, so each is judged, and all are harmless: the answer is 204. They have 12 KB of markup and text: a
preview of 4,096 bytes, `100 Continue`, and the rest. Two roads: pages at the URL at which they were judged a moment ago, and the
same pages at new URLs, which the inspector process judges again. Each round asks for every page in turn, on 16 connections; the
first one of each road warms up. CPU is that of the server's and the inspector's processes.
"""

import argparse
import json
import select
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from bench_proxy import free_port
from filter_process import Filter

from tests.e2e.e2e_gateway import until

CONNECTIONS = 16
PREVIEW = 4_096
WORDS = (
    "the",
    "garden",
    "grows",
    "well",
    "in",
    "spring",
    "when",
    "water",
    "and",
    "light",
    "feed",
    "roses",
    "and",
    "apple",
    "trees",
)


def page(number: int) -> bytes:
    """Returns a page about gardens of some 12 KB."""
    lines = (f"<p>{number} {line} {' '.join(WORDS[(number + line) % 7 :])}</p>" for line in range(100))
    return f"<html><head><title>Garden {number}</title></head><body>{''.join(lines)}</body></html>".encode()


def message(url_path: str, body: bytes) -> tuple[bytes, bytes]:
    """Returns the request up to the end of its preview, and the rest."""
    request = f"GET http://pages.example{url_path} HTTP/1.1\r\nHost: pages.example\r\nAccept: text/html\r\n\r\n".encode()
    response = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    head = (
        f"RESPMOD icap://127.0.0.1/respmod ICAP/1.0\r\nHost: 127.0.0.1\r\nAllow: 204\r\nPreview: {PREVIEW}\r\n"
        f"X-Client-IP: 192.0.2.7\r\nEncapsulated: req-hdr=0, res-hdr={len(request)}, "
        f"res-body={len(request) + len(response)}\r\n\r\n"
    ).encode()
    first, rest = body[:PREVIEW], body[PREVIEW:]
    return (
        b"".join((head, request, response, b"%x\r\n" % len(first), first, b"\r\n0\r\n\r\n")),
        b"".join((b"%x\r\n" % len(rest), rest, b"\r\n0\r\n\r\n")),
    )


def drive(port: int, messages: Sequence[tuple[bytes, bytes]]) -> float:
    """Sends messages, one at a time on each connection. Returns the seconds that all took."""
    poll = select.epoll()
    left = iter(messages)
    busy: dict[int, tuple[socket.socket, bytes]] = {}
    for _ in range(CONNECTIONS):
        made = socket.create_connection(("127.0.0.1", port), 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(made, select.EPOLLIN)
        busy[made.fileno()] = (made, b"")
    started = time.perf_counter()
    for number, (made, _) in busy.items():
        preview, rest = next(left)
        made.sendall(preview)
        busy[number] = (made, rest)
    answered = 0
    while answered < len(messages):
        for number, _ in poll.poll(60):
            made, rest = busy[number]
            answer = made.recv(65536)
            if answer.startswith(b"ICAP/1.0 100"):
                made.sendall(rest)
            elif answer.startswith(b"ICAP/1.0 204"):
                answered += 1
                if (following := next(left, None)) is not None:
                    made.sendall(following[0])
                    busy[number] = (made, following[1])
            else:
                raise SystemExit(f"the server answered {answer[:200]!r}")
    took = time.perf_counter() - started
    for made, _ in busy.values():
        made.close()
    return took


def _cpu_s(processes: Sequence[psutil.Process]) -> list[float]:
    return [sum(one.cpu_times()[:2]) for one in processes]


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=200, help="different pages")
    options = parser.parse_args()
    port = free_port()
    bodies = [page(number) for number in range(options.pages)]
    with tempfile.TemporaryDirectory() as name:
        state = Path(name) / "state"
        settings = {"GATEWAYFILTER_ICAP__LISTEN": f"127.0.0.1:{port}", "GATEWAYFILTER_PROXY__INSPECT_MS": "30000"}
        running = Filter(state, "--workers", "1", "--no-learn", settings=settings)
        running.start()
        try:
            until("the ICAP server", lambda: _listens(port), 60)
            until("its status", (state / "run" / "integration.json").exists, 60)
            server = psutil.Process(int(json.loads((state / "run" / "integration.json").read_text())["pid"]))
            drive(port, [message(f"/{number}", body) for number, body in enumerate(bodies)])
            processes = [server, *server.children(recursive=True)]
            print("| road | pages/s | CPU of the server, µs a page | of the inspector |\n|---|---|---|---|")
            for road in ("the same URL", "new URLs"):
                rates, cpu = [], []
                for round_ in range(options.rounds + 1):
                    paths = [
                        f"/{at % len(bodies)}" if road == "the same URL" else f"/{round_}/{at}" for at in range(options.requests)
                    ]
                    messages = [message(path, bodies[at % len(bodies)]) for at, path in enumerate(paths)]
                    before = _cpu_s(processes)
                    rates.append(options.requests / drive(port, messages))
                    cpu.append(
                        [(now - then) / options.requests * 1e6 for now, then in zip(_cpu_s(processes), before, strict=True)]
                    )
                own = statistics.median(each[0] for each in cpu[1:])
                inspector = statistics.median(sum(each[1:]) for each in cpu[1:])
                print(f"| {road} | {statistics.median(rates[1:]):,.0f} | {own:.0f} | {inspector:.0f} |", flush=True)
        finally:
            running.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
