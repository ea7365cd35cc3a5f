"""What requests to unblock a page are granted: how much, for whom, for how long."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from gatewayfilter.errors import ConflictError, MissingItemError, PolicyError
from gatewayfilter.interfaces import BypassLink, RequestState, UnblockRequest
from gatewayfilter.model import Client, EntryKind, Group, PolicyItem, Reason, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.requests import RequestDecisions, Whom, covers_host, granted, is_judged_page, revision, state_of

NOW = 1_000_000.0
ASKED = UnblockRequest(
    "http://www.games.example/play?x", "10.0.0.7", Reason.BLACKLIST, "ut1", "games.example", "games", "please", NOW
)


@pytest.fixture
def decisions(store: Store) -> RequestDecisions:
    return RequestDecisions(store, lambda: NOW)


def ask(store: Store, request: UnblockRequest = ASKED) -> int:
    store.unblock.ask([request])
    return store.unblock.open_requests()[0].request_id


@pytest.mark.parametrize(
    ("reason", "rule", "covers"),
    [
        *((reason, "", True) for reason in (Reason.SCHEDULE, Reason.POLICY, Reason.SERVICE, Reason.QUOTA)),
        *((reason, "a.example", False) for reason in (Reason.FILE_TYPE, Reason.FILE_SIZE, Reason.SEARCH_TERM)),
        (Reason.ADBLOCK, "||a.example^", True),
        (Reason.ADBLOCK, "||a.example^$third-party", True),
        (Reason.ADBLOCK, "||a.example", True),
        (Reason.ADBLOCK, "||a.example/b", False),
        (Reason.ADBLOCK, "/banner", False),
        (Reason.BLACKLIST, "a.example", True),
        (Reason.BLACKLIST, "a.example/b", False),
        (Reason.BLACKLIST, "a*.example", False),
        (Reason.BLACKLIST, "", False),
        (Reason.MANUAL_BLOCK, ".a.example", True),
    ],
)
def test_what_blocked_a_whole_host(reason: Reason, rule: str, *, covers: bool) -> None:
    assert covers_host(replace(ASKED, reason=reason, rule=rule)) is covers


@pytest.mark.parametrize(
    ("reason", "source", "rule", "judged"),
    [
        (Reason.LEARNED, "", "a.example/b", True),
        (Reason.LEARNED, "", "a.example", False),
        (Reason.BLACKLIST, "learned:games", "a.example/b", True),
        (Reason.BLACKLIST, "ut1", "a.example/b", False),
    ],
)
def test_pages_that_were_judged_themselves(reason: Reason, source: str, rule: str, *, judged: bool) -> None:
    assert is_judged_page(replace(ASKED, reason=reason, source_list=source, rule=rule)) is judged


@pytest.mark.parametrize(
    ("url", "site", "kind", "pattern"),
    [
        ("http://www.a.example/b?c", False, EntryKind.URL, None),
        ("http://www.a.example/b?c", True, EntryKind.DOMAIN, ".a.example"),
        ("http://192.0.2.1/b", True, EntryKind.HOST, "192.0.2.1"),
        ("http://co.uk/b", True, EntryKind.HOST, "co.uk"),
    ],
)
def test_what_is_granted(url: str, kind: EntryKind, pattern: str | None, *, site: bool) -> None:
    found = granted(parse_url(url), site=site)
    assert found[0] is kind
    assert found[1].strip("/") == (pattern if pattern is not None else parse_url(url).key)


@pytest.mark.parametrize(
    ("state", "until", "word"),
    [
        (RequestState.OPEN, None, "open"),
        (RequestState.APPROVED, None, "approved"),
        (RequestState.APPROVED, NOW + 1, "approved"),
        (RequestState.APPROVED, NOW, "ended"),
        (RequestState.DENIED, NOW - 1, "denied"),
    ],
)
def test_the_state_in_a_word(state: RequestState, until: float | None, word: str) -> None:
    assert state_of(replace(ASKED, state=state, until=until), NOW) == word


def test_links_last_as_long_as_they_are_given(store: Store, decisions: RequestDecisions) -> None:
    link = decisions.add_link(parse_url("http://a.example/b"), lifetime_s=60.0, once=True, site=True, whom=Whom(everybody=True))
    assert (link.until, link.once, link.kind, link.scope, link.created_at) == (NOW + 60, True, EntryKind.DOMAIN, "", NOW)
    with pytest.raises(PolicyError, match="say whom"):
        decisions.add_link(parse_url("http://a.example/b"), lifetime_s=60.0, once=True, site=True, whom=Whom())
    number = ask(store)
    mine = decisions.link(number, lifetime_s=90.0, once=False, site=None, whom=Whom(everybody=True))
    assert (mine.until, mine.once, mine.kind, mine.request_id) == (NOW + 90, False, EntryKind.DOMAIN, number)
    found = store.unblock.find(number)
    assert found is not None
    assert (found.state, found.until) == (RequestState.APPROVED, NOW + 90)
    decisions.reopen(number)
    assert [link.revoked_at for link in store.bypass.links() if link.request_id == number] == [NOW]
    with pytest.raises(PolicyError, match="waits already"):
        decisions.reopen(number)


def test_one_visit_is_a_link_of_a_day(store: Store, decisions: RequestDecisions) -> None:
    approved = decisions.approve(ask(store), lifetime_s=60.0, site=False, whom=Whom(everybody=True), once=True)
    assert approved.link is not None
    assert (approved.rules, approved.link.until, approved.link.once, approved.link.kind) == (
        [],
        NOW + 86_400,
        True,
        EntryKind.URL,
    )
    assert (approved.page_alone, approved.site) == (False, ".games.example")
    assert [(request.state, request.until) for request in approved.requests] == [(RequestState.APPROVED, NOW + 86_400)]


@pytest.mark.parametrize("by_link", [True, False])
def test_a_link_for_a_request_that_was_denied_meanwhile_opens_nothing(
    store: Store, decisions: RequestDecisions, monkeypatch: pytest.MonkeyPatch, *, by_link: bool
) -> None:
    number = ask(store)
    seen = revision(store.unblock.open_requests()[0])
    add = store.bypass.add

    def add_later(link: BypassLink) -> BypassLink:
        store.unblock.deny([number], word="no", now=NOW, check=lambda _: None)
        return add(link)

    monkeypatch.setattr(store.bypass, "add", add_later)
    approve: Callable[..., object] = (
        partial(decisions.link, number, lifetime_s=60.0, once=False)
        if by_link
        else partial(decisions.approve, number, lifetime_s=None, once=True)
    )
    with pytest.raises(ConflictError, match=f"request {number} was answered meanwhile: it is denied"):
        approve(site=False, whom=Whom(everybody=True), seen=seen)
    assert [link.revoked_at for link in store.bypass.links()] == [NOW]


@pytest.mark.parametrize(("lifetime_s", "until"), [(None, None), (3_600.0, NOW + 3_600)])
def test_an_approval_is_a_rule(store: Store, decisions: RequestDecisions, lifetime_s: float | None, until: float | None) -> None:
    number = ask(store)
    approved = decisions.approve(number, lifetime_s=lifetime_s, site=None, whom=Whom(everybody=True), word="fine")
    (rule,) = approved.rules
    assert (rule.kind, rule.pattern, rule.expires_at, rule.comment) == (
        *(EntryKind.DOMAIN, ".games.example", until, f"request {number}: please"),
    )
    assert (approved.page_alone, approved.site, approved.client, approved.link) == (False, "", None, None)


def test_a_judged_page_is_approved_alone(store: Store, decisions: RequestDecisions) -> None:
    number = ask(store, replace(ASKED, reason=Reason.LEARNED, rule="www.games.example/play"))
    approved = decisions.approve(number, lifetime_s=None, site=True, whom=Whom(everybody=True))
    assert (approved.rules[0].kind, approved.page_alone, approved.site) == (EntryKind.URL, True, "")


def test_pages_that_several_asked_for(store: Store, decisions: RequestDecisions) -> None:
    store.unblock.ask([ASKED, replace(ASKED, client="10.0.0.8"), replace(ASKED, client="10.0.0.9", url="http://b.example/")])
    first = next(one for one in store.unblock.open_requests() if one.client == "10.0.0.7")
    decisions.approve(first.request_id, lifetime_s=None, site=False, whom=Whom(everybody=True))
    assert [one.client for one in store.unblock.open_requests()] == ["10.0.0.9"]


def test_for_whom_it_is(store: Store, decisions: RequestDecisions) -> None:
    items: list[PolicyItem] = [Group("kids"), Client("anna", (parse_matcher("10.0.0.9"),))]
    store.policies.change(lambda _: [(item, True) for item in items], NOW)
    for whom, scope in ((Whom(group="kids"), "group:kids"), (Whom(client="anna"), "client:anna"), (Whom(everybody=True), "")):
        assert decisions._scope(whom, None) == (scope, None)
    assert decisions._scope(Whom(), replace(ASKED, client_name="anna")) == ("client:anna", None)
    assert decisions._scope(Whom(), replace(ASKED, client="10.0.0.9")) == ("client:anna", None)  # recognized since
    scope, added = decisions._scope(Whom(), ASKED)
    assert (scope, added) == ("client:10.0.0.7", Client("10.0.0.7", (parse_matcher("10.0.0.7"),), note="added for a request"))
    assert decisions._scope(Whom(), replace(ASKED, client="2001:db8::1"))[0] == "client:2001-db8--1"
    assert "10.0.0.7" in store.policies.read().clients


@pytest.mark.parametrize(
    ("whom", "client", "error"),
    [
        (Whom(client="anna", group="kids"), "", PolicyError),
        (Whom(client="anna", everybody=True), "", PolicyError),
        (Whom(group="none"), "", MissingItemError),
        (Whom(client="none"), "", MissingItemError),
        (Whom(), "none", MissingItemError),
        (Whom(), "", PolicyError),
    ],
)
def test_for_whom_it_cannot_be(decisions: RequestDecisions, whom: Whom, client: str, error: type[Exception]) -> None:
    request = replace(ASKED, client="#hash", client_name=client)
    with pytest.raises(error):
        decisions._scope(whom, request)


def test_requests_that_do_not_exist(decisions: RequestDecisions) -> None:
    for decide in (decisions.deny, decisions.reopen):
        with pytest.raises(MissingItemError, match="no request 99"):
            decide(99)


@pytest.mark.parametrize(
    ("asked", "site", "kind"),
    [
        (ASKED, None, EntryKind.DOMAIN),
        (ASKED, True, EntryKind.DOMAIN),
        (ASKED, False, EntryKind.URL),
        (replace(ASKED, rule="games.example/play"), None, EntryKind.URL),
        (replace(ASKED, reason=Reason.LEARNED, rule="www.games.example/play?x"), True, EntryKind.URL),
        (replace(ASKED, reason=Reason.LEARNED, rule="www.games.example/play?x"), False, EntryKind.URL),
    ],
)
def test_a_link_opens_no_more_than_was_meant(
    asked: UnblockRequest, kind: EntryKind, store: Store, decisions: RequestDecisions, *, site: bool | None
) -> None:
    link = decisions.link(ask(store, asked), lifetime_s=90.0, once=True, site=site, whom=Whom(everybody=True))
    assert link.kind is kind


def test_a_denial_revokes_the_links_of_its_request_alone(store: Store) -> None:
    now = [NOW]
    decisions = RequestDecisions(store, lambda: now[0])
    number = ask(store)
    everybody = Whom(everybody=True)
    links = [decisions.link(number, lifetime_s=60.0, once=False, site=False, whom=everybody) for _ in range(2)]
    other = decisions.add_link(parse_url("http://b.example/"), lifetime_s=60.0, once=False, site=False, whom=everybody)
    store.bypass.revoke(links[0].link_id, NOW + 1)
    now[0] = NOW + 2
    decisions.deny(number)
    revoked = {link.link_id: link.revoked_at for link in store.bypass.links()}
    assert revoked == {links[0].link_id: NOW + 1, links[1].link_id: NOW + 2, other.link_id: None}


def test_approvals_that_have_ended_are_removed_with_the_next_one(store: Store) -> None:
    now = [NOW]
    decisions = RequestDecisions(store, lambda: now[0])
    decisions.approve(ask(store), lifetime_s=60.0, site=True, whom=Whom(everybody=True))
    now[0] = NOW + 61
    number = ask(store, replace(ASKED, url="http://b.example/", rule="b.example"))
    approved = decisions.approve(number, lifetime_s=60.0, site=True, whom=Whom(everybody=True))
    assert [rule.pattern for rule in store.lists.rules()] == [".b.example"] == [rule.pattern for rule in approved.rules]
