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
        modifier: its option, e.g. `removeparam`, `csp`, `cosmetic`.
    """

    source_list: str
    rule: str
    line: int
    modifier: str


@dataclass(frozen=True, slots=True)
class RequestChange:
    """The changes to an allowed request by Adblock modifiers, before it is sent.

    Attributes:
        url: text of the URL to request instead, `""` to keep it.
        redirect: redirect the client (307) instead of rewriting silently: the URL has another origin or is a page's.
        remove_headers: lower-case names of request headers to remove.
        rules: the applied rules, in order.
    """

    url: str = ""
    redirect: bool = False
    remove_headers: tuple[str, ...] = ()
    rules: tuple[AppliedRule, ...] = ()


class BodyEdit(Protocol):
    """A compiled `$replace` rule; linear in the length of the text."""

    def apply(self, text: str) -> str:
        """Returns the text with all matches of the rule replaced."""
        ...


@dataclass(frozen=True, slots=True)
class ResponseChange:
    """The changes to a response by Adblock modifiers, once its headers are known.

    Attributes:
        verdict: of a rule on response headers that blocks it, `None` for none.
        csp: policies to add as `content-security-policy` headers; `permissions` likewise as `permissions-policy`.
        remove_headers: lower-case names of response headers to remove.
        edits: of a text body, in order.
        style: CSS that hides elements, `""` for none; only for HTML documents. From the rules that name the host, and the generic
            rules of lists with few of them.
        generic_style: CSS of the generic rules of lists with many of them, `""` for none; it may be omitted.
        remove_elements: CSS selectors of elements to remove from the HTML (`##^`).
        rules: the applied rules.
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
