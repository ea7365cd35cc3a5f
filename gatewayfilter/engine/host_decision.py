"""The decision on a connection by its host name: deny it, splice it (pass it through unread), or intercept its requests.

Spliced connections cannot be filtered later, so the result is `splice` only for hosts without a blocked page, and `deny` only
where no URL of the host could be allowed. All other connections are intercepted and decided by request. A host that any block
names, wholly or in part, is `named`: no client behaviour makes its connections pass unread (proxy/listener/host_policy.py).
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
    a manual rule or a list blocks all of it, none allows a part    deny
    a manual rule allows it, something else blocks it               intercept
    something blocks a page of it, or an Adblock rule all of it     intercept
    a manual rule or a splice list splices it                       splice
    an Adblock rule covers a part of it, or a digest list blocks    intercept
    no entry covers it                                              intercept
    ==============================================================  =========

    All but a splice and the last row are `named`. Adblock rules for a part rank below a splice entry, which was set on purpose:
    they are about visitor counters, and most banks have one. The hosts of a digest list are not known.

    The result is cached in the state until a rule that it is based on expires: browsers open several connections to a host, and
    look-ups for four kinds of request are the largest cost of accepting a connection.

    Args:
        state: of the engine.
        host: canonical or as sent by a client; text that is not a host is always intercepted.
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
    """Returns the result, and the time until which the entry that it is based on is in force."""
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
    """The manual rules that cover a host, by action.

    Attributes:
        until: Unix seconds of the first expiry among the rules found in force.
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
    """Returns the Adblock verdict on the host's first page, requested by another site as several resource types."""
    verdicts = (_ADBLOCK.decide(_asked(question, question.url, kind)) for kind in PROBED)
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _asked(question: Question, url: Url, kind: ResourceType) -> Question:
    return Question(question.state, Request(url, _ELSEWHERE, kind, client=question.request.client), question.now)


_ADBLOCK = Adblock()
