"""A provider of OpenID Connect that each test finds as new."""

from collections.abc import Iterator

import pytest

from tests.use_cases.sign_on.oidc_provider import OidcProvider, running_provider


@pytest.fixture(scope="package")
def running() -> Iterator[OidcProvider]:
    with running_provider() as one:
        yield one


@pytest.fixture
def provider(running: OidcProvider) -> OidcProvider:
    running.begin_anew()
    return running
