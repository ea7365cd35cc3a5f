"""The deciders, and the one place that says in which order they speak: `DECIDERS`, at the end of this file.

Source: [url-filter, URL filter steps 1-5] for gate, blacklist, whitelist and first-visit-allow.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gatewayfilter.engine.adblock import AdblockMatch
from gatewayfilter.engine.adblock.syntax.parser import is_generic
from gatewayfilter.engine.spellings import has_spellings, spellings_of
from gatewayfilter.engine.state.host_cache import HostFacts, host_keys, work_out
from gatewayfilter.engine.state.list_lookup import KeyAnswer, find_listing, may_be_listed, silent_entries
from gatewayfilter.engine.state.manual_rules import written_pattern
from gatewayfilter.model import Action, AppliedRule, DeciderAnswer, ListAction, ManualRule, Reason, Request, ResourceType, Verdict
from gatewayfilter.urls import Url, digest_of

if TYPE_CHECKING:
    from gatewayfilter.engine.state.engine_state import EngineState

UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)
"""First-visit-allow: what nobody knows may pass, and is looked at."""


class Question:
    """One request on its way through the deciders, with what they find out on the way.

    Attributes:
        state: what this decision reads, from first to last.
        now: Unix seconds.
        facts: what is known of the URL's host.
        maybe: the URL's own keys that passed the Bloom gate; set by the gate.
        exception: the Adblock exception that lifted a block; set by the Adblock decider.
    """

    __slots__ = ("exception", "facts", "maybe", "now", "request", "state", "url")

    def __init__(self, state: "EngineState", request: Request, now: float) -> None:
        self.state = state
        self.request = request
        self.now = now
        self.url = url = request.url
        facts = state.hosts.get(url.netloc)
        if facts is None or now >= facts.until:
            facts = work_out(state, url, now)
            state.hosts.put(url.netloc, facts)
        self.facts: HostFacts = facts
        self.maybe: Sequence[KeyAnswer] = ()
        self.exception: AdblockMatch | None = None

    def prefix_keys(self) -> list[str]:
        """Returns the prefix keys that cover the URL, of the hosts that have prefix entries."""
        return [key for host in self.facts.prefix_hosts for key in self.url.prefix_keys(host)]


class Decider(Protocol):
    """One opinion. Stateless: everything it reads hangs on the question."""

    name: str

    def decide(self, question: Question) -> Verdict | None:
        """Returns the verdict, `None` to leave it to the next decider."""
        ...

    def explain(self, question: Question) -> DeciderAnswer:
        """Returns what it says, asked in its place in the order, whether or not somebody before it has decided."""
        ...


class ManualDecider:
    """People's own rules."""

    name = "person"

    def decide(self, question: Question) -> Verdict | None:
        """A rule that allows beats one that blocks."""
        rules = question.state.overlay.rules
        if not rules:
            return None
        rule = rules.find(question.url, question.facts.manual, question.now)
        return None if rule is None else self._verdict(rule)

    @staticmethod
    def _verdict(rule: ManualRule) -> Verdict:
        allows = rule.action is ListAction.ALLOW
        return Verdict(
            Action.ALLOW if allows else Action.BLOCK,
            Reason.MANUAL_ALLOW if allows else Reason.MANUAL_BLOCK,
            rule=written_pattern(rule),
            detail=rule.comment,
        )

    def explain(self, question: Question) -> DeciderAnswer:
        """Names the rule that decides, and how many others cover the URL."""
        verdict = self.decide(question)
        rules = question.state.overlay.rules
        if verdict is None:
            off = rules.switched_off()
            silent = off.matching(question.url, off.for_host(question.url), question.now)
            hidden = f"; switched off: {', '.join(map(written_pattern, silent[:3]))}" if silent else ""
            return DeciderAnswer(self.name, "miss", f"no rule of a person covers this URL{hidden}")
        others = len(rules.matching(question.url, question.facts.manual, question.now)) - 1
        more = f"; {others} more of people's rules cover it" if others else ""
        return DeciderAnswer(self.name, verdict.action.value, f"a person's rule {verdict.action}s {verdict.rule}{more}", verdict)


