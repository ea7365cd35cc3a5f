"""Debian's squid as a real process with our helper, or an ICAP service, for the end-to-end tests."""

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatewayfilter.integration.squid import channels, guard, helper, journal
from tests.e2e.e2e_gateway import ANSWER_S, free_port, until

SQUID = shutil.which("squid", path="/usr/sbin:/usr/bin")
CERTGEN = Path("/usr/lib/squid/security_file_certgen")
SYSTEM_PYTHON = Path("/usr/bin/python3")
needs_squid = pytest.mark.skipif(
    SQUID is None or not CERTGEN.exists() or not SYSTEM_PYTHON.exists() or os.geteuid() != 0,
    reason="needs root, squid-openssl and python3",
)


@dataclass(frozen=True, slots=True)
class Squid:
    """A running squid: its address, its folder and its process."""

    address: str
    folder: Path
    process: subprocess.Popen[bytes]

    def log(self) -> str:
        """Everything that squid wrote."""
        return "".join(
            (self.folder / name).read_text(errors="replace")
            for name in ("cache.log", "access.log")
            if (self.folder / name).exists()
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def fetch(squid: Squid, url: str, ca: Path | None = None) -> tuple[int, str]:
    """Status, and the address that a redirection leads to."""
    proxies = urllib.request.ProxyHandler({"http": f"http://{squid.address}", "https": f"http://{squid.address}"})
    context = ssl.create_default_context(cafile=str(ca)) if ca is not None else None
    if context is not None:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # squid's certificates name no key identifiers
    opener = urllib.request.build_opener(proxies, _NoRedirect(), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(urllib.request.Request(url, headers={"Accept": "text/html"}), timeout=ANSWER_S) as response:
            return response.status, ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("location", "")


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that squid's own user may use, which the folders of tests are not."""
    with tempfile.TemporaryDirectory(prefix="gf-squid-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def helper_line(folder: Path, path: Path, *options: str) -> str:
    """The command line of our helper by the system's Python: squid's user cannot run that of the tests.

    The copied modules are all that it may import besides the standard library.
    """
    room = folder / "helper" / "gatewayfilter"
    source = Path(helper.__file__).parents[2]
    for name in ("__init__.py", "integration/__init__.py", "integration/squid/__init__.py"):
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, room / name)
    for module in (channels, guard, helper, journal):
        shutil.copy(str(module.__file__), room / "integration" / "squid")
    start = folder / "helper" / "start.py"
    start.write_text(
        f"import sys\nsys.path.insert(0, {str(folder / 'helper')!r})\n"
        "from gatewayfilter.integration.squid.helper import main\nsys.exit(main())\n"
    )
    return f"{SYSTEM_PYTHON} -I {start} --socket={path} {' '.join(options)}"


@contextmanager
def running_squid(folder: Path, lines: str, authority: Path | None = None, origin_ca: Path | None = None) -> Iterator[Squid]:
    """Runs squid in the foreground on a free port.

    Args:
        folder: by `shared_folder`.
        lines: of its configuration, before `http_access allow all`.
        authority: PEM file with key and certificate, for ssl-bump; `None` for none.
        origin_ca: whom it trusts then.
    """
    assert SQUID is not None
    port = free_port()
    bump = ""
    if authority is not None:
        subprocess.run([CERTGEN, "-c", "-s", folder / "certificates", "-M", "4MB"], check=True, stdout=subprocess.DEVNULL)
        for path in (folder / "certificates", *(folder / "certificates").rglob("*")):
            path.chmod(0o777)
        bump = (
            f"sslcrtd_program {CERTGEN} -s {folder}/certificates -M 4MB\nsslcrtd_children 2 startup=1\n"
            "acl step1 at_step SslBump1\nssl_bump peek step1\nssl_bump bump all\n"
            f"tls_outgoing_options cafile={origin_ca}\n"
        )
    options = f" ssl-bump generate-host-certificates=on tls-cert={authority}" if authority is not None else ""
    (folder / "squid.conf").write_text(
        f"http_port 127.0.0.1:{port}{options}\n{bump}{lines}\n"
        "http_access allow all\ncache deny all\ncache_mem 8 MB\nworkers 1\npinger_enable off\n"
        f"access_log stdio:{folder}/access.log\ncache_log {folder}/cache.log\npid_filename {folder}/pid\n"
        f"coredump_dir {folder}\nshutdown_lifetime 1 seconds\n"
    )
    process = subprocess.Popen(
        [SQUID, "-N", "-n", f"gf{port}", "-f", str(folder / "squid.conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    squid = Squid(f"127.0.0.1:{port}", folder, process)
    try:
        until("squid", lambda: _listens(port) or _ended(squid), 60)
        yield squid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ended(squid: Squid) -> bool:
    if squid.process.poll() is not None:
        raise AssertionError(f"squid ended: {squid.log()[-2000:]}")
    return False
