"""The decision on a request or connection of a network with policies: what outranks the deciders, then the deciders.

The order: a pause; manual rules of the client, of its group, of everybody; a schedule that blocks everything, or the policy;
blocked services; search terms; the deciders, over the lists that the policy selects. What a pause leaves blocked is allowed by a
manual rule, as without a pause.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gatewayfilter.engine.approved_parts import lifted
from gatewayfilter.engine.connection_treatment import treated_connection
from gatewayfilter.engine.deciders import DECIDERS, UNKNOWN, ListTable, ManualDecider, manual_verdict
from gatewayfilter.engine.host_decision import decide_host
from gatewayfilter.engine.path_spellings import has_spellings, spellings_of
from gatewayfilter.engine.policies.client_policies import ClientPolicy
from gatewayfilter.engine.policies.effective_policy import EffectivePolicy
from gatewayfilter.engine.policies.request_rules import RequestRules
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.snapshot.learned_records import learned_source
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.list_lookup import find_learned
from gatewayfilter.engine.state.manual_rules import HostRules, ManualRules
from gatewayfilter.errors import UrlError
from gatewayfilter.model import (
    DOUBTFUL,
    FLEET_LOCKED,
    Action,
    CategoryAction,
    Enforcement,
    HostAction,
    HostVerdict,
    KnownRequest,
    ListAction,
    Pause,
    Reason,
    Request,
    UnknownAction,
    Verdict,
)
from gatewayfilter.urls import Url, canonical_host, digest_of, parse_url

_BLOCK: Final = Action.BLOCK
_WHITELIST: Final = Reason.WHITELIST
_HARMLESS: Final = learned_source(ListAction.ALLOW, "").name
_DOUBT: Final = re.compile(r"not blocked, (?:in doubt|waits for a person): ([\w-]+)")
"""The beginning of the evidence of a learned page that is allowed but was not found harmless."""
_MANUAL: Final = ManualDecider().decide
_BLACKLIST: Final = ListTable("blacklist", ListAction.BLOCK).decide
_REST: Final[tuple[Callable[[Question], Verdict | None], ...]] = tuple(
    decider.decide for decider in DECIDERS if not isinstance(decider, ManualDecider)
)
_UNKNOWN: Final = {action.value: replace(UNKNOWN, unknown_action=action) for action in UnknownAction}


def in_force(state: EngineState, client: str, user: str, now: float) -> tuple[ClientPolicy, EffectivePolicy]:
    """Returns a client, and what is in force for it; the state has policies."""
    assert state.policies is not None
    found = state.policies.find(client, user)
    return found, found.timeline.at(now)


def view_of(state: EngineState, number: int) -> EngineState:
    """Returns the view of the lists with a number of an `EffectivePolicy`."""
    return state if number < 0 else state.views[number]


def view_with_rules(state: EngineState, request: Request, now: float) -> tuple[EngineState, RequestRules | None]:
    """Returns the view of the lists that count for a request, and the rules that act on it."""
    effective = in_force(state, request.client, request.user, now)[1]
    return view_of(state, effective.lists_number), effective.requests


def enforcement_on(state: EngineState, host: str, client: str, user: str, now: float) -> Enforcement | None:
    """Returns what a client's policy changes in requests to a host, `None` for nothing."""
    if state.policies is None:
        return None
    rules = in_force(state, client, user, now)[1].requests
    found = rules.hosts.get(host) if rules is not None else None
    return found.enforced if found is not None else None


def decide_by_policy(state: EngineState, request: Request, now: float) -> Verdict:
    """Returns the verdict on a request of a network with policies.

    Raises:
        UnicodeError: the URL contains characters that no URL can have.
    """
    policies = state.policies
    assert policies is not None
    # `in_force` and `view_of`, inlined: this runs for each request.
    client = (None if request.user else policies.known.get(request.client)) or policies.find(request.client, request.user)
    timeline = client.timeline
    effective = timeline.effective[bisect_right(timeline.instants, now)]
    if state.adblock.names_clients:
        request = known_request(client, request)
    number = effective.lists_number
    question = Question(state if number < 0 else state.views[number], request, now)
    if effective.pause is not None:
        return _decide_paused(state, client, question, effective.pause)
    if state.overlay.rules.scoped and (verdict := scoped_verdict(state, client, question)) is not None:
        return verdict
    if question.lists.rules is not None and (verdict := _MANUAL(question)) is not None:
        return verdict
    verdict = effective.block_all
    if verdict is None and effective.services and (services := question.facts.services):
        verdict = blocked_service(effective, services)
    if verdict is None:
        rules = effective.requests
        if rules is not None and request.url.host in rules.hosts:
            verdict = rules.judge_search(request.url)
        if verdict is None:
            verdict = decide_by_lists(state, effective, question)
    if verdict.action is _BLOCK and (part := lifted(state, client.scopes, request, verdict, now)) is not None:
        return part
    return verdict


