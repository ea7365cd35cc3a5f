"""The decision on a connection of which only the host is known: refuse it, pass it through unread, or look at its requests.

What is passed through is never seen again, so that `splice` is said only of hosts that nobody's block names, the host itself or
any part of it; and `deny` only where no URL of the host could be allowed. Everything between is looked at, request by request.
"""

import math
from typing import TYPE_CHECKING

from gatewayfilter.engine.deciders import UNKNOWN, Adblock, Question
from gatewayfilter.engine.person_rules import written_pattern
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action, HostAction, HostVerdict, ListAction, PersonRule, Reason, Request, ResourceType, Verdict
from gatewayfilter.urls import Url, parse_url

if TYPE_CHECKING:
    from gatewayfilter.engine.engine_state import EngineState

_NOBODY = HostVerdict(HostAction.INTERCEPT, UNKNOWN)
_ELSEWHERE = parse_url("https://another.invalid/")
_ASKED_AS = (ResourceType.DOCUMENT, ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.OTHER)
"""As what the host's first page is held against Adblock rules, from another site: a rule for the whole host fits one of them."""


def decide_host(state: "EngineState", host: str, client: str, now: float) -> HostVerdict:
    """Returns what to do with connections to a host.

    ==============================================================  =========
    a person or a list blocks the whole host, nobody allows a part  deny
    a person allows it although something blocks it                 intercept
    something blocks a part of it, or an Adblock rule names it      intercept
    a person says splice, or a splice list has it                   splice
    nobody says anything                                            intercept
    ==============================================================  =========

    The answer is kept with the state for as long as no rule that it rests on expires: browsers open several connections to a
    host, and look-ups for four kinds of request cost more than all else at the door.

    Args:
        state: what is read.
        host: canonical or as a client writes it; not a host at all is looked at.
        client: the client's address.
        now: Unix seconds.
    """
    known = state.host_verdicts.get(host)
    if known is not None and now < known[0]:
        return known[1]
    try:
        url = parse_url(f"https://{host}/")
        question = Question(state, Request(url, client=client), now)
    except (UrlError, UnicodeError):
        return _NOBODY
    person = _Person(state, question)
    verdict = _decide(question, person)
    state.host_verdicts.put(host, (min(person.until, question.facts.until), verdict))
    return verdict


def _decide(question: Question, person: "_Person") -> HostVerdict:
    blocked = person.verdict(ListAction.BLOCK) or question.facts.black
    if blocked is not None:
        if (allowed := person.verdict(ListAction.ALLOW)) is not None:
            return HostVerdict(HostAction.INTERCEPT, allowed, named=True)
        if person.speaks_of_parts(ListAction.ALLOW):
            return HostVerdict(HostAction.INTERCEPT, blocked, named=True)
        return HostVerdict(HostAction.DENY, blocked, named=True)
    if question.facts.prefix_hosts or person.speaks_of_parts(ListAction.BLOCK) or _adblock_names(question):
        return HostVerdict(HostAction.INTERCEPT, UNKNOWN, named=True)
    spliced = person.verdict(ListAction.SPLICE) or question.facts.splice
    return HostVerdict(HostAction.SPLICE, spliced) if spliced is not None else _NOBODY


_REASONS = {
    ListAction.ALLOW: (Action.ALLOW, Reason.PERSON_ALLOW),
    ListAction.BLOCK: (Action.BLOCK, Reason.PERSON_BLOCK),
    ListAction.SPLICE: (Action.ALLOW, Reason.PERSON_SPLICE),
}


class _Person:
    """What people's rules say of a host, by what they mean.

    Attributes:
        until: Unix seconds at which the first of the rules that were found in force expires.
    """

    def __init__(self, state: "EngineState", question: Question) -> None:
        self._rules = state.overlay.rules
        self._url = question.url
        self._now = question.now
        self._of_host = question.facts.person
        self.until = math.inf

    def verdict(self, action: ListAction) -> Verdict | None:
        """Returns the verdict of a rule for the whole host, `None` without one in force."""
        rule = next((rule for rule in self._of_host.rules if rule.action is action and self._in_force(rule)), None)
        if rule is None:
            return None
        return Verdict(*_REASONS[action], rule=written_pattern(rule), detail=rule.comment)

    def speaks_of_parts(self, action: ListAction) -> bool:
        """Returns whether a rule that allows or blocks could decide a single URL of the host."""
        return bool(self._rules) and any(self._in_force(rule) for rule in self._rules.of_parts(self._url, action))

    def _in_force(self, rule: PersonRule) -> bool:
        if rule.expires_at is None:
            return True
        if self._now >= rule.expires_at:
            return False
        self.until = min(self.until, rule.expires_at)
        return True


def _adblock_names(question: Question) -> bool:
    url: Url = question.url
    return any(_ADBLOCK.decide(_asked(question, url, kind)) is not None for kind in _ASKED_AS)


def _asked(question: Question, url: Url, kind: ResourceType) -> Question:
    return Question(question.state, Request(url, _ELSEWHERE, kind, client=question.request.client), question.now)


_ADBLOCK = Adblock()
