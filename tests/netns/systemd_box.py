"""A systemd that runs our units as they are shipped, in namespaces of its own; it and all below it end with the test."""

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.netns.netns_network import until

SCRIPT = Path(__file__).with_suffix(".sh")
SOURCES = Path(__file__).parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup")
SETTINGS = """
[proxy]
mode = "transparent"
listen = "[::]:8080"
workers = 1
[gateway]
lan = ["lan0"]
[learn]
enabled = false
"""


def why_no_systemd() -> str:
    """Returns why no systemd can be started here, empty when it can be tried."""
    if os.geteuid() != 0:
        return "needs root"
    if not SYSTEMD.exists():
        return "needs systemd"
    for tool in ("unshare", "nsenter", "nft", "ip", "useradd", "ldconfig"):
        if shutil.which(tool) is None:
            return f"needs the command {tool}"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "the kernel has no overlay file system"
    return ""


class Box:
    """The machine in a box.

    Args:
        process: `unshare`, whose child is process 1 in there.
        log: what is printed before systemd begins.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.log = log

    @property
    def first(self) -> psutil.Process | None:
        """Its process 1, seen from outside."""
        children = psutil.Process(self._process.pid).children()
        return children[0] if children else None

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the box."""
        first = self.first
        assert first is not None, self.log.read_text()[-3000:]
        line = ["nsenter", "-t", str(first.pid), "-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w", *command]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)

    def systemctl(self, *arguments: str) -> str:
        """Runs systemctl, which has to succeed."""
        done = self.run("systemctl", *arguments)
        assert done.returncode == 0, done.stderr + self.run("journalctl", "--no-pager", "-n", "40").stdout
        return done.stdout.strip()

    def shown(self, unit: str, name: str) -> str:
        """Returns a property of a unit."""
        return self.systemctl("show", unit, "--property", name, "--value")

    @property
    def booted(self) -> bool:
        """Whether systemd has reached its target."""
        first = self.first
        return (
            first is not None and first.name() == "systemd" and self.run("systemctl", "is-active", "box.target").returncode == 0
        )


@contextlib.contextmanager
def systemd_box(folder: Path) -> Iterator[Box]:
    """Boots it.

    Raises:
        AssertionError: it does not come up.
    """
    layer, log, settings = folder / "layer", folder / "boot.log", folder / "gatewayfilter.toml"
    layer.mkdir()
    settings.write_text(SETTINGS)
    packages = sysconfig.get_paths()["purelib"]
    arguments = [str(path) for path in (layer, sys.base_prefix, packages, SOURCES, settings)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["unshare", *NAMESPACES, "--fork", "--kill-child", "sh", str(SCRIPT), *arguments], stdout=file, stderr=file
        )
        box = Box(process, log)
        try:
            until(f"systemd; {log}", lambda: process.poll() is not None or box.booted)
            assert process.poll() is None, log.read_text()[-3000:]
            yield box
        finally:
            if process.poll() is None and (first := box.first) is not None:
                first.kill()  # and with process 1 everything in its namespace
            process.kill()
            process.wait(20)
