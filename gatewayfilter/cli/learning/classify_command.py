"""`gatewayfilter classify`."""

from __future__ import annotations

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
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import Classification


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter classify https://example.com/",
        "gatewayfilter classify page.html --json",
        "curl -s https://example.com/ | gatewayfilter classify -",
        "gatewayfilter classify --parts page.html",
    ),
    prints_data=True,
    short_help="Judge a page or text without learning it.",
)
@click.argument("page", metavar="URL|FILE|-")
@click.option("--parts", is_flag=True, help="Print title, texts, links and images of the page, and judge nothing.")
@click.pass_obj
def classify(invocation: Invocation, *, page: str, parts: bool) -> int:
    """Judge a page: category, score against its limit, and the words that made it, with their places.

    A URL is fetched by the crawler's safety rules; nothing is learned or kept. Exit code 1 when the page is harmful.
    """
    if parts:
        return _show_parts(invocation, page)
    classification = _of_file(invocation, page) if page == "-" or Path(page).exists() else _of_url(invocation, page)
    if invocation.json:
        print_json(classification)
    else:
        show_judgement(classification)
    return int(classification.harmful)


def _show_parts(invocation: Invocation, name: str) -> int:
    from gatewayfilter.classify import parts_of
    from gatewayfilter.use_cases.single_page import fetch_now

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
    from gatewayfilter.use_cases.single_page import judge_now

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
    if text.startswith(("/", ".", "~")):
        raise ClassifyError(f"there is no file {text}")
    try:
        return parse_loose_url(text)
    except UrlError as error:
        raise ClassifyError(f"there is no file {text!r}, and it is no URL either") from error
