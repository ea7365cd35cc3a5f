"""Looking at pages before they are delivered: CPU of a 200 KB page through us, and through e2guardian's phrase scan.

Both stand in front of the same site in the same run, in turns; counted is the CPU of all their processes, by the difference to
the same pages passing without a look. The page is a real one where there are any (GATEWAYFILTER_TEST_DATA, or ../shared/data
beside the repository), else of generated sentences. e2guardian is Debian's, with its own lists: install it first.

    make bench ARGS=inspect
"""

import contextlib
import gzip
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from filter_process import Filter

ROOT = Path(__file__).parents[2]
BYTES = 200_000
PAGES = 30
ROUNDS = 5
E2GUARDIAN = shutil.which("e2guardian", path=f"{os.environ['PATH']}:/usr/sbin")


def page() -> bytes:
    """Returns a harmless page of `BYTES` bytes with a place for its number."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data") / "pages" / "html"
    bodies = [gzip.decompress(file.read_bytes()) for file in sorted(folder.glob("*.gz"))]
    near = sorted((abs(len(body) - BYTES), body) for body in bodies if len(body) > BYTES * 0.6)
    if near:
        body = near[0][1]
        print(f"a real page of {len(body) / 1000:.0f} KB")
        return body.replace(b"</title>", b" NUMBER</title>", 1)
    chance = random.Random(7)
    words = ["garden", "autumn", "soil", "tulip", "winter", "water", "light", "morning", "paper", "school", "river", "letter"]
    text = "".join(f"<p>{' '.join(chance.choices(words, k=40))}.</p>\n" for _ in range(BYTES // 290))
    print(f"a generated page of {len(text) / 1000:.0f} KB")
    return f"<!DOCTYPE html><html><head><title>NUMBER</title></head><body>{text}</body></html>".encode()


@contextlib.contextmanager
def site(body: bytes) -> Iterator[int]:
    """Serves the page under any path, each time a little different; yields the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = body.replace(b"NUMBER", self.path.encode())
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def free_port() -> int:
    """Returns a free port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def cpu_s(processes: list[psutil.Process]) -> float:
    """Returns the CPU time of processes and all below them."""
    total = 0.0
    for process in processes:
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                total += times.user + times.system
    return total


class Peer:
    """One way through which pages are fetched.

    Attributes:
        costs: CPU milliseconds a page, one figure a round.
    """

    def __init__(self, name: str, port: int, processes: list[psutil.Process]) -> None:
        self.name = name
        self.costs: list[float] = []
        self._processes = processes
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))

    def round(self, site_port: int, number: int) -> None:
        """Fetches pages that were never asked for before."""
        before = cpu_s(self._processes)
        for one in range(PAGES):
            url = f"http://127.0.0.1:{site_port}/{self.name.replace(' ', '-')}/{number}/{one}"
            request = urllib.request.Request(url, headers={"sec-fetch-dest": "document", "sec-fetch-mode": "navigate"})
            with self._opener.open(request, timeout=60) as answer:
                if answer.status != 200 or len(answer.read()) < BYTES // 2:
                    raise SystemExit(f"{self.name} gave no page")
        self.costs.append((cpu_s(self._processes) - before) * 1000 / PAGES)


@contextlib.contextmanager
def ours(folder: Path, rule: str, *, learning: bool = False) -> Iterator[Peer]:
    """Starts the filter with one worker, which learns of what it looks at or of nothing."""
    settings = {
        "GATEWAYFILTER_PROXY__UNKNOWN": rule,
        "GATEWAYFILTER_PROXY__INSPECT_MS": "20000",
        "GATEWAYFILTER_LEARN__ENABLED": "true" if learning else "false",
        "GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8" if learning else "",
    }
    running = Filter(folder, "--workers", "1", settings=settings)
    running.start()
    name = f"ours, looking{' and learning' if learning else ''}" if rule == "inspect" else "ours, passing"
    try:
        time.sleep(4)  # the inspector has read its words
        peer = Peer(name, running.port, running.workers())
        yield peer
        time.sleep(2)  # counters are written once a second
        counters = json.loads((folder / "run" / "proxy-0.json").read_text())["counters"]
        looked_at = counters.get("inspected", 0)
        if looked_at != (PAGES * (ROUNDS + 1) if rule == "inspect" else 0):
            raise SystemExit(f"{name}: {looked_at} pages were looked at")
    finally:
        running.stop()


@contextlib.contextmanager
def e2guardian(folder: Path, *, scanning: bool) -> Iterator[Peer]:
    """Starts Debian's e2guardian with its own lists, with and without weighted phrases."""
    assert E2GUARDIAN is not None
    shutil.copytree("/etc/e2guardian", folder, symlinks=False)
    port = free_port()
    for path in folder.rglob("*.conf"):
        text = path.read_text(errors="replace").replace("/etc/e2guardian", str(folder))
        text = re.sub(r"(?m)^filterports = .*", f"filterports = {port}", text)
        text = re.sub(r"(?m)^#?\s*httpworkers = .*", "httpworkers = 20", text)
        text = re.sub(r"(?m)^#?\s*transparenthttpsport = .*", f"transparenthttpsport = {free_port()}", text)
        text = re.sub(r"(?m)^weightedphrasemode = .*", f"weightedphrasemode = {2 if scanning else 0}", text)
        text = re.sub(r"(?m)^nodaemon = .*", "nodaemon = on", text)
        text += f"\npidfilename = '{folder}/pid'\nloglocation = '{folder}/access.log'\nnologger = on\nnaughtynesslimit = 100000\n"
        path.write_text(text)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    process = subprocess.Popen(
        [E2GUARDIAN, "-N", "-c", str(folder / "e2guardian.conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        else:
            raise SystemExit("e2guardian did not start")
        yield Peer("e2guardian, scanning" if scanning else "e2guardian, passing", port, [psutil.Process(process.pid)])
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def main() -> None:
    """Measures and prints."""
    body = page()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        port = stack.enter_context(site(body))
        peers = [stack.enter_context(ours(folder / rule, rule)) for rule in ("allow", "inspect")]
        peers.append(stack.enter_context(ours(folder / "learn", "inspect", learning=True)))
        if E2GUARDIAN is not None and os.geteuid() == 0:
            peers += [stack.enter_context(e2guardian(folder / f"e2-{on}", scanning=on)) for on in (False, True)]
        else:
            print("e2guardian is not installed, or this is not root: measured without it")
        for number in range(-1, ROUNDS):
            for peer in peers:
                peer.round(port, number)
        print("\n| through | CPU ms/page | of it for the look |\n|---|---|---|")
        passing = 0.0
        for peer in peers:
            cost = statistics.median(peer.costs[1:])
            looking = not peer.name.endswith("passing")
            print(f"| {peer.name} | {cost:.1f} | {f'{cost - passing:.1f}' if looking else ''} |")
            passing = passing if looking else cost


if __name__ == "__main__":
    main()
