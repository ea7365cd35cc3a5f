"""A backup and its restore under a running filter, and the counters that Prometheus reads meanwhile."""

import socket
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from tests.e2e.e2e_gateway import GatewayProcess, Origin, free_port, until


def _metrics(port: int) -> dict[str, float]:
    """What is counted; nothing while the process starts, or does not answer in time."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except (OSError, HTTPException):
        return {}
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_restore_is_in_force_within_a_second_and_requests_go_on(state: Path, http_site: Origin, tmp_path: Path) -> None:
    port = free_port()
    gateway = GatewayProcess(state, proxy__workers="1", learn__enabled="false", metrics__listen=f"127.0.0.1:{port}")
    blocked, file = f"{http_site.base}/garden/1", tmp_path / "b.gfbackup"
    with gateway:
        assert gateway.cli("list", "add", "--block", blocked).returncode == 0
        until("the rule", lambda: gateway.get(blocked).status == 403)
        assert gateway.cli("backup", str(file)).returncode == 0
        assert gateway.cli("list", "remove", "1").returncode == 0
        until("its end", lambda: gateway.get(blocked).status == 200)
        preview = gateway.cli("restore", str(file), "--dry-run")
        assert "manual rules" in preview.stdout
        assert gateway.get(blocked).status == 200
        report = gateway.json("restore", str(file))
        assert not report["restart"]
        until("the restored rule", lambda: gateway.get(blocked).status == 403, 5.0)
        key = 'gatewayfilter_blocked_total{process="proxy-0"}'
        counted = until("the count", lambda: found if (found := _metrics(port)).get(key, 0) >= 2 else None)
        assert counted['gatewayfilter_process_up{process="metrics"}'] == 1
        before = gateway.child("proxy-0")
        before.kill()
        until("the restart", lambda: _metrics(port).get('gatewayfilter_process_restarts_total{process="proxy-0"}') == 1, 30.0)
        until("the worker", lambda: gateway.status("proxy-0").get("pid") not in {None, before.pid}, 30.0)
        until("its listener", lambda: gateway.status("proxy-0").get("state") == "serving", 30.0)
        assert gateway.get(blocked).status == 403
        until("the sum", lambda: _metrics(port).get(key, 0) > counted[key], 30.0)


@pytest.mark.slow
def test_a_filter_whose_metrics_cannot_listen_filters(state: Path, http_site: Origin) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with GatewayProcess(state, proxy__workers="1", learn__enabled="false", metrics__listen=address) as gateway:
            worker = psutil.Process(gateway.status("proxy-0")["pid"])
            until("restarts", lambda: gateway.status("supervisor")["children"]["metrics"]["restarts"] >= 1, 20.0)
            time.sleep(0.5)
            assert worker.is_running()
            assert gateway.get(f"{http_site.base}/garden/1").status == 200
