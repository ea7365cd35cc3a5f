"""A request, the verdict on it or on its host, the explanation of the verdict, and its record in the log."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from gatewayfilter.model.policy import UnknownAction
from gatewayfilter.renamed_codes import current_code
from gatewayfilter.urls import Url


class Action(StrEnum):
    """What happens to a request. How a block is answered (page, stub, empty) is the proxy's choice by resource type."""

    ALLOW = "allow"
    BLOCK = "block"


class Reason(StrEnum):
    """The reason of a verdict, as a code in logs, block pages and `check`; docs/reasons.md explains each."""

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
    PAUSE = "pause"
    SCHEDULE = "schedule"
    POLICY = "policy"
    POLICY_REVIEW = "policy-review"
    SAFESEARCH = "safesearch"
    SEARCH_TERM = "search-term"
    FILE_TYPE = "file-type"
    FILE_SIZE = "file-size"
    SERVICE = "service"
    QUOTA = "quota"
    LOGIN_REFUSED = "login-refused"

    @classmethod
    def _missing_(cls, value: object) -> "Reason | None":
        return next((reason for reason in cls if reason == current_code(str(value))), None)


class ResourceType(StrEnum):
    """The resource type of a request, with the names of the WebRequest API that Adblock options use."""

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
"""The types of top-level pages and frames."""


@dataclass(slots=True, unsafe_hash=True)
class Request:
    """One request, as input of the engine: immutable by convention, as a frozen dataclass takes five times as long to make.

    Attributes:
        url: the canonical URL.
        source: the page that caused it (Referer or Origin), `None` when unknown.
        client: the client's address, `""` when irrelevant.
        user: name under which the client logged in to the proxy, `""` without.
    """

    url: Url
    source: Url | None = None
    resource_type: ResourceType = ResourceType.DOCUMENT
    method: str = "GET"
    client: str = ""
    user: str = ""


@dataclass(slots=True, unsafe_hash=True)
class KnownRequest(Request):
    """A request of a client that policies name, for Adblock rules with `client=` and `ctag=`.

    Attributes:
        known_as: names of the client (`""` for none) and of its group.
    """

    known_as: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The engine's decision on a request.

    Attributes:
        source_list: name of the source that decided, `""` when none did.
        rule: the entry or rule as written in its list.
        line: line number of the rule in its list, 0 when unknown.
        category: given by the source (`gambling`, `ads` …), `""` for none.
        detail: the evidence as text, e.g. ``score 42.0 (limit 20.0): casino, betting``; `""` without.
        unknown: the URL is on no black or white list: it may be offered to the frontier.
        stub: canonical name of the stub resource (`redirect=`) that replaces a blocked response, `""` for none.
        unknown_action: treatment of an unknown URL by the client's policy, `None` for that of `proxy.unknown`.
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
    unknown_action: UnknownAction | None = None

    @property
    def blocked(self) -> bool:
        """Whether the request must not go on."""
        return self.action is Action.BLOCK


class HostAction(StrEnum):
    """The decision on a connection of which only the host name is known."""

    DENY = "deny"
    SPLICE = "splice"
    INTERCEPT = "intercept"


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """The engine's decision on a host name, before any URL is known.

    Attributes:
        action: deny the connection, splice it (pass it through unread), or intercept its requests.
        verdict: source and reason, as for a request; for `intercept` an empty verdict.
        named: a manual or list block names the host or a part of it: no client behaviour makes its connections pass unread.
        because: the block that names it, `None` for none.
        connect_to: host or address whose addresses its connections end at instead of its own, `""` for its own.
        shows_page: of a denied host: the connection may be decrypted to show a block page.
    """

    action: HostAction
    verdict: Verdict
    named: bool = False
    because: Verdict | None = None
    connect_to: str = ""
    shows_page: bool = True


@dataclass(frozen=True, slots=True)
class DeciderAnswer:
    """The answer of one decider for a request, for `gatewayfilter check`.

    Attributes:
        decider: its name in the pipeline: `manual`, `bloom`, `blacklist`, `adblock`, `spellings`, `whitelist`,
            `unknown`.
        answer: `allow`, `block`, `maybe` (Bloom: look further), `miss`, `pass` (a finding that does not decide), `skipped`.
        explanation: a sentence for users, with rule and list where there are any.
        verdict: of this decider alone, `None` without one.
    """

    decider: str
    answer: str
    explanation: str
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every decider's answer, in the order of the pipeline, and the resulting verdict."""

    request: Request
    answers: tuple[DeciderAnswer, ...]
    verdict: Verdict


class LogRecord(NamedTuple):
    """A decision as logged. A tuple: one is created per request, and a frozen dataclass takes three times as long.

    Attributes:
        at: Unix seconds.
        client: the client's address, already reduced to the privacy level; likewise `url`.
        elapsed_us: duration of the decision in microseconds.
        user: name under which the client logged in to the proxy, reduced like `client`; `""` without.
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
    user: str = ""
