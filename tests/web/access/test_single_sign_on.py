"""Single sign-on against a provider with real keys on loopback, and the attacks on each of its steps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.testclient import TestClient

from gatewayfilter.model import Role
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY
from gatewayfilter.use_cases.sign_on.id_token import checked_token
from gatewayfilter.use_cases.sign_on.provider_http import ProviderHttp
from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn
from tests.use_cases.sign_on.oidc_provider import (
    CLIENT,
    KEYS,
    SECRET,
    OidcProvider,
    es256,
    public_jwk,
    rs256,
    running_provider,
    unsigned,
)
from tests.web.account_fakes import GOOD, SESSION, Accounted, accounted

FLOW = "gatewayfilter-sign-on"
SMALL = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[OidcProvider]:
    monkeypatch.setattr(ProviderHttp.__init__, "__defaults__", (None, 60.0))  # for a machine that is busy with other things
    with running_provider() as running:
        yield running


@pytest.fixture
def open_dashboard(provider: OidcProvider, tmp_path: Path) -> Iterator[Callable[..., Accounted]]:
    opened = []

    def open_one(**settings: object) -> Accounted:
        given: dict[str, Any] = {"issuer": provider.address, "client_id": CLIENT, "client_secret": SECRET, **settings}
        manager = accounted(tmp_path / "state", **{f"web__oidc__{key}": value for key, value in given.items()})
        dashboard = manager.__enter__()
        opened.append(manager)
        services = dashboard.services
        key = load_key(services.settings.data_dir, WEB_KEY)
        services.sign_on = SingleSignOn(services.settings.web.oidc, key, services.store, services.access, checked_token)
        return dashboard

    yield open_one
    for manager in opened:
        manager.__exit__(None, None, None)


@pytest.fixture
def dashboard(open_dashboard: Callable[..., Accounted], provider: OidcProvider) -> Accounted:
    made = open_dashboard()
    link(made, made.add("ada"), provider)
    return made


def link(dashboard: Accounted, account: Any, provider: OidcProvider) -> None:
    dashboard.access.accounts.link(account, f"{provider.address} {provider.person['sub']}")


def at_provider(browser: TestClient, target: str = "/") -> str:
    """Presses the button, and returns where the provider sends the browser back to: path and query."""
    begun = browser.get("/login/oidc", params={"next": target})
    assert begun.status_code == 303, begun.text
    back = urlsplit(httpx2.get(begun.headers["location"], trust_env=False, timeout=60).headers["location"])
    assert (back.netloc, back.path) == ("127.0.0.1:8081", "/login/oidc/callback")
    return f"{back.path}?{back.query}"


def reason(answer: httpx2.Response) -> str:
    """The code on the page of a log-in that failed."""
    assert answer.status_code in {403, 429, 500, 502, 503}
    assert SESSION not in answer.cookies
    return answer.text.partition("finds more in the log: ")[2].partition("<")[0]


def test_a_linked_person_is_logged_in_and_led_on(dashboard: Accounted, provider: OidcProvider) -> None:
    browser = dashboard.browser()
    form = browser.get("/login?next=/log")
    assert 'href="/login/oidc?next=/log"' in form.text
    assert SECRET not in form.text
    done = browser.get(at_provider(browser, "/log?x=1&y=2"))
    assert done.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/log?x=1&amp;y=2">' in done.text
    session = next(cookie for cookie in done.headers.get_list("set-cookie") if cookie.startswith(SESSION))
    assert "samesite=strict" in session.lower()
    assert FLOW not in browser.cookies
    assert browser.get("/api/v1/session").json()["name"] == "ada"
    assert browser.get("/login/oidc?next=/log").headers["location"] == "/log"
    browser.headers["x-csrf-token"] = dashboard.access.sessions.find(browser.cookies[SESSION])[1].csrf  # type: ignore[index]
    assert browser.post("/logout").headers["location"] == "/login"  # of this dashboard alone
    assert provider.requests.count("/token") == 1


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example", "/\\evil.example", "/" + "a" * 1_900])
def test_no_sign_on_leads_to_another_site(target: str, dashboard: Accounted) -> None:
    browser = dashboard.browser()
    assert 'content="0;url=/">' in browser.get(at_provider(browser, target)).text


def test_an_elliptic_curve_is_as_good(dashboard: Accounted, provider: OidcProvider) -> None:
    provider.published, provider.sign = ["first", "curve"], es256
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200


@pytest.mark.parametrize(("change", "expected"), [({"nonce": "x"}, "nonce"), ({"aud": "x"}, "audience"), ({"exp": 7}, "time")])
def test_no_other_id_token_is_good(change: dict[str, Any], expected: str, dashboard: Accounted, provider: OidcProvider) -> None:
    provider.change_claims = lambda claims: claims | change
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser))) == expected
    assert browser.get("/api/v1/session").status_code == 401


def test_an_answer_is_good_once_and_in_its_browser_alone(dashboard: Accounted, provider: OidcProvider) -> None:
    victim, attacker = dashboard.browser(), dashboard.browser()
    back = at_provider(victim)
    assert reason(attacker.get(back)) == "state"  # no cookie: a link that was sent to somebody
    cookie = victim.cookies[FLOW]
    at_provider(attacker)
    assert reason(attacker.get(back)) == "state"  # the cookie of another log-in
    assert victim.get(back).status_code == 200
    victim.cookies.set(FLOW, cookie)
    assert reason(victim.get(back)) == "replayed"
    for forged in (cookie[:-3] + "abc", cookie.replace(".", "x"), "", "é", "a.b.c.d", cookie + "." + cookie):
        thief = dashboard.browser()
        thief.cookies.set(FLOW, forged.encode("latin-1", "replace").decode("latin-1") if forged.isascii() else "x")
        assert reason(thief.get(back)) == "state"
    assert provider.requests.count("/token") == 1


def test_the_code_of_another_log_in_is_refused(dashboard: Accounted) -> None:
    """An attacker's code in the victim's log-in, by a provider that does not look at PKCE, too."""
    victim, attacker = dashboard.browser(), dashboard.browser()
    foreign = parse_qs(urlsplit(at_provider(attacker)).query)["code"][0]
    back = at_provider(victim)
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert reason(victim.get(back.replace(code, foreign))) == "code"


def test_answers_of_another_issuer_are_refused(dashboard: Accounted) -> None:
    browser = dashboard.browser()
    back = at_provider(browser)
    issuer = parse_qs(urlsplit(back).query)["iss"][0]
    assert issuer.startswith("http://127.0.0.1")
    mixed_up = back.partition("&iss=")[0]
    assert reason(browser.get(f"{mixed_up}&iss=https://evil.example")) == "issuer"
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser).partition("&iss=")[0])) == "issuer"


def test_a_person_who_cancels_is_told_so(dashboard: Accounted, provider: OidcProvider) -> None:
    browser = dashboard.browser()
    state = parse_qs(urlsplit(at_provider(browser)).query)["state"][0]
    query = {"state": state, "error": "access_denied", "error_description": "<script>", "iss": provider.address}
    answer = browser.get("/login/oidc/callback", params=query)
    assert reason(answer) == "cancelled"
    assert "<script>" not in answer.text.partition("<main")[2].partition("</main")[0]


def test_keys_rotate_and_made_up_ones_are_not_fetched_for(
    dashboard: Accounted, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200
    provider.published, provider.sign = ["second"], lambda claims: rs256(claims, "second")
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200
    assert provider.requests.count("/keys") == 2
    provider.sign = lambda claims: jwt.encode(claims, KEYS["second"], "RS256", {"kid": "made up"})
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser))) == "key"
    assert provider.requests.count("/keys") == 2


def test_unknown_people_get_no_account_and_see_what_to_link(
    open_dashboard: Callable[..., Accounted], provider: OidcProvider
) -> None:
    dashboard = open_dashboard()
    dashboard.add("jane")  # the provider's name for somebody is no proof of who that is here
    browser = dashboard.browser()
    answer = browser.get(at_provider(browser))
    assert reason(answer) == "unknown"
    assert provider.person["sub"] in answer.text
    assert [account.name for account in dashboard.services.store.accounts.all()] == ["jane"]


def test_an_admin_links_accounts_by_page_and_api(dashboard: Accounted) -> None:
    dashboard.add("eve")
    kim = dashboard.add("kim", Role.VIEWER)
    admin = dashboard.logged_in("eve")
    page = admin.post(f"/users/{kim.account_id}/link", data={"subject": " 7 "})
    assert page.status_code == 303
    issuer = dashboard.services.settings.web.oidc.issuer
    found = admin.get(f"/api/v1/users/{kim.account_id}")
    assert found.json()["external_id"] == f"{issuer} 7"
    assert 'value="7"' in admin.get("/users").text
    assert admin.post(f"/users/{kim.account_id}/link", data={"subject": "248289761001"}).status_code == 422
    for status in 200, 412:
        change = admin.patch(
            f"/api/v1/users/{kim.account_id}", json={"external_id": ""}, headers={"if-match": found.headers["etag"]}
        )
        assert change.status_code == status
    assert admin.post("/api/v1/users", json={"name": "sam"}).status_code == 422
    assert admin.post("/api/v1/users", json={"name": "sam", "external_id": f"{issuer} 9"}).status_code == 201
    assert "single sign-on" in admin.get("/users").text


def test_roles_follow_the_provider(open_dashboard: Callable[..., Accounted], provider: OidcProvider) -> None:
    dashboard = open_dashboard(
        new_accounts=True, claim="realm.roles", admin_values=("chiefs",), approver_values=("parents",), viewer_values=("all",)
    )
    dashboard.add("jane")
    accounts = dashboard.services.store.accounts
    for roles, expected in (["all", "parents"], Role.APPROVER), ("all", Role.VIEWER), (["chiefs", "all"], Role.ADMIN):
        provider.person["realm"] = {"roles": roles}
        browser = dashboard.browser()
        assert browser.get(at_provider(browser)).status_code == 200
        made = accounts.find_external(f"{provider.address} {provider.person['sub']}")
        assert made is not None
        assert (made.name, made.role, made.password_hash) == ("jane-2", expected, "")
    assert [entry.action for entry in dashboard.services.store.audit.page()][:3] == ["user.role", "user.role", "user.added"]
    nothing: list[Any] = [[], ["others"], {"chiefs": 1}, 7]
    for roles in nothing:
        provider.person["realm"] = {"roles": roles}
        browser = dashboard.browser()
        assert reason(browser.get(at_provider(browser))) == "role"
    assert reason(browser.get(at_provider(browser))) == "wait"
    provider.person["realm"] = {"roles": ["chiefs"]}
    assert made is not None
    dashboard.access.accounts.set_disabled(made, disabled=True)
    browser = dashboard.browser("192.0.2.7")
    assert reason(browser.get(at_provider(browser))) == "disabled"


def test_roles_may_come_from_the_userinfo_endpoint(open_dashboard: Callable[..., Accounted], provider: OidcProvider) -> None:
    provider.userinfo = {"sub": "somebody else", "groups": ["chiefs"]}
    dashboard = open_dashboard(new_accounts=True, admin_values=("chiefs",))
    dashboard.add("ada")
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser))) == "token"
    provider.userinfo["sub"] = provider.person["sub"]
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200
    assert dashboard.services.store.accounts.find("jane") is not None


def test_the_last_admin_stays_one(open_dashboard: Callable[..., Accounted], provider: OidcProvider) -> None:
    dashboard = open_dashboard(viewer_values=("all",))
    link(dashboard, dashboard.add("ada"), provider)
    provider.person["groups"] = "all"
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200
    assert dashboard.services.store.accounts.find("ada").role is Role.ADMIN  # type: ignore[union-attr]


def test_passwords_can_be_left_to_admins(open_dashboard: Callable[..., Accounted]) -> None:
    dashboard = open_dashboard(passwords="admins")
    dashboard.add("ada")
    dashboard.add("kim", Role.APPROVER)
    for name, status in ("kim", 401), ("ada", 303):
        assert dashboard.browser().post("/login", data={"name": name, "password": GOOD}).status_code == status


def test_a_secret_comes_from_its_file(open_dashboard: Callable[..., Accounted], provider: OidcProvider, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    dashboard = open_dashboard(client_secret="", client_secret_file=file)
    link(dashboard, dashboard.add("ada"), provider)
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser))) == "secret"
    file.write_text(f"{SECRET}\n")
    browser = dashboard.browser()
    assert browser.get(at_provider(browser)).status_code == 200
    file.write_text("another")
    browser = dashboard.browser()
    assert reason(browser.get(at_provider(browser))) == "code"


def test_secrets_are_not_logged(dashboard: Accounted, provider: OidcProvider, caplog: pytest.LogCaptureFixture) -> None:
    provider.sign = unsigned
    browser = dashboard.browser()
    back = at_provider(browser)
    browser.get(back)
    assert "(algorithm)" in caplog.text
    code = parse_qs(urlsplit(back).query)["code"][0]
    for secret in (SECRET, code, browser.cookies.get(FLOW) or "-----"):
        assert secret not in caplog.text


def test_without_an_issuer_there_is_none(tmp_path: Path) -> None:
    with accounted(tmp_path / "state") as dashboard:
        dashboard.add("ada")
        assert "/login/oidc" not in dashboard.browser().get("/login").text
        assert dashboard.browser().get("/login/oidc").status_code == 404
        assert dashboard.browser().get("/login/oidc/callback").status_code == 404


@pytest.mark.slow
def test_tokens_are_verified_in_a_process_of_their_own(tmp_path: Path, provider: OidcProvider) -> None:
    with accounted(
        tmp_path / "state", web__oidc__issuer=provider.address, web__oidc__client_id=CLIENT, web__oidc__client_secret=SECRET
    ) as dashboard:
        link(dashboard, dashboard.add("ada"), provider)
        browser = dashboard.browser()
        assert browser.get(at_provider(browser)).status_code == 200
        provider.sign = unsigned
        browser = dashboard.browser()
        assert reason(browser.get(at_provider(browser))) == "algorithm"
        dashboard.services.verifying.close()


def test_the_published_key_is_not_private() -> None:
    assert not {"d", "p", "q"} & set(public_jwk("first"))