class BloomGate:
    """The Bloom filter: keeps what is certainly on no list away from the tables. It has no verdict, only "no" and "maybe"."""

    name = "bloom"

    def decide(self, question: Question) -> None:
        """Notes which of the URL's keys may be listed; those of its host are in the facts already."""
        url = question.url
        state = question.state
        digest = url.digest
        if may_be_listed(state, digest):
            question.maybe = [KeyAnswer(url.key, digest)]
        if question.facts.prefix_hosts:
            answers = [KeyAnswer(key, digest_of(key)) for key in question.prefix_keys()]
            question.maybe = [*question.maybe, *(answer for answer in answers if may_be_listed(state, answer.digest))]

    def explain(self, question: Question) -> DeciderAnswer:
        """Counts the keys, those of the host included."""
        keys = all_keys(question)
        maybe = [key for key in keys if may_be_listed(question.state, digest_of(key))]
        if not maybe:
            return DeciderAnswer(self.name, "miss", f"none of {len(keys)} keys of this URL is on any list")
        return DeciderAnswer(self.name, "maybe", f"{len(maybe)} of {len(keys)} keys may be listed: {', '.join(maybe)}")


class ListTable:
    """A bitmap hash table with what was learned since: the blacklist or the whitelist."""

    def __init__(self, name: str, action: ListAction) -> None:
        self.name = name
        self._action = action
        self._blocks = action is ListAction.BLOCK

    def decide(self, question: Question) -> Verdict | None:
        """Host and domain entries first (they are at hand), then the URL itself, then the longest prefix."""
        facts = question.facts
        verdict = facts.black if self._blocks else facts.white
        if verdict is not None:
            return verdict
        for passed in question.maybe:
            listing = find_listing(question.state, passed.key, passed.digest, self._action, question.now)
            if listing is not None:
                return listing.verdict
        return None

    def explain(self, question: Question) -> DeciderAnswer:
        """Names list and entry, or the entries that would count if they were not expired or switched off."""
        verdict = self.decide(question)
        if verdict is not None:
            category = f" ({verdict.category})" if verdict.category else ""
            detail = f": {verdict.detail}" if verdict.detail else ""
            said = f"{verdict.source_list}{category} lists {verdict.rule}{detail}"
            return DeciderAnswer(self.name, verdict.action.value, said, verdict)
        passed = [(key, digest) for key in all_keys(question) if may_be_listed(question.state, digest := digest_of(key))]
        if not passed:
            return DeciderAnswer(self.name, "skipped", "the Bloom gate says that no list has it")
        silent = [
            sentence
            for key, digest in passed
            for sentence in silent_entries(question.state, key, digest, self._action, question.now)
        ]
        if silent:
            return DeciderAnswer(self.name, "pass", "; ".join(silent))
        return DeciderAnswer(self.name, "miss", f"no key of this URL is on the {self.name}")


class Adblock:
    """Rules in Adblock syntax."""

    name = "adblock"

    def decide(self, question: Question) -> Verdict | None:
        """Blocks what a rule blocks; an exception only lifts such a block, it allows nothing that a list speaks of."""
        state = question.state
        match = state.adblock.match(question.request, state.off_sources)
        if match is None:
            return None
        if match.exception:
            question.exception = match
            return None
        page = question.request.source
        suspended = page and state.effects.suspends_generic(page, state.off_sources)
        if suspended:
            match = _specific_block(question)
            if match is None:
                question.exception = suspended
                return None
        return adblock_verdict(state, match, state.effects.stub(question.request, state.off_sources))

    def explain(self, question: Question) -> DeciderAnswer:
        """Names the rule that decides, its list and line, every other rule that matches, and what rules would change."""
        verdict = self.decide(question)
        state = question.state
        matches = state.adblock.match_all(question.request)
        on = [match for match in matches if match.source not in state.off_sources]
        off = len(matches) - len(on)
        rest = f"; {off} matching rules belong to categories that are switched off" if off else ""
        rest += "".join(f"; {sentence}" for sentence in describe_changes(state, question.request, verdict))
        if verdict is not None:
            stub = f", the stub {verdict.stub} stands in for it" if verdict.stub else ""
            others = _name_others(state, on, verdict)
            said = f"{verdict.rule} of {verdict.source_list}, line {verdict.line} blocks it{stub}{others}{rest}"
            return DeciderAnswer(self.name, "block", said, verdict)
        if question.exception is not None:
            verdict = adblock_verdict(state, question.exception)
            others = _name_others(state, on, verdict)
            said = f"the exception {verdict.rule} of {verdict.source_list}, line {verdict.line}, lifts a block{others}{rest}"
            return DeciderAnswer(self.name, "pass", said, verdict)
        others = _name_others(state, on, None)
        return DeciderAnswer(self.name, "pass" if off else "miss", f"no rule in force blocks it{others}{rest}")


