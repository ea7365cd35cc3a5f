"""Effects of modifier and cosmetic rules on allowed requests and on their responses.

Source: the filter syntax of uBlock Origin and AdGuard; docs/adblock.md has the policy where they differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from mmap import mmap

from gatewayfilter.engine.adblock.index.cosmetic_index import CosmeticIndex
from gatewayfilter.engine.adblock.index.modifier_index import FoundRule, Group, ModifierIndex
from gatewayfilter.engine.adblock.index.sections import SectionReader
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import Effect
from gatewayfilter.engine.adblock.syntax.modifier_values import RemovedHeader, Stub
from gatewayfilter.engine.adblock.syntax.removeparam import ParamFilter, may_name, param_names, without
from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch
from gatewayfilter.engine.adblock.syntax.stub_names import read_stub
from gatewayfilter.engine.adblock.syntax.url_transform import UriTransform, UrlSkip
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import AppliedRule, Request, RequestChange, ResourceType, ResponseChange
from gatewayfilter.safe_regex.re2 import Substitution
from gatewayfilter.urls import Url

_NOTHING: frozenset[int] = frozenset()
_PAGE_TYPES = frozenset({ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT})

MAX_POLICIES = 32
"""Maximum of `content-security-policy` headers added to one response."""


_NO_CHANGE = ResponseChange()
_NOWHERE = Url("https", "nowhere.invalid", "", "/", "")
"""Used for one look-up in advance, so that rules for every site are compiled before the first page needs them."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_COSMETIC_NAMES = {
    Effect.HIDE: "cosmetic",
    Effect.STYLE: "style",
    Effect.REMOVE: "remove",
    Effect.SCRIPT_TEXT: "html-filter",
    Effect.HEADER: "responseheader",
}


