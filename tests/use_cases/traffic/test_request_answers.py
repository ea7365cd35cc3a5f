"""Answers to requests to unblock pages: what each does, and what the audit log keeps of it."""

from collections.abc import Callable
from typing import Any

import pytest

from gatewayfilter.errors import MissingError
from gatewayfilter.interfaces import BypassLink, RequestState, UnblockRequest
from gatewayfilter.model import Actor, Classification, Evidence, ReviewKind, ReviewTask, Via
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.requests import Whom, address_of
from gatewayfilter.use_cases.traffic.request_answers import RequestAnswers, Terms
from gatewayfilter.use_cases.traffic.request_facts import facts_of, find_request

NOW = 1_800_000_000.0
URL = "http://www.games.example/x"


@pytest.fixture
def number(store: Store) -> int:
    asked = UnblockRequest(URL, "10.0.0.7", "blacklist", "list", ".games.example", "games", "for school", NOW)
    store.unblock.ask([asked])
    return store.unblock.open_requests()[0].request_id


@pytest.fixture
def answers(store: Store) -> RequestAnswers:
    return RequestAnswers(store, Actor("anna", Via.SESSION), lambda: NOW)


def recorded(store: Store) -> list[tuple[str, str, str, Any]]:
    return [(entry.action, entry.subject, entry.detail, entry.undo) for entry in store.audit.page()[::-1]]


def test_an_approval_lasts_as_long_as_its_terms(answers: RequestAnswers, store: Store, number: int) -> None:
    made = answers.approve(number, Terms(60.0, word="have fun"))
    (rule,) = store.lists.rules()
    assert (rule.expires_at, rule.pattern) == (NOW + 60, ".games.example")
    assert find_request(store, number).word == "have fun"
    undo = {"kind": "requests", "decided": {str(number): NOW}}
    assert recorded(store) == [("request.approved", URL, f"request {number}", undo)]
    assert [request.request_id for request in made.requests] == [number]


def test_an_approval_for_one_visit_is_a_link_without_an_end_of_its_own(
    answers: RequestAnswers, store: Store, number: int
) -> None:
    answers.approve(number, Terms(once=True, site=False))
    (link,) = store.bypass.links()
    assert (link.once, link.url) == (True, URL)
    assert store.lists.rules() == []


def test_a_denial_and_its_reason_are_recorded(answers: RequestAnswers, store: Store, number: int) -> None:
    assert answers.deny(number, "not now").state is RequestState.DENIED
    assert answers.reopen(number).state is RequestState.OPEN
    assert answers.deny(number).request_id == number
    assert recorded(store) == [
        ("request.denied", URL, f"request {number}: not now", None),
        ("request.reopened", URL, f"request {number}", None),
        ("request.denied", URL, f"request {number}", None),
    ]


def test_links_are_made_and_revoked(answers: RequestAnswers, store: Store, number: int) -> None:
    link = answers.link(number, Terms(60.0, site=False))
    assert (link.url, link.until, link.request_id) == (URL, NOW + 60, number)
    other = answers.add_link(parse_url("http://films.example/a"), Terms(90.0, site=True, whom=Whom(everybody=True)))
    assert (other.pattern, other.until, other.request_id) == (".films.example", NOW + 90, 0)
    revoked = answers.revoke_link(other.link_id)
    assert (revoked.link_id, revoked.revoked_at) == (other.link_id, NOW)
    assert recorded(store) == [
        ("link.added", URL, f"request {number}", {"kind": "link", "number": link.link_id}),
        ("link.added", other.url, f"link {other.link_id}", {"kind": "link", "number": other.link_id}),
        ("link.revoked", other.url, f"link {other.link_id}", None),
    ]
    assert address_of(b"k" * 32, link) != address_of(b"k" * 32, other)
    assert "games.example" in address_of(b"k" * 32, link)


@pytest.mark.parametrize(
    "answer",
    [
        lambda answers: answers.approve(99, Terms()),
        lambda answers: answers.deny(99),
        lambda answers: answers.reopen(99),
        lambda answers: answers.link(99, Terms()),
        lambda answers: answers.revoke_link(99),
    ],
    ids=["approve", "deny", "reopen", "link", "revoke"],
)
def test_what_is_not_there_is_not_recorded(
    answer: Callable[[RequestAnswers], BypassLink], answers: RequestAnswers, store: Store
) -> None:
    with pytest.raises(MissingError):
        answer(answers)
    assert recorded(store) == []


def test_the_words_of_a_judged_page_stand_beside_its_request(store: Store, number: int) -> None:
    words = [("few", 1.0, "games"), ("many", 9.0, "games"), ("many", 5.0, "games"), ("other", 9.0, "ads"), ("not", -2.0, "games")]
    words += [(f"word{index}", 2.0, "games") for index in range(20)]
    hits = tuple(Evidence(word, category, weight, "main", 0) for word, weight, category in words)
    judged = Classification("games", 42.0, 20.0, {}, hits)
    task = ReviewTask(0, ReviewKind.PAGE, URL, parse_url(URL).key, "games", judged, blocked=True, created_at=NOW)
    store.reviews.add(task)
    (facts,) = facts_of(store, [find_request(store, number)], NOW)
    assert [(hit.word, hit.weight) for hit in facts.evidence[:2]] == [("many", 9.0), ("word19", 2.0)]
    assert len(facts.evidence) == 12
    assert facts.task is not None
