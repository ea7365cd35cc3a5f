"""The decision on a connection of which only the host is known: refuse it, pass it through unread, or look at its requests.

What is passed through is never seen again, so that `splice` is said only of hosts of which no page is blocked; and `deny` only
where no URL of the host could be allowed. Everything between is looked at, request by request. A host that any block names,
wholly or in part, is `named`: no client can bring it about that its connections pass unread (proxy/listener/host_policy.py).
"""

import math

from gatewayfilter.engine.adblock.named_sites import PROBED
from gatewayfilter.engine.blocked_parts import blocked_by_rule, blocked_page
from gatewayfilter.engine.deciders import UNKNOWN, Adblock
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.manual_rules import written_pattern
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action, HostAction, HostVerdict, ListAction, ManualRule, Reason, Request, ResourceType, Verdict
from gatewayfilter.urls import Url, canonical_host, parse_url

_NOBODY = HostVerdict(HostAction.INTERCEPT, UNKNOWN)
_NO_HOST = HostVerdict(HostAction.INTERCEPT, UNKNOWN, named=True)
_ELSEWHERE = parse_url("https://another.invalid/")


def decide_host(state: EngineState, host: str, client: str, now: float) -> HostVerdict:
    """Returns what to do with connections to a host.

    ==============================================================  =========
    a person or a list blocks the whole host, nobody allows a part  deny
    a person allows it although something blocks it                 intercept
    anything blocks a page of it, or an Adblock rule the whole      intercept
    a person says splice, or a splice list has it                   splice
    an Adblock rule speaks of a part of it, or a list of digests    intercept
    blocks
    nobody says anything                                            intercept
    ==============================================================  =========

    All but a splice and the last row are `named`. Adblock rules of a part come behind a splice, which somebody chose: they are
    about counting visitors, and most banks have one. Of a list of digests it is not known which hosts it is about.

    The answer is kept with the state for as long as no rule that it rests on expires: browsers open several connections to a
    host, and look-ups for four kinds of request cost more than all else at the door.

    Args:
        state: what is read.
        host: canonical or as a client writes it; what is no host is looked at, always.
        client: the client's address.
        now: Unix seconds.
    """
    known = state.host_verdicts.get(host)
    if known is not None and now < known[0]:
        return known[1]
    try:
        url = parse_url(f"https://{canonical_host(host)}/")
        question = Question(state, Request(url, client=client), now)
    except (UrlError, UnicodeError):
        return _NO_HOST
    manual = _ManualRulesOfHost(state, question)
    verdict, until = _decide(question, manual)
    state.host_verdicts.put(host, (min(manual.until, question.facts.until, until), verdict))
    return verdict


def _decide(question: Question, manual: "_ManualRulesOfHost") -> tuple[HostVerdict, float]:
    """Returns the answer, and until when the entry that it rests on is in force."""
    if (whole := _of_whole_host(question, manual)) is not None:
        return whole, math.inf
    if (page := blocked_page(question.state, question.url, question.now)) is not None:
        return _looked_at(page.verdict), page.until
    if (of_manual := manual.part(ListAction.BLOCK)) is not None:
        return _looked_at(of_manual), math.inf
    if (by_rule := _adblock_verdict(question)) is not None:
        return _looked_at(by_rule), math.inf
    if (spliced := manual.verdict(ListAction.SPLICE) or question.facts.splice) is not None:
        return HostVerdict(HostAction.SPLICE, spliced), math.inf
    if (part := blocked_by_rule(question.state, question.url)) is not None:
        return _looked_at(part), math.inf
    return _NOBODY, math.inf


def _looked_at(because: Verdict) -> HostVerdict:
    return HostVerdict(HostAction.INTERCEPT, UNKNOWN, named=True, because=because)


def _of_whole_host(question: Question, manual: "_ManualRulesOfHost") -> HostVerdict | None:
    blocked = manual.verdict(ListAction.BLOCK) or question.facts.black
    if blocked is None:
        return None
    if (allowed := manual.verdict(ListAction.ALLOW)) is not None:
        return HostVerdict(HostAction.INTERCEPT, allowed, named=True, because=blocked)
    if manual.part(ListAction.ALLOW) is not None:
        return HostVerdict(HostAction.INTERCEPT, blocked, named=True, because=blocked)
    return HostVerdict(HostAction.DENY, blocked, named=True, because=blocked)


_REASONS = {
    ListAction.ALLOW: (Action.ALLOW, Reason.MANUAL_ALLOW),
    ListAction.BLOCK: (Action.BLOCK, Reason.MANUAL_BLOCK),
    ListAction.SPLICE: (Action.ALLOW, Reason.MANUAL_SPLICE),
}


class _ManualRulesOfHost:
    """What people's rules say of a host, by what they mean.

    Attributes:
        until: Unix seconds at which the first of the rules that were found in force expires.
    """

    def __init__(self, state: EngineState, question: Question) -> None:
        self._rules = state.overlay.rules
        self._url = question.url
        self._now = question.now
        self._of_host = question.facts.manual
        self.until = math.inf

    def verdict(self, action: ListAction) -> Verdict | None:
        """Returns the verdict of a rule for the whole host, `None` without one in force."""
        rule = next((rule for rule in self._of_host.rules if rule.action is action and self._in_force(rule)), None)
        return _said(rule, action) if rule is not None else None

    def part(self, action: ListAction) -> Verdict | None:
        """Returns the verdict of a rule that could decide a single URL of the host, `None` without one in force."""
        if not self._rules:
            return None
        rule = next((rule for rule in self._rules.of_parts(self._url, action) if self._in_force(rule)), None)
        return _said(rule, action) if rule is not None else None

    def _in_force(self, rule: ManualRule) -> bool:
        if rule.expires_at is None:
            return True
        if self._now >= rule.expires_at:
            return False
        self.until = min(self.until, rule.expires_at)
        return True


def _said(rule: ManualRule, action: ListAction) -> Verdict:
    return Verdict(*_REASONS[action], rule=written_pattern(rule), detail=rule.comment)


def _adblock_verdict(question: Question) -> Verdict | None:
    """Returns what an Adblock rule says of the host's first page, asked for by another site in several ways."""
    verdicts = (_ADBLOCK.decide(_asked(question, question.url, kind)) for kind in PROBED)
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _asked(question: Question, url: Url, kind: ResourceType) -> Question:
    return Question(question.state, Request(url, _ELSEWHERE, kind, client=question.request.client), question.now)


_ADBLOCK = Adblock()
