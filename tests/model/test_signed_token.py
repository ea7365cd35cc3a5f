from base64 import urlsafe_b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.model import LinkClaims, is_state_token, link_address, read_link, sign_link, state_token
from gatewayfilter.model.signed_token import MOST_CHARACTERS

KEY = b"k" * 32
CLAIMS = LinkClaims(7, "https://games.example:8443/a?b=ü", "client:kim", 1234.5, True)
DAY = 86_400.0


def test_a_link_is_read_as_it_was_signed() -> None:
    assert read_link(KEY, sign_link(KEY, CLAIMS)) == CLAIMS
    assert link_address(KEY, CLAIMS).startswith("https://games.example:8443/.well-known/gatewayfilter/unblock?link=")
    assert read_link(b"K" * 32, sign_link(KEY, CLAIMS)) is None


@given(st.data())
def test_no_changed_link_is_read(data: st.DataObject) -> None:
    token = sign_link(KEY, CLAIMS)
    at = data.draw(st.integers(0, len(token) - 1))
    mark = data.draw(st.characters())
    changed = token[:at] + mark + token[at + 1 :]
    assert read_link(KEY, changed) == (CLAIMS if changed == token else None)


@pytest.mark.parametrize(
    "token", ["", ".", "a.b", "a" * 20_000, "=", "\u0660.", "e30.", urlsafe_b64encode(b"[]").decode() + ".x"]
)
def test_no_other_text_is_read(token: str) -> None:
    assert read_link(KEY, token) is None


def test_a_signed_token_has_a_longest_form() -> None:
    longest = next(
        token
        for length in range(MOST_CHARACTERS)
        if len(token := sign_link(KEY, replace(CLAIMS, url="a" * (MOST_CHARACTERS * 3 // 4 - length)))) <= MOST_CHARACTERS
    )
    found = read_link(KEY, longest)
    assert found is not None
    for more in range(1, 4):
        longer = sign_link(KEY, replace(found, url=found.url + "a" * more))
        assert (read_link(KEY, longer) is not None) is (len(longer) <= MOST_CHARACTERS)
    assert read_link(KEY, "é" * 10) is None
    assert read_link(KEY, sign_link(KEY, CLAIMS) + "\u0661") is None


@given(st.text(max_size=300))
def test_nothing_raises(token: str) -> None:
    assert read_link(KEY, token) is None
    assert not is_state_token(KEY, token, "kim", "http://a.example/", 0.0)


def test_a_state_token_is_of_its_client_page_and_day() -> None:
    token = state_token(KEY, "kim", "http://a.example/", 10 * DAY)
    assert is_state_token(KEY, token, "kim", "http://a.example/", 11 * DAY - 1)
    assert is_state_token(KEY, token, "kim", "http://a.example/", 12 * DAY - 1)
    for other in (
        (KEY, token, "kim", "http://a.example/", 12 * DAY),
        (KEY, token, "kim", "http://a.example/", 10 * DAY - 1),
        (KEY, token, "tom", "http://a.example/", 10 * DAY),
        (KEY, token, "kim", "http://b.example/", 10 * DAY),
        (b"K" * 32, token, "kim", "http://a.example/", 10 * DAY),
        (KEY, token[:-1], "kim", "http://a.example/", 10 * DAY),
    ):
        assert not is_state_token(*other)
    assert read_link(KEY, token) is None
    assert not is_state_token(KEY, sign_link(KEY, CLAIMS), "kim", "http://a.example/", 10 * DAY)
