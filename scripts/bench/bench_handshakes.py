"""A new intercepted TLS connection with one request: CPU of the proxy, GatewayFilter, mitmdump and squid with ssl-bump in turns.

    python scripts/bench/bench_handshakes.py [--rounds N] [--connections N] [--only NAME ...] [--against CHECKOUT]

Each connection is a CONNECT, a handshake (TLS 1.3), one GET with a browser's header fields, and the end, to the 120 hosts of
browsing_web.py in turn; the proxy makes a connection to the origin, or uses one that it kept. Included are handshakes, decision
and log; certificates are there from the first round, which does not count. Twice: with full handshakes, and with sessions that
the client resumes. Needs what bench_browsing.py needs, without Chromium.
"""

import argparse
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench_browsing import DIRECT, SQUID, STOCK, Road, roads
from browsing_web import Web, make_graph

_LENGTH: Final = re.compile(rb"(?i)\ncontent-length: *([0-9]+)")
FIELDS: Final = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n"
    'sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24"\r\nsec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: "Linux"\r\n'
    "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r\nSec-Fetch-Site: cross-site\r\n"
    "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\nReferer: https://www.site-1.test/\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n"
)


class _Client:
    """Makes connections through a proxy, with or without the sessions of earlier ones."""

    def __init__(self, port: int, *, resumes: bool) -> None:
        self._port = port
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._context.set_alpn_protocols(["http/1.1"])
        self._sessions: dict[str, ssl.SSLSession | None] = {}
        self._resumes = resumes

    def send(self, host: str, path: str) -> bool:
        """Sends a request over a connection of its own. Returns whether its session was resumed."""
        with socket.create_connection(("127.0.0.1", self._port), 30) as made:
            made.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += made.recv(4096) or _fail(answer)
            session = self._sessions.get(host) if self._resumes else None
            with self._context.wrap_socket(made, server_hostname=host, session=session) as tls:
                tls.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{FIELDS}\r\n".encode())
                got = b""
                while not _is_whole(got):
                    got += tls.recv(65536) or _fail(got)
                self._sessions[host] = tls.session
                return bool(tls.session_reused)


def _is_whole(answer: bytes) -> bool:
    """Returns whether a response of known length has arrived."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not end:
        return False
    if length is None or not head.startswith(b"HTTP/1.1 200"):
        _fail(answer)
        return False
    return len(body) >= int(length[1])


def _fail(answer: bytes) -> bytes:
    raise SystemExit(f"the proxy answered {answer[:200]!r}")


def _paths() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"/image/3/picture-{number}.gif?v={number * 7919:x}"


def run(found: Sequence[Road], web: Web, rounds: int, connections: int) -> None:
    """Runs the rounds and prints the table."""
    paths = _paths()
    figures: dict[tuple[bool, str], list[float]] = {}
    resumed: dict[str, int] = {}
    clients = {(road.name, resumes): _Client(road.port, resumes=resumes) for road in found for resumes in (False, True)}
    for number in range(rounds + 1):
        for resumes in (False, True):
            for road in found:
                before = road.cpu_s()
                for place in range(connections):
                    reused = clients[road.name, resumes].send(web.hosts[place % len(web.hosts)], next(paths))
                    resumed[road.name] = resumed.get(road.name, 0) + (reused and number > 0)
                if number:
                    figures.setdefault((resumes, road.name), []).append((road.cpu_s() - before) / connections)
    print("| new TLS connection, one request | proxy | CPU µs | to mitmdump | sessions resumed |")
    print("|---|---|---|---|---|")
    for (resumes, name), values in figures.items():
        cpu = statistics.median(values)
        stock = figures.get((resumes, STOCK))
        ratio = f"{cpu / statistics.median(stock):.2f}" if stock else ""
        share = f"{resumed[name] / connections / rounds:.0%}" if resumes else ""
        print(f"| {'client resumes' if resumes else 'full handshake'} | {name} | {cpu * 1e6:.0f} | {ratio} | {share} |")


def main() -> None:
    """Reads the options and measures, in a network namespace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=480)
    parser.add_argument("--only", nargs="*", default=[], help=f"peers beside ours: {STOCK!r}, {SQUID!r}")
    parser.add_argument("--against", type=Path, help="another checkout, whose worker takes part")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        command = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        sys.exit(subprocess.run([*command, sys.executable, *sys.argv, "--inside"], check=False).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        web = Web(folder / "web", make_graph())
        (folder / "hosts").write_text(web.addresses())
        subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
        with web.serving(), roads(folder, web.authority, [], options.only, options.against) as found:
            run([road for road in found if road.name != DIRECT], web, options.rounds, options.connections)


if __name__ == "__main__":
    main()
