"""Answers to requests to unblock pages by a person: decided, and recorded in the audit log with what takes them back."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gatewayfilter.errors import MissingError
from gatewayfilter.interfaces import BypassLink, UnblockRequest
from gatewayfilter.model import Actor
from gatewayfilter.store import Store
from gatewayfilter.urls import Url
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import inverse_of_approval, inverse_of_link
from gatewayfilter.use_cases.requests import Approval, RequestDecisions, Whom


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an approval; arguments of `RequestDecisions.approve` and `link`."""

    lifetime_s: float | None = 3600.0
    once: bool = False
    site: bool | None = None
    whom: Whom = field(default_factory=Whom)
    word: str = ""
    seen: str = ""


class RequestAnswers:
    """Answers requests; errors are those of `RequestDecisions`.

    Args:
        store: the database.
        actor: who answers.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, actor: Actor, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._actor = actor
        self._decisions = RequestDecisions(store, clock)
        self._trail = AuditTrail(store, clock)
        self._clock = clock

    def approve(self, number: int, terms: Terms) -> Approval:
        """Approves a request."""
        made = self._decisions.approve(
            number,
            lifetime_s=None if terms.once else terms.lifetime_s,
            site=terms.site,
            whom=terms.whom,
            word=terms.word,
            once=terms.once,
            seen=terms.seen,
        )
        self._record("request.approved", made.requests[0].url, f"request {number}", inverse_of_approval(made.requests))
        return made

    def deny(self, number: int, word: str = "", *, seen: str = "") -> UnblockRequest:
        """Denies a request, or withdraws its approval."""
        denied = self._decisions.deny(number, word, seen=seen)
        self._record("request.denied", denied.url, f"request {number}" + (f": {word}" if word else ""))
        return denied

    def reopen(self, number: int, *, seen: str = "") -> UnblockRequest:
        """Takes an answer back: the request waits again."""
        opened = self._decisions.reopen(number, seen=seen)
        self._record("request.reopened", opened.url, f"request {number}")
        return opened

    def link(self, number: int, terms: Terms) -> BypassLink:
        """Approves a request by a link."""
        made = self._decisions.link(
            number,
            lifetime_s=terms.lifetime_s or 0.0,
            once=terms.once,
            site=terms.site,
            whom=terms.whom,
            seen=terms.seen,
        )
        self._record("link.added", made.url, f"request {number}", inverse_of_link(made))
        return made

    def add_link(self, url: Url, terms: Terms) -> BypassLink:
        """Makes a link for any page."""
        made = self._decisions.add_link(
            url, lifetime_s=terms.lifetime_s or 0.0, once=terms.once, site=bool(terms.site), whom=terms.whom
        )
        self._record("link.added", made.url, f"link {made.link_id}", inverse_of_link(made))
        return made

    def revoke_link(self, number: int) -> BypassLink:
        """Revokes a link, and removes what it allowed.

        Raises:
            MissingError: there is none of this number.
        """
        revoked = self._store.bypass.revoke(number, self._clock())
        if revoked is None:
            raise MissingError(f"there is no link {number}")
        self._record("link.revoked", revoked.url, f"link {number}")
        return revoked

    def _record(self, action: str, subject: str, detail: str, undo: dict[str, object] | None = None) -> None:
        self._trail.record(self._actor, action, subject, detail, undo)
