"""`gatewayfilter report`: what was blocked, for whom and why, as text or as an HTML file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gatewayfilter.cli.log.log_stats import print_chart
from gatewayfilter.cli.log.report_view import lists_of, sections_of, span_of, total_of
from gatewayfilter.cli.log.report_words import WORDS
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import past_option
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.private_files import private

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.use_cases.traffic.log_report import Report

_DEFAULT_S: Final = 7 * 86_400.0


@click.command(
    "report",
    cls=FilterCommand,
    short_help="What was blocked, for whom and why.",
    examples=(
        "gatewayfilter report --since today",
        "gatewayfilter report --since 7d --html report.html",
        "gatewayfilter report --since yesterday --until today --language zh",
    ),
    prints_data=True,
)
@click.option(
    "--since", metavar="TIME", callback=past_option, help="From then on: today, yesterday, 7d, 2030-01-31; by default 7 days."
)
@click.option("--until", metavar="TIME", callback=past_option, help="Before then, as --since; by default now.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one HTML file, for print too."
)
@click.option("--language", type=click.Choice(sorted(WORDS)), default="en", show_default=True, help="Language of the report.")
@click.pass_obj
def report(invocation: Invocation, *, since: float | None, until: float | None, html: Path | None, language: str) -> None:
    """Report what was blocked, for whom and why: with new devices, requests to unblock, learned pages and the lists' state."""
    from gatewayfilter.use_cases.traffic.log_report import make_report

    begin = time.time() - _DEFAULT_S if since is None else since
    if until is not None and until <= begin:
        raise click.UsageError("The report ends before it begins: --until must be after --since.")
    with invocation.store() as store:
        found = make_report(store, invocation.settings(), begin, until)
    if html is not None:
        _write(html, found, language)
    if invocation.json:
        print_json(found)
    elif html is None:
        _print(found, language)


def _write(file: Path, found: Report, language: str) -> None:
    from gatewayfilter.cli.log.report_html import html_of

    try:
        with open(file, "w", encoding="utf-8", opener=private) as opened:
            opened.write(html_of(found, language))
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise click.BadParameter(f"cannot write {file}: {error.strerror}") from error
    say(f"Written to {file}.", err=True)


def _print(found: Report, language: str) -> None:
    words = WORDS[language]
    say(f"{words['title']}: {span_of(found, language)}")
    say(total_of(found, language))
    say(lists_of(found, language))
    print_chart(found.summary)
    for section in sections_of(found, language):
        say()
        say(section.title)
        if section.rows:
            print_table(section.columns, section.rows)
        else:
            say(words["none"])
