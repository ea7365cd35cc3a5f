"""Values that rooms hand to each other: what they are read as, and what is made of two."""

from typing import Any

import pytest

from gatewayfilter.interfaces import Page, QueueState, UnblockRequest
from gatewayfilter.interfaces.records import RuleMatches


@pytest.mark.parametrize(
    ("stored", "state"),
    [*((state.value, state) for state in QueueState), ("resting", QueueState.DONE)],
)
def test_a_state_of_the_queue_is_read_by_its_code_of_any_release(stored: str, state: QueueState) -> None:
    assert QueueState(stored) is state


@pytest.mark.parametrize("stored", ["", "Waiting", "manual-allow", 7])
def test_what_is_no_state_of_the_queue(stored: object) -> None:
    given: Any = stored
    with pytest.raises(ValueError, match="is not a valid QueueState"):
        QueueState(given)


def test_what_rules_have_read_adds_up() -> None:
    first, later = RuleMatches(3, 1, 50.0), RuleMatches(4, 2, 40.0)
    assert first.plus(later) == later.plus(first) == RuleMatches(7, 3, 50.0)
    assert first.plus(RuleMatches()) == first


def test_a_request_is_bound_to_a_name_or_else_to_an_address() -> None:
    def who(name: str) -> str:
        return UnblockRequest("http://a.test/", "192.0.2.7", "blacklist", "", "", "", "", 1.0, client_name=name).who

    assert (who("kim"), who("")) == ("kim", "192.0.2.7")


@pytest.mark.parametrize(("headers", "kind"), [({"content-type": "Text/HTML; charset=utf-8"}, "text/html"), ({}, "")])
def test_the_type_of_a_page_is_that_of_its_head(headers: dict[str, str], kind: str) -> None:
    assert Page("http://a.test/", "http://a.test/", 200, headers, b"").content_type == kind
