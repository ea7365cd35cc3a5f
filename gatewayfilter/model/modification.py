"""Modifications that Adblock rules make to allowed requests and to their responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gatewayfilter.model.decision import Verdict
from gatewayfilter.urls import Url


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
class Enforcement:
    """What a policy changes in the requests to a host, so that its site filters its results.

    Attributes:
        key: the policy's value that requires it: `safesearch` or `youtube`.
        address: host or IP address whose addresses the site's connections end at instead of its own; `""` for its own.
        parameters: of the query, which replace all of the same name.
        cookies: likewise.
        headers: lower-case names; they replace the client's own.
    """

    key: str
    address: str
    parameters: tuple[tuple[str, str], ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def summary(self) -> str:
        """What is done, as `check` shows it: ``strict.bing.com, adlt=strict``."""
        parts = [self.address] if self.address else []
        parts += [f"{name}={value}" for name, value in self.parameters]
        parts += [f"cookie {name}={value}" for name, value in self.cookies]
        parts += [f"header {name}: {value}" for name, value in self.headers]
        return ", ".join(parts)


class JudgeForm(Protocol):
    """The rules of a policy for what is posted to a search engine or video site. Pure."""

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Parameters that replace all of the same name in a form."""
        ...

    @property
    def judges(self) -> bool:
        """Whether searches are judged."""
        ...

    @property
    def is_search(self) -> bool:
        """Whether searches are posted to this URL in another form than that of HTML."""
        ...

    def judge(self, body: bytes | None) -> Verdict | None:
        """Returns the block of a decoded body, `None` where it is allowed; a body is `None` where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class RequestChange:
    """The changes to an allowed request by Adblock modifiers, before it is sent.

    Attributes:
        url: text of the URL to request instead, `""` to keep it.
        redirect: redirect the client (307) instead of rewriting silently: the URL has another origin or is a page's.
        remove_headers: lower-case names of request headers to remove.
        rules: the applied rules, in order.
        enforced: what the client's policy changes besides, `None` for nothing.
        form: judges the body, which may hold a search; `None` where it does not matter.
    """

    url: str = ""
    redirect: bool = False
    remove_headers: tuple[str, ...] = ()
    rules: tuple[AppliedRule, ...] = ()
    enforced: Enforcement | None = None
    form: JudgeForm | None = None


class BodyEdit(Protocol):
    """A compiled `$replace` rule; linear in the length of the text."""

    def apply(self, text: str) -> str:
        """Returns the text with all matches of the rule replaced."""
        ...


class JudgeDownload(Protocol):
    """The download rules of a policy. Pure."""

    @property
    def most_bytes(self) -> int:
        """Most bytes of a body as it is sent; 0 for no limit."""
        ...

    @property
    def judges_content(self) -> bool:
        """Whether the first bytes of a body are to be judged."""
        ...

    def judge_head(self, url: Url, headers: Mapping[str, str]) -> Verdict | None:
        """Returns the block of a response by its headers (lower-case names), `None` where it passes so far."""
        ...

    def judge_begin(self, url: Url, headers: Mapping[str, str], begin: bytes) -> Verdict | None:
        """Returns the block of a response by the first bytes of its decoded body, `None` where they show no blocked type."""
        ...

    def too_large(self) -> Verdict:
        """Returns the block of a response that is too large."""
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
        downloads: what the client's policy blocks of it besides; `None` for nothing.
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
    downloads: JudgeDownload | None = None
