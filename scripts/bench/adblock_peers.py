"""The Adblock engines for Node and the native crate `adblock`, each in a process of its own that runs one round after the other.

The packages for Node are installed by npm into peers/node_modules, which git ignores, at the versions below; cargo builds the
crate, into peers/.cache, which git ignores too. Without node, npm or cargo they are left out, with the reason.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adblock_engines import DATA, REQUESTS
from publicsuffixlist import PSLFILE

FOLDER = Path(__file__).parent / "peers"
VERSIONS = {"@gorhill/ubo-core": "0.1.30", "@ghostery/adblocker": "2.18.2"}
CRATE_VERSION = "0.13.5"
_MANIFEST = f"""[package]
name = "peer"
version = "0.0.0"
edition = "2021"

[dependencies]
adblock = "={CRATE_VERSION}"
serde_json = "1"
libc = "0.2"
"""
PEERS = {"ubo-core": "@gorhill/ubo-core", "ghostery": "@ghostery/adblocker"}


def install() -> str:
    """Installs the packages if they are not there; returns why there are none, "" when all is well."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if all(_installed(package) == version for package, version in VERSIONS.items()):
        return ""
    wanted = [f"{package}@{version}" for package, version in VERSIONS.items()]
    options = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = ["npm", "install", "--prefix", str(FOLDER), *options, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"npm could not install them: {done.stderr.strip()[:300]}"


def _installed(package: str) -> str:
    try:
        found = json.loads((FOLDER / "node_modules" / package / "package.json").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return str(found["version"])


class Peer:
    """An engine in a process of its own, which answers lines; its first is the CPU seconds that loading took.

    Args:
        command: what to run.
        cwd: where.
    """

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd)
        self.load_s = float(self._answer()["load_s"])

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def _ask(self, command: str) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def round(self) -> float:
        """Returns the CPU seconds (user and system, all threads of the process) of one pass over all requests."""
        return self._ask("round")["cpu_s"]

    def prepared(self) -> float:
        """Returns the same of a pass over requests that were made before; the native crate alone has it."""
        return self._ask("prepared")["cpu_s"]

    def verdicts(self) -> list[int]:
        """Returns for each request whether it is blocked."""
        return [int(verdict) for verdict in self._ask("verdicts")]

    def rss_mb(self) -> float:
        """Returns the resident memory of the process."""
        return self._ask("memory")["rss_mb"]

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate(timeout=30)


@contextmanager
def node_peers(lists: Sequence[str]) -> Iterator[dict[str, Peer]]:
    """Yields the engines that can be had, by the name of their package; says why when there are none."""
    peers: dict[str, Peer] = {}
    files = [str(DATA / "lists" / one) for one in lists]
    try:
        if why := install():
            print(f"\nWithout the engines for Node: {why}.")
        else:
            for name, package in PEERS.items():
                peers[package] = Peer(["node", str(FOLDER / "peer.mjs"), name, str(PSLFILE), str(REQUESTS), *files], FOLDER)
        yield peers
    finally:
        for peer in peers.values():
            peer.close()


@contextmanager
def native_peer(lists: Sequence[str]) -> Iterator[Peer | str]:
    """Yields the crate `adblock` over these lists, or why there is none. Building it takes a minute the first time."""
    if shutil.which("cargo") is None:
        yield "cargo is not installed"
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src").mkdir()
        (root / "Cargo.toml").write_text(_MANIFEST, encoding="utf-8")
        shutil.copy(FOLDER / "native.rs", root / "src" / "main.rs")
        command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(FOLDER / ".cache")]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"cargo could not build it: {done.stderr.strip()[-300:]}"
            return
        peer = Peer([str(FOLDER / ".cache/release/peer"), str(REQUESTS), *(str(DATA / "lists" / one) for one in lists)], root)
        try:
            yield peer
        finally:
            peer.close()
