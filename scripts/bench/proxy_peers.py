"""Debian's squid, privoxy and e2guardian as peers of the proxy benchmark: `apt-get install squid-openssl privoxy e2guardian`."""

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PLACES = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
CERTGEN = Path("/usr/lib/squid/security_file_certgen")


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of all threads of a process so far, by the kernel's clock: in nanoseconds, not in ticks."""
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3), which Python does not have


def _command(name: str) -> str | None:
    found = shutil.which(name, path=PLACES)
    if found is None:
        print(f"{name} is not installed: its rows are missing", file=sys.stderr)
    return found


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def squid(folder: Path, port: int, authority: Path, origin_ca: Path) -> Iterator[int | None]:
    """Runs squid in one process, without a cache on disk or in memory, opening TLS of all hosts (ssl-bump) where it can.

    Args:
        folder: for its files, to be made.
        port: where it listens.
        authority: PEM file with the key and certificate under which it makes others.
        origin_ca: whom it trusts.

    Yields:
        Its process id, `None` when it is not installed.
    """
    command = _command("squid")
    if command is None or not CERTGEN.exists():
        yield None
        return
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    subprocess.run([CERTGEN, "-c", "-s", folder / "certificates", "-M", "4MB"], check=True, stdout=subprocess.DEVNULL)
    for path in (folder / "certificates", *(folder / "certificates").rglob("*")):
        path.chmod(0o777)
    (folder / "squid.conf").write_text(
        f"http_port 127.0.0.1:{port} ssl-bump generate-host-certificates=on tls-cert={authority}\n"
        f"sslcrtd_program {CERTGEN} -s {folder}/certificates -M 4MB\nsslcrtd_children 4 startup=1\n"
        "acl step1 at_step SslBump1\nssl_bump peek step1\nssl_bump bump all\n"
        f"tls_outgoing_options cafile={origin_ca}\n"
        "http_access allow all\ncache deny all\ncache_mem 8 MB\nworkers 1\n"
        f"access_log stdio:{folder}/access.log\ncache_log {folder}/cache.log\npid_filename {folder}/pid\n"
        f"coredump_dir {folder}\nshutdown_lifetime 1 seconds\n"
    )
    with _running([command, "-N", "-n", f"bench{port}", "-f", str(folder / "squid.conf")]) as pid:
        yield pid


@contextlib.contextmanager
def privoxy(folder: Path, port: int) -> Iterator[int | None]:
    """Runs privoxy with its own actions and filters, connections kept alive."""
    command = _command("privoxy")
    if command is None:
        yield None
        return
    folder.mkdir(mode=0o777)
    (folder / "config").write_text(
        f"confdir /etc/privoxy\nlogdir {folder}\nlogfile log\nlisten-address 127.0.0.1:{port}\n"
        "actionsfile match-all.action\nactionsfile default.action\nfilterfile default.filter\n"
        "keep-alive-timeout 300\ntolerate-pipelining 1\nconnection-sharing 1\nmax-client-connections 256\nlisten-backlog 128\n"
    )
    with _running([command, "--no-daemon", str(folder / "config")]) as pid:
        yield pid


@contextlib.contextmanager
def e2guardian(folder: Path, port: int, spare_port: int) -> Iterator[int | None]:
    """Runs e2guardian with its own lists and phrases."""
    command = _command("e2guardian")
    if command is None:
        yield None
        return
    shutil.copytree("/etc/e2guardian", folder, symlinks=False)
    for path in folder.rglob("*.conf"):
        text = path.read_text(errors="replace").replace("/etc/e2guardian", str(folder))
        text = re.sub(r"(?m)^filterports = .*", f"filterports = {port}", text)
        text = re.sub(r"(?m)^#?[ ]*transparenthttpsport = .*", f"transparenthttpsport = {spare_port}", text)
        text = re.sub(r"(?m)^#?[ ]*httpworkers = .*", "httpworkers = 40", text)
        text = re.sub(r"(?m)^nodaemon = .*", "nodaemon = on", text)
        text += f"\npidfilename = '{folder}/pid'\nloglocation = '{folder}/access.log'\nnologger = on\nnaughtynesslimit = 100000\n"
        path.write_text(text)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    folder.parent.chmod(0o755)
    with _running([command, "-N", "-c", str(folder / "e2guardian.conf")]) as pid:
        yield pid
