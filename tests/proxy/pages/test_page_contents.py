"""What each page shows, by what is handed to its template, and the fields that every answer has."""

from types import SimpleNamespace
from typing import Any, cast

from gatewayfilter.interfaces import RequestState
from gatewayfilter.model import UNBLOCK_PATH, Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.block_page import BlockPages, state_address
from gatewayfilter.proxy.pages.own_requests import AGAIN_AFTER_S
from gatewayfilter.proxy.pages.translations import CHINESE, ENGLISH
from gatewayfilter.proxy.pages.upstream_errors import Fault
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases

URL = "http://site.example:81/page?a='b"
LONG = "x" * 401


class Pages:
    """Block pages whose template is a stand-in: `shown` is what it got last."""

    def __init__(self, **more: Any) -> None:
        self.shown: dict[str, Any] = {}
        self.state: Any = None
        self.may_ask, self.link, self.now = True, "", 0.0
        theme = SimpleNamespace(render=self._render, policy="default-src 'none'")
        own = SimpleNamespace(
            asker=lambda request: SimpleNamespace(may_ask=self.may_ask),
            state_of=lambda asker, url: self.state,
            token=lambda asker, url: f"token of {url[:4]}",
            link_of=lambda found: self.link,
            now=lambda: self.now,
        )
        self.pages = BlockPages(cast("Any", theme), own_requests=cast("Any", own if more.pop("own", True) else None), **more)

    def _render(self, **shown: Any) -> bytes:
        self.shown = shown
        return b"page"

    def block(
        self, verdict: Verdict | None = None, *, url: str = URL, source: str = "", kind: ResourceType = ResourceType.DOCUMENT
    ) -> dict[str, Any]:
        """Blocks a page; returns what is shown."""
        request = Request(parse_url(url), parse_url(source) if source else None, kind)
        self.pages.block(request, verdict or Verdict(Action.BLOCK, Reason.BLACKLIST), "en")
        return self.shown

    def requested(self, state: RequestState, *, at: float = 0.0, word: str = "") -> tuple[str, list[tuple[str, str]], bool]:
        """Returns state, links and whether there is a button, for a request of the client's in a state."""
        self.state = SimpleNamespace(state=state, at=at, word=word)
        shown = self.block()
        return shown["state"], shown["links"], shown["ask"] is not None


def test_a_block_page_names_what_blocked_it() -> None:
    verdict = Verdict(
        Action.BLOCK,
        Reason.BLACKLIST,
        source_list="list",
        rule="rule",
        category="gambling",
        detail="score 42.0 (limit 20.0): casino",
    )
    named = Pages(title_of=lambda category, language: f"{category} in {language}")
    shown = named.block(verdict)
    assert [(value, is_code) for _, value, is_code in shown["facts"]][:4] == [
        *((parse_url(URL).text, True), ("gambling in en", False), ("list", False), ("rule", True)),
    ]
    assert len(shown["facts"]) == 5
    assert (shown["host"], shown["reason"], shown["text"]["language"]) == ("site.example", "blacklist", "en")
    assert shown["command"].startswith("gatewayfilter list add --allow 'http://site.example:81/")
    short = Pages(short=True).block(verdict)
    assert ([value for _, value, _ in short["facts"]], short["command"]) == ([parse_url(URL).text, "gambling"], "")
    plain = Pages().block()
    assert [value for _, value, _ in plain["facts"]] == [parse_url(URL).text]
    learned = Pages().block(Verdict(Action.BLOCK, Reason.LEARNED, source_list="learned:gambling", rule=LONG))
    assert learned["facts"][1][1] != "learned:gambling"
    assert learned["facts"][2][1] == "x" * 400 + "…"
    for length, told in ((769, True), (770, False)):
        command = Pages().block(url=f"http://a.example/{'y' * (length - 17)}")["command"]
        assert (command != "", len(command) in {0, 800}) == (told, True)


def test_a_block_page_leads_back_to_the_page_before() -> None:
    for source, links in (("", 0), ("http://other.example/", 1), (URL, 0)):
        shown = Pages().block(source=source)
        assert [target for _, target in shown["links"]] == ["http://other.example/"] * links


