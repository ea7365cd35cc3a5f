"""What a hostile client sends, and how it is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatewayfilter.model import Role
from tests.web.account_fakes import GOOD, Accounted, accounted

USERS = "/api/v1/users"
EVE = {"name": "eve", "role": "admin", "password": GOOD}


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        yield opened


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "127.0.0.1@evil.example", "a b", "[::1].x"]
)  # fmt: skip
def test_no_name_of_another_site_leads_here(host: str, dashboard: Accounted) -> None:
    answer = dashboard.browser().get("/api/v1/status", headers={"host": host})
    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])
def test_no_simple_request_of_a_page_changes_anything(kind: str, dashboard: Accounted) -> None:
    """Pages of other sites can send these without a preflight; the cookie is not sent along, but let it be."""
    dashboard.add("ada")
    browser = dashboard.logged_in("ada")
    del browser.headers["x-csrf-token"]
    body = b'{"name": "eve", "role": "admin", "password": "correct horse battery"}'
    assert browser.post(USERS, content=body, headers={"content-type": kind}).status_code in {400, 403, 422}
    assert browser.post(USERS, json=EVE).status_code == 403
    assert browser.post(USERS, json=EVE, headers={"origin": "null"}).status_code == 403
    assert [account.name for account in dashboard.services.store.accounts.all()] == ["ada"]


@pytest.mark.parametrize("charset", ["punycode", "raw_unicode_escape", "utf-7", "utf-16", "idna", "unicode_escape"])
def test_no_client_selects_a_codec(charset: str, dashboard: Accounted) -> None:
    """One of them takes quadratic time, others make text that UTF-8 does not have."""
    body = b'--x\r\ncontent-disposition: form-data; name="name"\r\n\r\n\\ud800\r\n--x--\r\n'
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    assert dashboard.browser().post("/login", content=body, headers={"content-type": kind}).status_code == 415
    kind = "multipart/form-data; boundary=x; charset=UTF-8"
    dashboard.add("ada")
    assert dashboard.browser().post("/login", content=body, headers={"content-type": kind}).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[" * 100_000, b"null", b"[]", b'{"name": NaN}', b'{"name": 1e999}', b'{"name": "\\ud800", "\\udfff": 1}',
        b'{"name": "a\\u0000b", "role": "viewer", "password": "correct horse battery"}', b'{"name": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe", b'{"name": {"a": [[[]]]}}', b'{"role": "\\ud83d", "name": "x", "password": "correct horse battery"}',
    ],
)  # fmt: skip
def test_broken_bodies_are_problems(body: bytes, dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.logged_in("ada")
    for path in (USERS, "/api/v1/session", "/api/v1/rules", "/api/v1/clients", "/api/v1/words/test"):
        answer = browser.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in {400, 401, 422}, (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


def test_other_methods_are_problems(dashboard: Accounted) -> None:
    for method in ("TRACE", "PATCH", "FOO"):
        answer = dashboard.browser().request(method, "/api/v1/status")
        assert answer.status_code == 405
        assert answer.headers["content-type"] == "application/problem+json"


def test_many_fields_and_parts_are_refused(dashboard: Accounted) -> None:
    dashboard.add("ada")
    browser = dashboard.browser()
    parts = b"".join(b'--x\r\ncontent-disposition: form-data; name="f%d"\r\n\r\n1\r\n' % n for n in range(10_000)) + b"--x--\r\n"
    kind = {"content-type": "multipart/form-data; boundary=x"}
    assert browser.post("/login", content=parts, headers=kind).status_code in {400, 422}
    assert browser.post("/login", content=b"&".join(b"f%d=1" % n for n in range(10_000))).status_code in {400, 401, 422}
    assert browser.post("/login", content=b"x" * (1 << 20) + b"x").status_code == 413
    assert browser.get("/api/v1/status", headers={"content-length": "9" * 5_000}).status_code == 413


def test_paths_do_not_lead_out_of_the_static_files(dashboard: Accounted) -> None:
    browser = dashboard.browser()
    for name in ("%2e%2e/app.py", "..%2f..%2fapp.py", "/etc/passwd", "%2fetc%2fpasswd", "%00"):
        assert browser.get(f"/static/x/{name}").status_code in {303, 404}, name


def test_a_role_that_was_taken_away_is_gone_at_once(dashboard: Accounted) -> None:
    dashboard.add("ada")
    kim = dashboard.add("kim")
    browser = dashboard.logged_in("kim")
    assert browser.get(USERS).status_code == 200
    assert dashboard.logged_in("ada").patch(f"{USERS}/{kim.account_id}", json={"role": "viewer"}).status_code == 200
    assert browser.get(USERS).status_code in {401, 403}


def test_of_two_first_accounts_one_is_made(dashboard: Accounted) -> None:
    def make(name: str) -> int:
        form = {"name": name, "password": GOOD, "repeated": GOOD}
        return dashboard.browser().post("/setup", data=form).status_code

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(make, ("ada", "eve", "kim", "pat")))
    assert statuses[0] == 303
    assert set(statuses[1:]) <= {409, 422}
    assert len(dashboard.services.store.accounts.all()) == 1


def test_streams_need_a_log_in(dashboard: Accounted) -> None:
    dashboard.add("ada")
    assert dashboard.browser().get("/api/v1/events").status_code == 401


def test_codes_of_the_second_factor_are_not_guessed(dashboard: Accounted) -> None:
    dashboard.add("vi", Role.VIEWER)
    browser = dashboard.browser()
    statuses = [browser.post("/login/code", data={"pending": "x", "code": f"{n:06}"}).status_code for n in range(20)]
    assert set(statuses) <= {401, 429}
