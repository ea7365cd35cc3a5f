"""A client's own requests for pages: which may be made, which answers are shown, and which bypass links work, at each bound."""

from dataclasses import replace

import pytest

from gatewayfilter.interfaces import BypassLink, RecognizedClient, RequestState, UnblockChanges, UnblockRequest
from gatewayfilter.model import EntryKind, LinkClaims, Request, ResourceType, link_address
from gatewayfilter.proxy.pages import own_requests
from gatewayfilter.proxy.pages.own_requests import AGAIN_AFTER_S, MOST_A_DAY, MOST_OPEN, Asker, OwnRequests
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

KEY = b"k" * 32
NOW = 1_000_000.0
PAGE = "http://a.example/page"
DAY_S = 86_400.0


class Known:
    """Recognizes one device."""

    def recognize(self, address: str, user: str = "") -> RecognizedClient:
        return RecognizedClient("ada", ("", "client:ada")) if user == "ada" else RecognizedClient(requests=address != "10.0.0.9")


class View(OwnRequests):
    """A view whose clock stands still."""

    def __init__(self) -> None:
        self.at = NOW
        super().__init__(KEY, Known(), lambda address: f"hash of {address}", lambda: self.at)

    def of(self, address: str, user: str = "") -> Asker:
        return self.asker(Request(parse_url(PAGE), None, ResourceType.DOCUMENT, "GET", address, user))


def asked(
    url: str = PAGE, who: str = "ada", at: float = NOW, number: int = 1, state: RequestState = RequestState.OPEN
) -> UnblockRequest:
    return UnblockRequest(url, "hash", "", "", "", "", "", at, request_id=number, client_name=who, state=state)


def link(
    number: int = 7, request: int = 1, *, once: bool = False, used: float | None = None, revoked: float | None = None
) -> BypassLink:
    return BypassLink(
        PAGE,
        EntryKind.URL,
        PAGE,
        "client:ada",
        NOW + 10,
        once,
        NOW,
        request_id=request,
        link_id=number,
        used_at=used,
        revoked_at=revoked,
    )


@pytest.fixture
def view() -> View:
    return View()


@pytest.fixture
def ada(view: View) -> Asker:
    return view.of("10.0.0.7", "ada")


def test_who_asks(view: View, ada: Asker) -> None:
    assert ada == Asker("ada", "hash of 10.0.0.7", "ada", "ada", ("", "client:ada"), may_ask=True)
    assert view.of("10.0.0.8") == Asker("hash of 10.0.0.8", "hash of 10.0.0.8", "", "10.0.0.8", ("",), may_ask=True)
    assert view.of("2001:db8::1").network == view.of("2001:db8::2").network != view.of("2001:db8:0:1::1").network
    off = view.of("10.0.0.9")
    assert (off.may_ask, view.refusal(off, PAGE), view.now()) == (False, "requests-off", NOW)


def test_what_the_writer_has_not_stored_is_believed_for_a_minute(view: View, ada: Asker) -> None:
    view.note(ada, asked(number=0))
    for passed, shown in ((0.0, True), (60.0, True), (60.1, False)):
        view.at = NOW + passed
        assert (view.state_of(ada, PAGE) is not None) is shown
    view.take_in(UnblockChanges(1, [asked(number=1)]))
    assert view.state_of(ada, PAGE) is not None
    assert view.state_of(ada, "http://a.example/other") is None
    assert view.state_of(view.of("10.0.0.8"), PAGE) is None


@all_cases(
    ("state", "at", "refusal"),
    [
        (RequestState.DENIED, NOW, "denied"),
        (RequestState.DENIED, NOW - AGAIN_AFTER_S + 1, "denied"),
        (RequestState.DENIED, NOW - AGAIN_AFTER_S, ""),
        (RequestState.DENIED, NOW + 1, ""),
        (RequestState.CLOSED, NOW, ""),
        (RequestState.APPROVED, NOW, ""),
        (RequestState.OPEN, NOW, ""),
    ],
)
def test_when_a_page_may_be_requested_again(state: RequestState, at: float, refusal: str) -> None:
    view = View()
    view.take_in(UnblockChanges(1, [asked(state=state, at=at)]))
    assert view.refusal(view.of("10.0.0.7", "ada"), PAGE) == refusal


def test_how_many_requests_may_be_open(view: View, ada: Asker) -> None:
    requests = [asked(f"http://a.example/{number}", number=number + 1) for number in range(MOST_OPEN)]
    view.take_in(UnblockChanges(1, requests[:-1]))
    assert view.refusal(ada, PAGE) == ""
    view.take_in(UnblockChanges(2, requests[-1:]))
    assert view.refusal(ada, PAGE) == "too-many-open"
    assert view.refusal(ada, requests[0].url) == ""
    assert view.refusal(view.of("10.0.0.8"), PAGE) == ""
    view.take_in(UnblockChanges(3, [replace(requests[0], state=RequestState.CLOSED)]))
    assert view.refusal(ada, PAGE) == ""


def test_how_many_requests_of_a_day_are_stored(view: View, ada: Asker) -> None:
    closed = [
        asked(f"http://a.example/{number}", number=number + 1, at=NOW - DAY_S + 1, state=RequestState.CLOSED)
        for number in range(MOST_A_DAY)
    ]
    view.take_in(UnblockChanges(1, closed[:-1]))
    assert view.refusal(ada, PAGE) == ""
    view.take_in(UnblockChanges(2, closed[-1:]))
    assert view.refusal(ada, PAGE) == "too-many-today"
    view.at += 1
    assert view.refusal(ada, PAGE) == ""


