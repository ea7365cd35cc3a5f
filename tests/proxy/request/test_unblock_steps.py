"""What a request to unblock a page, the question for its state and a bypass link are answered with, step by step."""

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode

from mitmproxy import http
from mitmproxy.test import tflow

from gatewayfilter.interfaces import RequestState, UnblockRequest
from gatewayfilter.model import UNBLOCK_PATH, Action, Reason, Request, Verdict
from gatewayfilter.proxy.pages.block_page import state_address
from gatewayfilter.proxy.request.flow_request import FlowRequest, read_flow
from gatewayfilter.proxy.request.unblock_form import MOST_BYTES, UnblockForm, plain_text
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

SITE, PAGE = "http://site.example", "http://site.example/page"
BODY = urlencode({"url": PAGE, "comment": " why \n\u202enot "}).encode()
BLOCK = Verdict(Action.BLOCK, Reason.BLACKLIST, source_list="list", rule="rule", category="ads")


def asked(method: str = "GET", query: str = "", **fields: str) -> FlowRequest:
    flow = tflow.tflow(req=http.Request.make(method, f"{SITE}{UNBLOCK_PATH}{query}"))
    flow.request.headers = http.Headers((), **({"accept_language": "de"} | fields))
    flow.server_conn.address, flow.client_conn.sni = None, None
    return read_flow(flow, "kim")


class Desk:
    """The form; an answer is told as `(notice, …)` or as the address that it leads to."""

    def __init__(self, *, takes: bool = True) -> None:
        self.blocked, self.queue_has_room, self.now = True, True, 1_000.0
        self.refusal, self.state, self.link_of = "", cast("Any", None), ""
        self.claims: Any = SimpleNamespace(url=PAGE, number=5)
        self.link_refusal = ""
        self.taken: list[UnblockRequest] = []
        self.noted: list[object] = []
        self.redeemed: list[int] = []
        self.counters, self.decided = Counters(), list[Request]()
        self.asker: Any = SimpleNamespace(address="10.0.0.2", name="kim's phone")
        own: Any = SimpleNamespace(
            asker=lambda request: self.asker,
            refusal=lambda asker, url: self.refusal,
            state_of=lambda asker, url: self.state,
            note=lambda asker, request: self.noted.append(request),
            token=lambda asker, url: "token",
            is_token=lambda token, asker, url: token == "token",
            link_of=lambda found: self.link_of,
            read_link=lambda token, asker: (self.claims, self.link_refusal),
        )
        pages: Any = SimpleNamespace(notice=self._notice, redirect=lambda to: http.Response.make(303, b"", {"location": to}))
        self.form = UnblockForm(
            cast("Any", self), self._take, self._redeem, own, self.counters, lambda: self.now, pages, takes_requests=takes
        )

    def decide(self, request: Request) -> Verdict:
        self.decided.append(request)
        return BLOCK if self.blocked else Verdict(Action.ALLOW, Reason.WHITELIST)

    def _take(self, request: UnblockRequest) -> bool:
        self.taken.append(request)
        return self.queue_has_room

    def _redeem(self, number: int) -> bool:
        self.redeemed.append(number)
        return self.queue_has_room

    def _notice(self, what: str, language: str, **more: Any) -> http.Response:
        assert language == "de"
        self.shown = more
        return http.Response.make(more.get("status", 200), what)

    def told(self, answer: http.Response | None) -> object:
        if answer is None:
            return None
        if "location" in answer.headers:
            return answer.headers["location"]
        again = answer.headers.get("refresh")
        return (answer.text, answer.status_code) if again is None else (answer.text, answer.status_code, again)

    def get(self, method: str = "GET", **query: str) -> object:
        return self.told(self.form.answer_head(asked(method, f"?{urlencode(query)}")))

    def post(self, body: bytes = BODY) -> object:
        return self.told(self.form.answer(asked("POST"), body))


