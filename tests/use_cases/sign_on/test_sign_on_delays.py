"""The delay of log-ins by a provider, and what of a long answer is shown."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.settings import OidcSettings
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.dashboard_access import DashboardAccess
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from gatewayfilter.use_cases.sign_on import single_sign_on
from gatewayfilter.use_cases.sign_on.failures import SignOnError
from gatewayfilter.use_cases.sign_on.flow import Answer
from gatewayfilter.use_cases.sign_on.id_token import checked_token
from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn
from tests.use_cases.sign_on.oidc_provider import CLIENT, SECRET, OidcProvider
from tests.use_cases.sign_on.test_log_in_by_provider import HOME, KEY, REDIRECT, at_provider


class SlowThrottle(LogInThrottle):
    """Has each attempt wait for half a second."""

    def begin(self, account: str, network: str, *, known: bool = False, device: str = "") -> float:
        return 0.5


@pytest.fixture
def open_one(provider: OidcProvider, settings: Settings, store: Store) -> Callable[[], SingleSignOn]:
    given = {"issuer": provider.address, "client_id": CLIENT, "client_secret": SECRET}
    access = DashboardAccess(settings, store, lambda _: None)
    return lambda: SingleSignOn(OidcSettings.model_validate(given), KEY, store, access, checked_token)


def refusal(sign_on: SingleSignOn, change: Callable[[Answer], Answer] = lambda answer: answer) -> str:
    answer, cookie = at_provider(sign_on)
    with pytest.raises(SignOnError) as caught:
        sign_on.complete(change(answer), cookie, REDIRECT, HOME)
    return str(caught.value)


def test_half_a_second_is_waited_for(open_one: Callable[[], SingleSignOn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_sign_on, "LogInThrottle", SlowThrottle)
    assert refusal(open_one()).endswith("too many failures")


def test_the_beginning_of_a_long_answer_is_shown(open_one: Callable[[], SingleSignOn]) -> None:
    sign_on = open_one()
    assert refusal(sign_on, lambda answer: replace(answer, error="x" * 300)).endswith(f"answers '{'x' * 100}'")
    assert refusal(sign_on, lambda answer: replace(answer, issuer="x" * 300)).endswith(f"issuer '{'x' * 200}'")
