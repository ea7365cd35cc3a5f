"""`Idempotency-Key`: a POST to the API is carried out once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatewayfilter.model import Role, Scope
from tests.web.account_fakes import GOOD, Accounted, accounted

USERS = "/api/v1/users"


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        opened.add("ada")
        yield opened


def form(name: str) -> dict[str, str]:
    return {"name": name, "password": GOOD}


def test_a_repetition_has_the_first_answer(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    key = {"idempotency-key": "one"}
    first = browser.post(USERS, json=form("kim"), headers=key)
    again = browser.post(USERS, json=form("kim"), headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert {name: again.headers[name] for name in ("location", "etag", "content-type")} == {
        name: first.headers[name] for name in ("location", "etag", "content-type")
    }
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-content-type-options"] == "nosniff"
    assert len(browser.get(USERS).json()["items"]) == 2
    refused = browser.post(USERS, json=form("lee"), headers=key)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["title"] == "Unprocessable Content"
    assert browser.post(USERS, json=form("kim"), headers={"idempotency-key": "two"}).status_code == 422  # taken
    assert browser.post(USERS, json=form("kim"), headers={"idempotency-key": "x" * 300}).status_code == 422


def test_keys_of_others_are_others(dashboard: Accounted) -> None:
    ada = dashboard.access.accounts.find("ada")
    key = {"idempotency-key": "one"}
    first = dashboard.logged_in("ada")
    assert first.post(USERS, json=form("kim"), headers=key).status_code == 201
    program = dashboard.browser()
    assert program.post(USERS, json=form("kim"), headers=key).status_code == 401
    program.headers["authorization"] = f"Bearer {dashboard.token(ada, Scope.ADMIN)}"
    assert program.post(USERS, json=form("kim"), headers=key).status_code == 422
    dashboard.add("vi", Role.VIEWER)
    assert dashboard.logged_in("vi").post(USERS, json=form("kim"), headers=key).status_code == 403


def test_who_was_not_let_in_may_try_again(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    key = {"idempotency-key": "one"}
    assert browser.post(USERS, json=form("kim"), headers={**key, "x-csrf-token": ""}).status_code == 403
    assert browser.post(USERS, json=form("kim"), headers=key).status_code == 201


def test_of_many_at_a_time_one_is_carried_out(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")

    def send(_: int) -> int:
        return browser.post(USERS, json=form("kim"), headers={"idempotency-key": "one"}).status_code

    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(send, range(8)))
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert len(dashboard.services.store.audit.page(action="user.added")) == 1


def test_secrets_are_not_kept(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    key = {"idempotency-key": "one"}
    tokens = [browser.post("/api/v1/tokens", json={"name": f"job{n}"}, headers=key).json()["token"] for n in range(2)]
    assert tokens[0] != tokens[1]


def test_too_large_to_be_kept(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    assert browser.post(USERS, content=b"x" * 100_000, headers={"idempotency-key": "one"}).status_code == 413