def known_request(client: ClientPolicy, request: Request) -> Request:
    """Returns a request with the names of its client and group."""
    name = client.client.name if client.client is not None else ""
    url, source, kind, method = request.url, request.source, request.resource_type, request.method
    return KnownRequest(url, source, kind, method, request.client, request.user, (name, client.group))


def blocked_service(effective: EffectivePolicy, services: Sequence[str]) -> Verdict | None:
    """Returns the verdict that blocks a URL of these services, `None` when none does.

    The first one that is blocked or allowed on purpose counts: a part of a service may be allowed while the rest is blocked.
    """
    known = effective.services
    for name in services:
        if name in known:
            return known[name]
    return None


def decide_by_lists(state: EngineState, effective: EffectivePolicy, question: Question) -> Verdict:
    """Returns the verdict of the deciders after manual rules, as the policy treats it."""
    for decide in _REST:  # `_by_deciders`, inlined
        verdict = decide(question)
        if verdict is not None:
            break
    else:
        raise AssertionError("the last decider has an answer to everything")
    if verdict.action is _BLOCK:
        schedule = effective.scheduled.get(verdict.category) if effective.scheduled else None
        if schedule is None:
            return effective.used_up.get(verdict.category, verdict) if effective.used_up else verdict
        return _with_reason(state, verdict, Reason.SCHEDULE, schedule)
    if verdict.reason is _WHITELIST and effective.requests is not None and effective.requests.blocks_doubt:
        return doubtful_page(question, verdict) or verdict
    if verdict.unknown:
        if effective.watched_number >= 0 and (watched := _watch(state, effective, question)) is not None:
            return watched
        if effective.unknown is not None:
            return (
                _UNKNOWN[effective.unknown._value_] if verdict is UNKNOWN else replace(verdict, unknown_action=effective.unknown)
            )
    return verdict


def _decide_paused(state: EngineState, client: ClientPolicy, question: Question, pause: Pause) -> Verdict:
    """Returns a block by lists that the pause does not lift, unless a manual rule allows the URL, else the pause."""
    verdict = _by_deciders(question)
    if not verdict.blocked:
        return paused_verdict(pause)
    usual = Question(state, question.request, question.now)
    rule = scoped_verdict(state, client, usual) if state.overlay.rules.scoped else None
    if rule is None and usual.lists.rules is not None:
        rule = _MANUAL(usual)
    return verdict if rule is None or rule.blocked else rule


def _by_deciders(question: Question) -> Verdict:
    for decide in _REST:
        verdict = decide(question)
        if verdict is not None:
            return verdict
    raise AssertionError("the last decider has an answer to everything")


def paused_verdict(pause: Pause) -> Verdict:
    """Returns the verdict of a pause."""
    return Verdict(Action.ALLOW, Reason.PAUSE, rule=pause.name)


def doubtful_page(question: Question, verdict: Verdict) -> Verdict | None:
    """Returns the block of a page that the classifier allowed but left in doubt, `None` for another allowed one."""
    lists = question.lists
    entry = find_learned(lists, digest_of(verdict.rule)) if verdict.source_list == _HARMLESS else None
    if entry is None or entry.certainty is None or entry.certainty < DOUBTFUL.least:
        return None
    found = _DOUBT.match(entry.detail)
    category = found[1] if found is not None else ""
    if category in lists.off_categories:
        return None
    return replace(verdict, action=_BLOCK, reason=Reason.LEARNED, category=category, detail=entry.detail)


