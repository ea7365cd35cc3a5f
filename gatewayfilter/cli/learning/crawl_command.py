"""`gatewayfilter crawl`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.learning.crawl_progress import showing_crawl
from gatewayfilter.cli.ui.classification_view import show_judgement
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json_line, print_table, say
from gatewayfilter.errors import ClassifyError, FetchError
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.learning.crawl_tasks import chosen_task

if TYPE_CHECKING:
    from gatewayfilter.classify import ExtractionRule, RuleResult
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.crawl import CrawlOutcome
    from gatewayfilter.urls import Url

_NOT_FETCHED = 2
_SHOWN = 300
"""Characters of a field that are shown to people."""


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter crawl https://example.com/",
        "gatewayfilter crawl example.com example.org/page --json",
        "gatewayfilter crawl --task forums https://forum.example/",
        "gatewayfilter crawl --rule news.toml https://news.example.com/article/1",
    ),
    prints_data=True,
    short_help="Fetch, judge and learn pages now.",
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--rule", default="", metavar="FILE", help="Try an extraction rule, a file or one in use; nothing is learned.")
@click.option("--task", default="", metavar="NAME", help="Follow links by the strategy [crawl.tasks.NAME] of the settings.")
@click.pass_obj
def crawl(invocation: Invocation, *, urls: tuple[str, ...], rule: str, task: str) -> int:
    """Fetch pages now, judge them, and put them on the learned lists; running workers apply them within a second.

    The crawler's safety rules hold here too: no private addresses but those in crawl.allow_networks, robots.txt, and a delay
    between pages of one host. With --json one object a line, as each page is done. Exit code 1 when a page is harmful, 2 when
    none is and one could not be fetched or judged; with --task pages that links led to do not count for that.

    With --rule the pages are only read by that rule: its fields and links are printed. Exit code 1 when it is not for one of the
    URLs, or a field was not found.
    """
    targets = [parse_loose_url(url).text for url in urls]
    if rule and task:
        raise click.UsageError("--rule and --task do not go together: a rule is only tried")
    if rule:
        return _try_rule(invocation, rule, targets)
    from gatewayfilter.use_cases.learning.crawling import crawl_now

    settings = invocation.settings()
    if task:
        chosen_task(settings, task)

    def show(outcome: CrawlOutcome) -> None:
        if invocation.json:
            print_json_line(outcome)
        else:
            _show(outcome)

    with invocation.store() as store, showing_crawl(quiet=invocation.json) as progress:
        outcomes = crawl_now(settings, store, targets, show, task=task, progress=progress)
    if not invocation.json and len(outcomes) > 1:
        _sum_up(outcomes)
    if any(outcome.classification is not None and outcome.classification.harmful for outcome in outcomes):
        return 1
    counting = [outcome for outcome in outcomes if not task or outcome.url in targets]
    return _NOT_FETCHED if any(outcome.classification is None for outcome in counting) else 0


def _sum_up(outcomes: list[CrawlOutcome]) -> None:
    harmful = sum(outcome.classification is not None and outcome.classification.harmful for outcome in outcomes)
    unjudged = sum(outcome.classification is None for outcome in outcomes)
    say(f"{counted(len(outcomes), 'page')}: {harmful:,} harmful, {unjudged:,} not judged.", err=True)


def _try_rule(invocation: Invocation, name: str, targets: list[str]) -> int:
    from gatewayfilter.classify import read_rule_file
    from gatewayfilter.use_cases.learning.single_page import extract_now
    from gatewayfilter.wiring import rules_folder

    settings = invocation.settings()
    rules = rules_folder(settings)
    rule = rules.rule(name) if name in rules.names() and not Path(name).exists() else read_rule_file(Path(name))
    code = 0
    for target in targets:
        try:
            result, links = extract_now(settings, rule, parse_loose_url(target))
        except (FetchError, ClassifyError) as error:
            say(f"gatewayfilter: {target} was not read: {error}", err=True)
            code = _NOT_FETCHED
            continue
        found = result.extracted
        fits = rule.matches(target)
        if not code and not (fits and all(found.fields.values()) and not found.errors):
            code = 1
        if invocation.json:
            shown = {"url": target, "rule": rule.name, "version": rule.version, "matches": fits, "fields": found.fields}
            print_json_line({**shown, "links": [link.text for link in links], "errors": found.errors})
        else:
            _show_result(target, rule, result, links)
    return code


def _show_result(target: str, rule: ExtractionRule, result: RuleResult, links: list[Url]) -> None:
    say(target if rule.matches(target) else f"{target} (the rule {rule.name!r} is not for this URL)")
    found = result.extracted
    rows = [
        (field.name, value if len(value) <= _SHOWN else f"{value[:_SHOWN]} … ({len(value)} characters)")
        for field in rule.fields
        for value in found.fields[field.name] or [found.errors.get(field.name, "not found")]
    ]
    rows += [("link", link.text) for link in links]
    rows += [(place, error) for place, error in found.errors.items() if place not in found.fields]
    print_table(("field", "value"), rows)
    say()


def _show(outcome: CrawlOutcome) -> None:
    if outcome.classification is None:
        say(f"gatewayfilter: {outcome.url} was {'refused' if outcome.refused else 'not judged'}: {outcome.error}", err=True)
        return
    way = f"{outcome.url} → {outcome.final_url}" if outcome.final_url not in {"", outcome.url} else outcome.url
    say(f"{way} (status {outcome.status}, {outcome.elapsed_ms} ms)")
    show_judgement(outcome.classification)
    say()
