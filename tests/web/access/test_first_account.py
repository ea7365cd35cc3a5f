"""The first account: by whom it may be made."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY, setup_code
from tests.web.account_fakes import GOOD, SESSION, Accounted, accounted

FORM = {"name": "ada", "password": GOOD, "repeated": GOOD}


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        yield opened


@pytest.fixture
def in_the_lan(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state", web__listen="0.0.0.0:8081") as opened:
        yield opened


def test_everything_leads_to_the_first_account(dashboard: Accounted) -> None:
    browser = dashboard.browser()
    for path in ("/api", "/login"):
        assert browser.get(path).headers["location"] == "/setup"
    assert browser.get("/setup").status_code == 200
    assert "Set-up code" not in browser.get("/setup").text
    assert browser.get("/api/v1/status").status_code == 401


def test_it_is_made_on_this_machine(dashboard: Accounted) -> None:
    browser = dashboard.browser()
    assert browser.post("/setup", data=FORM).status_code == 303
    assert browser.get("/api/v1/status").status_code == 200
    (account,) = dashboard.services.store.accounts.all()
    assert (account.name, account.role.value) == ("ada", "admin")
    (entry,) = dashboard.services.store.audit.page()
    assert (entry.action, entry.subject) == ("user.added", "ada")
    assert dashboard.browser().get("/setup").headers["location"] == "/"
    assert dashboard.browser().post("/setup", data=FORM | {"name": "eve"}).status_code == 409


def test_its_language_is_chosen_on_the_page(dashboard: Accounted) -> None:
    browser = dashboard.browser()
    page = browser.get("/setup").text
    assert '<html lang="en-GB"' in page
    assert 'value="zh" lang="zh">简体中文</button>' in page
    chosen = browser.post("/language", data={"language": "zh", "back": "/setup"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/setup")
    assert 'value="en" lang="en">English</button>' in browser.get("/setup").text
    browser.post("/setup", data=FORM)
    (account,) = dashboard.services.store.accounts.all()
    assert account.language == "zh"


def test_it_is_logged_in_though_its_language_cannot_be_stored(dashboard: Accounted, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the database is locked")

    browser = dashboard.browser()
    browser.post("/language", data={"language": "zh", "back": "/setup"})
    monkeypatch.setattr(dashboard.access.accounts, "set_language", refuse)
    assert browser.post("/setup", data=FORM).headers["location"] == "/setup/purpose"
    assert browser.get("/api/v1/status").status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"password": "short", "repeated": "short"}, 422, "at least 10"),
        ({"repeated": "different"}, 422, "differ"),
        ({"name": ""}, 422, "1 to 64"),
        ({"name": "<b>"}, 422, "letters"),
        ({"password": "", "repeated": ""}, 422, "at least 10"),
        ({"password": "adaadaadaada", "repeated": "adaadaadaada"}, 422, "first"),
    ],
)
def test_what_cannot_be(change: dict[str, str], status: int, sentence: str, dashboard: Accounted) -> None:
    answer = dashboard.browser().post("/setup", data=FORM | change)
    assert answer.status_code == status
    assert sentence in answer.text
    assert "<b>" not in answer.text
    assert GOOD not in answer.text
    assert not dashboard.access.has_accounts()


def test_another_machine_needs_the_code(in_the_lan: Accounted, tmp_path: Path) -> None:
    code = setup_code(load_key(tmp_path / "state", WEB_KEY))
    for address in ("192.0.2.9", "127.0.0.1"):
        browser = in_the_lan.browser(address)
        assert "Set-up code" in browser.get("/setup").text
        near = [code[:at] + ("B" if code[at] != "B" else "C") + code[at + 1 :] for at in (0, 8, 18)]
        assert len(code.replace("-", "")) * 5 == 80  # bits: they need no delay
        for wrong in ("", "AAAA-AAAA-AAAA-AAAA", code[:-1], "\u00e4" * 16, *near):
            answer = browser.post("/setup", data=FORM | {"code": wrong})
            assert answer.status_code == 403
            assert SESSION not in browser.cookies
    assert not in_the_lan.access.has_accounts()
    assert f'value="{code}"' in browser.get(f"/setup?code={code}").text
    assert browser.post("/setup", data=FORM | {"code": code.lower().replace("-", " ")}).status_code == 303
    assert in_the_lan.browser().post("/setup", data=FORM | {"code": code, "name": "eve"}).status_code == 409


@pytest.mark.parametrize("option", [{"proxy__listen": "0.0.0.0:8080"}, {"proxy__mode": "transparent"}])
def test_where_others_use_the_proxy_this_machine_needs_the_code_too(option: dict[str, Any], tmp_path: Path) -> None:
    """They could connect from this machine through the proxy."""
    with accounted(tmp_path / "state", **option) as dashboard:
        assert dashboard.browser().post("/setup", data=FORM).status_code == 403
        assert not dashboard.access.has_accounts()


@pytest.mark.parametrize("field", ["via", "x-forwarded-for", "forwarded", "x-real-ip"])
def test_a_proxy_on_this_machine_is_not_this_machine(field: str, dashboard: Accounted) -> None:
    answer = dashboard.browser().post("/setup", data=FORM, headers={field: "1.1 proxy"})
    assert answer.status_code == 403
    assert not dashboard.access.has_accounts()


def test_another_site_cannot_make_it(dashboard: Accounted) -> None:
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        assert dashboard.browser().post("/setup", data=FORM, headers=headers).status_code in {403, 421}
    assert not dashboard.access.has_accounts()


def test_one_is_made_however_many_ask(dashboard: Accounted) -> None:
    def make(number: int) -> int:
        return dashboard.browser().post("/setup", data=FORM | {"name": f"admin{number}"}).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(make, range(6)))
    assert statuses.count(303) == 1
    assert len(dashboard.services.store.accounts.all()) == 1
