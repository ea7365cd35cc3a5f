"""The box of `make chaos`: a disk, a network, an origin, a resolver and a clock of its own, which faults can take away.

A process that is root moves itself into a network and a mount namespace. The origin and the resolver listen in a further network
namespace behind a pair of veth devices. Elsewhere the origin is on loopback, and faults that need the box are left out.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.e2e.e2e_gateway import Origin

BODY = b"<p>" + b"beans in May " * 40 + b"</p>"
PAGES = {f"/{number}": ("text/html", BODY) for number in range(20_000)}
"""Many, so that each request is a row of the log that no other one is."""
_NEAR, _FAR = "203.0.113.1", "203.0.113.10"
_INSIDE = "GATEWAYFILTER_CHAOS_INSIDE"
_DISK_MB = 160
_CLOCK_LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def move_into_namespaces() -> None:
    """Starts this program again in namespaces of its own, where that is allowed."""
    unshare = ("unshare", "--net", "--mount", "--propagation", "private")
    if _INSIDE in os.environ or os.geteuid() != 0:
        return
    with suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True)
        os.environ[_INSIDE] = "1"
        os.execvp(unshare[0], [*unshare, *sys.orig_argv])


class Box:
    """The surroundings of a filter.

    Args:
        folder: empty; the disk is mounted on it.

    Attributes:
        whole: whether there are namespaces; if not, there is an origin alone.
        folder: where the state folder is to be.
        settings: of the filter in this box.
        origin: as it listens now, `None` after `end_origin`.
        clock: the file that sets the clock, `None` where libfaketime is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.whole = _INSIDE in os.environ
        self.folder = folder / "disk"
        self.folder.mkdir()
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.clock: Path | None = None
        self._resolves = threading.Event()
        self._resolves.set()
        self._port = 0
        self._resolver: socket.socket | None = None
        if self.whole:
            self._join_networks(folder)
            _run("mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "none", str(self.folder))
            self.settings = {"proxy__allow_networks": "203.0.113.0/24", "crawl__allow_networks": "203.0.113.0/24,127.0.0.0/8"}
            self._take_clock(folder)
        self.origin: Origin | None = None
        self.start_origin()

    @property
    def base(self) -> str:
        """The URL of the origin, without a path."""
        return "http://site.example" if self.whole else f"http://127.0.0.1:{self._port}"

    def start_origin(self) -> None:
        """Has the origin listen, again at its old address."""
        if not self.whole:
            self.origin = Origin(PAGES, address=("127.0.0.1", self._port))
            self._port = self.origin.server.server_port
            return
        self.origin = self._far.run(lambda: Origin(PAGES, address=(_FAR, 80)))

    def end_origin(self) -> None:
        """Has the origin refuse connections."""
        if self.origin is not None:
            self.origin.close()
            self.origin = None

    def resolve(self, *, answers: bool) -> None:
        """Has the resolver answer, or be silent."""
        (self._resolves.set if answers else self._resolves.clear)()

    def link(self, *, up: bool) -> None:
        """Plugs the cable to origin and resolver in, or pulls it out."""
        _run("ip", "link", "set", "wan0", "up" if up else "down")
        if up:
            _run("ip", "route", "replace", "default", "via", _FAR)

    def set_clock(self, offset_s: int) -> None:
        """Sets the clock of the filter to so many seconds from the true time."""
        assert self.clock is not None
        self.clock.write_text(f"{offset_s:+d}")

    def close(self) -> None:
        """Ends origin and resolver, and takes the disk away."""
        self.end_origin()
        if self._resolver is not None:
            self._resolver.close()
        if self.whole:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)

    def _join_networks(self, folder: Path) -> None:
        _run("ip", "link", "set", "lo", "up")
        self._far = _Namespace()
        self._far.run(lambda: _join(os.getpid()))
        _run("ip", "address", "add", f"{_NEAR}/24", "dev", "wan0")
        self.link(up=True)
        (folder / "resolv.conf").write_text(f"nameserver {_FAR}\noptions timeout:1 attempts:1\n")
        _run("mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf")
        self._far.run(self._open_resolver)
        threading.Thread(target=self._answer, daemon=True).start()

    def _open_resolver(self) -> None:
        self._resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._resolver.bind((_FAR, 53))

    def _answer(self) -> None:
        """Answers each question for an address with that of the origin, each other one with none."""
        assert self._resolver is not None
        with suppress(OSError):
            while True:
                asked, address = self._resolver.recvfrom(4096)
                if not self._resolves.is_set():
                    continue
                end = asked.index(b"\0", 12) + 5
                wanted = asked[end - 4 : end - 2] == b"\0\1"
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(_FAR) if wanted else b""
                head = asked[:2] + b"\x81\x80\0\1" + (b"\0\1" if wanted else b"\0\0") + b"\0\0\0\0"
                self._resolver.sendto(head + asked[12:end] + answer, address)

    def _take_clock(self, folder: Path) -> None:
        libraries = sorted(Path("/").glob(_CLOCK_LIBRARIES.removeprefix("/")))
        if not libraries:
            return
        self.clock = folder / "clock"
        self.set_clock(0)
        self.environment = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "NO_FAKE_STAT": "1",
        }


class _Namespace:
    """A network namespace: that of the one thread of a pool."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, initializer=os.unshare, initargs=(os.CLONE_NEWNET,))

    def run[T](self, call: Callable[[], T]) -> T:
        """Makes a call in the namespace; sockets that it opens stay there."""
        return self._thread.submit(call).result(20)


def _join(near: int) -> None:
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "wan0", "netns", str(near))
    _run("ip", "address", "add", f"{_FAR}/24", "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
