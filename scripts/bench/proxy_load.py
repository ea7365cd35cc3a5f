"""The load of the proxy benchmark, and the origin: both cheap beside any proxy in Python, so that two cores are enough for four.

The client is one loop over epoll with raw sockets and OpenSSL's records, about 20 µs a request; the origin is nginx where it is
installed (`apt-get install nginx-light`), about 15 µs, else a loop of asyncio.
"""

import contextlib
import itertools
import multiprocessing
import select
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

CONNECTIONS = 32
"""Enough to keep two workers busy, whatever of them the kernel gives to each."""
PLACES = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
_HEAD = (
    "GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"
    "Accept-Language: en\r\nAccept-Encoding: gzip\r\nSec-Fetch-Dest: {destination}\r\nSec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: none\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Took:
    """What a round took.

    Attributes:
        seconds: of wall time, from the first request to the last answer; connections were open before.
        cpu_s: of the client itself.
    """

    seconds: float
    cpu_s: float


class _Connection:
    """A client's connection through a proxy, with CONNECT and TLS where there is a context.

    Attributes:
        socket: to be polled for reading; its descriptor stays the same.
        asked: the request under way, `b""` for none.
        complete: how many answers came.
    """

    def __init__(self, proxy_port: int, origin: str, tls: ssl.SSLContext | None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", proxy_port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked = b""
        self.complete = 0
        self._tls = tls
        self._got = b""
        self._opening = tls is not None
        if tls is not None:
            self.socket.sendall(f"CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n\r\n".encode())
        self.socket.setblocking(False)

    def _opens(self) -> bool:
        """Goes on with CONNECT and handshake. Returns whether they are still under way; raises where the proxy ends them."""
        if not isinstance(self.socket, ssl.SSLSocket):
            assert self._tls is not None
            self._got += self.socket.recv(4096) or _fail(self._got)
            if not self._got.endswith(b"\r\n\r\n"):
                return True
            self._got = b""
            self.socket = self._tls.wrap_socket(self.socket, server_hostname="localhost", do_handshake_on_connect=False)
        self.socket.do_handshake()
        self._opening = False
        if self.asked:
            self.socket.send(self.asked)
        return False

    def is_open(self) -> bool:
        """Goes on opening it. Returns whether requests can be sent."""
        with contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
            return not (self._opening and self._opens())
        return False

    def ask(self, head: bytes) -> None:
        """Sends a request; `b""` for none."""
        self.asked = head
        if head and not self._opening:
            self.socket.send(head)

    def answered(self, size: int) -> bool | None:
        """Reads. Returns whether the answer is complete, `None` when the proxy has closed the connection."""
        try:
            if self._opening and self._opens():
                return False
            data = self.socket.recv(65536)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        except (ConnectionError, ssl.SSLError):
            return None
        if not data:
            return None
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or len(body) < size:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            _fail(head)
        self._got = b""
        self.complete += 1
        return True


def _fail(answer: bytes) -> bytes:
    raise SystemExit(f"the proxy answered {answer[:200]!r}")


class _Load:
    """Connections through a proxy, one request at a time on each."""

    def __init__(self, where: tuple[int, str, ssl.SSLContext | None], heads: Iterator[bytes], per_connection: int) -> None:
        self._where = where
        self._heads = heads
        self._per_connection = per_connection
        self._waiting = select.epoll()
        self._open: dict[int, _Connection] = {}
        for _ in range(CONNECTIONS):
            self._connect()
        opening = list(self._open.values())
        while opening := [one for one in opening if not one.is_open()]:
            self._waiting.poll(30)

    def begin(self) -> None:
        """Sends the first request on each connection."""
        for connection in self._open.values():
            connection.ask(next(self._heads))

    def answers(self, size: int) -> int:
        """Waits for answers with `size` bytes each, and asks again. Returns how many there were."""
        complete = 0
        for number, _ in self._waiting.poll(30):
            connection = self._open[number]
            answered = connection.answered(size)
            if answered:
                complete += 1
                head = next(self._heads, b"")
                if connection.complete == self._per_connection:
                    self._replace(number, head)
                else:
                    connection.ask(head)
            elif answered is None:  # some proxies end a connection after so many requests
                self._replace(number, connection.asked)
        return complete

    def _replace(self, number: int, head: bytes) -> None:
        """Closes a connection, and opens another one for a request; none without one."""
        self._waiting.unregister(number)
        self._open.pop(number).socket.close()
        if head:
            self._connect().ask(head)

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._open.values():
            connection.socket.close()
        self._waiting.close()

    def _connect(self) -> _Connection:
        made = _Connection(*self._where)
        self._open[made.socket.fileno()] = made
        self._waiting.register(made.socket, select.EPOLLIN)
        return made


def drive(
    proxy_port: int,
    origin_port: int,
    requests: int,
    ca: Path | None,
    *,
    paths: Sequence[str],
    size: int,
    destinations: Sequence[str] = ("document",),
    per_connection: int = 0,
) -> Took:
    """Sends requests over keep-alive connections, one at a time on each; with a CA by HTTPS through CONNECT.

    Args:
        proxy_port: on loopback.
        origin_port: on loopback.
        requests: how many.
        ca: of the proxy.
        paths: of the requests, repeated.
        size: of each body.
        destinations: Sec-Fetch-Dest of the paths, repeated.
        per_connection: how many are sent over one connection; 0 for any number.
    """
    origin = f"localhost:{origin_port}"
    tls = ssl.create_default_context(cafile=str(ca)) if ca is not None else None
    if tls is not None:
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT  # squid's certificates name no key identifiers
    prefix = "" if tls is not None else f"http://{origin}"
    heads = [
        _HEAD.format(url=prefix + path, host=origin, destination=destination).encode()
        for path, destination in zip(paths, itertools.cycle(destinations), strict=False)
    ]
    load = _Load((proxy_port, origin, tls), itertools.islice(itertools.cycle(heads), requests), per_connection)
    started, cpu = time.perf_counter(), time.process_time()
    load.begin()
    left = requests
    while left > 0:
        left -= load.answers(size)
    took = Took(time.perf_counter() - started, time.process_time() - cpu)
    load.close()
    return took


class Origin:
    """A running origin.

    Args:
        ports: HTTP and HTTPS.
        pid: of its main process.
        name: what it is.

    Attributes:
        process: its main process.
    """

    def __init__(self, ports: Sequence[int], pid: int, name: str) -> None:
        self.ports = tuple(ports)
        self.name = name
        self.process = psutil.Process(pid)

    def cpu_s(self) -> float:
        """User and system time so far."""
        times = [process.cpu_times() for process in (self.process, *self.process.children(recursive=True))]
        return sum(one.user + one.system for one in times)


@contextlib.contextmanager
def origin(folder: Path, ports: Sequence[int], certificate: Path, body: bytes) -> Iterator[Origin]:
    """Runs an origin that answers every request with the same body: by HTTP on the first port, by HTTPS on the second."""
    nginx = shutil.which("nginx", path=PLACES)
    if nginx is None:
        with _of_asyncio(ports, certificate) as found:
            yield found
        return
    folder.mkdir(mode=0o755)
    (folder / "nginx.conf").write_text(
        f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        "events { worker_connections 4096; }\n"
        "http {\n access_log off; keepalive_requests 100000000; keepalive_timeout 600s; default_type text/html;\n"
        f" client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;\n"
        f" uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;\n"
        f" server {{ listen 127.0.0.1:{ports[0]}; listen 127.0.0.1:{ports[1]} ssl;\n"
        f"  ssl_certificate {certificate}; ssl_certificate_key {certificate};\n"
        f'  location / {{ return 200 "{body.decode()}"; }} }}\n'
        "}\n"
    )
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Origin(ports, process.pid, "nginx")
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def _of_asyncio(ports: Sequence[int], certificate: Path) -> Iterator[Origin]:
    from bench_proxy import run_origin  # noqa: PLC0415  that module imports this one

    process = multiprocessing.get_context("spawn").Process(target=run_origin, args=(ports, str(certificate)), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        yield Origin(ports, process.pid, "asyncio")
    finally:
        process.terminate()
        process.join(10)
