"""Sessions, users, tokens and the audit log by the API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import EntryKind, ListAction, Role, Scope
from gatewayfilter.web.access.changes import changing
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from tests.web.account_fakes import GOOD, SESSION, Accounted, accounted


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        opened.add("ada")
        yield opened


def test_a_session(dashboard: Accounted, monkeypatch: pytest.MonkeyPatch) -> None:
    program = dashboard.browser()
    wrong = program.post("/api/v1/session", json={"name": "ada", "password": "x"})
    assert (wrong.status_code, wrong.headers["content-type"]) == (401, "application/problem+json")
    made = program.post("/api/v1/session", json={"name": "ada", "password": GOOD})
    assert made.status_code == 200
    assert made.json() | {"csrf": ""} == {"name": "ada", "role": "admin", "language": "", "csrf": ""}
    assert program.get("/api/v1/session").json() == made.json()
    assert program.delete("/api/v1/session").status_code == 403
    assert program.delete("/api/v1/session", headers={"x-csrf-token": made.json()["csrf"]}).status_code == 204
    assert SESSION not in program.cookies
    assert program.get("/api/v1/session").status_code == 401
    dashboard.stop_clock(monkeypatch)
    statuses = [program.post("/api/v1/session", json={"name": "ada", "password": "x"}).status_code for _ in range(5)]
    assert statuses[-1] == 429


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"name": 1, "password": []}', b'{"name": "a"}', b'{"name":"a","password":"b","x":1}', b"\xff"]
)
def test_log_ins_that_are_none(body: bytes, dashboard: Accounted) -> None:
    answer = dashboard.browser().post("/api/v1/session", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"


def test_users(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    made = browser.post("/api/v1/users", json={"name": "kim", "role": "approver", "password": GOOD})
    assert made.status_code == 201
    place = made.headers["location"]
    assert "hash" not in made.text
    assert [user["name"] for user in browser.get("/api/v1/users").json()["items"]] == ["ada", "kim"]
    etag = browser.get(place).headers["etag"]
    assert browser.patch(place, json={"role": "viewer"}, headers={"if-match": etag}).json()["role"] == "viewer"
    stale = browser.patch(place, json={"role": "admin"}, headers={"if-match": etag})
    assert stale.status_code == 412
    assert browser.patch(place, json={"name": "ada", "disabled": True}).status_code == 422
    assert not browser.get(place).json()["disabled"]
    assert browser.patch(place, json={"disabled": True, "password": "another horse battery"}).json()["disabled"]
    assert browser.patch(place, json={"second_factor": True}).status_code == 422
    assert browser.patch(place, json={"owner": True}).status_code == 422
    assert browser.delete(place, headers={"if-match": etag}).status_code == 412
    assert browser.delete(place).status_code == 204
    assert browser.get(place).status_code == 404
    ada = dashboard.access.accounts.find("ada").account_id
    assert browser.delete(f"/api/v1/users/{ada}").status_code == 422
    assert browser.patch(f"/api/v1/users/{ada}", json={"role": "viewer"}).status_code == 422


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER])
def test_users_and_audit_are_for_admins(role: Role, dashboard: Accounted) -> None:
    kim = dashboard.add("kim", role)
    browser = dashboard.logged_in("kim")
    for method, path in (
        ("GET", "/api/v1/users"), ("POST", "/api/v1/users"), ("GET", f"/api/v1/users/{kim.account_id}"),
        ("PATCH", f"/api/v1/users/{kim.account_id}"), ("DELETE", f"/api/v1/users/{kim.account_id}"), ("GET", "/api/v1/audit"),
    ):  # fmt: skip
        assert browser.request(method, path, json={"role": "admin"}).status_code == 403, path


def test_tokens(dashboard: Accounted) -> None:
    kim = dashboard.add("kim", Role.APPROVER)
    browser = dashboard.logged_in("kim")
    made = browser.post("/api/v1/tokens", json={"name": "job", "scope": "approve", "lifetime_s": 600})
    assert made.status_code == 201
    assert made.json()["token"].startswith("gwf_")
    assert browser.post("/api/v1/tokens", json={"name": "more", "scope": "admin"}).status_code == 422
    listed = browser.get("/api/v1/tokens")
    assert [token["name"] for token in listed.json()["items"]] == ["job"]
    assert made.json()["token"] not in listed.text
    program = dashboard.browser()
    program.headers["authorization"] = f"Bearer {made.json()['token']}"
    assert program.get("/api/v1/session").json()["role"] == "approver"
    assert program.post("/api/v1/tokens", json={"name": "child"}).status_code == 403
    assert program.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 403
    assert program.delete("/api/v1/session").status_code == 409
    dashboard.token(dashboard.access.accounts.find("ada"), Scope.READ)
    assert len(browser.get("/api/v1/tokens").json()["items"]) == 1
    assert len(dashboard.logged_in("ada").get("/api/v1/tokens").json()["items"]) == 2
    assert browser.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204
    assert program.get("/api/v1/session").status_code == 401
    assert browser.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 404
    assert kim.name == "kim"


def test_a_scope_bounds_the_role(dashboard: Accounted) -> None:
    ada = dashboard.access.accounts.find("ada")
    program = dashboard.browser()
    for scope, status in ((Scope.READ, 403), (Scope.APPROVE, 403), (Scope.ADMIN, 200)):
        program.headers["authorization"] = f"Bearer {dashboard.token(ada, scope)}"
        assert program.get("/api/v1/users").status_code == status


def test_the_audit_log(dashboard: Accounted) -> None:
    identity = Identity("ada", WebRole.ADMIN)
    with changing(dashboard.services, identity, "rule.added", "a.example") as recording:
        dashboard.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
    dashboard.services.access.trail.record(identity.actor, "x.y", "z")
    browser = dashboard.logged_in("ada")
    page = browser.get("/api/v1/audit?limit=1").json()
    assert [entry["action"] for entry in page["items"]] == ["x.y"]
    page = browser.get(f"/api/v1/audit?limit=1&after={page['next']}").json()
    assert [(entry["action"], entry["undoable"]) for entry in page["items"]] == [("rule.added", True)]
    assert page["next"] is None
    assert [entry["id"] for entry in browser.get("/api/v1/audit/undoable").json()["items"]] == [recording.entry_id]
    assert browser.post(f"/api/v1/audit/{recording.entry_id}/undo").json()["undone_by"] == "ada"
    assert browser.post(f"/api/v1/audit/{recording.entry_id}/undo").status_code == 409
    assert browser.post("/api/v1/audit/999/undo").status_code == 404
    assert dashboard.services.store.lists.rules() == []
    assert browser.get("/api/v1/audit?after=x").status_code == 422
