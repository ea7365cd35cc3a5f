"""Answers of the API about the fleet, certificates, settings, accounts and backups: each field, and what is recorded."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.fleet.follower_state import Fault, FollowerState
from gatewayfilter.fleet.health import Report
from gatewayfilter.interfaces import ChannelState
from gatewayfilter.model import (
    Role,
    Scope,
)
from gatewayfilter.use_cases import fleet_status as fleet_case
from gatewayfilter.use_cases import https as https_case
from gatewayfilter.use_cases.access.log_in import LogInResult, LogInStatus
from gatewayfilter.use_cases.backup.restore_plan import KindChanges
from gatewayfilter.use_cases.fleet_status import FleetStatus, FollowerRow
from gatewayfilter.use_cases.operation import notifications
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from gatewayfilter.web.api.system import backup as backup_api
from gatewayfilter.web.api.system import health as health_api
from tests.web.account_fakes import GOOD
from tests.web.pages.test_page_values import NOW, Kept, kept
from tests.web.people_fakes import household
from tests.web.web_fakes import ADMIN, CSRF

API = "/api/v1"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("api")
    with kept(folder / "state", filter__timezone="UTC", proxy__auth_file=folder / "users") as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    household(opened.services.store, NOW)
    yield opened

    def none(policies: Any) -> Any:
        kinds = (policies.pauses, policies.quotas, policies.schedules, policies.clients, policies.groups, policies.policies)
        return [(item, False) for kind in kinds for item in kind.values()]

    opened.services.store.policies.change(none, NOW)
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)


def sent(web: Kept, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
    """Sends a request to the API; returns what its answer holds."""
    given = {key.replace("_", "-"): text for key, text in headers.items()}
    answer = web.client.request(method, f"{API}{path}", json=body, headers=given)
    assert answer.status_code == status, answer.text
    assert ("content-type" in answer.headers) is bool(answer.content)
    return answer.json() if answer.content else answer.headers


def got(web: Kept, path: str, **params: Any) -> Any:
    answer = web.client.get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def policies(web: Kept) -> Any:
    return web.services.store.policies.read()


def test_the_fleet_has_all_its_facts(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        FollowerRow("north", 1.0, 2.0, Report("1.2", 41, 3600, 900, 2, 0, 1, Fault.DISK, 4)), FollowerRow("new", 3.0, 0.0, None),
    )  # fmt: skip
    state = FollowerState(in_force=41, made_at=5.0, contact_at=6.0, fault=Fault.SIGNATURE, exceptions=("policy:a",))
    monkeypatch.setattr(fleet_case, "fleet_status", lambda _: FleetStatus(True, 42, 7.0, rows, "https://p.example", state))
    monkeypatch.setattr(fleet_case, "follower_trouble", lambda _, now: f"trouble {now}")
    followers = [
        {
            "name": "north",
            "added_at": 1.0,
            "reported_at": 2.0,
            "program": "1.2",
            "sequence": 41,
            "age_s": 3600,
            "exceptions": 2,
            "workers": 4,
            "fault": Fault.DISK.value,
        },
        {
            "name": "new",
            "added_at": 3.0,
            "reported_at": 0.0,
            "program": "",
            "sequence": 0,
            "age_s": 0,
            "exceptions": 0,
            "workers": 0,
            "fault": "",
        },
    ]
    assert got(web, "/fleet") == {
        "publishes": True,
        "sequence": 42,
        "exported_at": 7.0,
        "followers": followers,
        "follow": "https://p.example",
        "in_force": 41,
        "made_at": 5.0,
        "contact_at": 6.0,
        "fault": Fault.SIGNATURE.value,
        "trouble": f"trouble {NOW}",
        "exceptions": ["policy:a"],
    }
    made = sent(web, "POST", "/fleet/followers", {"name": "south"}, 201)
    assert (made["name"], bool(made["token"]), web.told()) == ("south", True, ("follower.added", "south", ""))
    sent(web, "DELETE", "/fleet/followers/south", None, 204)
    assert web.told() == ("follower.removed", "south", "")


def test_https_has_all_its_facts(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = SimpleNamespace(name="CA", sha256="ab", expires_at=5.0, days_left=3)
    shown = {"name": "CA", "sha256": "ab", "expires_at": 5.0, "days_left": 3}
    found = [SimpleNamespace(current=facts, waiting=facts), SimpleNamespace(current=facts, waiting=None)]
    monkeypatch.setattr(type(web.services), "authorities", lambda _: found.pop())
    assert got(web, "/https/authority") == {"current": shown, "waiting": None}
    assert got(web, "/https/authority") == {"current": shown, "waiting": shown}
    web.child.results = {"certificate": b"pem"}
    for form, waiting, media in (("pem", False, "application/x-pem-file"), ("p12", True, "application/x-pkcs12")):
        answer = web.client.get(f"{API}/https/certificate", params={"form": form, "waiting": waiting})
        assert (answer.content, answer.headers["content-type"]) == (b"pem", media)
        assert web.child.jobs.pop() == (
            "gatewayfilter.use_cases.https:certificate",
            (web.services.settings, form),
            {"waiting": waiting},
        )
    web.client.get(f"{API}/https/certificate")
    assert web.child.jobs.pop()[1:] == ((web.services.settings, "pem"), {"waiting": False})
    monkeypatch.setattr(https_case, "renew_authority", lambda _, step: facts)
    assert (sent(web, "POST", "/https/authority/renew", {"step": "new-key"}), web.told()) == (
        shown,
        ("authority.renewed", "CA", "new-key"),
    )
    app = SimpleNamespace(client="10.0.0.1", host="a.example", learned_at=1.0, expires_at=2.0, failures=3)
    monkeypatch.setattr(https_case, "pinned_apps", lambda _, now: [app] if now == NOW else [])
    assert got(web, "/https/pinned-apps") == [
        {"client": "10.0.0.1", "host": "a.example", "learned_at": 1.0, "expires_at": 2.0, "failures": 3}
    ]
    monkeypatch.setattr(https_case, "forget_pinned_app", lambda _, host, client: 2 if client else 0)
    answer = web.client.delete(f"{API}/https/pinned-apps/a.example", params={"client": "10.0.0.1"})
    assert (answer.json(), web.told()) == ({"removed": 2}, ("pinned-app.removed", "a.example", "10.0.0.1"))
    before = web.changes
    assert (sent(web, "DELETE", "/https/pinned-apps/a.example"), web.changes) == ({"removed": 0}, before)


def test_the_state_of_the_system(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    status = SimpleNamespace(
        running=True,
        since=1.0,
        listen="l",
        workers=SimpleNamespace(serving=1, expected=2),
        today=SimpleNamespace(requests=3, blocked=4),
        reviews=5,
        requests=6,
        attention=[SimpleNamespace(words="w", mend="m")],
    )
    monkeypatch.setattr(health_api, "filter_status", lambda *given: status if given[2] == NOW else None)
    found = got(web, "/status")
    assert found == {
        "version": found["version"],
        "running": True,
        "since": 1.0,
        "listen": "l",
        "workers_serving": 1,
        "workers_expected": 2,
        "requests_today": 3,
        "blocked_today": 4,
        "reviews": 5,
        "requests": 6,
        "attention": [{"sentence": "w", "command": "m"}],
    }
    finding = {"level": "warning", "check": "c", "words": "w", "mend": "m"}
    newest = SimpleNamespace(findings=[finding], began_at=7.0, complete=True)
    web.services.__dict__["examinations"] = SimpleNamespace(newest=lambda: newest)
    assert got(web, "/doctor") == {"healthy": True, "findings": [finding], "examined_at": 7.0, "complete": True}
    newest.findings = [finding, finding | {"level": "error"}]
    assert got(web, "/doctor")["healthy"] is False
    states = {"ntfy": ChannelState(1, 2.0, 3, 4.0, 5.0, "e"), "mail": None}
    monkeypatch.setattr(notifications, "channel_states", lambda *_: states)
    empty = {"name": "mail", "used": False, "sent_at": 0.0, "failures": 0, "failing_since": 0.0, "error": ""}
    used = {"name": "ntfy", "used": True, "sent_at": 2.0, "failures": 3, "failing_since": 5.0, "error": "e"}
    assert got(web, "/notifications/channels") == {"items": [used, empty]}
    web.child.results = {"send_test": {"mail": "", "ntfy": "away"}}
    assert sent(web, "POST", "/notifications/test") == {
        "items": [{"channel": "mail", "sent": True, "error": ""}, {"channel": "ntfy", "sent": False, "error": "away"}],
    }  # fmt: skip
    assert (web.child.jobs.pop()[1], web.told()) == ((web.services.settings, NOW), ("notification.tested", "mail, ntfy", ""))
    sent(web, "PUT", "/proxy-users/kim", {"password": "p"}, 204)
    assert (web.told(), got(web, "/proxy-users")) == (("proxy-user.changed", "kim", ""), {"items": ["kim"]})
    sent(web, "DELETE", "/proxy-users/kim", None, 204)
    assert web.told() == ("proxy-user.removed", "kim", "")
    before = web.changes
    assert (sent(web, "DELETE", "/proxy-users/kim", None, 404)["detail"], web.changes) == ("there is no user kim", before)
    setting = next(one for one in got(web, "/settings") if one["key"] == "web.session_hours")
    assert (setting["origin"], setting["changeable"], bool(setting["description"])) == ("default", True, True)
    changed = sent(web, "PUT", "/settings/web.session_hours", {"value": "5"})
    assert changed == {
        "key": "web.session_hours",
        "before": setting["value"],
        "after": 5,
        "file": str(web.services.settings_file),
        "overruled_by": "",
    }
    assert web.told() == ("setting.changed", "web.session_hours", "")


def test_backups_by_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Made:
        """A backup that is open."""

        report = SimpleNamespace(size_bytes=3)
        closed = 0

        def __enter__(self) -> None:
            """It is open."""

        def __exit__(self, *_: object) -> None:
            self.closed += 1

    made, asked = Made(), list[dict[str, Any]]()
    path = tmp_path / "b"
    path.write_bytes(b"abc")
    changes = [KindChanges("a", 1, 2, 3)]
    kinds = [{"kind": "a", "added": 1, "changed": 2, "removed": 3}]

    def make(*_: Any, **named: Any) -> Made:
        asked.append(named)
        return made

    with path.open("rb") as file:
        made.file = file  # type: ignore[attr-defined]
        monkeypatch.setattr(backup_api, "made_backup", make)
        answer = web.client.post(f"{API}/backup", json={"log": True, "passphrase": "p"})
    assert (answer.content, asked, made.closed, web.told()) == (
        b"abc", [{"with_log": True, "passphrase": "p"}], 1, ("backup.downloaded", "3 bytes", ""),
    )  # fmt: skip
    monkeypatch.setattr(backup_api, "shown_changes", lambda *_: changes)
    monkeypatch.setattr(backup_api, "restored", lambda *_: SimpleNamespace(changes=changes, safety_copy=path))
    upload = {"file": (f"{'x' * 150}", b"x")}
    before = web.changes
    preview = web.client.post(f"{API}/restore/preview", files=upload).json()
    assert (preview, web.changes) == ({"changes": kinds, "safety_copy": ""}, before)
    assert web.client.post(f"{API}/restore", files=upload).json() == {"changes": kinds, "safety_copy": str(path)}
    assert web.told() == ("backup.restored", "x" * 100, "")


def test_accounts_tokens_and_sessions_by_the_api(web: Kept) -> None:
    access = web.services.access
    ada = access.accounts.add("ada", Role.ADMIN, GOOD)
    kim = sent(web, "POST", "/users", {"name": "kim", "role": "approver", "external_id": "https://i sub"}, 201)
    assert kim == {
        "id": kim["id"],
        "name": "kim",
        "role": "approver",
        "disabled": False,
        "second_factor": False,
        "external_id": "https://i sub",
        "language": "",
        "created_at": NOW,
        "changed_at": NOW,
        "logged_in_at": None,
    }
    assert web.told() == ("user.added", "kim", "role approver")
    assert (
        sent(web, "POST", "/users", {"name": "x"}, 422)["detail"] == "an account has a password, or an identity of single sign-on"
    )
    user = f"/users/{kim['id']}"
    tag = web.client.get(f"{API}{user}").headers["etag"]
    assert [one["name"] for one in got(web, "/users")["items"]] == ["ada", "kim"]
    changes: tuple[tuple[dict[str, Any], tuple[str, str, str], dict[str, Any]], ...] = (
        ({"name": "kate"}, ("user.renamed", "kim", "name kate"), {"name": "kate"}),
        ({"role": "viewer"}, ("user.role", "kate", "role viewer"), {"role": "viewer"}),
        ({"disabled": True}, ("user.disabled", "kate", ""), {"disabled": True}),
        ({"disabled": False}, ("user.enabled", "kate", ""), {"disabled": False}),
        ({"password": GOOD}, ("user.password", "kate", ""), {}),
        ({"external_id": "https://i two"}, ("user.linked", "kate", "https://i two"), {"external_id": "https://i two"}),
        ({"external_id": ""}, ("user.unlinked", "kate", ""), {"external_id": ""}),
        ({"second_factor": False}, ("user.second-factor-removed", "kate", ""), {"second_factor": False}),
    )
    for body, told, facts in changes:
        answer = web.client.patch(f"{API}{user}", json=body, headers={"if-match": tag})
        assert ({key: answer.json()[key] for key in facts}, web.told()) == (facts, told)
        assert (answer.headers["etag"] == tag) == ("second_factor" in body)
        tag = answer.headers["etag"]
    sent(web, "PATCH", user, {"second_factor": True}, 422)
    sent(web, "PATCH", user, {"name": "x"}, 412, if_match='"x"')
    _, session = access.sessions.open(ada, "n", "a")
    web.who.identity = Identity("ada", WebRole.ADMIN, CSRF, account_id=ada.account_id, session=session)
    own = sent(web, "POST", "/tokens", {"name": "job", "scope": "approve", "lifetime_s": 60}, 201)
    assert own == {
        "id": own["id"],
        "account": "ada",
        "name": "job",
        "scope": "approve",
        "created_at": NOW,
        "expires_at": NOW + 60,
        "used_at": None,
        "token": own["token"],
    }
    assert (web.told(), access.tokens.find(own["token"]) is not None) == (
        ("token.added", "job", "account ada, scope approve"),
        True,
    )
    kate = access.account(kim["id"])
    _, theirs = access.tokens.add(kate, "theirs", Scope.READ, None)
    assert [(one["account"], one["name"]) for one in got(web, "/tokens")["items"]] == [("ada", "job"), ("kate", "theirs")]
    web.who.identity = Identity("kate", WebRole.VIEWER, CSRF, account_id=kate.account_id, session=session)
    assert [one["name"] for one in got(web, "/tokens")["items"]] == ["theirs"]
    sent(web, "DELETE", f"/tokens/{own['id']}", None, 404)
    web.who.identity = Identity("kate", WebRole.VIEWER, account_id=kate.account_id)
    for method, path in (("POST", "/tokens"), ("DELETE", f"/tokens/{theirs.token_id}")):
        detail = sent(web, method, path, {"name": "x"}, 403)["detail"]
        assert detail == "a token needs the scope admin to make or remove tokens"
    assert sent(web, "DELETE", "/session", None, 409)["detail"] == "a token has no session"
    web.who.identity = Identity("ada", WebRole.ADMIN, account_id=ada.account_id)
    sent(web, "DELETE", f"/tokens/{theirs.token_id}", None, 204)
    assert web.told() == ("token.removed", "theirs", "")
    web.who.identity = Identity("kate", WebRole.APPROVER, CSRF, "zh", account_id=kate.account_id, session=session)
    assert got(web, "/session") == {"name": "kate", "role": "approver", "language": "zh", "csrf": CSRF}
    answer = web.client.delete(f"{API}/session")
    assert (answer.status_code, 'gatewayfilter-session=""' in answer.headers["set-cookie"]) == (204, True)
    assert session.public_id not in {one.public_id for one in web.services.store.sessions.of_account(ada.account_id)}
    web.who.identity = ADMIN
    sent(web, "DELETE", user, None, 412, if_match='"x"')
    sent(web, "DELETE", user, None, 204)
    assert web.told() == ("user.removed", "kate", "")


def test_a_log_in_by_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    access = web.services.access
    account = access.accounts.add("lea", Role.APPROVER, None, external_id="https://i lea")
    session = access.sessions.open(account, "n", "a")[1]
    web.who.identity = None
    done = LogInResult(LogInStatus.DONE, account, session, "s3cret", "m4rk")
    code = LogInResult(LogInStatus.CODE_NEEDED, account, pending="p")
    wrong = LogInResult(LogInStatus.WRONG)
    results: list[LogInResult] = []
    asked: list[tuple[Any, ...]] = []

    def answered(*given: Any) -> LogInResult:
        asked.append(given[:2])
        return results.pop(0)

    monkeypatch.setattr(access.log_in, "with_password", answered)
    monkeypatch.setattr(access.log_in, "with_code", answered)
    body = {"name": "lea", "password": "p", "code": "1"}
    shown = {"name": "lea", "role": "approver", "language": "", "csrf": session.csrf}
    for found, status, detail in (
        ([wrong], 401, "name, password or code is wrong"),
        ([code, code], 401, "name, password or code is wrong"),
        ([LogInResult(LogInStatus.DONE, account)], 401, "name, password or code is wrong"),
        ([LogInResult(LogInStatus.DONE, session=session)], 401, "name, password or code is wrong"),
        ([code, LogInResult(LogInStatus.WAIT, wait_s=1.2)], 429, "too many attempts: wait 2 s"),
    ):
        results[:] = found
        answer = web.client.post(f"{API}/session", json=body)
        assert (answer.status_code, answer.json()["detail"], results) == (status, detail, [])
        assert ("set-cookie" in answer.headers, answer.headers.get("retry-after")) == (False, "2" if status == 429 else None)
    for found in ([done], [code, done]):
        results[:] = found
        answer = web.client.post(f"{API}/session", json=body)
        assert (answer.status_code, answer.json(), len(answer.headers.get_list("set-cookie"))) == (200, shown, 2)
    web.client.cookies.clear()
    assert asked[-2:] == [("lea", "p"), ("p", "1")]
    access.accounts.remove(account)
