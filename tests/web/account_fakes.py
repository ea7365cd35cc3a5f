"""A dashboard with real accounts, and browsers that use it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from gatewayfilter import wiring
from gatewayfilter.model import Account, Role, Scope
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.web.access.authenticator import AccountAuthenticator
from gatewayfilter.web.app import create_app
from gatewayfilter.web.services import WebServices
from tests.web.web_fakes import loaded_for

GOOD = "correct horse battery"
SESSION = "gatewayfilter-session"


@dataclass(slots=True)
class Accounted:
    """A dashboard with accounts.

    Attributes:
        app: without sockets.
        services: what its handlers use.
        tls: whether it is served with TLS.
    """

    app: ASGIApp
    services: WebServices
    tls: bool

    @property
    def access(self) -> DashboardAccess:
        """Its accounts."""
        return self.services.access

    def add(self, name: str, role: Role = Role.ADMIN) -> Account:
        """Makes an account with the password `GOOD`."""
        return self.access.accounts.add(name, role, GOOD)

    def stop_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keeps the clock of log-ins where it is: on a busy machine the first waits are over before the next guess."""
        now = self.services.clock()
        monkeypatch.setattr(self.access.log_in, "_clock", lambda: now)

    def browser(self, address: str = "127.0.0.1") -> TestClient:
        """Returns a browser at an address, without cookies."""
        url = f"{'https' if self.tls else 'http'}://127.0.0.1:8081"
        return TestClient(self.app, base_url=url, follow_redirects=False, raise_server_exceptions=False, client=(address, 50_000))

    def logged_in(self, name: str, address: str = "127.0.0.1") -> TestClient:
        """Returns a browser in which an account is logged in; scripts of its pages send the CSRF token."""
        browser = self.browser(address)
        answer = browser.post("/login", data={"name": name, "password": GOOD})
        assert answer.status_code == 303, answer.text
        browser.headers["x-csrf-token"] = csrf_of(self, browser)
        return browser

    def token(self, account: Account, scope: Scope) -> str:
        """Makes an API token."""
        return self.access.tokens.add(account, f"{scope} token", scope, None)[0]


def csrf_of(dashboard: Accounted, browser: TestClient) -> str:
    """Returns the CSRF token of the session that a browser has."""
    found = dashboard.access.sessions.find(browser.cookies.get(f"__Host-{SESSION}" if dashboard.tls else SESSION) or "")
    assert found is not None
    return found[1].csrf


@contextmanager
def accounted(data_dir: Path, *, tls: bool = False, **options: object) -> Iterator[Accounted]:
    """Opens a dashboard with accounts over a state folder."""
    loaded = loaded_for(data_dir, **options)
    with closing(wiring.open_store(loaded.settings)) as store:
        services = WebServices(loaded, store)
        yield Accounted(create_app(services, AccountAuthenticator(services.access), tls=tls), services, tls)
