"""Decisions on requests to unblock pages: what an approval covers, for whom and how long, and bypass links."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayfilter.errors import ConflictError, MissingItemError, PolicyError
from gatewayfilter.interfaces import BypassLink, RequestState, UnblockRequest
from gatewayfilter.model import (
    APPROVED,
    LEARNED_PREFIX,
    Client,
    EntryKind,
    LinkClaims,
    ListAction,
    ManualRule,
    Reason,
    check_name,
    link_address,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.urls import Url, domain_key, host_key, is_ip_literal, is_public_suffix, parse_url, registrable_domain
from gatewayfilter.use_cases.policies import PolicyEditor

LONGEST_S: Final = 10 * 366 * 86_400.0
LONGEST_WORD: Final = 300
"""Characters of an answer to the user."""
ONCE_WITHIN_S: Final = 86_400.0
"""How long after its approval a page that is approved for one visit may be opened."""

_HOST_RULE: Final = re.compile(r"\|\|[^/^*$|]+\^?(\$.*)?")
"""An Adblock rule for a whole host."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What an approval has made.

    Attributes:
        requests: the requests that it answers.
        rules: its manual rules; none for one visit, which has a link instead.
        page_alone: the page alone was approved although the site was wanted, since the page itself was judged.
        site: pattern of the whole site where the page alone was approved and the site could be, `""` otherwise.
        client: the client that was added for the device that asked, `None` if it was known.
        link: opens the page once.
    """

    requests: Sequence[UnblockRequest]
    rules: Sequence[ManualRule]
    page_alone: bool = False
    site: str = ""
    client: Client | None = None
    link: BypassLink | None = None


@dataclass(frozen=True, slots=True)
class Whom:
    """For whom something is approved, as it is typed; without any, for the client that asked.

    Attributes:
        client, group: names, `""` for none.
        everybody: for all.
    """

    client: str = ""
    group: str = ""
    everybody: bool = False


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """Refuses a decision on a request that somebody else has decided since it was read.

    Attributes:
        number: of the request.
        seen: its `revision` when it was read, `""` for any.
    """

    number: int
    seen: str

    def __call__(self, requests: Sequence[UnblockRequest]) -> None:
        for request in requests:
            if request.request_id == self.number and self.seen and revision(request) != self.seen:
                raise ConflictError(f"request {self.number} was answered meanwhile: it is {request.state.value}")


class RequestDecisions:
    """Decides requests to unblock pages. Each method is refused with a `PolicyError` where it makes no sense.

    Methods that take `seen`, the `revision` of the request that the person saw, raise `ConflictError` when it was decided since.

    Args:
        store: the database.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def approve(
        self,
        number: int,
        *,
        lifetime_s: float | None,
        site: bool | None,
        whom: Whom,
        word: str = "",
        once: bool = False,
        seen: str = "",
    ) -> Approval:
        """Approves a request.

        Args:
            number: of the request.
            lifetime_s: how long it lasts, `None` for ever.
            site: the whole site, or the page alone; `None` for the site if an entry for its host blocked.
            whom: for whom.
            word: an answer to the user.
            once: for one visit within a day.
            seen: the revision of the request that the person saw, `""` for any.
        """
        _check_lifetime(lifetime_s)
        request, check = self._existing(number), _Unchanged(number, seen)
        check([request])
        url = parse_url(request.url)
        judged = is_judged_page(request)
        wanted = covers_host(request) if site is None else site
        kind, pattern = granted(url, site=wanted and not judged)
        now = self._clock()
        self._store.lists.remove_ended(APPROVED, now)
        scope, added = self._scope(whom, request)
        answered = [request.request_id, *(self._of_same_page(request) if not scope else ())]
        if once:
            until: float | None = now + ONCE_WITHIN_S
            made = BypassLink(request.url, kind, pattern, scope, now + ONCE_WITHIN_S, True, now, number)
            link: BypassLink | None = self._store.bypass.add(made)
            rules: list[ManualRule] = []
        else:
            until, link = (None if lifetime_s is None else now + lifetime_s), None
            comment = f"request {number}" + (f": {request.comment}" if request.comment else "")
            rules = [ManualRule(0, ListAction.ALLOW, kind, pattern, comment, APPROVED, until, scope=scope)]
        try:
            found = self._store.unblock.approve(answered, rules, scope=scope, until=until, word=word, now=now, check=check)
        except ConflictError:
            if link is not None:
                self._store.bypass.revoke(link.link_id, now)
            raise
        made_rules = [rule for rule in self._store.lists.rules() if found and rule.rule_id in found[0].rule_ids]
        site_pattern = "" if wanted or judged else granted(url, site=True)[1]
        return Approval(found, made_rules, wanted and judged, site_pattern, added, link)

    def deny(self, number: int, word: str = "", *, seen: str = "") -> UnblockRequest:
        """Denies a request, or withdraws its approval."""
        self._existing(number)
        now = self._clock()
        denied = self._store.unblock.deny([number], word=word, now=now, check=_Unchanged(number, seen))[0]
        self._revoke_links(number, now)
        return denied

    def reopen(self, number: int, *, seen: str = "") -> UnblockRequest:
        """Takes the decision on a request back: it waits again. An approval's rules and links end."""
        if self._existing(number).state is RequestState.OPEN:
            raise PolicyError(f"request {number} waits already")
        opened = self._store.unblock.reopen([number], now=self._clock(), check=_Unchanged(number, seen))[0]
        self._revoke_links(number, self._clock())
        return opened

    def link(self, number: int, *, lifetime_s: float, once: bool, site: bool | None, whom: Whom, seen: str = "") -> BypassLink:
        """Makes a bypass link for the page of a request, which is approved by it."""
        _check_lifetime(lifetime_s)
        request, check = self._existing(number), _Unchanged(number, seen)
        check([request])
        wanted = covers_host(request) if site is None else site
        kind, pattern = granted(parse_url(request.url), site=wanted and not is_judged_page(request))
        now = self._clock()
        scope, _ = self._scope(whom, request)
        link = self._store.bypass.add(BypassLink(request.url, kind, pattern, scope, now + lifetime_s, once, now, number))
        try:
            self._store.unblock.approve([number], [], scope=scope, until=link.until, word="", now=now, check=check)
        except ConflictError:
            self._store.bypass.revoke(link.link_id, now)
            raise
        return link

    def add_link(self, url: Url, *, lifetime_s: float, once: bool, site: bool, whom: Whom) -> BypassLink:
        """Makes a bypass link for any page."""
        _check_lifetime(lifetime_s)
        if whom == Whom():
            raise PolicyError("say whom the link is for: --client NAME, --group NAME or --all")
        kind, pattern = granted(url, site=site)
        now = self._clock()
        scope, _ = self._scope(whom, None)
        return self._store.bypass.add(BypassLink(url.text, kind, pattern, scope, now + lifetime_s, once, now))

    def _existing(self, number: int) -> UnblockRequest:
        request = self._store.unblock.find(number)
        if request is None:
            raise MissingItemError(f"there is no request {number}; `gatewayfilter request list --all` shows all")
        return request

    def _revoke_links(self, number: int, now: float) -> None:
        for link in self._store.bypass.links():
            if link.request_id == number and link.revoked_at is None:
                self._store.bypass.revoke(link.link_id, now)

    def _of_same_page(self, request: UnblockRequest) -> list[int]:
        others = self._store.unblock.open_requests()
        return [other.request_id for other in others if other.url == request.url and other.request_id != request.request_id]

    def _scope(self, whom: Whom, request: UnblockRequest | None) -> tuple[str, Client | None]:
        """Returns the scope of rules, and the client that was added for it."""
        if sum((bool(whom.client), bool(whom.group), whom.everybody)) > 1:
            raise PolicyError("give one of --client, --group and --all")
        if whom.everybody:
            return "", None
        policies = self._store.policies.read()
        if whom.group:
            if policies.group(whom.group) is None:
                raise MissingItemError(f"there is no group {whom.group!r}")
            return f"group:{whom.group}", None
        name = whom.client or (request.client_name if request is not None else "")
        if name:
            if name not in policies.clients:
                raise MissingItemError(f"there is no client {name!r}")
            return f"client:{name}", None
        assert request is not None
        return self._scope_of_device(request.client)

    def _scope_of_device(self, address: str) -> tuple[str, Client | None]:
        """Returns the scope of a device without a name, which becomes a client named by its address."""
        name = address.replace(":", "-")
        try:
            matcher = parse_matcher(address)
            check_name(name)
        except PolicyError as error:
            raise PolicyError(
                "the device that asked has no name, and its address is not stored: give --client, --group or --all"
            ) from error
        for client in self._store.policies.read().clients.values():
            if matcher in client.matchers:
                return f"client:{client.name}", None
        client = Client(name, (matcher,), note="added for a request")
        PolicyEditor(self._store.policies, self._clock).add_client(client)
        return f"client:{name}", client


