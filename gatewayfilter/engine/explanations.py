"""The explanations of `gatewayfilter check`: one sentence on the finding of each decider, whether or not it decided."""

from collections.abc import Sequence

from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch
from gatewayfilter.engine.deciders import Adblock, BloomGate, Decider, ListTable, ManualDecider, Spellings, adblock_verdict
from gatewayfilter.engine.path_spellings import spellings_of
from gatewayfilter.engine.question import Question
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.host_cache import host_keys
from gatewayfilter.engine.state.list_lookup import may_be_listed, silent_entries
from gatewayfilter.engine.state.manual_rules import ManualRules, written_pattern
from gatewayfilter.model import FLEET, FLEET_LOCKED, AppliedRule, DeciderAnswer, Request, ResourceType, Verdict
from gatewayfilter.urls import digest_of

_MAX_NAMED = 20
"""Maximum of rules that an explanation names besides the deciding one."""

type Told = tuple[str, str, Verdict | None]
"""Answer, sentence and verdict of a `DeciderAnswer`."""


def explain(decider: Decider, question: Question, verdict: Verdict | None) -> DeciderAnswer:
    """Returns the explanation of a decider's finding on a request.

    Args:
        decider: one of `DECIDERS`; those before it have processed the question.
        question: the request, with the deciders' findings.
        verdict: the result of `decider.decide(question)`.
    """
    return DeciderAnswer(decider.name, *_tell(decider, question, verdict))


def _tell(decider: Decider, question: Question, verdict: Verdict | None) -> Told:
    match decider:
        case ManualDecider():
            return _tell_rules(question, verdict)
        case BloomGate():
            return _tell_gate(question)
        case ListTable():
            return _tell_entries(decider, question, verdict)
        case Adblock():
            return _tell_adblock(question, verdict)
        case Spellings():
            return _tell_spellings(question, verdict)
        case _:
            return "allow", "URLs on no list are allowed, and offered to the crawler", verdict


def _tell_rules(question: Question, verdict: Verdict | None) -> Told:
    """Names the deciding rule, and the number of others that cover the URL."""
    rules = question.state.overlay.rules
    if verdict is None:
        off = rules.switched_off()
        silent = off.matching(question.url, off.for_host(question.url), question.now)
        hidden = f"; switched off: {', '.join(map(written_pattern, silent[:3]))}" if silent else ""
        return "miss", f"none of your own rules covers this URL{hidden}", None
    others = len(rules.matching(question.url, question.facts.manual, question.now)) - 1
    more = f"; {others} more of people's rules cover it" if others else ""
    return verdict.action.value, f"a person's rule {verdict.action}s {verdict.rule}{_from_fleet(rules, question)}{more}", verdict


_FROM_FLEET = {FLEET: "; it is from the fleet's publisher", FLEET_LOCKED: "; it is from the fleet's publisher, and locked"}


def _from_fleet(rules: ManualRules, question: Question) -> str:
    """Returns a text where the deciding rule is one of a fleet's publisher."""
    rule = rules.find(question.url, question.facts.manual, question.now)
    return _FROM_FLEET.get(rule.group, "") if rule is not None else ""


def _tell_gate(question: Question) -> Told:
    """Counts the keys, those of the host included."""
    keys = _all_keys(question)
    maybe = [key for key in keys if may_be_listed(question.lists, digest_of(key))]
    if not maybe:
        return "miss", f"none of {len(keys)} keys of this URL is on any list", None
    return "maybe", f"{len(maybe)} of {len(keys)} keys may be listed: {', '.join(maybe)}", None


def _tell_entries(table: ListTable, question: Question, verdict: Verdict | None) -> Told:
    """Names list and entry, or entries that are expired or switched off."""
    if verdict is not None:
        category = f" ({verdict.category})" if verdict.category else ""
        detail = f": {verdict.detail}" if verdict.detail else ""
        return verdict.action.value, f"{verdict.source_list}{category} lists {verdict.rule}{detail}", verdict
    lists = question.lists
    passed = [(key, digest) for key in _all_keys(question) if may_be_listed(lists, digest := digest_of(key))]
    if not passed:
        return "skipped", "the quick look found that no list has it", None
    silent = [why for key, digest in passed for why in silent_entries(lists, key, digest, table.action, question.now)]
    if silent:
        return "pass", "; ".join(silent), None
    return "miss", f"no key of this URL is on the {table.name}", None


def _all_keys(question: Question) -> list[str]:
    """Returns every list key that covers the URL: its own, its prefixes where its host has prefix entries, and its host's."""
    return [question.url.key, *question.prefix_keys(), *host_keys(question.url)]


def _tell_adblock(question: Question, verdict: Verdict | None) -> Told:
    """Names the deciding rule, its list and line, every other matching rule, and the changes that rules would make."""
    state = question.state
    matches = state.adblock.match_all(question.request)
    on = [match for match in matches if match.source not in state.off_sources]
    off = len(matches) - len(on)
    rest = f"; {off} matching rules belong to categories that are switched off" if off else ""
    rest += "".join(f"; {sentence}" for sentence in _describe_changes(state, question.request, verdict))
    if verdict is not None:
        stub = f", the stub {verdict.stub} stands in for it" if verdict.stub else ""
        others = _name_others(state, on, verdict)
        return "block", f"{verdict.rule} of {verdict.source_list}, line {verdict.line} blocks it{stub}{others}{rest}", verdict
    if question.exception is not None:
        verdict = adblock_verdict(state, question.exception)
        others = _name_others(state, on, verdict)
        said = f"the exception {verdict.rule} of {verdict.source_list}, line {verdict.line}, lifts a block{others}{rest}"
        return "pass", said, verdict
    others = _name_others(state, on, None)
    return "pass" if off else "miss", f"no rule in force blocks it{others}{rest}", None


def _tell_spellings(question: Question, verdict: Verdict | None) -> Told:
    """Names the spellings, and the block of one of them."""
    others = [other.text for other in spellings_of(question.url)]
    if verdict is not None:
        by = f" of {verdict.source_list}" if verdict.source_list else ""
        return "block", f"another spelling of this URL is blocked: {verdict.rule}{by}", verdict
    if not others:
        return "miss", "this URL has one spelling", None
    return "miss", f"nothing blocks other spellings of this URL: {', '.join(others)}", None


def _name_others(state: EngineState, matches: Sequence[AdblockMatch], verdict: Verdict | None) -> str:
    """Returns a text with every matching rule except the deciding one."""
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


def _describe_changes(state: EngineState, request: Request, verdict: Verdict | None) -> list[str]:
    """Returns sentences on the changes of a request and of its response, whose headers are unknown and taken as `text/html`."""
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