_MAX_NAMED = 20
"""Rules that an explanation names besides the one that decides."""


def _specific_block(question: Question) -> AdblockMatch | None:
    """Returns the first block that names the page it works on, where an exception suspends all others."""
    state = question.state
    for match in state.adblock.match_all(question.request):
        if not match.exception and match.source not in state.off_sources and not is_generic(match.rule):
            return match
    return None


def _name_others(state: "EngineState", matches: Sequence[AdblockMatch], verdict: Verdict | None) -> str:
    """Returns a text with every rule that matches but the one that decided."""
    winner = ("", 0) if verdict is None else (verdict.source_list, verdict.line)
    others = [match for match in matches if (state.sources[match.source].name, match.line) != winner]
    if not others:
        return ""
    named = ", ".join(
        f"{match.rule} ({state.sources[match.source].name}, line {match.line}{', important' if match.important else ''})"
        for match in others[:_MAX_NAMED]
    )
    more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
    return f"; also matching: {named}{more}"


def describe_changes(state: "EngineState", request: Request, verdict: Verdict | None) -> list[str]:
    """Returns sentences on what rules would change in a request and in its response, headers unknown: `text/html`."""
    blocked = verdict is not None
    effects, names, off = state.effects, state.source_names, state.off_sources
    said: list[str] = []
    change = effects.change_request(request, names, off, blocked=blocked)
    if change is not None:
        what = [f"asks for {change.url} instead"] if change.url else []
        what += [f"leaves out {', '.join(change.remove_headers)}"] if change.remove_headers else []
        said.append(f"it {' and '.join(what)}: {_name_applied(change.rules)}")
    found = None if blocked else effects.change_response(request, {"content-type": "text/html"}, "", names, off)
    if found is not None and found[0].rules:
        said.append(f"of a page it would change the response: {_name_applied(found[0].rules)}")
    if blocked:
        stub = effects.stub_rule(request, names, off)
        return [*said, f"the stub is named by {_name_applied([stub])}"] if stub is not None else said
    late = effects.conditional(request, names, off)
    if late:
        said.append(f"it hangs on the response's headers or its server's address: {_name_applied(late)}")
    if request.resource_type in {ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT}:
        for name, match in effects.switches(request.url, off).items():
            said.append(f"{name} on this page: {match.rule} ({names[match.source]}, line {match.line})")
    return said


def _name_applied(rules: Sequence[AppliedRule]) -> str:
    named = [f"{rule.rule} ({rule.modifier}, {rule.source_list}, line {rule.line})" for rule in rules[:_MAX_NAMED]]
    return ", ".join(named)


def adblock_verdict(state: "EngineState", match: AdblockMatch, stub: str = "") -> Verdict:
    """Returns what a rule that decides has to say, with the name of the stub that stands in for what it blocks."""
    key = (match.source, match.line, stub)
    verdict = state.adblock_verdicts.get(key)
    if verdict is None:
        source = state.sources[match.source]
        allows = match.exception
        verdict = Verdict(
            Action.ALLOW if allows else Action.BLOCK,
            Reason.ADBLOCK_EXCEPTION if allows else Reason.ADBLOCK,
            source.name,
            match.rule,
            match.line,
            source.category,
            unknown=allows,
            stub=stub,
        )
        state.adblock_verdicts.put(key, verdict)
    return verdict


