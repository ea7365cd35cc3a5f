"""The pages of accounts and log-ins: what they show, what they change, and what is recorded of it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import segno

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Actor, Role, Scope, Via
from gatewayfilter.use_cases.access.log_in import LogInResult, LogInStatus
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at, enrolment_address
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.access.identity import Role as WebRole
from gatewayfilter.web.source_worker import JobState
from tests.web.account_fakes import GOOD, SESSION
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.web_fakes import ADMIN, CSRF

ISSUER = "https://id.example"
DEVICE = "gatewayfilter-device"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("system") / "state"
    oidc = {f"web__oidc__{name}": value for name, value in (("issuer", ISSUER), ("client_id", "c"), ("client_secret", "s"))}
    with kept(folder, filter__timezone="UTC", web__listen="127.0.0.1:8081", proxy__listen="127.0.0.1:8080", **oidc) as web:
        web.services.access.accounts.add("ada", Role.ADMIN, GOOD)
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    access = opened.services.access
    opened.who.identity = ADMIN
    for account in opened.services.store.accounts.all():
        access.sessions.close_all(account)
        if account.name != "ada":
            access.accounts.remove(account)
    opened.client.cookies.clear()
    opened.worker.begun.clear()
    opened.worker.state = JobState()
    opened.child.results.clear()
    opened.child.jobs.clear()


def account(web: Kept, name: str = "ada") -> Any:
    return web.services.access.accounts.find(name)


def log_in(web: Kept, name: str = "ada") -> Any:
    """Has requests come from a session of an account; returns the session."""
    found = account(web, name)
    _, session = web.services.access.sessions.open(found, "127.0.0.0/24", "agent")
    web.who.identity = Identity(name, WebRole[found.role.name], CSRF, account_id=found.account_id, session=session)
    return session


def test_accounts_are_managed(web: Kept) -> None:
    log_in(web)
    web.post("/users", 303, "/users", name="kim", password=GOOD, role="approver")
    assert (account(web, "kim").role, web.told()) == (Role.APPROVER, ("user.added", "kim", "role approver"))
    kim = account(web, "kim").account_id
    text, token = web.services.access.tokens.add(account(web, "kim"), "job", Scope.READ, None)
    shown = web.get("/users")
    assert ([(one.name, sessions) for one, sessions in shown["rows"]], shown["active"]) == ([("ada", 1), ("kim", 0)], "users")
    assert (shown["tokens"], shown["only_admin"]) == ([(token, "kim")], account(web).account_id)
    assert (shown["given"], shown["given_role"], shown["error"], shown["issuer"]) == ("", "viewer", "", ISSUER)
    web.post("/users", 422, name=f"kim{'x' * 200}", password="short", role="admin")
    assert (web.pages.values["given"], web.pages.values["given_role"]) == (f"kim{'x' * 97}", "admin")
    assert web.pages.values["error"]
    answer = web.post(f"/users/{kim}/role", 200, headers=HTMX, role="admin")
    assert (answer.headers["hx-redirect"], web.told(), web.get("/users")["only_admin"]) == (
        "/users", ("user.role", "kim", "role admin"), 0,
    )  # fmt: skip
    web.post(f"/users/{kim}/disabled", 303, "/users", disabled="true")
    assert (web.told(), account(web, "kim").disabled) == (("user.disabled", "kim", ""), True)
    assert web.get("/users")["only_admin"] == account(web).account_id
    web.post(f"/users/{kim}/disabled", 303, "/users", disabled="false")
    assert (web.told(), account(web, "kim").disabled) == (("user.enabled", "kim", ""), False)
    before, changes = account(web, "kim").password_hash, web.changes
    web.post(f"/users/{kim}/password", 422, password="x")
    assert (web.pages.values["error"][:5], web.changes) == ("kim: ", changes)
    web.post(f"/users/{kim}/password", 303, "/users", password=f"{GOOD}!")
    assert (web.told(), account(web, "kim").password_hash != before) == (("user.password", "kim", ""), True)
    web.post(f"/users/{kim}/link", 422, subject="a\nb")
    assert web.pages.values["error"].startswith("kim: ")
    web.post(f"/users/{kim}/link", 303, "/users", subject=" sub ")
    assert (web.told()[0], account(web, "kim").external_id) == ("user.linked", f"{ISSUER} sub")
    assert web.told()[2] == account(web, "kim").external_id
    web.post(f"/users/{kim}/link", 303, "/users", subject=" ")
    assert (web.told(), account(web, "kim").external_id) == (("user.unlinked", "kim", ""), "")
    web.post(f"/users/{kim}/second-factor/remove", 303, "/users")
    assert web.told() == ("user.second-factor-removed", "kim", "")
    web.post(f"/users/tokens/{token.token_id}/remove", 303, "/users")
    assert (web.told(), web.services.access.tokens.find(text)) == (("token.removed", "job", ""), None)
    web.post(f"/users/{kim}/remove", 303, "/users")
    assert (web.told(), [one.name for one in web.services.store.accounts.all()]) == (("user.removed", "kim", ""), ["ada"])


def test_the_own_account_is_shown_and_changed(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    session = log_in(web)
    access = web.services.access
    other = access.sessions.open(account(web), "10.0.0.0/24", "other")[1]
    shown = web.get("/account")
    assert (shown["account"].name, {one.public_id for one in shown["sessions"]} >= {session.public_id, other.public_id}) == (
        "ada",
        True,
    )
    assert (shown["own_session"], shown["tokens"], shown["scopes"]) == (session.public_id, [], ["read", "approve", "admin"])
    nothing = {"error": "", "wait": 0, "wrong": False, "differ": False, "new_token": ""}
    assert {name: shown[name] for name in nothing} == nothing
    web.post(f"/account/sessions/{other.public_id}/end", 303, "/account")
    web.post(f"/account/sessions/{other.public_id}/end", 404)
    assert web.pages.values["detail"] == "there is no such session"
    access.sessions.open(account(web), "10.0.0.0/24", "other")
    web.post("/account/sessions/end", 303, "/account")
    assert [one.public_id for one in web.services.store.sessions.of_account(account(web).account_id)] == [session.public_id]
    answer = web.post("/account/language", 303, "/account", language="zh")
    assert (account(web).language, 'language=""' in answer.headers["set-cookie"]) == ("zh", True)
    web.post("/account/language", 303, "/account", language="")
    web.post("/account/tokens", 200, name="job", scope="approve", days="2")
    values = web.pages.values
    (token,) = values["tokens"]
    assert (token.name, token.scope, token.expires_at, access.tokens.find(values["new_token"])[1].token_id) == (
        "job", Scope.APPROVE, NOW + 2 * 86_400, token.token_id,
    )  # fmt: skip
    assert (web.told(), values["error"]) == (("token.added", "job", "account ada, scope approve"), "")
    web.post("/account/tokens", 422, name="job")
    assert (web.pages.values["error"], web.pages.values["new_token"]) == ("the account has a token 'job' already", "")
    web.post("/account/tokens", 200, name="ever", days="0")
    assert [(one.name, one.scope, one.expires_at) for one in web.pages.values["tokens"]][1] == ("ever", Scope.READ, None)
    web.post("/account/tokens", 200, name="usual")
    assert web.pages.values["tokens"][-1].expires_at == NOW + 90 * 86_400
    for one in web.pages.values["tokens"]:
        web.post(f"/account/tokens/{one.token_id}/remove", 303, "/account")
    assert (web.told(), access.tokens.of_account(account(web))) == (("token.removed", "usual", ""), [])
    web.post("/account/password", 422, current=GOOD, password=GOOD, repeated="x")
    assert (web.pages.values["differ"], web.pages.values["wrong"]) == (True, False)
    web.post("/account/password", 422, current=GOOD, password="short", repeated="short")
    assert (web.pages.values["differ"], web.pages.values["error"][:14]) == (False, "a password has")
    answer = web.post("/account/password", 200, headers=HTMX, current=GOOD, password=GOOD, repeated=GOOD)
    assert (answer.headers["hx-redirect"], web.told()) == ("/account", ("user.password", "ada", ""))
    secret = re.findall(rf"{SESSION}=([^;]+); HttpOnly; Max-Age=2592000; Path=/; SameSite=strict", answer.headers["set-cookie"])
    found = access.sessions.find(secret[0])
    assert (found is not None, [one.public_id for one in web.services.store.sessions.of_account(found[0].account_id)]) == (
        True, [found[1].public_id],
    )  # fmt: skip
    for wait, status, wrong in ((0.0, 403, True), (1.2, 429, False)):
        state = LogInStatus.WAIT if wait else LogInStatus.WRONG
        monkeypatch.setattr(access.log_in, "confirm", lambda *_, state=state, wait=wait: LogInResult(state, wait_s=wait))
        for path in (
            "/account/password",
            "/account/second-factor",
            "/account/second-factor/enrol",
            "/account/second-factor/remove",
        ):
            web.post(path, status, current="x")
            assert (web.pages.values["wait"], web.pages.values["wrong"]) == (2 if wait else 0, wrong)


def test_a_second_factor_is_enrolled_by_a_code(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    session = log_in(web)
    access = web.services.access
    monkeypatch.setattr(access.log_in, "confirm", lambda *_: LogInResult(LogInStatus.DONE))
    web.post("/account/second-factor", 200)
    values = web.pages.values
    secret = values["secret"]
    picture = segno.make(enrolment_address(secret, "ada", "GatewayFilter"), micro=False).svg_data_uri(scale=4, border=2)
    assert (web.pages.template, values["wrong"], values["image"]) == ("system/second_factor.html", False, picture)
    web.post("/account/second-factor/enrol", 422, secret=secret, code="1")
    assert (web.pages.values["wrong"], web.pages.values["secret"]) == (True, secret)
    access.sessions.open(account(web), "10.0.0.0/24", "other")
    web.post("/account/second-factor/enrol", 200, secret=secret, code=code_at(secret, int(NOW // STEP_S)))
    assert (web.pages.template, len(web.pages.values["codes"]), web.told()) == (
        "system/recovery_codes.html", 10, ("user.second-factor", "ada", ""),
    )  # fmt: skip
    assert [one.public_id for one in web.services.store.sessions.of_account(account(web).account_id)] == [session.public_id]
    web.post("/account/second-factor/remove", 303, "/account")
    assert (web.told(), account(web).has_second_factor) == (("user.second-factor-removed", "ada", ""), False)


def test_the_log_in_answers_by_its_result(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    access = web.services.access
    found, session = account(web), log_in(web)
    web.client.get("/login?next=/rules")
    assert web.led("/login?next=//evil") == "/"
    assert web.led("/login?next=/rules") == "/rules"
    web.who.identity = None
    shown = web.get("/login?next=/rules")
    assert (shown["target"], shown["name"], shown["wait"], shown["wrong"]) == ("/rules", "", 0, False)
    results: list[LogInResult] = []
    asked: list[tuple[Any, ...]] = []

    def result(*given: Any) -> LogInResult:
        asked.append(given)
        return results[-1]

    monkeypatch.setattr(access.log_in, "with_password", result)
    monkeypatch.setattr(access.log_in, "with_code", result)
    results.append(LogInResult(LogInStatus.WRONG))
    web.post("/login", 401, name="x" * 150, password="p", next="/rules")
    values = web.pages.values
    assert (values["name"], values["target"], values["wrong"], values["wait"]) == ("x" * 100, "/rules", True, 0)
    assert (asked[-1][:2], asked[-1][2].agent) == (("x" * 150, "p"), "testclient")
    results.append(LogInResult(LogInStatus.WAIT, wait_s=2.1))
    answer = web.post("/login", 429, name="ada")
    assert (answer.headers["retry-after"], web.pages.values["wait"], web.pages.values["wrong"]) == ("3", 3, False)
    results.append(LogInResult(LogInStatus.CODE_NEEDED, found, pending="p"))
    web.post("/login", 200, name="ada", next="/rules")
    assert web.pages.values == {"pending": "p", "target": "/rules", "wrong": False}
    web.post("/login/code", 401, pending="p", code="1")
    assert (web.pages.values["wrong"], web.pages.values["target"], asked[-1][:2]) == (True, "/", ("p", "1"))
    results.append(LogInResult(LogInStatus.DONE, found, session, "s3cret", "m4rk"))
    answer = web.post("/login/code", 303, "/rules", pending="p", code="1", next="/rules")
    cookies = answer.headers.get_list("set-cookie")
    assert cookies == [
        f"{SESSION}=s3cret; HttpOnly; Max-Age=2592000; Path=/; SameSite=strict",
        f"{DEVICE}=m4rk; HttpOnly; Max-Age=31536000; Path=/; SameSite=strict",
    ]
    before = log_in(web)
    web.post("/login", 303, "/", name="ada", next="//evil")
    assert before.public_id not in {one.public_id for one in web.services.store.sessions.of_account(found.account_id)}
    ended = log_in(web)
    answer = web.post("/logout", 303, "/login")
    assert answer.headers["clear-site-data"] == '"cache", "storage"'
    assert f'{SESSION}=""' in answer.headers["set-cookie"]
    assert ended.public_id not in {one.public_id for one in web.services.store.sessions.of_account(found.account_id)}
    web.who.identity = None
    web.post("/logout", 303, "/login")
    answer = web.post("/language", 303, "/rules", language="zh", back="/rules")
    assert answer.headers["set-cookie"] == "language=zh; HttpOnly; Max-Age=31536000; Path=/; SameSite=strict"
    assert "set-cookie" not in web.post("/language", 303, "/", language="fr", back="//evil").headers
    monkeypatch.setattr(access, "has_accounts", lambda: False)
    assert web.led("/login") == "/setup"


def test_the_first_account_is_made_here_or_with_the_code(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    access = web.services.access
    assert web.led("/setup") == "/"
    web.post("/setup", 409)
    assert web.pages.values["detail"] == "there is an account already: log in"
    web.who.identity = None
    made: list[tuple[Any, ...]] = []
    answers: list[Any] = [LogInResult(LogInStatus.DONE, account(web), None, "s3cret", "m4rk")]

    def add_first(*given: Any) -> LogInResult:
        made.append(given)
        if isinstance(answers[-1], Exception):
            raise answers[-1]
        first: LogInResult = answers[-1]
        return first

    monkeypatch.setattr(access, "has_accounts", lambda: False)
    monkeypatch.setattr(access, "is_setup_code", lambda code: code == "right")
    monkeypatch.setattr(access, "add_first", add_first)
    shown = web.get("/setup?code=c")
    empty = {"name": "", "name_error": "", "password_error": "", "differ": "", "wrong_code": ""}
    assert ({name: shown[name] for name in empty}, shown["code"], shown["needs_code"]) == (empty, "c", True)
    local = web.client.__class__(
        web.client.app, base_url="http://127.0.0.1:8081", follow_redirects=False, client=("127.0.0.1", 5)
    )
    assert (local.get("/setup").status_code, web.pages.values["needs_code"]) == (200, False)
    for field in ("via", "forwarded", "x-forwarded-for", "x-real-ip"):
        local.get("/setup", headers={field: "x"})
        assert web.pages.values["needs_code"] is True
    web.post("/setup", 403, name="kim", password=GOOD, repeated=GOOD, code="wrong")
    assert (web.pages.values["wrong_code"], web.pages.values["name"]) == ("yes", "kim")
    web.post("/setup", 422, name="kim", password=GOOD, repeated="x", code="right")
    assert (web.pages.values["differ"], web.pages.values["code"], web.pages.values["name"], made) == ("yes", "right", "kim", [])
    for error, field in (("the name of an account begins", "name_error"), ("a password has", "password_error")):
        answers.append(AccountError(error))
        web.post("/setup", 422, name="kim", password=GOOD, repeated=GOOD, code="right")
        assert {name: web.pages.values[name] for name in ("name_error", "password_error")} == {
            "name_error": "", "password_error": "", field: error,
        }  # fmt: skip
        assert (web.pages.values[field], web.pages.values["name"]) == (error, "kim")
    answers.append(answers[0])
    web.client.cookies.set("language", "zh")
    answer = web.post("/setup", 303, "/setup/purpose", name="kim", password=GOOD, repeated=GOOD, code="right")
    assert (f"{SESSION}=s3cret" in answer.headers["set-cookie"], account(web).language) == (True, "zh")
    name, password, source, actor = made[-1]
    assert (name, password, actor) == ("kim", GOOD, Actor("kim", Via.SESSION, source.network))
    access.accounts.set_language(account(web), "")
    web.client.cookies.set("language", "fr")
    assert local.post("/setup", data={"name": "kim", "password": GOOD, "repeated": GOOD}).status_code == 303
    assert account(web).language == ""
