"""`gatewayfilter classify`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.classification_view import show_judgement
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.cli.ui.page_files import page_of, read_bytes
from gatewayfilter.errors import ClassifyError, FetchError, UrlError
from gatewayfilter.urls import Url, parse_loose_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.bulk.line_workers import OpenLines
    from gatewayfilter.cli.learning.page_lines import PageWorker
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import Classification

_FILE_ENDINGS = frozenset({".htm", ".html", ".xhtml", ".txt", ".md", ".pdf", ".eml", ".json", ".jsonl"})
"""Endings by which a name alone is a file's, not a host's."""
ALONE = 200
"""Lines that are judged without workers: half a second of work, as long as they take to start."""


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter classify https://example.com/",
        "gatewayfilter classify page.html --json",
        "curl -s https://example.com/ | gatewayfilter classify -",
        "gatewayfilter classify --parts page.html",
        "gatewayfilter classify --lines pages.jsonl --stats > judged.jsonl",
    ),
    prints_data=True,
    short_help="Judge a page or text without learning it.",
)
@click.argument("page", metavar="URL|FILE|-", required=False)
@click.option("--parts", is_flag=True, help="Print title, texts, links and images of the page, and judge nothing.")
@click.option(
    "--lines",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Judge many pages: JSON lines in and out, - for standard input.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="With --lines: worker processes, 0 for one a core; they start when the input turns out to be long.",
)
@click.option("--stats", is_flag=True, help="With --lines: print counts and speed on standard error at the end.")
@click.pass_obj
def classify(invocation: Invocation, *, page: str | None, parts: bool, lines: Path | None, jobs: int, stats: bool) -> int:
    """Judge a page: category, score against its limit, and the words that made it, with their places.

    A URL is fetched by the crawler's safety rules; nothing is learned or kept. Exit code 1 when the page is harmful.

    With --lines many pages are judged: JSON lines {"url", "html" or "text", "headers"} in, the same with category, score, limit,
    harmful, certainty and doubt out, in order. `harmful` is what is blocked at the strictness `standard`. A line that holds no
    page gets "error", and its number is named on standard error.
    """
    if (page is None) == (lines is None):
        raise click.UsageError("name one page, or give --lines FILE")
    if lines is not None:
        if parts:
            raise click.UsageError("--parts is for a single page")
        return _judge_lines(invocation, lines, jobs, stats=stats)
    if page is None:
        raise AssertionError("one of the two is given")
    if parts:
        return _show_parts(invocation, page)
    classification = _of_file(invocation, page) if page == "-" or Path(page).exists() else _of_url(invocation, page)
    if invocation.json:
        print_json(classification)
    else:
        show_judgement(classification, invocation.settings().classify.strictness)
    return int(classification.harmful)


def _judge_lines(invocation: Invocation, file: Path, jobs: int, *, stats: bool) -> int:
    from gatewayfilter.cli.bulk.bulk_run import BulkRun, open_lines
    from gatewayfilter.cli.learning.page_lines import PageWorker

    run = BulkRun("classify", "page", "judged", ALONE, jobs, stats)
    started = time.process_time()
    worker = PageWorker(invocation.settings())
    with open_lines(file) as stream:
        run.answer_all(stream, worker.open(), partial(_worker, worker), started)
    return 0


@contextmanager
def _worker(worker: PageWorker) -> Iterator[OpenLines]:
    yield worker


def _show_parts(invocation: Invocation, name: str) -> int:
    from gatewayfilter.classify import parts_of
    from gatewayfilter.use_cases.learning.single_page import fetch_now

    if name == "-" or Path(name).exists():
        page = page_of(read_bytes(name))
    else:
        url = _read_url(name)
        try:
            page = fetch_now(invocation.settings(), url)
        except FetchError as error:
            raise FetchError(f"{url} was not fetched: {error}") from error
    parts = parts_of(page)
    if invocation.json:
        print_json(parts)
        return 0
    rows = [("title", parts.title), ("description", parts.description), ("keywords", parts.keywords)]
    rows += [("main", text) for text in parts.main]
    rows += [("rest", text) for text in parts.rest]
    rows += [("link", f"{link.reference}  {link.text}") for link in parts.links if link.on_page]
    rows += [("image", f"{image.reference}  {image.alt}") for image in parts.images]
    print_table(("part", "text"), [row for row in rows if row[1]])
    return 0


def _of_file(invocation: Invocation, name: str) -> Classification:
    from gatewayfilter.wiring import classifier

    content = read_bytes(name)
    return classifier(invocation.settings()).classify_page(page_of(content))


def _of_url(invocation: Invocation, text: str) -> Classification:
    from gatewayfilter.use_cases.learning.single_page import judge_now

    url = _read_url(text)
    try:
        page, classification = judge_now(invocation.settings(), url)
    except FetchError as error:
        raise FetchError(f"{url} was not fetched: {error}") from error
    if classification is None:
        raise ClassifyError(f"{url} is not classified: status {page.status}, type {page.content_type or 'unknown'}")
    if not invocation.json:
        say(f"{page.final_url} (status {page.status}, {page.elapsed_ms} ms)")
    return classification


def _read_url(text: str) -> Url:
    if text.startswith(("/", ".", "~")) or ("/" not in text and Path(text).suffix.lower() in _FILE_ENDINGS):
        raise ClassifyError(f"there is no file {text}")
    try:
        return parse_loose_url(text)
    except UrlError as error:
        raise ClassifyError(f"there is no file {text!r}, and it is no URL either") from error
