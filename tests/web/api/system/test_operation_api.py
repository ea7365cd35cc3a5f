"""Operations of the API that were commands alone: proxy users, messages, the log as a file, the model, publication, followers."""

import time
from pathlib import Path

import pytest

from gatewayfilter.client import ApiProblem, Client
from gatewayfilter.model import LogRecord
from gatewayfilter.proxy.auth.user_file import read_users
from gatewayfilter.use_cases.traffic.log_files import COLUMNS
from gatewayfilter.web.access.identity import Identity, Role
from tests.web.web_fakes import dashboard, served

TOKEN = Identity("Ada", Role.ADMIN)  # a token: there is no cookie to forge
READS = (
    "/api/v1/reviews/stats",
    "/api/v1/reviews/steps",
    "/api/v1/fingerprints",
    "/api/v1/notifications/channels",
    "/api/v1/log/export?format=jsonl",
)


def test_proxy_users(tmp_path: Path) -> None:
    file = tmp_path / "users"
    with served(tmp_path / "state", TOKEN, proxy__auth_file=file) as url:
        users = Client(url, "any").proxy_users
        assert users.list_proxy_users().value == {"items": []}
        users.put_proxy_user("kim", {"password": "first"})
        users.put_proxy_user("anna", {"password": "other"})
        users.put_proxy_user("kim", {"password": "second"})
        assert users.list_proxy_users().value == {"items": ["anna", "kim"]}
        assert (read_users(file)["kim"].fits("second"), read_users(file)["kim"].fits("first")) == (True, False)
        for bad in ("a:b", "a b", "#a", "a\nb"):
            with pytest.raises(ApiProblem, match="422"):
                users.put_proxy_user(bad, {"password": "x"})
        users.remove_proxy_user("anna")
        with pytest.raises(ApiProblem, match="there is no user anna"):
            users.remove_proxy_user("anna")
        assert list(read_users(file)) == ["kim"]


def test_without_a_file_of_users(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        assert web.client.get("/api/v1/proxy-users").status_code == 422


def test_the_log_as_a_file_and_its_removal(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        at = web.services.clock()
        web.services.store.log.write(
            [
                LogRecord(at - 9e6, "192.0.2.7", "GET", "http://old.example/", "document", "allow", "unknown"),
                LogRecord(at - 60, "192.0.2.7", "GET", "http://a.example/=1", "document", "block", "blacklist", "=HYPERLINK(1)"),
                LogRecord(at, "192.0.2.8", "GET", "http://b.example/", "document", "allow", "unknown"),
            ]
        )
        lines = web.client.get("/api/v1/log/export", params={"separator": "semicolon"}).text.splitlines()
        assert (lines[0], len(lines)) == (";".join(COLUMNS), 4)
        assert ";'=HYPERLINK(1);" in lines[2]
        blocked = web.client.get("/api/v1/log/export", params={"format": "jsonl", "outcome": "blocked"}).text
        assert (blocked.count("\n"), "a.example" in blocked) == (1, True)
        assert web.client.post("/api/v1/log/purge", json={}).status_code == 422
        assert web.client.post("/api/v1/log/purge", json={"client": "nobody"}).status_code == 422
        assert web.client.post("/api/v1/log/purge", json={"before": "30d"}).json() == {"removed": 1}
        erased = web.client.post("/api/v1/clients/192.0.2.7/erase", json={}).json()
        assert (erased["counts"]["decisions"], erased["backups"]) == (1, [])
        assert [record.url for _, record in web.services.store.log.tail(9)] == ["http://b.example/"]
        actions = [entry["action"] for entry in web.client.get("/api/v1/audit").json()["items"]]
        assert actions == ["client.erased", "log.purged"]


@pytest.mark.parametrize("path", READS)
def test_reading(tmp_path: Path, path: str) -> None:
    with dashboard(tmp_path) as web:
        assert web.client.get(path).status_code == 200


def test_followers_are_admitted_and_removed(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        made = web.client.post("/api/v1/fleet/followers", json={"name": "north"})
        assert (made.status_code, made.json()["token"].startswith("gwfleet_")) == (201, True)
        assert web.client.post("/api/v1/fleet/followers", json={"name": "../x"}).status_code == 422
        assert web.client.delete("/api/v1/fleet/followers/north").status_code == 204
        assert web.client.delete("/api/v1/fleet/followers/north").status_code == 404


@pytest.mark.slow
def test_what_child_processes_do(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        assert web.client.post("/api/v1/lists/publish", json={"full": True}).status_code == 202
        while web.services.source_worker.state.running:
            time.sleep(0.05)
        assert web.services.source_worker.state.error == ""
        web.services.source_worker.close()
        assert web.client.get("/api/v1/entries/counts").json()["snapshot"]["blacklist"] == 0
        web.client.post("/api/v1/rules", json={"patterns": ["a.example"], "action": "block"})
        found = web.client.get("/api/v1/entries/search", params={"text": "a.example"}).json()
        assert [one["pattern"] for one in found["own"]] == [".a.example"]
        assert web.client.get("/api/v1/model").json()["used"] is False
        assert web.client.post("/api/v1/model/train").status_code == 422  # nothing was decided
        assert web.client.delete("/api/v1/model").status_code == 404
        assert web.client.get("/api/v1/model/false-blocks").json() == {"weeks": [], "lowered": []}
        assert web.client.get("/api/v1/reviews/phrases").json() == {"items": []}
        assert web.client.post("/api/v1/notifications/test").json() == {"items": []}
        while not (checks := web.client.get("/api/v1/doctor").json())["complete"]:
            time.sleep(0.05)
        assert {"database", "state folder"} <= {one["check"] for one in checks["findings"]}
