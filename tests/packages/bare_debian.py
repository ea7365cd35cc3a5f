"""A bare Debian with systemd in namespaces of its own, in which a guide's commands are typed; it ends with the test."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.netns.netns_network import until
from tests.netns.systemd_box import NAMESPACES, Box

SCRIPT = Path(__file__).with_suffix(".sh")
_BLOCK = re.compile(r"^<!-- commands: (\w+) -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(page: Path, name: str) -> list[str]:
    """Returns the blocks of commands of a page that carry this mark, word for word."""
    return [text for mark, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if mark == name]


class BareDebian(Box):
    """The machine that somebody sits before, in the folder of packages."""

    def type(self, commands: str, timeout_s: float = 240) -> str:
        """Runs lines of a shell as they are typed, each of which has to succeed; returns what was printed.

        Raises:
            AssertionError: one failed.
        """
        done = self.try_to(commands, timeout_s)
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def try_to(self, commands: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
        """As `type`, whatever comes of it."""
        first = self.first
        assert first is not None, self.log.read_text()[-3000:]
        enter = ["nsenter", "-t", str(first.pid), "-m", "-p", "-n", "-u", "-i", "-C", "-r", "-w"]
        environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"]
        line = [*enter, *environment, "sh", "-ec", f"cd /srv/packages\n{commands}"]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=timeout_s)

    def from_client(self, *arguments: str) -> str:
        """Returns the status that curl gets on the client's machine."""
        line = ["ip", "netns", "exec", "client", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-m", "60", *arguments]
        return self.run(*line).stdout


@contextlib.contextmanager
def bare_debian(folder: Path, bare: Path, packages: Path) -> Iterator[BareDebian]:
    """Boots it.

    Raises:
        AssertionError: it does not come up.
    """
    layer, log = folder / "layer", folder / "boot.log"
    layer.mkdir()
    command = ["unshare", *NAMESPACES, "--fork", "--kill-child", "sh", str(SCRIPT), str(layer), str(bare), str(packages)]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    box = BareDebian(process, log)
    try:
        until(f"systemd; {log}", lambda: process.poll() is not None or box.booted, 120)
        assert process.poll() is None, log.read_text()[-3000:]
        yield box
    finally:
        if process.poll() is None and (first := box.first) is not None:
            first.kill()  # and with process 1 everything in its namespace
        process.kill()
        process.wait(20)