@all_cases(
    ("method", "fields", "answer"),
    [
        ("POST", {"content_length": "0"}, None),
        ("POST", {"content_length": str(MOST_BYTES)}, None),
        ("POST", {"content_length": str(MOST_BYTES + 1)}, ("ask-again", 413)),
        ("POST", {"content_length": "-5"}, ("ask-again", 413)),
        ("POST", {}, ("ask-again", 413)),
        ("PUT", {"content_length": "5"}, ("ask-again", 405)),
        ("POST", {"content_length": "5", "sec_fetch_site": "same-origin", "origin": "HTTP://site.example"}, None),
        ("POST", {"content_length": "5", "sec_fetch_site": "same-site"}, ("ask-again", 403)),
        ("POST", {"content_length": "5", "sec_fetch_site": "none"}, ("ask-again", 403)),
        ("POST", {"content_length": "5", "origin": "http://other.example"}, ("ask-again", 403)),
        ("POST", {"content_length": "5", "origin": "https://site.example"}, ("ask-again", 403)),
        ("POST", {"content_length": "5", "origin": "null"}, ("ask-again", 403)),
    ],
)
def test_which_forms_are_read(method: str, fields: dict[str, Any], answer: object) -> None:
    desk = Desk()
    assert desk.told(desk.form.answer_head(asked(method, **fields))) == answer


def test_a_request_is_taken_and_leads_to_its_state() -> None:
    desk = Desk()
    assert desk.post() == state_address(parse_url(PAGE), "token", since=1_000.0)
    (request,) = desk.taken
    assert request == UnblockRequest(
        url=PAGE, client="10.0.0.2", client_name="kim's phone", reason="blacklist", source_list="list", rule="rule",
        category="ads", comment="why not", at=1_000.0,
    )  # fmt: skip
    assert (desk.noted, desk.counters.as_dict()) == ([request], {"unblock_requests": 1})
    assert (desk.decided[0].url.text, desk.decided[0].user, desk.decided[0].client) == (PAGE, "kim", "127.0.0.1")
    for length, shown in ((2_000, True), (2_001, False)):
        url = f"{SITE}/{'x' * (length - len(SITE) - 1)}"
        found = desk.post(urlencode({"url": url}).encode())
        assert (found == ("asked", 200)) == (not shown)
        assert shown or desk.shown == {"url": url, "links": {"back": url}}
    desk.queue_has_room = False
    desk.noted.clear()
    assert (desk.post(), desk.noted, desk.counters["unblock_requests"]) == (("ask-later", 503), [], 3)


def test_which_requests_are_not_taken() -> None:
    desk = Desk()
    for body in (
        b"",
        b"url=x",
        b"url=http://other.example/",
        b"url=https://site.example/",
        b"&".join([b"url=" + PAGE.encode()] * 9),
    ):
        assert desk.post(body) == ("ask-again", 400)
    desk.blocked = False
    assert desk.post() == ("not-blocked", 200)
    assert desk.shown == {"url": PAGE, "links": {"open": PAGE}}
    desk.blocked = True
    for refusal, word in (("denied", "no"), ("limit", "")):
        desk.refusal, desk.state = refusal, SimpleNamespace(word="no")
        assert desk.post() == (refusal, 403)
        assert desk.shown == {"url": PAGE, "status": 403, "facts": {"answer": word}, "links": {"back": PAGE}}
    desk.refusal, desk.state = "denied", None
    desk.post()
    assert desk.shown["facts"] == {"answer": ""}
    assert (desk.taken, desk.counters["unblock_refused"]) == ([], 3)
    off = Desk(takes=False)
    assert (off.post(), off.taken) == (("requests-off", 403), [])


def own(state: RequestState, **more: Any) -> Any:
    return SimpleNamespace(
        **{"state": state, "word": "word", "comment": "note", "at": 0.0, "until": None, "decided_at": None, **more}
    )


