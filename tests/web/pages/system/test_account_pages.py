"""The pages of accounts, tokens and the audit log: by role, by two admins, and with hostile input."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import EntryKind, ListAction, Role
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at
from gatewayfilter.web.access.changes import changing, undo_url
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from tests.web.account_fakes import GOOD, SESSION, Accounted, accounted

NEW = "another horse battery"


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        opened.add("ada")
        yield opened


def test_the_password_is_changed_with_the_present_one(dashboard: Accounted) -> None:
    browser, other = dashboard.logged_in("ada"), dashboard.logged_in("ada")
    before = browser.cookies[SESSION]
    form = {"current": "wrong", "password": NEW, "repeated": NEW}
    assert browser.post("/account/password", data=form).status_code == 403
    assert browser.post("/account/password", data=form | {"current": GOOD, "repeated": "x"}).status_code == 422
    assert (
        browser.post("/account/password", data=form | {"current": GOOD, "password": "short", "repeated": "short"}).status_code
        == 422
    )
    assert other.get("/api/v1/status").status_code == 200
    done = browser.post("/account/password", data=form | {"current": GOOD})
    assert (done.status_code, done.headers["location"]) == (303, "/account")
    assert browser.cookies[SESSION] != before
    assert browser.get("/account").status_code == 200
    assert other.get("/api/v1/status").status_code == 401
    thief = dashboard.browser()
    thief.cookies.set(SESSION, before)
    assert thief.get("/api/v1/status").status_code == 401


def test_a_stolen_session_cannot_guess_the_password(dashboard: Accounted) -> None:
    thief = dashboard.logged_in("ada")
    codes = [
        thief.post("/account/password", data={"current": str(n), "password": NEW, "repeated": NEW}).status_code for n in range(6)
    ]
    assert codes[:4] == [403] * 4
    assert codes[-1] == 429


def test_a_second_factor_is_set_up_and_removed(dashboard: Accounted) -> None:
    browser, other = dashboard.logged_in("ada"), dashboard.logged_in("ada")
    assert browser.post("/account/second-factor", data={"current": "wrong"}).status_code == 403
    page = browser.post("/account/second-factor", data={"current": GOOD})
    assert "data:image/svg+xml" in page.text
    secret = page.text.split('name="secret" value="')[1].split('"')[0]
    enrol = {"secret": secret, "current": GOOD}
    assert browser.post("/account/second-factor/enrol", data=enrol | {"code": "000"}).status_code == 422
    assert (
        browser.post("/account/second-factor/enrol", data=enrol | {"code": "000", "secret": "\u00e4 no base32"}).status_code
        == 422
    )
    step = int(dashboard.services.clock() // STEP_S)
    done = browser.post("/account/second-factor/enrol", data=enrol | {"code": code_at(secret, step)})
    assert done.status_code == 200
    assert done.text.count("<li><code>") == 10
    assert other.get("/api/v1/status").status_code == 401
    assert "10 recovery codes" in browser.get("/account").text
    assert dashboard.browser().post("/login", data={"name": "ada", "password": GOOD}).status_code == 200
    assert browser.post("/account/second-factor/remove", data={"current": "x"}).status_code == 403
    assert browser.post("/account/second-factor/remove", data={"current": GOOD}).status_code == 303
    dashboard.logged_in("ada")


def test_sessions_are_ended_by_their_owner_alone(dashboard: Accounted) -> None:
    dashboard.add("kim", Role.VIEWER)
    ada, kim, second = dashboard.logged_in("ada"), dashboard.logged_in("kim"), dashboard.logged_in("ada")
    sessions = dashboard.services.store.sessions
    kims = sessions.of_account(dashboard.access.accounts.find("kim").account_id)[0]
    assert ada.post(f"/account/sessions/{kims.public_id}/end").status_code == 404
    assert kim.get("/account").status_code == 200
    assert ada.post("/account/sessions/end").status_code == 303
    assert second.get("/api/v1/status").status_code == 401
    assert ada.get("/account").status_code == 200


def test_tokens_of_the_own_account(dashboard: Accounted) -> None:
    dashboard.add("kim", Role.VIEWER)
    kim, ada = dashboard.logged_in("kim"), dashboard.logged_in("ada")
    made = kim.post("/account/tokens", data={"name": "<b>job</b>", "scope": "read", "days": "30"})
    assert made.status_code == 200
    assert "<b>job" not in made.text
    text = made.text.split('<code class="secret">')[1].split("<")[0]
    program = dashboard.browser()
    program.headers["authorization"] = f"Bearer {text}"
    assert program.get("/api/v1/status").status_code == 200
    assert text not in kim.get("/account").text
    assert kim.post("/account/tokens", data={"name": "x", "scope": "admin"}).status_code == 422
    assert kim.post("/account/tokens", data={"name": "x", "scope": "root"}).status_code == 422
    number = dashboard.services.store.tokens.all()[0].token_id
    assert ada.post(f"/account/tokens/{number}/remove").status_code == 404
    assert kim.post(f"/account/tokens/{number}/remove").status_code == 303
    assert program.get("/api/v1/status").status_code == 401


def test_language(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    browser.post("/account/language", data={"language": "zh"})
    assert "我的账户" in browser.get("/account").text
    assert browser.post("/account/language", data={"language": "../x"}).status_code == 422


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER])
def test_who_is_no_admin_sees_and_changes_no_accounts(role: Role, dashboard: Accounted) -> None:
    kim = dashboard.add("kim", role)
    browser = dashboard.logged_in("kim")
    assert browser.get("/users").status_code == 403
    assert browser.get("/audit").status_code == 403
    assert 'href="/users"' not in browser.get("/account").text
    number = kim.account_id
    for path, data in (
        ("/users", {"name": "eve", "password": GOOD, "role": "admin"}),
        (f"/users/{number}/role", {"role": "admin"}),
        (f"/users/{number}/password", {"password": NEW}),
        (f"/users/{number}/disabled", {"disabled": "true"}),
        (f"/users/{number}/remove", {}),
        (f"/users/{number}/second-factor/remove", {}),
        ("/users/tokens/1/remove", {}),
    ):
        assert browser.post(path, data=data).status_code == 403, path
    assert len(dashboard.services.store.accounts.all()) == 2


def test_an_admin_manages_accounts(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    form = {"name": "kim", "password": GOOD, "role": "approver"}
    assert browser.post("/users", data=form).status_code == 303
    assert browser.post("/users", data=form).status_code == 422
    assert browser.post("/users", data=form | {"name": "<script>"}).status_code == 422
    assert browser.post("/users", data=form | {"name": "eve", "role": "root"}).status_code == 422
    kim = dashboard.access.accounts.find("kim")
    assert kim.role is Role.APPROVER
    theirs = dashboard.logged_in("kim")
    assert browser.post(f"/users/{kim.account_id}/role", data={"role": "viewer"}).status_code == 303
    assert theirs.get("/users").status_code == 403
    assert browser.post(f"/users/{kim.account_id}/password", data={"password": NEW}).status_code == 303
    assert theirs.get("/account").status_code == 303
    assert browser.post(f"/users/{kim.account_id}/disabled", data={"disabled": "true"}).status_code == 303
    assert "disabled" in browser.get("/users").text
    assert browser.post(f"/users/{kim.account_id}/remove", headers={"hx-request": "true"}).headers["hx-redirect"] == "/users"
    assert browser.post(f"/users/{kim.account_id}/remove").status_code == 404
    ada = dashboard.access.accounts.find("ada")
    assert browser.post(f"/users/{ada.account_id}/remove").status_code == 422
    assert browser.post(f"/users/{ada.account_id}/role", data={"role": "viewer"}).status_code == 422
    actions = [entry.action for entry in dashboard.services.store.audit.page(action="user.")]
    assert actions == ["user.removed", "user.disabled", "user.password", "user.role", "user.added"]


def test_two_admins_remove_each_other_one_stays(dashboard: Accounted) -> None:
    dashboard.add("bob")
    ada, bob = dashboard.logged_in("ada"), dashboard.logged_in("bob")
    numbers = {account.name: account.account_id for account in dashboard.services.store.accounts.all()}
    assert ada.post(f"/users/{numbers['bob']}/remove").status_code == 303
    assert bob.post(f"/users/{numbers['ada']}/remove").status_code == 401
    assert [account.name for account in dashboard.services.store.accounts.all()] == ["ada"]


def test_changes_are_listed_and_taken_back(dashboard: Accounted) -> None:
    identity = Identity("<i>eve</i>", WebRole.ADMIN)
    with changing(dashboard.services, identity, "rule.added", "<script>alert(1)</script>\u202e") as recorded:
        dashboard.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
    undo = undo_url(recorded.entry_id)
    browser = dashboard.logged_in("ada")
    page = browser.get("/audit").text
    assert "<script>alert" not in page
    assert "<i>eve" not in page
    assert undo in page
    kim = dashboard.add("kim", Role.APPROVER)
    assert kim.role is Role.APPROVER
    assert dashboard.logged_in("kim").post(undo).status_code in {403, 409}
    assert dashboard.services.store.lists.rules()
    assert browser.post(undo + "?next=//evil.example").headers["location"] == "/"
    assert dashboard.services.store.lists.rules() == []
    assert browser.post(undo).status_code == 409
    assert browser.post("/audit/999/undo").status_code == 404
    assert "taken back by" in browser.get("/audit").text
    redo = dashboard.services.store.audit.page(undoable=True)[0]
    part = browser.post(f"/audit/{redo.entry_id}/undo", headers={"hx-request": "true"})
    assert part.status_code == 200
    assert "hx-swap-oob" in part.text
    assert browser.get("/audit", params={"who": "x" * 1_000}).status_code == 422
    assert "No changes" in browser.get("/audit", params={"who": "nobody"}).text


def test_the_audit_log_is_read_page_by_page(dashboard: Accounted) -> None:
    identity = Identity("ada", WebRole.ADMIN)
    for number in range(60):
        dashboard.services.access.trail.record(identity.actor, "x.y", f"subject{number}")
    browser = dashboard.logged_in("ada")
    page = browser.get("/audit?action=x.y").text
    assert "subject59" in page
    assert "subject9<" not in page
    older = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "subject9<" in browser.get(older).text
