"""Kernel access: nft, sysctls for forwarding, and listening ports. Everything that needs CAP_NET_ADMIN is here."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.ruleset import TABLE

_SYSCTL: Final = Path("/proc/sys")
_TCP: Final = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_LISTENING: Final = "0A"
_TIMEOUT_S: Final = 20.0
_SBIN: Final = "/usr/sbin:/sbin:/usr/bin:/bin"
"""Search path for nft; the `PATH` of an ordinary user often lacks `sbin`."""


class Kernel:
    """The firewall and the sysctls of this process's network namespace."""

    def load(self, ruleset: str, *, check_only: bool = False) -> None:
        """Loads a ruleset in one transaction, or only checks it.

        Raises:
            GatewayError: nft is missing, not allowed, or refuses it; nothing has changed then.
        """
        self._nft(["-c"] if check_only else [], "-f", "-", text=ruleset)

    def listing(self) -> str:
        """Returns the table in the kernel, without counters; `""` when it is not loaded.

        Raises:
            GatewayError: nft is missing or not allowed.
        """
        return self._listed(["-s"])

    def counted(self) -> str:
        """Returns the table with its counters; `""` when it is not loaded."""
        return self._listed([])

    def _listed(self, options: list[str]) -> str:
        if not self.has_table():
            return ""
        try:
            return self._nft(options, "list", "table", "inet", TABLE)
        except GatewayError:
            if self.has_table():
                raise
            return ""  # removed between the two calls

    def has_table(self) -> bool:
        """Returns whether the table is loaded."""
        return f"table inet {TABLE}\n" in self._nft([], "list", "tables")

    def interfaces(self) -> frozenset[str]:
        """Returns the names of all interfaces."""
        return frozenset(path.name for path in (_SYSCTL / "net/ipv4/conf").iterdir()) - {"all", "default"}

    def switch(self, name: str) -> str | None:
        """Returns a sysctl's value, `None` when the kernel does not have it; `name` with slashes."""
        try:
            return (_SYSCTL / name).read_text(encoding="ascii").strip()
        except OSError:
            return None

    def set_switch(self, name: str, value: str) -> None:
        """Sets a sysctl.

        Raises:
            GatewayError: not allowed, or there is none of that name.
        """
        try:
            (_SYSCTL / name).write_text(value, encoding="ascii")
        except OSError as error:
            raise GatewayError(f"cannot set {name.replace('/', '.')} to {value}: {error.strerror}") from error

    def listens(self, port: int) -> frozenset[int]:
        """Returns the families (4, 6) with a listener on a TCP port; both for a dual-stack `::`."""
        return frozenset(family for family in _TCP if _listens(_TCP[family], port))

    def _nft(self, options: list[str], *arguments: str, text: str = "") -> str:
        nft = shutil.which("nft") or shutil.which("nft", path=_SBIN)
        if nft is None:
            raise GatewayError("the command nft is missing: install the package nftables")
        try:
            done = subprocess.run(  # noqa: S603  a fixed program, the text on its standard input
                [nft, *options, *arguments], input=text, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GatewayError(f"cannot run nft: {error}") from error
        if done.returncode:
            reason = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "no reason given")
            if "not permitted" in done.stderr:
                raise GatewayError("nft is not permitted here: run this as root (CAP_NET_ADMIN)")
            raise GatewayError(f"nft refuses the rules: {reason}")
        return done.stdout


def _listens(table: Path, port: int) -> bool:
    wanted = f":{port:04X}"
    try:
        with table.open(encoding="ascii") as lines:
            next(lines, "")
            for line in lines:
                fields = line.split()
                if len(fields) < 4 or fields[3] != _LISTENING:
                    return False  # the kernel lists listeners first: a gateway's thousands of connections are not read
                if fields[1].endswith(wanted):
                    return True
    except OSError:
        return False
    return False
