"""What `gatewayfilter run` prints, and that nobody has to read it; users who come and go while it runs."""

import os
import signal
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import COMMAND, GatewayProcess, Origin, until

pytestmark = pytest.mark.slow


def test_a_reader_who_went_before_the_banner_does_not_end_the_filter(state: Path, http_site: Origin) -> None:
    """As in `gatewayfilter run | head -1`, whose reader may be gone at any time."""
    gateway = GatewayProcess(state, proxy__workers="1", learn__enabled="false")
    read_end, write_end = os.pipe()
    os.close(read_end)
    with gateway.log.open("w") as log:
        process = subprocess.Popen([COMMAND, "run"], env=gateway.environment, stdout=write_end, stderr=log)
    os.close(write_end)
    try:
        until("readiness", lambda: process.poll() is not None or gateway.status("supervisor").get("state") == "running", 40.0)
        gateway.address = gateway.status("supervisor")["listen"]
        assert gateway.get(f"{http_site.base}/garden/1").status == 200
        assert gateway.get("http://blocked.gatewayfilter.test/").status == 403
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    said = gateway.log.read_text()
    assert "standard output is closed" in said
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def test_a_user_comes_and_goes_while_the_filter_runs(state: Path, http_site: Origin) -> None:
    users = state.with_name("users")
    gateway = GatewayProcess(state, proxy__workers="1", proxy__auth_file=str(users), learn__enabled="false")

    def login(name: str, password: str) -> dict[str, str]:
        return {"Proxy-Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}

    def add(name: str, password: str) -> None:
        done = subprocess.run(
            [COMMAND, "proxy-user", "add", name], env=gateway.environment, input=password, text=True, check=False, timeout=60
        )
        assert done.returncode == 0

    add("kim", "one")
    url = f"{http_site.base}/garden/2"
    with gateway:
        assert gateway.get(url).status == 407
        assert gateway.get(url, login("kim", "wrong")).status == 407
        assert gateway.get(url, login("kim", "one")).status == 200
        add("lee", "two")
        until("lee", lambda: gateway.get(url, login("lee", "two")).status == 200)
        assert gateway.cli("proxy-user", "remove", "kim").returncode == 0
        until("end of kim", lambda: gateway.get(url, login("kim", "one")).status == 407)
        assert gateway.get(url, login("lee", "two")).status == 200
