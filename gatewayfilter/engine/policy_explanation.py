"""The explanation of a decision in a network with policies: who the client is, what is in force for it, then each decider."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gatewayfilter.engine.approved_parts import lifted, tell_part
from gatewayfilter.engine.deciders import DECIDERS, ManualDecider
from gatewayfilter.engine.explanations import explain
from gatewayfilter.engine.policies.client_policies import ClientPolicy
from gatewayfilter.engine.policies.effective_policy import EffectivePolicy
from gatewayfilter.engine.policies.request_rules import RequestRules
from gatewayfilter.engine.policy_decision import (
    blocked_service,
    decide_by_lists,
    decide_by_policy,
    in_force,
    known_request,
    paused_verdict,
    verdict_of_scope,
    view_of,
)
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.model import DEFAULT, CategoryAction, DeciderAnswer, Explanation, Reason, Request, TlsHandling

_NOTHING_SET = "no policy of this client sets anything for categories, lists, unknown pages or connections"
"""Services, quotas and searching have answers of their own."""


def explain_by_policy(state: EngineState, request: Request, now: float) -> Explanation:
    """Returns what decides a request, in the order in which it counts, and the verdict of `decide`.

    Raises:
        UnicodeError: the URL contains characters that no URL can have.
    """
    client, effective = in_force(state, request.client, request.user, now)
    if state.adblock.names_clients:
        request = known_request(client, request)
    # Manual rules do not count while filtering is paused, but are shown.
    usual = Question(state, request, now)
    question = Question(view_of(state, effective.lists_number), request, now)
    answers = [_tell_client(state, client), _tell_pause(effective), *_tell_scopes(state, client, usual)]
    for decider in DECIDERS:
        asked = usual if isinstance(decider, ManualDecider) else question
        answers.append(explain(decider, asked, decider.decide(asked)))
        if isinstance(decider, ManualDecider):
            answers += [
                _tell_schedule(effective),
                _tell_policy(effective),
                *_tell_services(effective, usual.facts.services),
                *_tell_requests(effective, request),
            ]
    verdict = decide_by_policy(state, request, now)
    service = blocked_service(effective, usual.facts.services) if effective.services else None
    blocked = effective.block_all or service or decide_by_lists(state, effective, question)
    part = lifted(state, client.scopes, request, blocked, now) if blocked.blocked else None
    return Explanation(request, (*answers, *(tell_part(part) if part == verdict else ())), verdict)


def _tell_client(state: EngineState, client: ClientPolicy) -> DeciderAnswer:
    chain = ", ".join(policy.name for _, policy in state.overlay.policies.chain(client.client))
    if client.client is None:
        return DeciderAnswer("client", "miss", f"no client has this address: group {DEFAULT}, policies {chain}")
    return DeciderAnswer("client", "pass", f"client {client.client.name}, group {client.group}, policies {chain}")


def _tell_pause(effective: EffectivePolicy) -> DeciderAnswer:
    pause = effective.pause
    if pause is None:
        return DeciderAnswer("pause", "miss", "filtering is not paused for this client")
    until = datetime.fromtimestamp(pause.until, UTC).isoformat(timespec="seconds")
    rest = "" if pause.harm_too else ", but for malware, phishing and fraud"
    return DeciderAnswer("pause", "allow", f"filtering is paused ({pause.name}) until {until}{rest}", paused_verdict(pause))


def _tell_scopes(state: EngineState, client: ClientPolicy, question: Question) -> list[DeciderAnswer]:
    answers: list[DeciderAnswer] = []
    for scope in client.scopes:
        rules = state.overlay.rules.scoped.get(scope)
        if rules is None:
            continue
        verdict = verdict_of_scope(state, scope, rules, question)
        if verdict is None:
            answers.append(DeciderAnswer(scope, "miss", "no rule for these clients covers this URL"))
        else:
            answers.append(DeciderAnswer(scope, verdict.action.value, f"the rule {verdict.rule} {verdict.action}s it", verdict))
    return answers


def _tell_schedule(effective: EffectivePolicy) -> DeciderAnswer:
    if not effective.schedules:
        return DeciderAnswer("schedule", "miss", "no schedule has an open window")
    names = ", ".join(effective.schedules)
    verdict = effective.block_all
    if verdict is not None and verdict.reason is Reason.SCHEDULE:
        return DeciderAnswer("schedule", "block", f"in force: {names}; {verdict.rule} blocks everything", verdict)
    blocked = "".join(f"; {name} blocks {category}" for category, name in sorted(effective.scheduled.items()))
    return DeciderAnswer("schedule", "pass", f"in force: {names}{blocked}")


def _tell_services(effective: EffectivePolicy, services: Sequence[str]) -> list[DeciderAnswer]:
    """Returns the answer of services and quotas, for a URL that belongs to any."""
    if not services or effective.pause is not None:
        return []
    names = ", ".join(services)
    verdict = blocked_service(effective, services)
    if verdict is not None:
        return [DeciderAnswer("service", "block", f"belongs to {names}: {verdict.detail}", verdict)]
    count = effective.quotas
    quotas = sorted({quota for name in services for quota in count.services.get(name, ())}) if count is not None else []
    told = f"; minutes are left of {', '.join(quotas)}" if quotas else ""
    return [DeciderAnswer("service", "pass", f"belongs to {names}, which no policy blocks{told}")]


def _tell_policy(effective: EffectivePolicy) -> DeciderAnswer:
    verdict = effective.block_all
    if verdict is not None and verdict.reason is Reason.POLICY:
        return DeciderAnswer("policy", "block", f"{verdict.rule} blocks everything", verdict)
    told: list[str] = []
    for action in CategoryAction:
        categories = sorted(category for category, chosen in effective.actions.items() if chosen is action)
        told += [f"{action}: {', '.join(categories)}"] if categories else []
    if effective.pause is None:
        told += [f"source {name}: on" for name in sorted(effective.lists.on_sources)]
        told += [f"source {name}: off" for name in sorted(effective.lists.off_sources)]
    told += _connection_values(effective.requests) if effective.requests is not None else []
    told += [f"unknown: {effective.unknown}"] if effective.unknown is not None else []
    return DeciderAnswer("policy", "pass" if told else "miss", "; ".join(told) or _NOTHING_SET)


def _connection_values(rules: RequestRules) -> list[str]:
    told = [f"tls: {rules.tls}"] if rules.tls is not TlsHandling.INTERCEPT else []
    told += ["strictness: strict"] if rules.blocks_doubt else []
    return told + ([f"log: {rules.log_detail}"] if rules.log_detail is not None else [])


def _tell_requests(effective: EffectivePolicy, request: Request) -> list[DeciderAnswer]:
    """Returns what acts on this request and its response; nothing where no policy of the client has such a value."""
    rules = effective.requests
    if rules is None:
        return []
    answers: list[DeciderAnswer] = []
    found = rules.hosts.get(request.url.host)
    if found is not None and found.enforced is not None:
        answers.append(DeciderAnswer(found.enforced.key, "pass", found.enforced.summary))
    if rules.terms is not None:
        verdict = rules.judge_search(request.url)
        if verdict is not None:
            answers.append(DeciderAnswer("search-terms", "block", f"{verdict.rule} blocks a {verdict.detail}", verdict))
        else:
            what = "no term is searched for" if found is not None and found.searched is not None else "no search engine"
            answers.append(DeciderAnswer("search-terms", "miss", what))
    if rules.downloads is not None:
        verdict = rules.downloads.judge_head(request.url, {})
        if verdict is not None:
            answers.append(DeciderAnswer("downloads", "pass", f"{verdict.rule} blocks the response: {verdict.detail}"))
        else:
            answers.append(DeciderAnswer("downloads", "pass", f"blocked in a response: {rules.downloads.summary}"))
    return answers
