"""`gatewayfilter run` as a real process, a client that goes through it, and an origin with pages, for the end-to-end tests."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import SystemRandom
from socketserver import TCPServer
from typing import Any, Self
from weakref import WeakSet

import psutil
import trustme

from gatewayfilter.store import Store

COMMAND = str(Path(sys.executable).with_name("gatewayfilter"))
START_S = 40
ANSWER_S = 60.0
"""How long a client waits for the filter, on a busy machine: longer than the filter waits for anything."""
PRESSURE = Path("/proc/pressure/cpu")
MOST_STALLED_S = 60.0
"""How long at most a limit is put off on a machine that is busy with other things."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client got."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def reason(self) -> str:
        """The reason code when the filter itself answered, else an empty string."""
        return self.headers.get("x-gatewayfilter", "").partition("reason=")[2]


def until[T](what: str, ask: Callable[[], T | None], timeout_s: float = 10.0) -> T:
    """Asks until there is an answer.

    The limit counts the time in which the machine had a CPU for all that was ready to run: it holds the filter to its promise on
    a quiet machine, and does not fail for the load of others on a busy one.
    """
    began, stalled_before = time.monotonic(), stalled_s()
    while time.monotonic() - began < timeout_s + min(stalled_s() - stalled_before, MOST_STALLED_S):
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {timeout_s} s, of {time.monotonic() - began:.1f} s in all")


def free_port() -> int:
    """Returns a port that nobody has on loopback, below those of which Linux chooses one for whoever asks for any.

    One of these may be another's, also a client's, before it is used here.
    """
    for port in SystemRandom().sample(range(10_000, 32_768), 100):  # the seed of `random` is that of all processes of a run
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def stalled_s() -> float:
    """Seconds in which something ready to run had to wait for a CPU, since the machine started; 0 where it is not counted."""
    try:
        some = PRESSURE.read_text().partition("total=")[2]
    except OSError:
        return 0.0
    return int(some.split()[0]) / 1e6


def has_ended(process: psutil.Process) -> bool:
    """Returns whether a process is no more, or nothing but its exit code is left."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class GatewayProcess:
    """The filter on a state folder; started and stopped as often as a test likes."""

    def __init__(self, state: Path, **settings: str) -> None:
        self.state = state
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GATEWAYFILTER_")},
            "GATEWAYFILTER_DATA_DIR": str(state),
            "GATEWAYFILTER_PROXY__LISTEN": "127.0.0.1:0",
            "GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8",
            "GATEWAYFILTER_CRAWL__PER_HOST_DELAY_S": "0",
            "GATEWAYFILTER_LOG__LEVEL": "info",
            "GATEWAYFILTER_WEB__LISTEN": "",
            **{f"GATEWAYFILTER_{name.upper()}": value for name, value in settings.items()},
        }
        self.address = ""
        self.prefix: tuple[str, ...] = ()
        self.process: subprocess.Popen[str] | None = None
        self.log = state.with_name(f"{state.name}.log")
        self._said_before = 0

    def start(self, *arguments: str) -> Self:
        """Starts the filter and waits until all its workers serve."""
        with self.log.open("a") as log:
            self._said_before = log.tell()
            self.process = subprocess.Popen(
                [*self.prefix, COMMAND, "run", *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        line = until("banner", self._banner_line, START_S)
        self.address = line.partition("is filtering on ")[2].split()[0]
        return self

    def _banner_line(self) -> str | None:
        assert self.process is not None
        assert self.process.stdout is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the filter ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")
        line = self.process.stdout.readline()
        return line if line and "is filtering on" in line else None

    def said(self) -> str:
        """Returns the log since the last start."""
        return self.log.read_bytes()[self._said_before :].decode(errors="replace")

    def stop(self) -> int:
        """Ends the filter as systemd would. Returns its exit code."""
        assert self.process is not None
        process = self.process
        process.send_signal(signal.SIGTERM)
        until("end of the filter", lambda: process.poll() is not None, 20.0)
        assert process.stdout is not None
        process.stdout.close()
        return process.returncode

    def kill(self) -> None:
        """Kills the filter and all its processes at once, as a power failure would."""
        assert self.process is not None
        family = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGKILL)
        self.process.wait(20)
        psutil.wait_procs(family, 20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()

    def cli(self, *arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs another command on the same state folder."""
        return subprocess.run(
            [*self.prefix, COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def json(self, *arguments: str) -> Any:
        """Runs a command and returns its JSON."""
        done = self.cli(*arguments, "--json")
        assert done.returncode in {0, 1}, done.stderr
        return json.loads(done.stdout)

    def status(self, name: str) -> dict[str, Any]:
        """Returns what a process says of itself; empty while it says nothing."""
        try:
            return dict(json.loads((self.state / "run" / f"{name}.json").read_text()))
        except (OSError, ValueError):
            return {}

    def await_rules(self, name: str, timeout_s: float = 60.0) -> None:
        """Waits until a process has taken in what is in the lists now; each writes down every second how far it is."""
        with closing(Store.open(f"sqlite:///{self.state / 'gatewayfilter.sqlite3'}")) as store:
            newest = store.feed.last_seq()
        until(f"the rules in {name}", lambda: self.status(name).get("feed_seq", 0) >= newest, timeout_s)

    def child(self, name: str) -> psutil.Process:
        """Returns a child process of the filter."""
        return psutil.Process(until(f"status of {name}", lambda: self.status(name)).get("pid"))

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Fetches a URL through the filter, trusting its authority."""
        authority = self.state / "ca" / "mitmproxy-ca-cert.pem"
        context = ssl.create_default_context(cafile=str(authority)) if url.startswith("https:") else None
        proxies = urllib.request.ProxyHandler({"http": f"http://{self.address}", "https": f"http://{self.address}"})
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(urllib.request.Request(url, headers=dict(headers or {})), timeout=ANSWER_S) as response:
                return Answer(
                    response.status,
                    {name.lower(): value for name, value in response.headers.items()},
                    response.read().decode(errors="replace"),
                )
        except urllib.error.HTTPError as error:
            with error:
                return Answer(
                    error.code,
                    {name.lower(): value for name, value in error.headers.items()},
                    error.read().decode(errors="replace"),
                )


class SiteServer(ThreadingHTTPServer):
    """A server that takes no offence when a client leaves: nobody reads what the standard one writes to stderr about it.

    Its end is that of its connections too, as when a machine is switched off.
    """

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: WeakSet[socket.socket] = WeakSet()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Asks nobody for the name of an address of loopback: a resolver that does not answer would take seconds for each."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        super().server_close()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Origin:
    """A site on loopback, http or https: path → (content type, body), or where to; counts who asked for what."""

    def __init__(
        self,
        pages: Mapping[str, tuple[str, bytes]],
        authority: trustme.CA | None = None,
        redirects: Mapping[str, str] | None = None,
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.fetches: Counter[tuple[str, str]] = Counter()
        fetches = self.fetches
        led_on = redirects or {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fetches[self.path, self.headers.get("user-agent", "").partition("/")[0]] += 1
                kind, body = pages.get(self.path, ("text/plain", b"not here"))
                self.send_response(302 if self.path in led_on else 200 if self.path in pages else 404)
                if self.path in led_on:
                    self.send_header("Location", led_on[self.path])
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = SiteServer(address, Handler)
        scheme = "http"
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            scheme = "https"
        self.base = f"{scheme}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Ends the site."""
        self.server.shutdown()
        self.server.server_close()

    def crawls(self, path: str) -> int:
        """How often the crawler fetched a page."""
        return self.fetches[path, "GatewayFilter"]
