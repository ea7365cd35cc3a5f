"""Which role each route that changes something needs: a table of all of them, made from the routers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import Role, Scope
from gatewayfilter.web import api, pages
from tests.web.account_fakes import Accounted, accounted

pytestmark = pytest.mark.slow

_SAFE = {"GET", "HEAD", "OPTIONS"}
PUBLIC = {
    ("POST", "/api/v1/session"),
    ("POST", "/language"),
    ("POST", "/login"),
    ("POST", "/login/code"),
    ("POST", "/logout"),
    ("POST", "/setup"),
}
"""They make a log-in, or end one, or set a cookie of the browser alone."""
VIEWER = {
    ("POST", "/account/language"),
    ("POST", "/account/sessions/end"),
    ("POST", "/account/sessions/{public_id}/end"),
    ("POST", "/account/tokens"),
    ("POST", "/account/tokens/{token_id}/remove"),
    ("POST", "/api/v1/rules/test"),
    ("POST", "/api/v1/tokens"),
    ("DELETE", "/api/v1/tokens/{token_id}"),
    ("POST", "/api/v1/words/test"),
    ("POST", "/rules/explain"),
    ("POST", "/words/test"),
}
"""They change the own account, or only compute."""
APPROVER = {
    ("POST", "/api/v1/audit/{entry_id}/undo"),
    ("DELETE", "/api/v1/bypass-links/{number}"),
    ("DELETE", "/api/v1/pauses"),
    ("POST", "/api/v1/pauses"),
    ("POST", "/api/v1/requests/{number}/approve"),
    ("POST", "/api/v1/requests/{number}/deny"),
    ("POST", "/api/v1/requests/{number}/link"),
    ("POST", "/api/v1/requests/{number}/reopen"),
    ("POST", "/api/v1/reviews/decide"),
    ("POST", "/api/v1/reviews/{number}/decide"),
    ("POST", "/audit/{entry_id}/undo"),
    ("POST", "/pauses"),
    ("POST", "/pauses/end"),
    ("POST", "/requests/links/{number}/revoke"),
    ("POST", "/requests/{number}/answer"),
    ("POST", "/requests/{number}/reopen"),
    ("POST", "/review/undo"),
    ("POST", "/review/{number}/decide"),
}
"""They answer requests and reviews, pause, and take back what an approver did."""


def changing_routes() -> Iterator[tuple[str, str]]:
    """Yields method and path of every route that changes something."""
    for router in (*api.routers(), *pages.routers()):
        for route in router.routes:
            for method in sorted(getattr(route, "methods", set()) - _SAFE):
                yield method, getattr(route, "path", "")


ROUTES = sorted(set(changing_routes()) - PUBLIC)


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounted]:
    folder: Path = tmp_path_factory.mktemp("roles") / "state"
    with accounted(folder) as opened:
        opened.add("ada")
        opened.add("pat", Role.APPROVER)
        opened.add("vi", Role.VIEWER)
        yield opened


def statuses(dashboard: Accounted, who: str) -> dict[tuple[str, str], int]:
    """Returns what each route answers to an account, `""` for nobody, by a session and below `/api` by a token."""
    browser = dashboard.logged_in(who) if who else dashboard.browser()
    account = dashboard.services.store.accounts.find(who) if who else None
    program = dashboard.browser()
    if account is not None:
        scope = {"vi": Scope.READ, "pat": Scope.APPROVE, "ada": Scope.READ}[who]
        program.headers["authorization"] = f"Bearer {dashboard.token(account, scope)}"
    found = {}
    for method, path in ROUTES:
        if (method, path) == ("DELETE", "/api/v1/session"):
            continue
        address = re.sub(r"\{[^}]*\}", "1", path)
        found[method, path] = browser.request(method, address).status_code
        if account is not None and path.startswith("/api/") and who != "ada":
            by_token = program.request(method, address).status_code
            assert (by_token in {401, 403}) >= (found[method, path] in {401, 403}), (method, path, by_token)
    return found


def test_nobody_changes_anything(dashboard: Accounted) -> None:
    assert set(statuses(dashboard, "").values()) == {401}


def test_a_viewer_changes_only_its_own_account(dashboard: Accounted) -> None:
    allowed = {route for route, status in statuses(dashboard, "vi").items() if status != 403}
    assert allowed == VIEWER


def test_an_approver_answers_and_pauses(dashboard: Accounted) -> None:
    allowed = {route for route, status in statuses(dashboard, "pat").items() if status != 403}
    assert allowed == VIEWER | APPROVER