class Spellings:
    """What blocks a URL blocks its other spellings as well (spellings.py); what allows one says nothing of the others."""

    name = "spellings"

    def decide(self, question: Question) -> Verdict | None:
        """Blocks what another spelling of the URL would be blocked for, and a listed page with a slash behind it."""
        url = question.url
        if url.path.endswith("/") and (verdict := self._without_slash(question)) is not None:
            return verdict
        if not has_spellings(url):  # nearly all
            return None
        for other in spellings_of(url):
            verdict = self._decide_other(question, other)
            if verdict is not None:
                return verdict
        return None

    @staticmethod
    def _without_slash(question: Question) -> Verdict | None:
        url = question.url
        if not url.path.endswith("/") or not url.path.strip("/"):
            return None
        path, mark, query = url.key.partition("?")
        key = f"{path.rstrip('/')}{mark}{query}"
        digest = digest_of(key)
        if not may_be_listed(question.state, digest):
            return None
        listing = find_listing(question.state, key, digest, ListAction.BLOCK, question.now)
        return None if listing is None else listing.verdict

    def _decide_other(self, question: Question, other: Url) -> Verdict | None:
        asked = Question(question.state, replace(question.request, url=other), question.now)
        for decider in _BLOCKING:
            if decider.name == Adblock.name and question.exception is not None:
                continue  # an exception lifts such blocks from the URL as it is
            verdict = decider.decide(asked)
            if verdict is not None:
                return verdict if verdict.blocked else None
        return self._without_slash(asked)

    def explain(self, question: Question) -> DeciderAnswer:
        """Names the spellings, and what blocks one of them."""
        verdict = self.decide(question)
        others = [other.text for other in spellings_of(question.url)]
        if verdict is not None:
            by = f" of {verdict.source_list}" if verdict.source_list else ""
            return DeciderAnswer(self.name, "block", f"another spelling of this URL is blocked: {verdict.rule}{by}", verdict)
        if not others:
            return DeciderAnswer(self.name, "miss", "this URL has one spelling")
        return DeciderAnswer(self.name, "miss", f"nothing blocks other spellings of this URL: {', '.join(others)}")


class Unknown:
    """Nobody had an opinion."""

    name = "unknown"

    def decide(self, question: Question) -> Verdict:
        """Allows, and marks the URL for the frontier."""
        if question.exception is not None:
            return adblock_verdict(question.state, question.exception)
        return UNKNOWN

    def explain(self, question: Question) -> DeciderAnswer:
        """Says what becomes of a URL that gets this far."""
        verdict = self.decide(question)
        return DeciderAnswer(self.name, "allow", "what no list knows is allowed, and offered to the crawler", verdict)


def all_keys(question: Question) -> list[str]:
    """Returns every list key that covers the URL: its own, its prefixes where its host has any, its host's."""
    return [question.url.key, *question.prefix_keys(), *host_keys(question.url)]


_BLOCKING: tuple[Decider, ...] = (ManualDecider(), BloomGate(), ListTable("blacklist", ListAction.BLOCK), Adblock())
"""What other spellings of a URL are asked of, in the order of `DECIDERS`."""

DECIDERS: tuple[Decider, ...] = (
    # A person knows better than any list, and must be able to undo any list at once. Allow beats block among their rules.
    ManualDecider(),
    # Most URLs are on no list: the gate finds that out without touching the tables. It never decides, so that it has to
    # stand only before the tables; it stands here, and not after Adblock, because the blacklist comes first.
    BloomGate(),
    # Harm outranks everything that lists say. Before Adblock: its exceptions ("this page breaks without that script")
    # are about advertising and must never open a harmful site.
    ListTable("blacklist", ListAction.BLOCK),
    # Before the whitelist, which speaks of harm only: a harmless page's advertisements are blocked all the same.
    Adblock(),
    # What was not blocked as it is spelled may be blocked by another spelling of the same page. Before the whitelist: a site that
    # is on it has blocked pages all the same.
    Spellings(),
    # Known to be harmless: nothing to crawl.
    ListTable("whitelist", ListAction.ALLOW),
    # The rest: first-visit-allow.
    Unknown(),
)
"""The order in which the deciders are asked; the first verdict counts. Each has a reason for its place."""
