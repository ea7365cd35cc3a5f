"""`gatewayfilter list search` and `stats`: where something stands, and how much stands there."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterCommand
from gatewayfilter.cli.moments import show_day
from gatewayfilter.cli.output import print_json, print_table, say
from gatewayfilter.cli.patterns import Pattern
from gatewayfilter.errors import UrlError
from gatewayfilter.model import DeciderAnswer, PersonRule, Request, ResourceType
from gatewayfilter.urls import parse_loose_url, parse_url

if TYPE_CHECKING:
    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.interfaces import Decide


_ELSEWHERE = parse_url("https://elsewhere.invalid/")
"""A page of a third party."""


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter list search example.com", "gatewayfilter list search https://cdn.example/ad.js --json"),
    prints_data=True,
)
@click.argument("text", metavar="HOST|URL")
@click.pass_obj
def search(invocation: Invocation, *, text: str) -> int:
    """Find out who lists a host or URL: your own entries, what was learned, and each subscription.

    Your own entries and learned pages are also found by a part of their text. Exit code 1 when nobody lists it.
    """
    from gatewayfilter.wiring import open_engine

    with invocation.store() as store:
        part = text.strip().lower()
        own = [rule for rule in store.lists.rules() if part in _searched(rule)]
        learned = [entry for entry in store.lists.learned() if part in entry.url.lower() or part in entry.key]
        answers = _answers(open_engine(invocation.settings(), store), text)
    if invocation.json:
        print_json({"own": own, "learned": learned, "lists": answers})
    else:
        rows = [("own", rule.action.value, _describe(rule)) for rule in own]
        rows += [(f"learned: {entry.category or 'harmless'}", entry.action.value, entry.url) for entry in learned]
        rows += [(answer.decider, answer.answer, answer.explanation) for answer in answers]
        if rows:
            print_table(("where", "means", "what"), rows)
        else:
            say(f"Nobody lists {text}.")
    return 0 if own or learned or answers else 1


def _searched(rule: PersonRule) -> str:
    return f"{rule.pattern} {rule.comment}".lower()


def _describe(rule: PersonRule) -> str:
    comment = f" ({rule.comment})" if rule.comment else ""
    return f"{rule.rule_id}: {Pattern(rule.kind, rule.pattern).describe()}{comment}"


def _answers(engine: Decide, text: str) -> list[DeciderAnswer]:
    try:
        url = parse_loose_url(text)
    except UrlError:
        return []
    # Rules may be for some resource types or for third parties alone: each way to ask for it is tried.
    ways = [Request(url), *(Request(url, _ELSEWHERE, resource_type) for resource_type in ResourceType)]
    found = {
        (answer.decider, answer.explanation): answer
        for request in ways
        for answer in engine.explain(request).answers
        if answer.verdict is not None and answer.verdict.rule
    }
    return list(found.values())


@click.command(cls=FilterCommand, examples=("gatewayfilter list stats --json",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Count your entries, what was learned, and what the snapshot in use holds."""
    from gatewayfilter.wiring import open_engine

    now = time.time()
    with invocation.store() as store:
        rules = store.lists.rules()
        learned = Counter((entry.action.value, entry.category) for entry in store.lists.learned())
        info = open_engine(invocation.settings(), store).snapshot.info
    expired = sum(rule.expires_at is not None and rule.expires_at <= now for rule in rules)
    own = Counter((rule.action.value, rule.kind.value) for rule in rules)
    if invocation.json:
        print_json(
            {
                "own": [{"action": action, "kind": kind, "entries": count} for (action, kind), count in sorted(own.items())],
                "own_expired": expired,
                "learned": [
                    {"action": action, "category": category, "entries": count}
                    for (action, category), count in sorted(learned.items())
                ],
                "snapshot": info,
            }
        )
        return
    rows: list[tuple[object, ...]] = [("own", action, kind, f"{count:,}") for (action, kind), count in sorted(own.items())]
    rows += [("own", "", "expired", f"{expired:,}")] if expired else []
    rows += [("learned", action, category, f"{count:,}") for (action, category), count in sorted(learned.items())]
    rows += [
        ("snapshot", "block", "blacklist", f"{info.blacklist:,}"),
        ("snapshot", "allow", "whitelist", f"{info.whitelist:,}"),
        ("snapshot", "", "Adblock rules", f"{info.adblock_rules:,}"),
    ]
    print_table(("where", "action", "what", "entries"), rows)
    say(f"\nSnapshot of {show_day(info.created_at)}, {info.size_bytes / 1e6:.1f} MB.")
