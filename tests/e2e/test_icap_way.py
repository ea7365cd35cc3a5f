"""Pages judged for others: c-icap-client and Debian's squid ask a running filter by ICAP."""

import gzip
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import CASINO, GARDEN
from tests.e2e.e2e_gateway import GatewayProcess, Origin, free_port, until
from tests.e2e.squid_process import fetch, needs_squid, running_squid, shared_folder

C_ICAP = shutil.which("c-icap-client")
pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

SQUID = (
    "icap_enable on\nicap_preview_enable on\nicap_send_client_ip on\nicap_persistent_connections on\n"
    "icap_service gf_requests reqmod_precache icap://127.0.0.1:{port}/reqmod bypass=off\n"
    "icap_service gf_pages respmod_precache icap://127.0.0.1:{port}/respmod bypass=off\n"
    "adaptation_access gf_requests allow all\nadaptation_access gf_pages allow all\n"
)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def filter_(tmp_path_factory: pytest.TempPathFactory, port: int, http_site: Origin) -> Iterator[GatewayProcess]:
    settings = {
        "icap__listen": f"127.0.0.1:{port}",
        "proxy__workers": "1",
        "proxy__inspect_ms": "30000",
        "learn__enabled": "false",
    }
    with GatewayProcess(tmp_path_factory.mktemp("icap") / "state", **settings) as running:
        assert running.cli("list", "add", "--block", f"{http_site.base}/data.bin").returncode == 0
        until("the ICAP server", lambda: _listens(port), 60)
        running.await_rules("integration")
        yield running


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(C_ICAP is None, reason="needs c-icap-client")
def test_c_icap_client_gets_pages_judged(filter_: GatewayProcess, port: int, tmp_path: Path) -> None:
    def ask(url: str, content: bytes, *fields: str) -> str:
        page, answer = tmp_path / "page", tmp_path / "answer"
        page.write_bytes(content)
        answer.unlink(missing_ok=True)
        assert C_ICAP is not None
        arguments = [C_ICAP, "-i", "127.0.0.1", "-p", str(port), "-s", "respmod", "-f", str(page), "-o", str(answer)]
        more = [argument for field in ("HTTP/1.1 200 OK", *fields)[1:] for argument in ("-rhx", field)]
        done = subprocess.run([*arguments, "-resp", url, *more], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return answer.read_text(errors="replace") if answer.exists() else ""

    # The first pages wait until the inspector process has read its models; until then they pass (proxy.on_error).
    html = "Content-Type: text/html; charset=utf-8"
    shown = until("a judgement", lambda: ask("http://reef.example/", CASINO.encode(), html), 120)
    assert "reef.example" in shown
    assert "withdraw your winnings" not in shown
    assert not ask("http://beds.example/", GARDEN.encode(), html)
    assert "zipped.example" in ask("http://zipped.example/", gzip.compress(CASINO.encode()), html, "Content-Encoding: gzip")


@needs_squid
def test_squid_has_requests_decided_and_pages_judged(filter_: GatewayProcess, port: int, http_site: Origin) -> None:
    with shared_folder() as folder, running_squid(folder, SQUID.format(port=port)) as squid:
        assert fetch(squid, f"{http_site.base}/garden/7")[0] == 200, squid.log()
        until("a judgement", lambda: fetch(squid, f"{http_site.base}/casino/7")[0] == 403, 120)
        assert fetch(squid, f"{http_site.base}/data.bin")[0] == 403
        assert fetch(squid, f"{http_site.base}/ads/banner.js")[0] == 200
        until("log records", lambda: "learned" in filter_.cli("log", "search", "casino/7", "--json").stdout, 40)
