"""How much of a text that somebody gives is shown in a sentence, and how long identifiers are."""

from collections.abc import Callable

import jwt
import pytest

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.access.random_secrets import read_device, sign_device
from gatewayfilter.use_cases.lists.list_readers import read_entries
from gatewayfilter.use_cases.lists.patterns import read_pattern
from gatewayfilter.use_cases.lists.remote_addresses import check_remote
from gatewayfilter.use_cases.lists.rule_editing import version_of
from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.use_cases.policies import checked_icon
from gatewayfilter.use_cases.sign_on.id_token import checked_token
from gatewayfilter.use_cases.sign_on.provider_http import ProviderHttp
from gatewayfilter.use_cases.sign_on.token_facts import ExpectedToken
from tests.case_tables import all_cases

KEY = b"k" * 32
LONG = "x" * 400


def of_moment(text: str) -> object:
    return read_moment(text, 0.0)


def of_address(text: str) -> object:
    check_remote([text], ())
    return text


def of_url(text: str) -> object:
    return ProviderHttp("https://id.example").check_url(text)


@all_cases(
    ("call", "given", "shown"),
    [
        (of_moment, LONG, "x" * 100),
        (of_moment, "9000y".ljust(400), "9000y".ljust(100)),
        (checked_icon, LONG, "x" * 100),
        (of_address, LONG, "x" * 200),
        (of_url, LONG, "x" * 200),
        (read_pattern, f"{LONG}$script", "x" * 200),
        (read_pattern, f"{LONG},", "x" * 200),
    ],
)
def test_the_beginning_of_what_was_given_is_shown(call: Callable[[str], object], given: str, shown: str) -> None:
    with pytest.raises(GatewayFilterError) as caught:
        call(given)
    assert repr(shown) in str(caught.value)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (f'"kind": "domain", "pattern": "{LONG}"', "x" * 200),
        (f'"kind": "domain", "pattern": ".a.example", "scope": "{LONG}"', "x" * 200),
    ],
)
def test_the_beginning_of_an_entry_is_shown(values: str, shown: str) -> None:
    ((_, _, why),) = read_entries(f'[{{"action": "block", {values}}}]', ListAction.BLOCK).rejected
    assert repr(shown) in why


def test_the_beginning_of_an_unknown_algorithm_is_shown() -> None:
    head, _, rest = jwt.encode({}, "k" * 32, "HS256").partition(".")
    assert head
    made = jwt.utils.base64url_encode(f'{{"alg": "{LONG}"}}'.encode()).decode()
    found = checked_token(f"{made}.{rest}", "{}", ExpectedToken("https://id.example", "me", "nonce", 0.0))
    assert found.detail == f"the ID token is signed by {'x' * 20!r}"


def test_identifiers_are_as_long_as_they_were() -> None:
    """Those that were given out before an update stay good."""
    assert len(version_of(ManualRule(1, ListAction.BLOCK, EntryKind.HOST, "a.example"))) == 24
    mark = sign_device(KEY, 7)
    assert [len(part) for part in mark.split(".")] == [16, 32]
    assert read_device(KEY, 7, mark) == mark.partition(".")[0]
    for wrong in (mark[:-1], f"{mark}é", "", mark.ljust(201, "0")):
        assert read_device(KEY, 7, wrong) == ""
    assert read_device(KEY, 8, mark) == ""