def is_html(headers: Mapping[str, str]) -> bool:
    """Returns whether a response is a page by its headers (lower-case names)."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _HTML


class AdblockEffects:
    """Modifier and cosmetic rules of a compiled form made by `AdblockBuilder.build`.

    Attributes:
        asks_responses: there are rules for responses other than pages.

    Args:
        blob: the compiled form; it must not change while this lives.

    Raises:
        SnapshotError: it is damaged or of another version.
    """

    def __init__(self, blob: bytes | memoryview | mmap) -> None:
        sections = SectionReader(SectionReader(memoryview(blob).toreadonly()).last())
        try:
            self._index = ModifierIndex(sections)
            self._cosmetics = CosmeticIndex(sections)
            self.asks_responses = self._index.asks_responses
        except (IndexError, ValueError) as error:
            raise SnapshotError("the compiled Adblock rules are damaged") from error

    @property
    def rule_count(self) -> int:
        """Number of modifier rules in force."""
        return len(self._index.table)

    def prepare(self, off: frozenset[int]) -> None:
        """Compiles what every page needs with these lists off; takes milliseconds, once."""
        self._cosmetics.prepare(off)
        for kind in (ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT, ResourceType.SCRIPT, ResourceType.XMLHTTPREQUEST):
            request = Request(_NOWHERE, _NOWHERE, kind)
            for group in Group:
                self._may_find(group, request, off)

    def stub(self, request: Request, off: frozenset[int] = _NOTHING) -> str:
        """Returns the canonical name of the stub that replaces a blocked response, "" for none. Pages get none."""
        best = self._best_stub(request, off)
        return "" if best is None else best[0].name

    def may_stub(self, host: str, source: str, kind: ResourceType, off: frozenset[int] = _NOTHING) -> bool:
        """Returns whether `stub` may name one for any request of a type to a host from another, "" for none."""
        if kind is ResourceType.DOCUMENT:
            return False
        return (bool(off) and self._index.table.restores(off)) or self._index.may_find(Group.REDIRECT, host, source, kind)

    def stub_rule(self, request: Request, names: Sequence[str], off: frozenset[int] = _NOTHING) -> AppliedRule | None:
        """Returns the rule that selects this stub, `None` for none; arguments as in `change_request`."""
        best = self._best_stub(request, off)
        return None if best is None else _applied(best[1], names)

    def _best_stub(self, request: Request, off: frozenset[int]) -> tuple[Stub, FoundRule] | None:
        if request.resource_type is ResourceType.DOCUMENT or not self._may_find(Group.REDIRECT, request, off):
            return None
        best: tuple[Stub, FoundRule] | None = None
        for found in _in_force(self._index.find(Group.REDIRECT, request, off)):
            does = found.does
            if isinstance(does, Stub) and (best is None or does.priority > best[0].priority):
                best = does, found
        return best

    def conditional(self, request: Request, names: Sequence[str], off: frozenset[int] = _NOTHING) -> tuple[AppliedRule, ...]:
        """Returns the rules whose effect depends on response headers or the server's address; for explanations."""
        return tuple(_applied(rule, names) for rule in self._index.find_conditional(request, off))

    def change_request(
        self, request: Request, names: Sequence[str], off: frozenset[int] = _NOTHING, *, blocked: bool = False
    ) -> RequestChange | None:
        """Returns what to change in a request before it goes out, `None` for nothing.

        Args:
            request: the request.
            names: of the lists, by source.
            off: lists that do not count.
            blocked: it is blocked, so that only `urlskip` with `-blocked` counts.
        """
        url = request.url
        index = self._index
        concerned, wanted = index.concern(request)
        by_name: list[str] = []
        if wanted and url.query and may_name(url.query, wanted):
            by_name = [name for name in param_names(url.query) if name in wanted]
        certain = not off or not index.table.restores(off)  # what `finds_any` does not find does not match
        if certain and not by_name and not (concerned and index.finds_any(Group.REQUEST, request)):
            return None
        found = _sort_out(index.find(Group.REQUEST, request, off))
        if by_name:
            found.blocks += index.find_params(by_name, request, off)
        rules = found.in_force()
        change = _Change(url)
        for rule in rules:
            if isinstance(rule.does, UrlSkip) and (rule.does.skips_blocked or not blocked):
                change.skip(rule, rule.does)
        if blocked:
            return change.result(request, names)
        for rule in rules:
            change.rewrite(rule)
        return change.result(request, names)

    def change_response(
        self,
        request: Request,
        headers: Mapping[str, str],
        address: str,
        names: Sequence[str],
        off: frozenset[int] = _NOTHING,
        *,
        has_body: bool = True,
        blocks: bool = True,
    ) -> tuple[ResponseChange, AdblockMatch | None, str] | None:
        """Returns the changes to a response, or the rule that blocks it, with its stub; `None` for nothing.

        Args:
            request: the request.
            headers: of the response, lower-case names.
            address: of the server, "" when unknown.
            names: of the lists, by source.
            off: lists that do not count.
            has_body: the response carries the page itself, by its status.
            blocks: rules may block the response.
        """
        rules: list[FoundRule] = []
        by_address = self._index.find_addresses(address, request, off) if address else []
        if by_address or self._may_find(Group.RESPONSE, request, off):
            matching = (*by_address, *self._index.find(Group.RESPONSE, request, off))
            found = [rule for rule in matching if _holds(rule, headers, address)]
            block = _deciding(rule for rule in found if rule.modifier == "response")
            if block is not None and blocks:
                stub = read_stub(block.value)[0] if block.value else ""
                return ResponseChange(rules=(_applied(block, names),)), block.match, stub
            rules = _in_force(rule for rule in found if rule.modifier != "response")
        change = _response_change(rules, names) if rules else _NO_CHANGE
        if request.resource_type in _PAGE_TYPES and self._cosmetics:
            change = self._dress(change, request, names, off, html=has_body and is_html(headers))
        return None if change is _NO_CHANGE or change == _NO_CHANGE else (change, None, "")

    def _dress(
        self, change: ResponseChange, request: Request, names: Sequence[str], off: frozenset[int], *, html: bool
    ) -> ResponseChange:
        """Adds the effects of cosmetic rules on a page; frames get only rules that name their host."""
        page = request.url
        looks = self._cosmetics.looks(page.host, off, page.path + page.query)
        if not html and not looks.headers:  # no rule concerns what is no page
            return change
        switched_off = self.switches(page, off)
        bare = "elemhide" in switched_off
        specific = html and not bare and "specifichide" not in switched_off
        generic = html and not bare and "generichide" not in switched_off and request.resource_type is ResourceType.DOCUMENT
        few, many = self._cosmetics.generic_css(looks.own_chunks, off) if generic else ("", "")
        rules = tuple(
            AppliedRule(names[source], text, line, _COSMETIC_NAMES[effect])
            for source, line, text, effect in looks.rules
            if specific or (effect is Effect.HEADER or (html and effect is Effect.SCRIPT_TEXT))
        )
        return replace(
            change,
            remove_headers=tuple(dict.fromkeys((*change.remove_headers, *looks.headers))),
            edits=change.edits + (looks.edits if html else ()),
            style=(looks.css if specific else "") + few,
            generic_style=many,
            remove_elements=looks.remove if specific else (),
            rules=change.rules + rules,
        )

    def switches(self, page: Url, off: frozenset[int] = _NOTHING) -> dict[str, AdblockMatch]:
        """Returns the page switches (`generichide` …) of exceptions that match a page, each with its rule."""
        request = Request(page, None, ResourceType.DOCUMENT)
        if not self._may_find(Group.PAGE, request, off):
            return {}
        return {found.modifier: found.match for found in reversed(self._index.find(Group.PAGE, request, off))}

    def suspends_generic(self, page: Url, off: frozenset[int] = _NOTHING) -> AdblockMatch | None:
        """Returns the exception that disables generic blocks for subresources of a page (`genericblock`), or `None`."""
        request = Request(page, None, ResourceType.DOCUMENT)
        if not self._may_find(Group.SUSPEND, request, off):
            return None
        found = self._index.find(Group.SUSPEND, request, off)
        return found[0].match if found else None

    def _may_find(self, group: Group, request: Request, off: frozenset[int]) -> bool:
        if off and self._index.table.restores(off):
            return True
        return self._index.finds_any(group, request)


