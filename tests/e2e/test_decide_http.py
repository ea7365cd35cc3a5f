"""Decisions over HTTP by a running filter, with a token in a file."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, free_port, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("decide")
    port = free_port()
    (folder / "token").write_text("a token\n")
    settings = {"decide__listen": f"127.0.0.1:{port}", "decide__token_file": str(folder / "token"), "proxy__workers": "1"}
    with GatewayProcess(folder / "state", **settings) as running:
        assert running.cli("list", "add", "--block", "||blocked.example^").returncode == 0
        address = f"http://127.0.0.1:{port}"
        until("a block", lambda: _ask(address, "/authz/", host="blocked.example")[0] == 403, 60)
        yield address


def _ask(base: str, path: str, body: bytes | None = None, token: str = "a token", **headers: str) -> tuple[int, bytes]:
    fields = {"Authorization": f"Bearer {token}", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, body, fields), timeout=ANSWER_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 0, b""


def test_json_and_envoy_by_real_connections(base: str) -> None:
    body = json.dumps({"requests": [{"url": "http://blocked.example/"}, {"url": "http://garden.example/"}]}).encode()
    status, answer = _ask(base, "/decide", body)
    assert (status, [one["action"] for one in json.loads(answer)["verdicts"]]) == (200, ["block", "allow"])
    assert json.loads(_ask(base, "/decide?url=http://blocked.example/x")[1])["reason"] == "manual-block"
    status, page = _ask(base, "/authz/x", host="blocked.example")
    assert status == 403
    assert b"blocked.example" in page
    assert _ask(base, "/authz/x", host="garden.example")[0] == 200
    assert _ask(base, "/decide", body, token="another")[0] == 401
