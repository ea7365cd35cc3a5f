"""Manual rules: their syntax, and the look-up of the rules that cover a URL.

Url, prefix, host and domain rules are found by key; wildcards and regular expressions are tried one by one, so their cost is
bounded: a wildcard is matched by plain searches from left to right, the cost of a regular expression is determined before it is
accepted (safe_regex/cost_guard.py), and it is searched in the part of the URL for which that cost holds.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from gatewayfilter.engine.adblock.named_sites import hosts_in_text
from gatewayfilter.engine.state.wildcards import Matches, SearchedUrl, glob, wildcard
from gatewayfilter.engine.tables.host_markers import host_of_key
from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import APPROVED, FLEET_GROUPS, FLEET_LOCKED, EntryKind, ListAction, ManualRule
from gatewayfilter.safe_regex.cost_guard import guard_regex
from gatewayfilter.urls import (
    MAX_URL_LENGTH,
    Url,
    canonical_host,
    domain_key,
    host_key,
    host_suffixes,
    is_ip_literal,
    is_public_suffix,
    parse_loose_url,
    prefix_key,
)

MAX_PATTERN_LENGTH = 2_048
MAX_SEARCHED_LENGTH = 1_024
"""Characters of a URL that regular expressions see: few real URLs are longer, and clients choose how long theirs are."""

COSTLY_SEARCHED_LENGTH = 256
"""The same for an expression with a length limit by the cost guard: it can take cubic time, about 3 million steps."""

MIN_WILDCARD_TEXT = 3
"""Minimum of letters and digits in a wildcard: `*a*` matches nearly every URL."""

_PROBES = ("http://192.0.2.7/x?y=1", "https://www.example.org/", "https://news.test/2024/05/story.html", "ws://a-b.invalid:81/z")
"""Addresses with nothing in common: an expression that matches all of them matches every URL."""

_HOST_AND_PORT = re.compile(r"[^:/]*:\d+|\[[^\]]*\]:\d+", re.ASCII)


def classify_pattern(text: str, *, force: bool = False) -> tuple[EntryKind, str]:
    """Parses a rule as typed, and returns its kind and its canonical pattern (`ManualRule.pattern`).

    ==============================  ========  ======================================================
    written                         kind      stands for
    ==============================  ========  ======================================================
    ``example.com``                 domain    the host and all its subdomains; also ``*.example.com``
    ``||example.com^``              domain    the same, as Adblock lists write it
    ``|example.com``                host      exactly this host; an IP address always means this
    ``https://example.com/a``       url       this page, by http or https; a block with any query and a slash behind it, too
    ``https://example.com/a?b``     url       this page with exactly this query; also without scheme
    ``example.com/a/*``             prefix    this path and all below it, with any query
    ``example.com:8443``            prefix    everything on this port of exactly this host
    ``*.cdn.*/banner*``             wildcard  any URL that fits; ``*`` stands for any text
    ``/ads?[0-9]+/``                regex     any URL that the expression is found in
    ==============================  ========  ======================================================

    Args:
        text: as typed.
        force: accept patterns that are likely too broad: a public suffix such as ``com``, ``*``.

    Raises:
        RuleError: it is none of these, or too broad.
    """
    text = text.strip()
    if not text or not text.isprintable():
        raise RuleError(f"a pattern needs printable characters, not {text[:60]!r}")
    if len(text) > MAX_PATTERN_LENGTH:
        raise RuleError(f"a pattern may have {MAX_PATTERN_LENGTH} characters, not {len(text)}")
    try:
        kind, pattern = _classify(text)
    except UrlError as error:
        raise RuleError(f"{text[:200]!r} is no URL, host, wildcard or /regex/: {error}") from error
    compile_pattern(kind, pattern)
    if not force:
        _refuse_too_broad(kind, pattern)
    return kind, pattern


def _classify(text: str) -> tuple[EntryKind, str]:
    if text.startswith("/"):
        if len(text) < 3 or not text.endswith("/"):
            raise RuleError(f"{text[:200]!r} begins like a regular expression but does not end with a slash")
        return EntryKind.REGEX, text[1:-1]
    if text.startswith("||"):
        return _site(text[2:].removesuffix("^"))
    if text.startswith("|"):
        return EntryKind.HOST, host_key(canonical_host(text[1:]))
    bare = text.removeprefix("*.")
    if "*" in bare or (bare != text and any(mark in bare for mark in "/?#:")):
        stem = text[:-1]
        if text.endswith("/*") and not any(mark in stem for mark in "*?#"):
            return EntryKind.PREFIX, prefix_key(parse_loose_url(stem))
        return EntryKind.WILDCARD, text
    if any(mark in bare for mark in "/?#"):
        return EntryKind.URL, parse_loose_url(bare).key
    if _HOST_AND_PORT.fullmatch(bare):
        return EntryKind.PREFIX, prefix_key(parse_loose_url(bare))
    return _site(bare.removeprefix("."))


def _site(text: str) -> tuple[EntryKind, str]:
    host = canonical_host(text)
    return (EntryKind.HOST, host_key(host)) if is_ip_literal(host) else (EntryKind.DOMAIN, domain_key(host))


def _refuse_too_broad(kind: EntryKind, pattern: str) -> None:
    if kind is EntryKind.DOMAIN and is_public_suffix(pattern[1:]):
        raise RuleError(f"{pattern[1:]!r} is a whole top-level domain or public suffix")
    if kind is EntryKind.WILDCARD:
        body = pattern.partition("://")[2] or pattern
        if sum(map(str.isalnum, body)) < MIN_WILDCARD_TEXT:
            raise RuleError(f"{pattern!r} fits nearly every URL")
    if kind is EntryKind.REGEX and all(map(guard_regex(pattern).compile().search, _PROBES)):
        raise RuleError(f"/{pattern}/ fits every URL")


@lru_cache(maxsize=4096)
def compile_pattern(kind: EntryKind, pattern: str, *, allows: bool = False) -> Matches | None:
    """Returns the test for a wildcard or regular expression, `None` for kinds that are found by key.

    Both ignore case. A wildcard must match the whole URL without its scheme (with it, when the wildcard has one); one without a
    slash may match the host alone; a leading ``*.`` also matches nothing, and a port may be omitted. In a rule that allows, the
    part of a wildcard that names a host matches hosts only (`wildcard`).
    A regular expression is searched in the whole URL, of a longer one in its first `MAX_SEARCHED_LENGTH` characters
    (`COSTLY_SEARCHED_LENGTH` when it could take long).

    Raises:
        RuleError: it cannot be read, or could take too long.
    """
    if kind is EntryKind.WILDCARD:
        return wildcard(pattern, allows=allows)
    if kind is EntryKind.REGEX:
        return _regex(pattern)
    return None


def _regex(pattern: str) -> Matches:
    guarded = guard_regex(pattern)
    search = guarded.compile().search
    length = MAX_SEARCHED_LENGTH if guarded.max_length == MAX_URL_LENGTH else COSTLY_SEARCHED_LENGTH
    return lambda url: search(url.text, 0, length) is not None


def written_pattern(rule: ManualRule) -> str:
    """Returns a rule's pattern as shown in verdicts: a regular expression between slashes, others as stored."""
    return f"/{rule.pattern}/" if rule.kind is EntryKind.REGEX else rule.pattern