def _watch(state: EngineState, effective: EffectivePolicy, question: Question) -> Verdict | None:
    """Returns the verdict on a URL that a list of an allowed category contains, `None` for any other."""
    view = state.views[effective.watched_number]
    if not question.maybe:  # the same in every view: most URLs need no more than what is known of their host
        facts = view.hosts.young.get(question.url.netloc)
        if facts is not None and facts.black is None and question.now < facts.until:
            return None
    asked = Question(view, question.request, question.now)
    asked.maybe = question.maybe
    listed = _BLACKLIST(asked)
    if listed is None:
        return None
    reviewed = effective.actions.get(listed.category) is CategoryAction.REVIEW
    return _with_reason(state, listed, Reason.POLICY_REVIEW if reviewed else Reason.POLICY)


def _with_reason(state: EngineState, listed: Verdict, reason: Reason, schedule: str = "") -> Verdict:
    """Returns the block by a list as a schedule's, or as allowed by the policy; kept, as making it takes microseconds."""
    key = (id(listed), reason._value_, schedule)  # the same object for a host; a hash of its fields takes as long as making it
    kept = state.policy_verdicts.get(key)
    if kept is not None and kept[0] is listed:
        return kept[1]
    if schedule:
        verdict = replace(listed, reason=reason, detail=f"{schedule} blocks {listed.category}")
    else:
        verdict = replace(listed, action=Action.ALLOW, reason=reason)
    state.policy_verdicts.put(key, (listed, verdict))
    return verdict


def scoped_verdict(state: EngineState, client: ClientPolicy, question: Question) -> Verdict | None:
    """Returns the verdict of the manual rules for the client alone, then of those for its group.

    A rule for everybody that a fleet's publisher locked outranks them.
    """
    if state.overlay.rules.locks and is_locked(question):
        return None
    for scope, rules in _scopes(state, client):
        verdict = verdict_of_scope(state, scope, rules, question)
        if verdict is not None:
            return verdict
    return None


def is_locked(question: Question) -> bool:
    """Returns whether a rule that a fleet's publisher locked decides about a request."""
    rules = question.lists.rules
    rule = rules.find(question.url, question.facts.manual, question.now) if rules is not None else None
    return rule is not None and rule.group == FLEET_LOCKED


def verdict_of_scope(state: EngineState, scope: str, rules: ManualRules, question: Question) -> Verdict | None:
    """Returns the verdict of the rules of a scope. A block covers other spellings of the path, too."""
    url = question.url
    rule = rules.find(url, _host_rules(state, scope, rules, url), question.now)
    if rule is None and has_spellings(url):
        others = (rules.find(other, _host_rules(state, scope, rules, other), question.now) for other in spellings_of(url))
        rule = next((other for other in others if other is not None and other.action is ListAction.BLOCK), None)
    return manual_verdict(rule, scope) if rule is not None else None


def _scopes(state: EngineState, client: ClientPolicy) -> Iterator[tuple[str, ManualRules]]:
    scoped = state.overlay.rules.scoped
    for scope in client.scopes:
        rules = scoped.get(scope)
        if rules:
            yield scope, rules


def _host_rules(state: EngineState, scope: str, rules: ManualRules, url: Url) -> HostRules:
    key = (scope, url.netloc)
    found = state.scoped_hosts.get(key)
    if found is None:
        found = rules.for_host(url)
        state.scoped_hosts.put(key, found)
    return found


def decide_host_by_policy(state: EngineState, host: str, client: str, user: str, now: float) -> HostVerdict:
    """Returns what to do with connections to a host, as `decide_host`, for a client of a network with policies.

    Args:
        state: of the engine; it has policies.
        host: canonical or as sent by a client.
        client: the client's address.
        user: name of the proxy user, `""` for none.
        now: Unix seconds.
    """
    found, effective = in_force(state, client, user, now)
    verdict = _decide_host_unread(state, found, effective, host, client, now)
    return verdict if effective.requests is None else treated_connection(effective.requests, host, verdict)