def granted(url: Url, *, site: bool) -> tuple[EntryKind, str]:
    """Returns kind and pattern of the rule that allows a page, or its site: the registrable domain."""
    if not site:
        return EntryKind.URL, url.key
    domain = registrable_domain(url.host)
    if is_ip_literal(domain) or is_public_suffix(domain):
        return EntryKind.HOST, host_key(url.host)
    return EntryKind.DOMAIN, domain_key(domain)


def is_judged_page(request: UnblockRequest) -> bool:
    """Returns whether the page itself was judged, not its host."""
    return (request.reason == Reason.LEARNED or request.source_list.startswith(LEARNED_PREFIX)) and "/" in request.rule


def covers_host(request: UnblockRequest) -> bool:
    """Returns whether what blocked the page concerns its whole host: an entry for it, a schedule, a policy."""
    if request.reason in {Reason.SCHEDULE, Reason.POLICY, Reason.SERVICE, Reason.QUOTA}:
        return True
    if request.reason in {Reason.FILE_TYPE, Reason.FILE_SIZE, Reason.SEARCH_TERM}:
        return False
    if request.reason == Reason.ADBLOCK:
        return _HOST_RULE.fullmatch(request.rule) is not None
    return bool(request.rule) and "/" not in request.rule and "*" not in request.rule


