"""A PostgreSQL server of the tests' own: made in a temporary folder, reached by a Unix socket alone, gone with its context."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_USER = "postgres"


def server_tools() -> Path | None:
    """Returns the folder of the newest `initdb` and `pg_ctl` on this machine; Debian keeps them out of the search path."""
    if found := shutil.which("pg_ctl"):
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), default=None)


def why_not() -> str:
    """Returns why no server can be started here; empty when one can."""
    if server_tools() is None:
        return "no PostgreSQL on this machine"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL refuses to run as root, and there is no runuser"
    return ""


@contextmanager
def cluster() -> Iterator[str]:
    """Runs a server; yields the URL of its database `postgres`.

    Its folder is none of pytest's, which are closed to the user that it runs as, and nothing is synchronised to disk: the
    server lives as long as the tests do.
    """
    with TemporaryDirectory(prefix="gatewayfilter-postgres-") as folder:
        yield from _run_in(Path(folder))


def _run_in(folder: Path) -> Iterator[str]:
    tools = server_tools()
    assert tools is not None
    as_root = os.geteuid() == 0
    prefix = ["runuser", "-u", _USER, "--"] if as_root else []
    data = folder / "data"
    if as_root:
        shutil.chown(folder, _USER)

    def run(*command: str) -> None:
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=120, check=False, cwd="/")
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"

    run(str(tools / "initdb"), "-D", str(data), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c full_page_writes=off"
    control = str(tools / "pg_ctl")
    run(control, "-D", str(data), "-w", "-s", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://{_USER}@/postgres?host={folder}"
    finally:
        run(control, "-D", str(data), "-w", "-s", "-m", "immediate", "stop")