def _applied(rule: FoundRule, names: Sequence[str]) -> AppliedRule:
    match = rule.match
    return AppliedRule(names[match.source], match.rule, match.line, rule.modifier)


class _SortedRules:
    """Rules that match, exceptions apart."""

    __slots__ = ("blocks", "exceptions")

    def __init__(self) -> None:
        self.blocks: list[FoundRule] = []
        self.exceptions: list[FoundRule] = []

    def in_force(self) -> list[FoundRule]:
        """Returns the rules that no exception disables; of rules with the same value, the first."""
        kept: dict[tuple[str, str], FoundRule] = {}
        for rule in self.blocks:
            if not any(_same_kind(rule, exception) and exception.lifts(rule) for exception in self.exceptions):
                kept.setdefault((rule.modifier, rule.value), rule)
        return list(kept.values())


def _sort_out(found: Iterable[FoundRule]) -> _SortedRules:
    sorted_out = _SortedRules()
    for rule in found:
        (sorted_out.exceptions if rule.match.exception else sorted_out.blocks).append(rule)
    return sorted_out


def _in_force(found: Iterable[FoundRule]) -> list[FoundRule]:
    return _sort_out(found).in_force()


def _same_kind(rule: FoundRule, exception: FoundRule) -> bool:
    return rule.modifier.removesuffix("-rule") == exception.modifier.removesuffix("-rule")


def _deciding(found: Iterable[FoundRule]) -> FoundRule | None:
    """Returns the deciding block among response blocks and their exceptions, `None` when none decides."""
    sorted_out = _sort_out(found)
    important = [rule for rule in sorted_out.blocks if rule.match.important]
    if any(exception.match.important for exception in sorted_out.exceptions):
        return None
    if sorted_out.exceptions:
        return important[0] if important else None
    return next(iter(important or sorted_out.blocks), None)


def _holds(rule: FoundRule, headers: Mapping[str, str], address: str) -> bool:
    if rule.header is not None and not rule.header(headers):
        return False
    return rule.address is None or rule.address(address)


class _Change:
    """The state of a request while modifier rules are applied one by one."""

    def __init__(self, url: Url) -> None:
        self._old = url
        self._url = url
        self._headers: dict[str, None] = {}
        self._rules: list[FoundRule] = []

    def skip(self, rule: FoundRule, does: UrlSkip) -> None:
        """Applies `$urlskip`; the first rule that finds a destination decides."""
        if self._url is self._old:
            target = does.target(self._url)
            if target is not None:
                self._url = target
                self._rules.append(rule)

    def rewrite(self, rule: FoundRule) -> None:
        """Removes parameters, transforms the URL, or removes a header."""
        does = rule.does
        if isinstance(does, RemovedHeader):
            self._headers[does.name] = None
            self._rules.append(rule)
            return
        url = self._url
        target: Url | None = None
        if isinstance(does, ParamFilter) and url.query:
            query = without(url.query, does.removes)
            if query != url.query:
                target = Url(url.scheme, url.host, url.port, url.path, query)
        elif isinstance(does, UriTransform):
            target = does.target(url)
        if target is not None:
            self._url = target
            self._rules.append(rule)

    def result(self, request: Request, names: Sequence[str]) -> RequestChange | None:
        """Returns the change, `None` for none."""
        if not self._rules:
            return None
        changed = self._url != self._old
        elsewhere = (self._url.scheme, self._url.netloc) != (self._old.scheme, self._old.netloc)
        return RequestChange(
            url=self._url.text if changed else "",
            redirect=changed and (elsewhere or request.resource_type in _PAGE_TYPES),
            remove_headers=tuple(self._headers),
            rules=tuple(_applied(rule, names) for rule in self._rules),
        )


def _response_change(rules: Iterable[FoundRule], names: Sequence[str]) -> ResponseChange:
    csp: list[str] = []
    permissions: list[str] = []
    headers: list[str] = []
    edits: list[Substitution] = []
    applied: list[AppliedRule] = []
    for rule in rules:
        does = rule.does
        if isinstance(does, RemovedHeader):
            headers.append(does.name)
        elif isinstance(does, Substitution):
            edits.append(does)
        elif isinstance(does, str) and does and len(csp) + len(permissions) < MAX_POLICIES:
            (csp if rule.modifier == "csp" else permissions).append(does)
        else:
            continue
        applied.append(_applied(rule, names))
    return ResponseChange(
        csp=tuple(csp),
        permissions=tuple(permissions),
        remove_headers=tuple(dict.fromkeys(headers)),
        edits=tuple(edits),
        rules=tuple(applied),
    )
