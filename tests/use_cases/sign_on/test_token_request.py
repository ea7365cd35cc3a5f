"""The request by which the filter exchanges a code for tokens."""

import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.use_cases.sign_on.single_sign_on import SingleSignOn


@pytest.mark.parametrize(
    ("secret", "by_form", "sent", "authorization"),
    [
        ("s/1", False, {}, "Basic " + base64.b64encode(b"filter+1:s%2F1").decode()),
        ("s/1", True, {"client_id": "filter 1", "client_secret": "s/1"}, ""),
        ("", False, {"client_id": "filter 1"}, ""),
        ("", True, {"client_id": "filter 1"}, ""),
    ],
)
def test_how_the_filter_names_itself_to_the_provider(
    secret: str, sent: dict[str, str], authorization: str, *, by_form: bool
) -> None:
    posted = list[tuple[str, dict[str, str], str]]()

    def post(url: str, fields: dict[str, str], header: str) -> tuple[int, dict[str, str]]:
        posted.append((url, fields, header))
        return 200, {"id_token": "token"}

    provider = SimpleNamespace(by_form=by_form, token_url="https://id.example/token")
    settings = SimpleNamespace(client_id="filter 1")
    sign_on = SimpleNamespace(_settings=settings, _secret=lambda: secret, _http=SimpleNamespace(post=post))
    tokens = SingleSignOn._tokens(cast("Any", sign_on), cast("Any", provider), "code", "verifier", "https://filter/back")
    assert tokens == ("token", "")
    always = {"grant_type": "authorization_code", "code": "code", "redirect_uri": "https://filter/back"}
    assert posted == [("https://id.example/token", always | {"code_verifier": "verifier"} | sent, authorization)]