@dataclass(frozen=True, slots=True)
class HostRules:
    """The rules that depend on the host alone, and can be cached per host.

    Attributes:
        rules: host and domain rules that cover the host.
        prefix_hosts: the hosts under which prefix rules exist that may cover its URLs.
    """

    rules: tuple[ManualRule, ...]
    prefix_hosts: tuple[str, ...]


_NO_RULES: Mapping[str, tuple[ManualRule, ...]] = MappingProxyType({})
_NO_SCOPES: Mapping[str, "ManualRules"] = MappingProxyType({})


def hosts_of_prefixes(url: Url) -> tuple[str, ...]:
    """Returns the hosts of prefix entries that may cover a URL: its own, and without a leading `www.`."""
    host = url.host
    return (host, host[4:]) if host.startswith("www.") else (host,)


def netloc_of(host: str, url: Url) -> str:
    """Returns the host with the URL's port, where it is not the scheme's own."""
    return f"{host}:{url.port}" if url.port else host


class ManualRules:
    """All manual rules. Immutable: `changed` returns another object.

    Rules that are switched off are kept but not applied; the same for rules that cannot be compiled (made by another version).
    Rules for some clients only are applied by `scoped` alone.

    Attributes:
        scoped: `ManualRule.scope` → the rules of that scope.
        approvals: of the rules that allow on request, the end (Unix seconds, infinite for none) and the number.
        approves: whether a rule allows a host or domain on request, with its parts (engine/approved_parts.py).
        locks: whether a rule of a fleet's publisher outranks those of this machine.
    """

    __slots__ = (
        "_approved",
        "_by_key",
        "_layered",
        "_of_parts",
        "_pages",
        "_prefix_netlocs",
        "_tried",
        "_wanted",
        "approvals",
        "approves",
        "locks",
        "scoped",
    )

    def __init__(self, rules: Iterable[ManualRule] = ()) -> None:
        self._wanted = {_identity(rule): rule for rule in rules}
        self._index()
        groups = FLEET_GROUPS.intersection(rule.group for rule in self._wanted.values() if rule.enabled and not rule.scope)
        self._layered = bool(groups)
        self.locks = FLEET_LOCKED in groups
        self.approvals = tuple(
            (math.inf if rule.expires_at is None else rule.expires_at, rule.rule_id)
            for rule in self._wanted.values()
            if rule.group == APPROVED and rule.enabled and rule.action is ListAction.ALLOW
        )
        of_scopes: dict[str, list[ManualRule]] = {}
        for rule in self._wanted.values():
            if rule.scope:
                of_scopes.setdefault(rule.scope, []).append(replace(rule, scope=""))
        self.scoped: Mapping[str, ManualRules] = {scope: ManualRules(found) for scope, found in of_scopes.items()} or _NO_SCOPES

    def _index(self) -> None:
        by_key: dict[str, list[ManualRule]] = {}
        pages: dict[str, list[ManualRule]] = {}
        tried: list[tuple[ManualRule, Matches]] = []
        for rule in self._wanted.values():
            if not rule.enabled or rule.scope:
                continue
            if blocks_any_query(rule):
                pages.setdefault(_page_of(rule.pattern), []).append(rule)
            elif rule.kind in _KEYED:
                by_key.setdefault(rule.pattern, []).append(rule)
            elif (matches := _compiled(rule)) is not None:
                tried.append((rule, matches))
        self._by_key: Mapping[str, tuple[ManualRule, ...]] = {key: tuple(found) for key, found in by_key.items()} or _NO_RULES
        self._prefix_netlocs = frozenset(
            rule.pattern.partition("/")[0] for found in by_key.values() for rule in found if rule.kind is EntryKind.PREFIX
        )
        self._pages: Mapping[str, tuple[ManualRule, ...]] = {page: tuple(found) for page, found in pages.items()} or _NO_RULES
        self._tried = tuple(tried)
        approved = (rule for found in by_key.values() for rule in found if rule.group == APPROVED)
        sites = [rule for rule in approved if rule.action is ListAction.ALLOW and rule.kind in _SITES]
        self._approved = {rule.pattern: rule for rule in sites}
        self.approves = bool(sites)
        of_parts: dict[str, list[ManualRule]] = {}
        for found in (*by_key.values(), *pages.values()):
            for rule in found:
                if rule.kind in {EntryKind.URL, EntryKind.PREFIX}:
                    of_parts.setdefault(host_of_key(rule.pattern), []).append(rule)
        self._of_parts = {host: tuple(rules) for host, rules in of_parts.items()}

    def __bool__(self) -> bool:
        """Whether there is any rule to apply."""
        return bool(self._by_key or self._tried or self._pages)

    def __len__(self) -> int:
        return len(self._wanted)

    def switched_off(self) -> "ManualRules":
        """Returns the rules that are switched off, as if they were on, for explanations."""
        return ManualRules(replace(rule, enabled=True) for rule in self._wanted.values() if not rule.enabled)

    def changed(self, added: Iterable[ManualRule], removed: Iterable[ManualRule]) -> "ManualRules":
        """Returns the rules after a change; an added rule replaces the one of its kind, pattern, group and scope."""
        rules = dict(self._wanted)
        for rule in removed:
            rules.pop(_identity(rule), None)
        rules.update((_identity(rule), rule) for rule in added)
        return ManualRules(rules.values())

    def for_host(self, url: Url) -> HostRules:
        """Returns the rules that depend on the URL's host and port alone."""
        by_key = self._by_key
        found = [rule for rule in by_key.get(host_key(url.host), ()) if rule.kind is EntryKind.HOST]
        for suffix in host_suffixes(url.host):
            found += by_key.get(domain_key(suffix), ())
        hosts = tuple(host for host in hosts_of_prefixes(url) if netloc_of(host, url) in self._prefix_netlocs)
        return HostRules(tuple(found), hosts)

    def matching(self, url: Url, host_rules: HostRules, now: float) -> list[ManualRule]:
        """Returns the rules that cover the URL and have not expired at `now` (Unix seconds).

        Splice rules are left out: they are about connections and neither allow nor block a URL.
        """
        found = [*self._by_key.get(url.key, ()), *host_rules.rules] if self._by_key else []
        found += self._pages.get(_page_of(url.key), ()) if self._pages else ()
        for host in host_rules.prefix_hosts:
            for key in url.prefix_keys(host):
                found += self._by_key.get(key, ())
        if self._tried:
            searched = SearchedUrl(url)
            found += [rule for rule, matches in self._tried if matches(searched)]
        return [rule for rule in found if rule.action is not _SPLICE and (rule.expires_at is None or now < rule.expires_at)]

    def approved_site(self, url: Url, now: float) -> ManualRule | None:
        """Returns the rule by which the site of a page was approved on request, `None` without one in force."""
        keys = (host_key(url.host), *map(domain_key, host_suffixes(url.host)))
        rules = (rule for key in keys if (rule := self._approved.get(key)) is not None)
        return next((rule for rule in rules if rule.expires_at is None or now < rule.expires_at), None)

    def of_parts(self, url: Url, action: ListAction) -> list[ManualRule]:
        """Returns the rules that may decide single URLs of the URL's host, on any port, expired ones included.

        Wildcards and regular expressions that block are included only if they name the host, those that allow always: whether one
        matches any URL of a host is not decidable here, and intercepting too much does no harm. A regular expression names a host
        that it contains as a literal, followed by a slash.
        """
        found = [rule for host in hosts_of_prefixes(url) for rule in self._of_parts.get(host, ()) if rule.action is action]
        found += [rule for rule, matches in self._tried if rule.action is action and _may_name(rule, matches, url)]
        return found

    def find(self, url: Url, host_rules: HostRules, now: float) -> ManualRule | None:
        """Returns the rule that decides: the first that allows, else the first that blocks, `None` when none covers the URL.

        Of a fleet's rules, those that its publisher locked count first, then those of this machine, then the others.
        """
        first: ManualRule | None = None
        found = self.matching(url, host_rules, now)
        for rule in _strongest(found) if self._layered and len(found) > 1 else found:
            if rule.action is ListAction.ALLOW:
                return rule
            first = first or rule
        return first


