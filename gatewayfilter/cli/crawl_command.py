"""`gatewayfilter crawl`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterCommand
from gatewayfilter.cli.judgements import show_judgement
from gatewayfilter.cli.output import print_json_line, say
from gatewayfilter.urls import parse_loose_url

if TYPE_CHECKING:
    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.crawl import CrawlOutcome

_NOT_FETCHED = 2


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter crawl https://example.com/", "gatewayfilter crawl example.com example.org/page --json"),
    prints_data=True,
    short_help="Fetch, judge and learn pages now.",
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.pass_obj
def crawl(invocation: Invocation, *, urls: tuple[str, ...]) -> int:
    """Fetch pages now, judge them, and put them on the learned lists; running workers know within a second.

    The crawler's safety rules hold here too: no private addresses but those in crawl.allow_networks. With --json one
    object a line. Exit code 1 when a page is harmful, 2 when none is and one could not be fetched or judged.
    """
    from gatewayfilter.wiring import crawl_now

    targets = [parse_loose_url(url).text for url in urls]

    def show(outcome: CrawlOutcome) -> None:
        if invocation.json:
            print_json_line(outcome)
        else:
            _show(outcome)

    with invocation.store() as store:
        outcomes = crawl_now(invocation.settings(), store, targets, show)
    if any(outcome.classification is not None and outcome.classification.harmful for outcome in outcomes):
        return 1
    return _NOT_FETCHED if any(outcome.classification is None for outcome in outcomes) else 0


def _show(outcome: CrawlOutcome) -> None:
    if outcome.classification is None:
        say(f"gatewayfilter: {outcome.url} was {'refused' if outcome.refused else 'not judged'}: {outcome.error}", err=True)
        return
    way = f"{outcome.url} → {outcome.final_url}" if outcome.final_url not in {"", outcome.url} else outcome.url
    say(f"{way} (status {outcome.status}, {outcome.elapsed_ms} ms)")
    show_judgement(outcome.classification)
    say()
