"""Log-in and log-out as browsers and attackers meet them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import Role, Scope
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at, new_secret
from tests.web.account_fakes import GOOD, SESSION, Accounted, accounted, csrf_of


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        yield opened


@pytest.mark.slow
def test_a_log_in_opens_the_page_that_was_wanted(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.browser()
    asked = browser.get("/api?x=1")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Fapi%3Fx%3D1")
    form = browser.get(asked.headers["location"])
    assert form.status_code == 200
    assert 'value="/api?x=1"' in form.text
    done = browser.post("/login", data={"name": "Ada", "password": GOOD, "next": "/api?x=1"})
    assert (done.status_code, done.headers["location"]) == (303, "/api?x=1")
    page = browser.get("/api")
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    assert browser.get("/login?next=/api").headers["location"] == "/api"


@pytest.mark.parametrize("tls", [False, True])
def test_cookies_are_out_of_reach(*, tls: bool, tmp_path: Path) -> None:
    with accounted(tmp_path / "state", tls=tls) as dashboard:
        dashboard.add("ada")
        answer = dashboard.browser().post("/login", data={"name": "ada", "password": GOOD})
        cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) == 2
    for cookie in cookies:
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/"} <= parts
        assert ("secure" in parts) is tls
        assert cookie.startswith("__Host-") is tls
        assert not any(part.startswith("domain") for part in parts)


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/\n/evil.example",
        "javascript:alert(1)", "evil.example", "/%0d%0aset-cookie:x=y\r\nx: y", "///evil.example", "/" + "a" * 5_000, "/\u202e",
    ],
)  # fmt: skip
def test_no_log_in_leads_to_another_site(target: str, dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.browser()
    form = browser.get("/login", params={"next": target})
    assert 'name="next" value="/"' in form.text
    if len(target) < 2_000:
        done = browser.post("/login", data={"name": "ada", "password": GOOD, "next": target})
        assert done.headers["location"] == "/"
        assert browser.get("/login", params={"next": target}).headers["location"] == "/"


def test_the_language_is_chosen_before_the_log_in(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.browser()
    browser.headers["accept-language"] = "zh-CN"
    page = browser.get("/login?next=/log").text
    assert ">登录</button>" in page
    assert 'name="back" value="/login?next=/log"' in page
    chosen = browser.post("/language", data={"language": "en", "back": "/login?next=/log"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/login?next=/log")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in chosen.headers["set-cookie"].split(";")}
    assert ">Log in</button>" in browser.get("/login").text
    assert "set-cookie" not in browser.post("/language", data={"language": "xx"}).headers
    assert browser.post("/language", data={"language": "zh", "back": "//evil.example/"}).headers["location"] == "/"


def test_strangers_do_not_hear_what_waits(dashboard: Accounted) -> None:
    dashboard.add("ada")
    for path in ("/login", "/rules"):
        answer = dashboard.browser().post(path, data={"name": "ada", "password": "x"}, headers={"hx-request": "true"})
        assert (answer.status_code, "gatewayfilter-waiting" in answer.headers) == (401, False)


def test_the_language_of_an_account_counts_before_that_of_the_browser(dashboard: Accounted) -> None:
    for name, language in (("ada", "en"), ("bob", "")):
        dashboard.access.accounts.set_language(dashboard.add(name), language)
        browser = dashboard.browser()
        browser.post("/language", data={"language": "zh"})
        assert 'lang="zh' in browser.get("/login").text
        browser.post("/login", data={"name": name, "password": GOOD})
        assert (f'lang="{language}' if language else 'lang="zh') in browser.get("/account").text


def test_a_session_that_was_planted_is_not_taken_over(dashboard: Accounted) -> None:
    """Fixation: the session after a log-in is always a new one, and the one before it ends."""
    dashboard.add("ada")
    dashboard.add("eve", Role.VIEWER)
    attacker = dashboard.logged_in("eve")
    planted = attacker.cookies[SESSION]
    for value in (planted, "x" * 43):
        victim = dashboard.browser()
        victim.cookies.set(SESSION, value)
        answer = victim.post(
            "/login",
            data={"name": "ada", "password": GOOD},
            headers={"x-csrf-token": csrf_of(dashboard, attacker) if value == planted else ""},
        )
        assert answer.status_code == 303
        assert value not in answer.headers["set-cookie"]
    assert attacker.get("/api/v1/status").status_code == 401


def test_forged_requests_are_refused(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.logged_in("ada")
    token = browser.headers.pop("x-csrf-token")
    assert browser.post("/logout").status_code == 403
    assert browser.post("/logout", data={"csrf": "wrong"}).status_code == 403
    assert browser.post("/logout", data={"csrf": token}, headers={"origin": "https://evil.example"}).status_code == 403
    assert browser.post("/logout", data={"csrf": token}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    other = dashboard.logged_in("ada")
    assert browser.post("/logout", data={"csrf": other.headers["x-csrf-token"]}).status_code == 403
    assert browser.get("/api/v1/status").status_code == 200
    assert browser.post("/logout", data={"csrf": token}).status_code == 303


def test_log_out_ends_the_session_on_the_server(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.logged_in("ada")
    stolen = browser.cookies[SESSION]
    assert browser.post("/logout").headers["location"] == "/login"
    assert SESSION not in browser.cookies
    thief = dashboard.browser()
    thief.cookies.set(SESSION, stolen)
    assert thief.get("/api/v1/status").status_code == 401
    assert dashboard.browser().post("/logout").status_code == 303


def test_guessing_meets_a_page_that_names_the_wait(dashboard: Accounted, monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard.add("ada")
    owner = dashboard.logged_in("ada", "192.0.2.1")
    dashboard.stop_clock(monkeypatch)
    for name in ("ada", "nobody"):
        attacker = dashboard.browser(f"198.51.100.{len(name)}")
        answers = [attacker.post("/login", data={"name": name, "password": "wrong"}) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 429, 429]
        assert answers[-1].headers["retry-after"] == "1"
        assert "Too many attempts" in answers[-1].text
        assert answers[0].text.replace("nobody", "ada") == answers[1].text.replace("nobody", "ada")
    for _ in range(6):
        dashboard.browser("192.0.2.1").post("/login", data={"name": "ada", "password": "wrong"})
    assert dashboard.browser("192.0.2.1").post("/login", data={"name": "ada", "password": GOOD}).status_code == 429
    owner.post("/logout")
    assert owner.post("/login", data={"name": "ada", "password": GOOD}).status_code == 303  # its browser is known


def test_fields_of_proxies_do_not_change_the_network(dashboard: Accounted, monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard.add("ada")
    dashboard.stop_clock(monkeypatch)
    attacker = dashboard.browser("198.51.100.9")
    codes = [
        attacker.post(
            "/login",
            data={"name": "ada", "password": "x"},
            headers={"x-forwarded-for": f"203.0.113.{n}", "forwarded": f"for=203.0.113.{n}"},
        ).status_code
        for n in range(6)
    ]
    assert codes[-1] == 429


def test_hostile_input_is_shown_as_text(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.browser()
    payload = '"><script>alert(1)</script>\u202e\ud83d'
    answer = browser.post(
        "/login",
        content=b"name=%22%3E%3Cscript%3Ealert(1)%3C/script%3E%E2%80%AE%00&password=%ff%fe",
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 401
    assert "<script>alert" not in answer.text
    assert payload[:8] not in answer.text
    assert browser.post("/login", data={"name": "x" * 10_000, "password": "y"}).status_code == 422
    assert browser.post("/login", data={"password": GOOD}).status_code == 401
    assert browser.post("/login", json={"name": "ada", "password": GOOD}).status_code == 401
    assert browser.post("/login", files={"name": b"ada", "password": b"x"}).status_code in {401, 422}


def test_a_second_factor(dashboard: Accounted) -> None:
    ada = dashboard.add("ada")
    secret = new_secret()
    now = dashboard.services.clock()
    codes = dashboard.access.accounts.enrol_second_factor(ada, secret, code_at(secret, int(now // STEP_S)))
    browser = dashboard.browser()
    asked = browser.post("/login", data={"name": "ada", "password": GOOD, "next": "/api"})
    assert asked.status_code == 200
    assert SESSION not in browser.cookies
    pending = asked.text.split('name="pending" value="')[1].split('"')[0]
    wrong = browser.post("/login/code", data={"pending": pending, "code": "abc", "next": "/api"})
    assert wrong.status_code == 401
    assert "wrong or was used" in wrong.text
    done = browser.post("/login/code", data={"pending": pending, "code": codes[0], "next": "//evil.example"})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert browser.get("/api/v1/status").status_code == 200
    assert (
        browser.post(
            "/login/code", data={"pending": pending, "code": codes[1]}, headers={"x-csrf-token": csrf_of(dashboard, browser)}
        ).status_code
        == 401
    )


def test_tokens_are_for_the_api_alone(dashboard: Accounted) -> None:
    ada = dashboard.add("ada")
    text = dashboard.token(ada, Scope.READ)
    program = dashboard.browser()
    program.headers["authorization"] = f"Bearer {text}"
    assert program.get("/api/v1/status").status_code == 200
    assert program.get("/api").status_code == 303
    for field in (f"Bearer {text}x", "Bearer ", "Bearer gwf_", f"Basic {text}", text, "Bearer gwf_" + "x" * 5_000):
        program.headers["authorization"] = field
        assert program.get("/api/v1/status").status_code == 401
    both = dashboard.logged_in("ada")
    assert both.get("/api/v1/status", headers={"authorization": "Bearer gwf_wrong"}).status_code == 401


def test_stolen_sessions_and_tokens_of_accounts_that_are_gone(dashboard: Accounted) -> None:
    dashboard.add("ada")
    kim = dashboard.add("kim", Role.VIEWER)
    browser = dashboard.logged_in("kim")
    program = dashboard.browser()
    program.headers["authorization"] = f"Bearer {dashboard.token(kim, Scope.READ)}"
    accounts = dashboard.access.accounts
    accounts.set_password(kim, "another horse battery")
    assert browser.get("/api/v1/status").status_code == 401
    assert program.get("/api/v1/status").status_code == 200
    accounts.set_disabled(kim, disabled=True)
    assert program.get("/api/v1/status").status_code == 401
    accounts.set_disabled(kim, disabled=False)
    assert program.get("/api/v1/status").status_code == 200
    accounts.remove(kim)
    assert program.get("/api/v1/status").status_code == 401
    assert browser.get("/api/v1/status").status_code == 401