def _strongest(rules: list[ManualRule]) -> list[ManualRule]:
    locked = [rule for rule in rules if rule.group == FLEET_LOCKED]
    return locked or [rule for rule in rules if rule.group not in FLEET_GROUPS] or rules


_SPLICE = ListAction.SPLICE
_SITES = frozenset({EntryKind.HOST, EntryKind.DOMAIN})
_KEYED = frozenset({EntryKind.URL, EntryKind.PREFIX, EntryKind.HOST, EntryKind.DOMAIN})


def blocks_any_query(rule: ManualRule) -> bool:
    """Returns whether a rule blocks a page with any query and with a trailing slash: servers serve the same page."""
    return rule.kind is EntryKind.URL and rule.action is ListAction.BLOCK and "?" not in rule.pattern


def _page_of(key: str) -> str:
    return key.partition("?")[0].rstrip("/")


def _may_name(rule: ManualRule, matches: Matches, url: Url) -> bool:
    if rule.action is ListAction.ALLOW or matches(SearchedUrl(url)):
        return True
    if rule.kind is EntryKind.REGEX:
        names = {name for literal in guard_regex(rule.pattern).literals for name in hosts_in_text(literal)}
        return not names.isdisjoint(host_suffixes(url.host))
    host = rule.pattern.lower().rpartition("://")[2].partition("/")[0].partition(":")[0]
    return bool(host.strip("*.")) and (glob(host)(url.host) or (host.startswith("*.") and glob(host[2:])(url.host)))


def _identity(rule: ManualRule) -> tuple[EntryKind, str, str, str]:
    return rule.kind, rule.pattern, rule.group, rule.scope


def _compiled(rule: ManualRule) -> Matches | None:
    try:
        return compile_pattern(rule.kind, rule.pattern, allows=rule.action is ListAction.ALLOW)
    except RuleError:
        return None