def test_a_network_shares_the_limit_of_a_day(view: View) -> None:
    for number in range(MOST_A_DAY):
        one = view.of(f"2001:db8::{number + 1}")
        assert view.refusal(one, PAGE) == ""
        view.note(one, asked(f"http://a.example/{number}", who=one.who, number=0))
    assert view.refusal(view.of("2001:db8::ff"), PAGE) == "too-many-today"
    assert view.refusal(view.of("2001:db8:0:1::1"), PAGE) == ""
    view.at = NOW + DAY_S - 1
    assert view.refusal(view.of("2001:db8::ff"), PAGE) == "too-many-today"
    view.at = NOW + DAY_S
    assert view.refusal(view.of("2001:db8::ff"), PAGE) == ""


def test_a_request_that_is_open_counts_once(view: View, ada: Asker) -> None:
    first = asked(number=0)
    view.note(ada, first)
    view.note(ada, replace(first, comment="again"))
    assert view.state_of(ada, PAGE) is first
    assert view._asked == {"ada": [NOW]}
    view.take_in(UnblockChanges(1, [asked(state=RequestState.CLOSED)]))
    view.note(ada, replace(first, at=NOW + 5))
    assert view._asked == {"ada": [NOW, NOW + 5]}


def test_the_newest_request_for_a_page_counts(view: View, ada: Asker) -> None:
    old, new = asked(number=3, state=RequestState.DENIED), asked(number=4)
    view.take_in(UnblockChanges(1, [new, old]))
    assert view.state_of(ada, PAGE) is new
    assert view._count == 1


def test_times_are_kept_for_the_newest_clients(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_requests, "_MOST_KEPT", 3)
    for number in range(1, 5):
        one = view.of(f"10.0.0.{number}")
        view.note(one, asked(who=one.who, number=0))
    assert list(view._asked) == ["10.0.0.4"]


def test_no_more_than_the_newest_requests_are_kept(view: View, ada: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_requests, "_MOST_KEPT", 4)
    requests = [asked(f"http://a.example/{number}", at=NOW + number, number=9 - number) for number in range(5)]
    view.take_in(UnblockChanges(1, requests[:4]))
    assert all(view.state_of(ada, one.url) is one for one in requests[:4])
    view.take_in(UnblockChanges(2, requests[4:]))
    assert [view.state_of(ada, one.url) for one in requests] == [None, None, None, *requests[3:]]


def test_a_store_that_was_restored_takes_the_place_of_what_was_read(view: View, ada: Asker) -> None:
    waiting = asked("http://a.example/waiting", number=0)
    view.note(ada, waiting)
    view.take_in(UnblockChanges(5, [asked(state=RequestState.APPROVED)], [link()]))
    approved = view.state_of(ada, PAGE)
    assert approved is not None
    assert view.link_of(approved)
    view.take_in(UnblockChanges(1, whole=True))
    assert (view.state_of(ada, PAGE), view.state_of(ada, waiting.url), view.link_of(approved)) == (None, waiting, "")


@all_cases(
    ("found", "passed", "works"),
    [
        (link(), 9.9, True),
        (link(), 10.0, False),
        (link(revoked=NOW), 0.0, False),
        (link(used=NOW), 0.0, True),
        (link(once=True), 0.0, True),
        (link(once=True, used=NOW), 0.0, False),
        (link(request=2), 0.0, False),
        (link(request=0), 0.0, False),
        (None, 0.0, False),
    ],
)
def test_which_link_answers_a_request(found: BypassLink | None, passed: float, *, works: bool) -> None:
    view = View()
    view.take_in(UnblockChanges(1, [asked(state=RequestState.APPROVED)], [found] if found is not None else []))
    view.at += passed
    address = view.link_of(asked(state=RequestState.APPROVED))
    assert bool(address) is works
    if found is not None and works:
        assert address == link_address(KEY, LinkClaims(7, PAGE, "client:ada", NOW + 10, found.once))


@all_cases(
    ("found", "scope", "passed", "notice"),
    [
        (link(), "client:ada", 9.9, ""),
        (None, "client:ada", 9.9, ""),
        (link(), "client:ada", 10.0, "link-expired"),
        (link(), "client:bob", 10.0, "link-other"),
        (link(revoked=NOW), "client:ada", 10.0, "link-revoked"),
        (link(revoked=NOW), "client:bob", 0.0, "link-other"),
        (link(once=True, used=NOW), "client:ada", 0.0, "link-used"),
        (link(used=NOW), "client:ada", 0.0, ""),
        (link(once=True), "client:ada", 0.0, ""),
    ],
)
def test_why_a_link_does_not_work(found: BypassLink | None, scope: str, passed: float, notice: str) -> None:
    view = View()
    view.take_in(UnblockChanges(1, [], [found] if found is not None else []))
    view.at += passed
    claims = LinkClaims(7, PAGE, scope, NOW + 10, found is not None and found.once)
    token = link_address(KEY, claims).partition("link=")[2]
    assert view.read_link(token, view.of("10.0.0.7", "ada")) == (claims, notice)
    assert view.read_link(f"{token}x", view.of("10.0.0.7", "ada")) == (None, "link-invalid")


def test_the_token_of_a_state_is_for_one_client_and_page(view: View, ada: Asker) -> None:
    token = view.token(ada, PAGE)
    assert view.is_token(token, ada, PAGE)
    assert not view.is_token(token, view.of("10.0.0.8"), PAGE)
    assert not view.is_token(token, ada, "http://a.example/other")
    view.at += 2 * DAY_S
    assert not view.is_token(token, ada, PAGE)
