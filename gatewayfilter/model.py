"""The values that travel through the rooms: requests, verdicts, sources, entries. All immutable."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from gatewayfilter.renamed_codes import current_code
from gatewayfilter.urls import Url


class Action(StrEnum):
    """What happens to a request. How a block is answered (page, stub, empty) is the proxy's choice by resource type."""

    ALLOW = "allow"
    BLOCK = "block"


class Reason(StrEnum):
    """Why. The codes stand in logs, block pages and `check`; docs/reasons.md explains each."""

    MANUAL_ALLOW = "manual-allow"
    MANUAL_BLOCK = "manual-block"
    MANUAL_SPLICE = "manual-splice"
    BLACKLIST = "blacklist"
    LEARNED = "learned"
    ADBLOCK = "adblock"
    ADBLOCK_EXCEPTION = "adblock-exception"
    WHITELIST = "whitelist"
    SPLICELIST = "splicelist"
    PINNED_APP = "pinned-app"
    UNKNOWN = "unknown"
    BAD_REQUEST = "bad-request"
    NOT_HTTP = "not-http"
    FAILURE = "failure"
    INTERNAL_ADDRESS = "internal-address"

    @classmethod
    def _missing_(cls, value: object) -> "Reason | None":
        return next((reason for reason in cls if reason == current_code(str(value))), None)


class ResourceType(StrEnum):
    """What the client wants the response for, in the words of the WebRequest API that Adblock options use."""

    DOCUMENT = "document"
    SUBDOCUMENT = "subdocument"
    STYLESHEET = "stylesheet"
    SCRIPT = "script"
    IMAGE = "image"
    FONT = "font"
    MEDIA = "media"
    OBJECT = "object"
    XMLHTTPREQUEST = "xmlhttprequest"
    PING = "ping"
    WEBSOCKET = "websocket"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the engine sees it.

    Attributes:
        url: the canonical URL.
        source: the page that caused it (Referer or Origin), `None` when nobody says.
        client: the client's address, `""` when it does not matter.
    """

    url: Url
    source: Url | None = None
    resource_type: ResourceType = ResourceType.DOCUMENT
    method: str = "GET"
    client: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engine's answer to a request.

    Attributes:
        source_list: name of the source that decided, `""` when none did.
        rule: the entry or rule as its list writes it.
        line: line number of the rule in its list, 0 when unknown.
        category: what the source says this is (`gambling`, `ads` …), `""` when it says nothing.
        detail: the evidence in words, e.g. ``score 42.0 (limit 20.0): casino, betting``; `""` without.
        unknown: no black or white list knows this URL: it may be offered to the frontier.
        stub: canonical name of the stub resource (`redirect=`) that stands in for a blocked response, `""` without.
    """

    action: Action
    reason: Reason
    source_list: str = ""
    rule: str = ""
    line: int = 0
    category: str = ""
    detail: str = ""
    unknown: bool = False
    stub: str = ""

    @property
    def blocked(self) -> bool:
        """Whether the request must not go on."""
        return self.action is Action.BLOCK


class HostAction(StrEnum):
    """What happens to a whole connection when its host name is all that is known."""

    DENY = "deny"
    SPLICE = "splice"
    INTERCEPT = "intercept"


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """The engine's answer to a host name, before any URL is known.

    Attributes:
        action: refuse the connection, pass it through unread, or look at its requests.
        verdict: who says so and why, as for a request; for `intercept` the verdict of nobody.
        named: a block of a person or of a list names the host or a part of it: nothing that a client does makes it pass unread.
        because: the block that names it, `None` for none.
    """

    action: HostAction
    verdict: Verdict
    named: bool = False
    because: Verdict | None = None


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule of a list that changes a request or its response without blocking it.

    Attributes:
        source_list: name of the list; `line` the rule's line in it, from 1.
        rule: as its list writes it.
        modifier: the option that does it, e.g. `removeparam`, `csp`, `cosmetic`.
    """

    source_list: str
    rule: str
    line: int
    modifier: str


@dataclass(frozen=True, slots=True)
class RequestChange:
    """What Adblock modifiers make of a request that is allowed, before it goes out.

    Attributes:
        url: the text of the URL to ask for instead, `""` to leave it.
        redirect: tell the client (307) rather than ask for it silently: the other URL is of another origin or a page's own.
        remove_headers: lower-case names of request headers to leave out.
        rules: what did it, in order.
    """

    url: str = ""
    redirect: bool = False
    remove_headers: tuple[str, ...] = ()
    rules: tuple[AppliedRule, ...] = ()


class BodyEdit(Protocol):
    """One `$replace` rule, made ready; linear in the length of the text."""

    def apply(self, text: str) -> str:
        """Returns the text with everything replaced that the rule finds."""
        ...


@dataclass(frozen=True, slots=True)
class ResponseChange:
    """What Adblock modifiers make of a response whose headers are known.

    Attributes:
        verdict: a rule about response headers blocks it after all; `None` without.
        csp: policies to add as `content-security-policy` headers; `permissions` likewise as `permissions-policy`.
        remove_headers: lower-case names of response headers to leave out.
        edits: of a text body, in order.
        style: CSS that hides elements, `""` without; only ever for HTML documents. It holds the rules that name the host, and
            those for every site of lists that have few.
        generic_style: CSS of the many rules that big lists have for every site, `""` without; it may be left out.
        remove_elements: CSS selectors of elements to take out of the HTML (`##^`).
        rules: what did it.
    """

    verdict: Verdict | None = None
    csp: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    remove_headers: tuple[str, ...] = ()
    edits: tuple[BodyEdit, ...] = ()
    style: str = ""
    generic_style: str = ""
    remove_elements: tuple[str, ...] = ()
    rules: tuple[AppliedRule, ...] = ()


@dataclass(frozen=True, slots=True)
class DeciderAnswer:
    """What one decider says of a request, for `gatewayfilter check`.

    Attributes:
        decider: its name in the pipeline: `manual`, `bloom`, `blacklist`, `adblock`, `spellings`, `whitelist`,
            `unknown`.
        answer: `allow`, `block`, `maybe` (Bloom: look further), `miss`, `pass` (has an opinion that does not decide), `skipped`.
        explanation: a sentence for people, with rule and list where there are any.
        verdict: the verdict that this decider alone would give, where it would give one.
    """

    decider: str
    answer: str
    explanation: str
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every decider's answer, in the order of the pipeline, and the verdict that came of them."""

    request: Request
    answers: tuple[DeciderAnswer, ...]
    verdict: Verdict


