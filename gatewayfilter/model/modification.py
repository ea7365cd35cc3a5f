"""Modifications that Adblock rules make to allowed requests and to their responses."""

from dataclasses import dataclass
from typing import Protocol

from gatewayfilter.model.decision import Verdict


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
