"""A request, the verdict on it or on its host, the explanation of the verdict, and its record in the log."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

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


PAGE_TYPES: Final = frozenset({ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT})
"""The types of what is shown as a page of its own or in a frame."""


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