class ListAction(StrEnum):
    """What being on a list means. `splice`: connections to these hosts pass through unread; it says nothing of single URLs."""

    BLOCK = "block"
    ALLOW = "allow"
    SPLICE = "splice"


class EntryKind(StrEnum):
    """How an entry's pattern is read; the first four have a list key (urls.py), the last two are tried one by one."""

    URL = "url"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"
    WILDCARD = "wildcard"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class Source:
    """A list as verdicts name it: a subscription, a bundled list, or the learner's entries of one category.

    Attributes:
        name: unique, as in `source status`; learned entries are `learned:<category>`.
        action: what its entries mean; of a `splice` list only host and domain entries count. Adblock lists are always
            `block`; their exceptions are their own affair.
        category: what its entries are.
    """

    name: str
    action: ListAction = ListAction.BLOCK
    category: str = ""
    learned: bool = False


@dataclass(frozen=True, slots=True)
class ManualRule:
    """An entry that a person made. It outranks every list; allow outranks block.

    Attributes:
        rule_id: the database's number.
        pattern: canonical for url, prefix, host, domain (a list key); as typed for wildcard and regex (without slashes).
        group: the name under which entries are switched on and off together, `""` for none.
        expires_at: Unix seconds, `None` for never.
        enabled: whether it counts; one that is switched off is kept.
    """

    rule_id: int
    action: ListAction
    kind: EntryKind
    pattern: str
    comment: str = ""
    group: str = ""
    expires_at: float | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sensitive word that was found on a page.

    Attributes:
        weight: what the hit adds to the category's score, zone factor included; negative for context that speaks against.
        zone: `title`, `description`, `keywords`, `main`, `rest` or `url`.
        position: character offset in the zone's normalised text.
    """

    word: str
    category: str
    weight: float
    zone: str
    position: int


@dataclass(frozen=True, slots=True)
class Classification:
    """What the classifier says of a page.

    Attributes:
        category: the worst category over its limit, `""` for a page that is none.
        score: that category's score, or the highest of all when none is over its limit.
        limit: the limit it was held against.
        scores: category → score, only those above zero.
        evidence: hits, heaviest first, bounded.
        title: the page's title, bounded.
        charset: how the bytes were decoded, `""` for text.
        text_digest: MD5 of the visible text.
        fields: field of an extraction rule → its values, bounded; none where no rule is for the page.
    """

    category: str
    score: float
    limit: float
    scores: dict[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    title: str = ""
    charset: str = ""
    text_digest: bytes = b""
    fields: dict[str, list[str]] = field(default_factory=dict)

    @property
    def harmful(self) -> bool:
        """Whether any category went over its limit."""
        return bool(self.category)

    def summary(self, words: int = 5) -> str:
        """Returns the evidence in one line for block pages and logs: ``score 42.0 (limit 20.0): casino, betting``."""
        named = ", ".join(dict.fromkeys(hit.word for hit in self.evidence if hit.category == self.category and hit.weight > 0))
        listed = ", ".join(named.split(", ")[:words]) if named else "no words"
        return f"score {self.score:.1f} (limit {self.limit:.1f}): {listed}"


@dataclass(frozen=True, slots=True)
class LearnedEntry:
    """What the crawler learned of one URL; a block entry expires and is checked again.

    Attributes:
        key: a list key (urls.py), nearly always of the url kind.
        url: the URL that was judged, for people.
        detail: `Classification.summary()`.
        created_at, expires_at: Unix seconds.
    """

    key: str
    action: ListAction
    category: str
    url: str
    detail: str
    created_at: float
    expires_at: float


class ChangeKind(StrEnum):
    """What the change feed carries."""

    MANUAL_ADDED = "manual-added"
    MANUAL_REMOVED = "manual-removed"
    LEARNED_ADDED = "learned-added"
    LEARNED_REMOVED = "learned-removed"

    @classmethod
    def _missing_(cls, value: object) -> "ChangeKind | None":
        return next((kind for kind in cls if kind == current_code(str(value))), None)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the change feed: `seq` is monotonic; exactly one of the two entries is set.

    A removal carries the entry that left.
    """

    seq: int
    kind: ChangeKind
    manual: ManualRule | None = None
    learned: LearnedEntry | None = None


class LogRecord(NamedTuple):
    """One decision, as it is logged. A tuple: there is one of each request, and a frozen dataclass takes three times as long.

    Attributes:
        at: Unix seconds.
        client: the client's address, already treated as the privacy level says; likewise `url`.
        elapsed_us: what the decision took, in microseconds.
    """

    at: float
    client: str
    method: str
    url: str
    resource_type: str
    action: str
    reason: str
    source_list: str = ""
    rule: str = ""
    category: str = ""
    elapsed_us: int = 0
