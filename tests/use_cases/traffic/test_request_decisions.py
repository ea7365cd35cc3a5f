"""Decisions on requests to unblock pages: two people who answer at once, decisions taken back, facts beside a request."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.errors import ConflictError, MissingError, PolicyError
from gatewayfilter.interfaces import RequestState, UnblockRequest
from gatewayfilter.model import Classification, Client, Evidence, Group, ReviewKind, ReviewTask, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.requests import RequestDecisions, Whom, read_word, revision
from gatewayfilter.use_cases.traffic.request_facts import facts_of, find_request

NOW = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'gatewayfilter.sqlite3'}")) as opened:
        PolicyEditor(opened.policies).add_group(Group("kids"))
        PolicyEditor(opened.policies).add_client(Client("tablet", (parse_matcher("10.0.0.7"),), "kids"))
        yield opened


def _ask(store: Store, url: str = "http://www.games.example/x", **facts: str) -> int:
    given = {"reason": "blacklist", "source_list": "list", "rule": ".games.example", "category": "games"} | facts
    asked = UnblockRequest(
        url,
        "10.0.0.7",
        given["reason"],
        given["source_list"],
        given["rule"],
        given["category"],
        "for school",
        NOW,
        client_name="tablet",
    )
    assert store.unblock.ask([asked]) == 1
    return store.unblock.open_requests()[0].request_id


def test_the_second_of_two_people_who_answer_is_told(store: Store) -> None:
    number = _ask(store)
    decisions = RequestDecisions(store, lambda: NOW)
    seen = revision(find_request(store, number))
    decisions.approve(number, lifetime_s=3600, site=None, whom=Whom(), seen=seen)
    for once in (False, True):
        with pytest.raises(ConflictError, match="was answered meanwhile: it is approved"):
            decisions.approve(number, lifetime_s=None, site=None, whom=Whom(), once=once, seen=seen)
    with pytest.raises(ConflictError):
        decisions.deny(number, "no", seen=seen)
    with pytest.raises(ConflictError):
        decisions.link(number, lifetime_s=60, once=True, site=None, whom=Whom(), seen=seen)
    assert len(store.lists.rules()) == 1
    assert store.bypass.links() == []


def test_the_check_of_the_store_refuses_what_was_decided_between_reading_and_writing(store: Store) -> None:
    number = _ask(store)
    now = find_request(store, number)

    def refuse(requests: object) -> None:
        assert requests == [now]
        raise ConflictError("meanwhile")

    with pytest.raises(ConflictError):
        store.unblock.approve([number], [], scope="", until=None, word="", now=NOW, check=refuse)
    with pytest.raises(ConflictError):
        store.unblock.deny([number], word="", now=NOW, check=refuse)
    assert find_request(store, number) == now


def test_a_decision_that_is_taken_back_leaves_the_request_waiting(store: Store) -> None:
    number = _ask(store)
    before = find_request(store, number)
    decisions = RequestDecisions(store, lambda: NOW)
    with pytest.raises(PolicyError, match="waits already"):
        decisions.reopen(number)
    decisions.approve(number, lifetime_s=3600, site=None, whom=Whom(group="kids"), word="yes")
    assert decisions.reopen(number) == before
    assert store.lists.rules() == []
    decisions.approve(number, lifetime_s=None, site=None, whom=Whom(), once=True)
    assert decisions.reopen(number).state is RequestState.OPEN
    assert all(link.revoked_at == NOW for link in store.bypass.links())
    decisions.deny(number, "no")
    assert decisions.reopen(number) == before


def test_a_request_that_is_not_there(store: Store) -> None:
    with pytest.raises(MissingError):
        find_request(store, 7)
    with pytest.raises(MissingError):
        RequestDecisions(store).deny(7)


def test_facts_of_a_request(store: Store) -> None:
    number = _ask(store, "http://www.games.example/x?y=1")
    (facts,) = facts_of(store, [find_request(store, number)], NOW)
    assert (facts.host, facts.path, facts.site, facts.whole_site) == ("www.games.example", "x?y=1", ".games.example", True)
    assert (facts.group, facts.groups, facts.state) == ("kids", (), "open")
    assert facts.task is None


def test_decided_requests_are_paged_by_number(store: Store) -> None:
    numbers = [_ask(store, f"http://a{index}.example/") for index in range(4)]
    decisions = RequestDecisions(store)
    for number in numbers[:3]:
        decisions.deny(number)
    assert [request.request_id for request in store.unblock.decided(2)] == [3, 2]
    assert [request.request_id for request in store.unblock.decided(2, before=2)] == [1]


def test_an_answer_is_one_line_that_can_be_shown() -> None:
    assert read_word("  have\u202e\n fun\x00 ") == "have fun"
    with pytest.raises(PolicyError, match="at most 300 characters"):
        read_word("x" * 301)


def test_the_evidence_of_the_task_about_the_page_stands_beside_a_request(store: Store) -> None:
    number = _ask(store)
    hits = [
        ("a", "games", 0.5),
        ("b", "games", 3.0),
        ("c", "games", 0.0),
        ("d", "games", -2.0),
        ("e", "ads", 9.0),
        ("b", "games", 1.0),
    ]
    evidence = tuple(Evidence(word, category, weight, "main", 0) for word, category, weight in hits)
    evidence += tuple(Evidence(f"w{count}", "games", 0.25, "main", 0) for count in range(20))
    judged = Classification("games", 42.0, 20.0, {}, evidence)
    url = "http://www.games.example/x"
    key = parse_url(url).key
    store.reviews.add(ReviewTask(0, ReviewKind.PAGE, url, key, "games", judged, True, 1.0))
    (facts,) = facts_of(store, [find_request(store, number)], NOW)
    assert facts.task is not None
    assert [(hit.word, hit.weight) for hit in facts.evidence][:2] == [("b", 3.0), ("a", 0.5)]
    assert (len(facts.evidence), {hit.weight for hit in facts.evidence[2:]}) == (12, {0.25})