def test_which_pages_have_a_button() -> None:
    pages = Pages()
    ask = pages.block()["ask"]
    assert (ask["action"], ask["url"]) == (UNBLOCK_PATH, parse_url(URL).text)
    assert ask["button"] != ask["hint"]
    for reason, asks in ((Reason.SCHEDULE, True), (Reason.FILE_SIZE, True), (Reason.UNKNOWN, False), (Reason.SAFESEARCH, False)):
        assert (pages.block(Verdict(Action.BLOCK, reason))["ask"] is not None) == asks
    assert pages.block(Verdict(Action.BLOCK, Reason.BLACKLIST, unknown=True))["ask"] is None
    assert pages.block(kind=ResourceType.SUBDOCUMENT)["ask"] is None
    assert Pages(own=False).block()["ask"] is None
    pages.may_ask = False
    assert pages.block()["ask"] is None


def test_the_state_of_a_request_to_unblock_a_page() -> None:
    pages = Pages()
    assert pages.requested(RequestState.CLOSED) == ("", [], True)
    waiting, [(_, target)], asks = pages.requested(RequestState.OPEN)
    assert (target, asks) == (state_address(parse_url(URL), "token of http"), False)
    ended, links, asks = pages.requested(RequestState.APPROVED)
    assert (links, asks) == ([], True)
    pages.link = "http://site.example/bypass"
    approved, [(_, target)], asks = pages.requested(RequestState.APPROVED)
    assert (target, asks) == (pages.link, False)
    pages.now = AGAIN_AFTER_S + 4.0
    denied, links, asks = pages.requested(RequestState.DENIED, at=5.0, word=LONG)
    assert (links, asks, denied.endswith(": " + "x" * 400 + "…")) == ([], False, True)
    bare, _, asks = pages.requested(RequestState.DENIED, at=4.0)
    assert (asks, denied.startswith(f"{bare} ")) == (True, True)
    assert len({waiting, ended, approved, bare}) == 4
    pages.may_ask = False
    assert [pages.requested(state, at=4.0)[2] for state in RequestState] == [False] * len(RequestState)


def test_notices() -> None:
    pages = Pages()
    what = "sent" if "sent" in _notices() else next(iter(_notices()))
    answer = pages.pages.notice(
        what, "en", url=LONG, status=202, facts={"url": "fact", "rule": ""}, links={"see": "http://a.example/"}
    )
    assert (answer.status_code, answer.headers["x-gatewayfilter"], answer.content) == (202, f"notice; reason={what}", b"page")
    assert [(value, is_code) for _, value, is_code in pages.shown["facts"]] == [("x" * 400 + "…", True), ("fact", False)]
    assert ([target for _, target in pages.shown["links"]], pages.shown["reason"]) == (["http://a.example/"], what)
    assert (pages.shown["text"]["title"], pages.shown["text"]["why"]) == _notices()[what]
    bare = pages.pages.notice(what, "en")
    assert (bare.status_code, pages.shown["facts"], pages.shown["links"]) == (200, [], [])
    moved = pages.pages.redirect("http://a.example/")
    assert (moved.status_code, moved.headers["location"], moved.content) == (303, "http://a.example/", b"")
    assert moved.headers["x-gatewayfilter"] == "notice; reason=redirect"


def _notices() -> dict[str, tuple[str, str]]:
    from gatewayfilter.proxy.pages.translations import choose_texts  # noqa: PLC0415  its texts alone are needed

    return dict(choose_texts("en").notices)