def test_the_state_of_a_request() -> None:
    desk = Desk()

    def state(**more: str) -> object:
        return desk.get(url=PAGE, state="token", **more)

    for query in ({"url": PAGE}, {"url": PAGE, "state": "other"}, {"url": "http://other.example/", "state": "token"}, {}):
        assert desk.get(**query) == ("ask-again", 405)
    assert state() == ("no-request", 200)
    assert desk.shown["links"] == {"back": PAGE}
    for since, answer in (
        ("991", ("waiting", 200, "1")),
        ("990", ("no-request", 200)),
        ("1009", ("waiting", 200, "1")),
        ("1010", ("no-request", 200)),
        ("x", ("no-request", 200)),
    ):
        assert state(since=since) == answer
    desk.state = own(RequestState.OPEN)
    assert state() == ("waiting", 200, "10")
    facts = desk.shown["facts"]
    assert (facts["note"], facts["answer"], len(facts["asked-at"])) == ("note", "word", 16)
    desk.state = own(RequestState.DENIED)
    assert (state(), desk.shown["links"]) == (("denied", 200), {"back": PAGE})
    desk.state = own(RequestState.CLOSED)
    assert state() == ("no-request", 200)
    for decided, answer in (
        (None, ("approved-ended", 200)),
        (990.0, ("approved-ended", 200)),
        (990.5, ("waiting", 200, "1")),
        (1_010.0, ("approved-ended", 200)),
    ):
        desk.state = own(RequestState.APPROVED, decided_at=decided)
        assert state() == answer
    desk.link_of = f"{SITE}/bypass"
    assert (state(), desk.shown["links"]) == (("approved", 200), {"open": desk.link_of})
    desk.blocked = False
    desk.state = own(RequestState.APPROVED, until=0.0)
    assert (state(), desk.shown["links"]) == (("approved", 200), {"open": PAGE})
    assert (len(desk.shown["facts"]["until"]), desk.shown["facts"]["answer"], desk.shown["facts"]["note"]) == (16, "word", "note")
    desk.state = own(RequestState.OPEN)
    assert (state(), desk.shown["facts"]["until"]) == (("not-blocked", 200), "")
    desk.state = None
    assert (state(), desk.shown["facts"]) == (("not-blocked", 200), {})


def test_the_way_of_a_link() -> None:
    desk = Desk()
    assert desk.get(url=PAGE, state="token", by="link") == ("link-opening", 200, "1")
    desk.blocked = False
    assert desk.get(url=PAGE, state="token", by="link") == PAGE
    assert desk.get(url=PAGE, state="token", by="other") == ("not-blocked", 200)


def test_a_bypass_link_is_opened_once_by_get() -> None:
    desk = Desk()
    target = state_address(parse_url(PAGE), "token", link=True)
    assert (desk.get(link="x"), desk.redeemed, desk.counters.as_dict()) == (target, [5], {"links_opened": 1})
    assert (desk.get("HEAD", link="x"), desk.redeemed) == (target, [5])
    desk.queue_has_room = False
    assert desk.get(link="x") == ("ask-later", 503)
    desk.blocked = False
    assert (desk.get(link="x"), desk.redeemed) == (PAGE, [5, 5])
    desk.link_refusal = "link-used"
    assert desk.get(link="x") == PAGE, "the page is open by it"
    desk.blocked = True
    assert desk.get(link="x") == ("link-used", 403)
    desk.blocked, desk.link_refusal = False, "link-expired"
    assert desk.get(link="x") == ("link-expired", 403)
    desk.claims = SimpleNamespace(url="http://other.example/", number=5)
    assert desk.get(link="x") == ("link-expired", 403)
    desk.link_refusal = ""
    assert desk.get(link="x") == ("link-invalid", 403)
    desk.claims = None
    assert desk.get(link="x") == ("link-invalid", 403)
    assert (desk.counters["links_refused"], len(desk.redeemed)) == (5, 2)


def test_texts_are_one_plain_line() -> None:
    assert plain_text(" a\t\nb\u200f c\x07 ", 9) == "a b c"
    assert plain_text("abcdef", 3) == "abc"