def address_of(key: bytes, link: BypassLink) -> str:
    """Returns the address that opens a bypass link."""
    return link_address(key, LinkClaims(link.link_id, link.url, link.scope, link.until, link.once))


def state_of(request: UnblockRequest, now: float) -> str:
    """Returns the state of a request in a word; an approval that has ended is `ended`."""
    ended = request.state is RequestState.APPROVED and request.until is not None and request.until <= now
    return "ended" if ended else request.state.value


def revision(request: UnblockRequest) -> str:
    """Returns what changes with each decision on a request, as `seen` of `RequestDecisions` has it."""
    return f"{request.state.value}-{request.decided_at or 0:.6f}"


def link_state(link: BypassLink, now: float) -> str:
    """Returns the state of a bypass link in a word: `revoked`, `ended`, `used` or `unused`."""
    if link.revoked_at is not None:
        return "revoked"
    if now >= link.until:
        return "ended"
    return "used" if link.used_at is not None else "unused"


def read_word(text: str) -> str:
    """Returns an answer to a user without what cannot be shown.

    Raises:
        PolicyError: it is too long.
    """
    word = "".join(mark for mark in " ".join(text.split()) if mark.isprintable())
    if len(word) > LONGEST_WORD:
        raise PolicyError(f"an answer has at most {LONGEST_WORD} characters, not {len(word)}")
    return word


def _check_lifetime(lifetime_s: float | None) -> None:
    if lifetime_s is not None and not 1 <= lifetime_s <= LONGEST_S:
        raise PolicyError("an approval lasts from a second to ten years, or `ever`")
