"""The deciders, and their order: `DECIDERS`, at the end of this file.

The output of `check` for each of them is in explanations.py.

Source: [url-filter, URL filter steps 1-5] for gate, blacklist, whitelist and first-visit-allow.
"""

from dataclasses import replace
from typing import Protocol

from gatewayfilter.engine.adblock.syntax.parser import is_generic
from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch
from gatewayfilter.engine.path_spellings import spellings_of
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.list_lookup import KeyAnswer, find_listing, may_be_listed
from gatewayfilter.engine.state.manual_rules import written_pattern
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.model import Action, ListAction, ManualRule, Reason, Verdict
from gatewayfilter.urls import Url, digest_of

_MAYBE = BloomAnswer.MAYBE

UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)
"""First-visit-allow: a URL on no list may pass, and is queued for classification."""


class Decider(Protocol):
    """One step of the decision. Stateless: all input is in the question."""

    name: str

    def decide(self, question: Question) -> Verdict | None:
        """Returns the verdict, `None` to leave it to the next decider."""
        ...


class ManualDecider:
    """Manual rules."""

    name = "manual"

    def decide(self, question: Question) -> Verdict | None:
        """A rule that allows beats one that blocks."""
        rules = question.lists.rules
        if rules is None:
            return None
        rule = rules.find(question.url, question.facts.manual, question.now)
        return None if rule is None else manual_verdict(rule)


def manual_verdict(rule: ManualRule, scope: str = "") -> Verdict:
    """Returns the verdict of a manual rule; `scope` names the clients that it is for, `""` for everybody."""
    allows = rule.action is ListAction.ALLOW
    return Verdict(
        Action.ALLOW if allows else Action.BLOCK,
        Reason.MANUAL_ALLOW if allows else Reason.MANUAL_BLOCK,
        scope,
        rule=written_pattern(rule),
        detail=rule.comment,
    )


class BloomGate:
    """The Bloom filter: spares table look-ups for URLs that are certainly on no list. No verdict, only "no" or "maybe"."""

    name = "bloom"

    def decide(self, question: Question) -> None:
        """Records which of the URL's keys may be listed; those of its host are in the host's facts already."""
        url = question.url
        lists = question.lists
        digest = url.digest
        if lists.bloom.ask(digest) is _MAYBE or digest in lists.learned:  # `may_be_listed`, inlined
            question.maybe = [KeyAnswer(url.key, digest)]
        if question.facts.prefix_hosts:
            answers = [KeyAnswer(key, digest_of(key)) for key in question.prefix_keys()]
            question.maybe = [*question.maybe, *(answer for answer in answers if may_be_listed(lists, answer.digest))]


class ListTable:
    """A bitmap hash table and the entries learned since: the blacklist or the whitelist.

    Attributes:
        action: what being on the list means.
    """

    def __init__(self, name: str, action: ListAction) -> None:
        self.name = name
        self.action = action
        self._blocks = action is ListAction.BLOCK

    def decide(self, question: Question) -> Verdict | None:
        """Host and domain entries first (they are cached), then the URL itself, then the longest prefix."""
        facts = question.facts
        verdict = facts.black if self._blocks else facts.white
        if verdict is not None:
            return verdict
        if question.maybe:
            for passed in question.maybe:
                listing = find_listing(question.lists, passed.key, passed.digest, self.action, question.now)
                if listing is not None:
                    return listing.verdict
        return None


class Adblock:
    """Rules in Adblock syntax."""

    name = "adblock"

    def decide(self, question: Question) -> Verdict | None:
        """Blocks by rules; an exception only cancels such a block, it allows nothing that is on a blacklist."""
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


def _specific_block(question: Question) -> AdblockMatch | None:
    """Returns the first block that names the pages it applies to, where an exception disables all others."""
    state = question.state
    for match in state.adblock.match_all(question.request):
        if not match.exception and match.source not in state.off_sources and not is_generic(match.rule):
            return match
    return None


def adblock_verdict(state: EngineState, match: AdblockMatch, stub: str = "") -> Verdict:
    """Returns the verdict of the deciding rule, with the name of the stub that replaces the blocked response."""
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
    """Other spellings of a URL (path_spellings.py): a block covers all spellings, an allowing entry only its own."""

    name = "spellings"

    def decide(self, question: Question) -> Verdict | None:
        """Blocks a URL if another spelling of it would be blocked, and a listed page with a trailing slash."""
        url = question.url
        path = url.path
        if path.endswith("/") and (verdict := self._without_slash(question)) is not None:
            return verdict
        if not (";" in path or "//" in path or "./" in path or path.endswith(".") or "%" in url.text):
            return None  # nearly all: the first searches of `has_spellings`, inlined
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
        if not may_be_listed(question.lists, digest):
            return None
        listing = find_listing(question.lists, key, digest, ListAction.BLOCK, question.now)
        return None if listing is None else listing.verdict

    def _decide_other(self, question: Question, other: Url) -> Verdict | None:
        asked = Question(question.state, replace(question.request, url=other), question.now)
        for decider in _BLOCKING:
            if decider.name == Adblock.name and question.exception is not None:
                continue  # an exception cancels such blocks for the URL as it is
            verdict = decider.decide(asked)
            if verdict is not None:
                return verdict if verdict.blocked else None
        return self._without_slash(asked)


class Unknown:
    """URLs on no list: first-visit-allow."""

    name = "unknown"

    def decide(self, question: Question) -> Verdict:
        """Allows, and marks the URL for the frontier."""
        if question.exception is not None:
            return adblock_verdict(question.state, question.exception)
        return UNKNOWN


_BLOCKING: tuple[Decider, ...] = (ManualDecider(), BloomGate(), ListTable("blacklist", ListAction.BLOCK), Adblock())
"""The deciders that check other spellings of a URL, in the order of `DECIDERS`."""

DECIDERS: tuple[Decider, ...] = (
    # Operators must be able to override any list at once. Allow beats block among manual rules.
    ManualDecider(),
    # Most URLs are on no list: the gate detects that without touching the tables. It never decides, so it only has to
    # precede the tables; its place is here, and not after Adblock, because the blacklist comes first.
    BloomGate(),
    # Harmful sites outrank all other lists. Before Adblock: its exceptions ("this page breaks without that script")
    # are about advertising and must never open a harmful site.
    ListTable("blacklist", ListAction.BLOCK),
    # Before the whitelist, which is about harm only: advertisements on a harmless page are still blocked.
    Adblock(),
    # A URL that was not blocked as written may be blocked under another spelling. Before the whitelist: a whitelisted
    # site may have blocked pages.
    Spellings(),
    # Known to be harmless: not queued for crawling.
    ListTable("whitelist", ListAction.ALLOW),
    # The rest: first-visit-allow.
    Unknown(),
)
"""The order of the deciders; the first verdict counts. The reason for each place is beside it."""