def test_pages_without_a_decision() -> None:
    pages = Pages()
    for answer, status, what in (
        (pages.pages.bad_request("GET", "en"), 400, "block; reason=bad-request"),
        (pages.pages.not_http(), 400, "block; reason=not-http"),
        (pages.pages.failure("GET", "en"), 503, "block; reason=failure"),
        (pages.pages.error(Fault.BAD_REQUEST), Fault.BAD_REQUEST.status, f"error; reason={Fault.BAD_REQUEST}"),
        (pages.pages.error(Fault.INTERNAL_ADDRESS), Fault.INTERNAL_ADDRESS.status, f"block; reason={Fault.INTERNAL_ADDRESS}"),
    ):
        assert (answer.status_code, answer.headers["x-gatewayfilter"], answer.content) == (status, what, b"page")
        assert {name: answer.headers[name] for name in answer.headers if name not in {"x-gatewayfilter", "content-length"}} == {
            "content-type": "text/html; charset=utf-8",
            "cache-control": "no-store",
            "cross-origin-resource-policy": "same-origin",
            "content-security-policy": "default-src 'none'; form-action 'self'",
            "referrer-policy": "same-origin",
            "x-content-type-options": "nosniff",
        }
    assert (pages.pages.failure("HEAD", "en").content, pages.pages.bad_request("HEAD", "en").content) == (b"", b"")
    pages.pages.error(Fault.BAD_REQUEST, LONG, url="http://a.example/", accept_language="zh")
    assert [(value, is_code) for _, value, is_code in pages.shown["facts"]] == [
        ("http://a.example/", True),
        ("x" * 400 + "…", False),
    ]
    assert pages.shown["text"]["language"] == "zh-Hans"
    pages.pages.error(Fault.BAD_REQUEST)
    assert (pages.shown["facts"], pages.shown["command"], pages.shown["ask"], pages.shown["state"], pages.shown["links"]) == (
        *([], "", None, "", ()),
    )


@all_cases(
    ("kind", "status", "read_by_all"),
    [
        (ResourceType.IMAGE, 200, True),
        (ResourceType.SCRIPT, 200, True),
        (ResourceType.FONT, 403, True),
        (ResourceType.DOCUMENT, 403, False),
        (ResourceType.SUBDOCUMENT, 403, False),
    ],
)
def test_who_may_read_an_answer(kind: ResourceType, status: int, *, read_by_all: bool) -> None:
    pages = Pages()
    answer = pages.pages.block(Request(parse_url(URL), None, kind), Verdict(Action.BLOCK, Reason.ADBLOCK), "en")
    assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (status, read_by_all)
    assert ("cross-origin-resource-policy" in answer.headers) == (not read_by_all)
    stub = pages.pages.block(
        Request(parse_url(URL), None, kind), Verdict(Action.BLOCK, Reason.ADBLOCK, stub="no such stub"), "en"
    )
    assert stub.status_code == status


def test_the_address_of_a_state() -> None:
    url: Url = parse_url("http://site.example:81/a b")
    begin = f"http://site.example:81{UNBLOCK_PATH}?url=http%3A%2F%2Fsite.example%3A81%2Fa%2520b&state=t"
    assert state_address(url, "t") == state_address(url, "t", since=0.0) == begin
    assert state_address(url, "t", link=True, since=5.9) == f"{begin}&by=link&since=5"


@all_cases(
    ("reason", "category", "names_it", "as_reason"),
    [
        (Reason.BLACKLIST, "gambling", True, None),
        (Reason.ADBLOCK, "gambling", True, None),
        (Reason.ADBLOCK, "ads", False, Reason.ADBLOCK),
        (Reason.ADBLOCK, "trackers", False, Reason.ADBLOCK),
        (Reason.ADBLOCK, "other", False, Reason.BLACKLIST),
        (Reason.ADBLOCK, "", False, Reason.BLACKLIST),
        (Reason.BLACKLIST, "ads", True, None),
        (Reason.BLACKLIST, "other", False, Reason.BLACKLIST),
        (Reason.BLACKLIST, "", False, Reason.BLACKLIST),
        (Reason.FAILURE, "gambling", False, Reason.FAILURE),
    ],
)
def test_an_explanation_names_the_category_where_it_tells_something(
    reason: Reason, category: str, as_reason: Reason | None, *, names_it: bool
) -> None:
    for texts in (ENGLISH, CHINESE):
        told = texts.explanation(reason, category, "a title")
        assert ("a title" in told) is names_it
        assert as_reason is None or told == texts.why[as_reason] != ""