def _decide_host_unread(
    state: EngineState, found: ClientPolicy, effective: EffectivePolicy, host: str, client: str, now: float
) -> HostVerdict:
    chosen = decide_host(view_of(state, effective.lists_number), host, client, now)
    if effective.pause is not None:
        usual = decide_host(state, host, client, now)
        if usual.action is HostAction.SPLICE:
            return usual
        return _paused_host(state, found, chosen, host, now) if chosen.action is HostAction.DENY else chosen
    if not state.overlay.rules.scoped and effective.block_all is None and not effective.services:
        return _treated(chosen, effective)
    try:
        url = parse_url(f"https://{canonical_host(host)}/")
    except (UrlError, UnicodeError):
        return chosen
    blocked = effective.block_all or (
        blocked_service(effective, state.services.of_host(url.host)) if effective.services else None
    )
    if state.overlay.rules.scoped and (scoped := _host_in_scopes(state, found, url, now)) is not None:
        return scoped
    if blocked is None or chosen.verdict.reason in _MANUAL_REASONS:
        return _treated(chosen, effective)
    if _allowed_in_part(state.overlay.rules, url, now):
        return HostVerdict(HostAction.INTERCEPT, UNKNOWN, named=True, because=blocked)
    return HostVerdict(HostAction.DENY, blocked, named=True, because=blocked)


def _paused_host(state: EngineState, client: ClientPolicy, denied: HostVerdict, host: str, now: float) -> HostVerdict:
    """Returns a denial that a pause does not lift, or an interception where a manual rule may allow a part of the host."""
    url = parse_url(f"https://{canonical_host(host)}/")
    rules = (state.overlay.rules, *(scoped for _, scoped in _scopes(state, client)))
    if any(_allowed_in_part(found, url, now) for found in rules):
        return replace(denied, action=HostAction.INTERCEPT)
    return denied


_WAITING: Final = frozenset({UnknownAction.HOLD, UnknownAction.BLOCK})
_MANUAL_REASONS: Final = frozenset({Reason.MANUAL_ALLOW, Reason.MANUAL_BLOCK})


def _treated(verdict: HostVerdict, effective: EffectivePolicy) -> HostVerdict:
    """Returns a verdict by lists with the reason of the schedule that switched the list on."""
    if verdict.action is HostAction.INTERCEPT and effective.unknown in _WAITING and not verdict.named:
        return replace(verdict, named=True)  # no pinned app makes its unknown pages pass
    denied = verdict.action is HostAction.DENY
    name = effective.scheduled.get(verdict.verdict.category) if denied else None
    if name is None:
        used_up = effective.used_up.get(verdict.verdict.category) if denied else None
        return HostVerdict(HostAction.DENY, used_up, named=True, because=used_up) if used_up is not None else verdict
    blocked = replace(verdict.verdict, reason=Reason.SCHEDULE, detail=f"{name} blocks {verdict.verdict.category}")
    return HostVerdict(HostAction.DENY, blocked, named=True, because=blocked)


def _host_in_scopes(state: EngineState, client: ClientPolicy, url: Url, now: float) -> HostVerdict | None:
    """Returns the verdict on a host that a rule for the client or its group names, wholly or in part.

    It is denied if the first rule that covers it blocks, and no rule in the order before allows a part of it; else intercepted.
    """
    named = False
    for scope, rules in _scopes(state, client):
        rule = rules.find(url, _host_rules(state, scope, rules, url), now)
        if rule is not None and rule.action is ListAction.BLOCK and _covers(rules, url, now):
            blocked = manual_verdict(rule, scope)
            action = HostAction.INTERCEPT if named or _allowed_in_part(rules, url, now) else HostAction.DENY
            return HostVerdict(action, blocked, named=True, because=blocked)
        named = named or rule is not None or any(rules.of_parts(url, action) for action in _DECIDING)
    return HostVerdict(HostAction.INTERCEPT, UNKNOWN, named=True) if named else None


_DECIDING: Final = (ListAction.ALLOW, ListAction.BLOCK)


def _covers(rules: ManualRules, url: Url, now: float) -> bool:
    """Returns whether a rule blocks the host as a whole."""
    return any(
        rule.action is ListAction.BLOCK and (rule.expires_at is None or now < rule.expires_at)
        for rule in rules.for_host(url).rules
    )


def _allowed_in_part(rules: ManualRules, url: Url, now: float) -> bool:
    whole = (rule for rule in rules.for_host(url).rules if rule.action is ListAction.ALLOW)
    return any(rule.expires_at is None or now < rule.expires_at for rule in (*whole, *rules.of_parts(url, ListAction.ALLOW)))
