"""`gatewayfilter words`: the sensitive words that pages are judged by."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.categories import hint_at_new_category, new_category_option
from gatewayfilter.cli.ui.classification_view import show_breakdown, show_judgement
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, printable, say
from gatewayfilter.cli.ui.page_files import page_of, read_bytes
from gatewayfilter.errors import ClassifyError, FetchError, UrlError

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.interfaces import Page
    from gatewayfilter.use_cases.learning.word_sandbox import JudgedPage
    from gatewayfilter.use_cases.learning.words import WordCategory

_category = click.option("--category", required=True, metavar="NAME", help="The category that they count for.")
_CONTEXT = 60
"""Characters shown before and after a hit."""
_RUNNING = "A running filter applies this within a second, for the pages that it judges from then on."


@click.group(
    "words",
    cls=FilterGroup,
    short_help="The sensitive words that pages are judged by.",
    examples=("gatewayfilter words show", "gatewayfilter words test 'free spins at our online casino'"),
)
def words_group() -> None:
    """The sensitive words that pages are judged by: those that come with the program, and your own over them.

    Each word has a category and a weight. A page is harmful when the words on it weigh more than the category's limit.
    """


@words_group.command(
    examples=(
        "gatewayfilter words add --category gambling 'lucky wheel' --weight 8",
        "gatewayfilter words add --category gambling 'deposit + bonus code' --weight 10",
        "gatewayfilter words add --category gambling 'gambling commission' --context --weight 6",
        "gatewayfilter words add --category gambling 'bingo wings' --exception",
    ),
    prints_data=True,
    recorded="words.added",
)
@click.argument("phrases", nargs=-1, required=True, metavar="PHRASE...")
@_category
@click.option(
    "--weight",
    type=click.FloatRange(0, 1000, min_open=True),
    default=5.0,
    show_default=True,
    metavar="W",
    help="How much one counts.",
)
@new_category_option
@click.option("--context", is_flag=True, help="It counts against the category: its weight is subtracted.")
@click.option("--exception", is_flag=True, help="It covers words inside it, which then do not count.")
@click.pass_obj
def add(
    invocation: Invocation,
    *,
    phrases: tuple[str, ...],
    category: str,
    new_category: bool,
    weight: float,
    context: bool,
    exception: bool,
) -> None:
    """Add phrases, or change their weight. `a + b` counts only where both stand on a page.

    A phrase is found as whole words; a `*` at an end opens that end (`casino*`).
    """
    from gatewayfilter.use_cases.learning.words import NewPhrases, add_phrases

    new = NewPhrases(category, phrases, weight, context, exception)
    with hint_at_new_category():
        changed = add_phrases(invocation.settings(), new, new_category=new_category)
    if invocation.json:
        print_json({"category": category, "changed": changed})
    else:
        say(f"{counted(changed, 'phrase')} of {category} added or changed. {_RUNNING}")


@words_group.command(
    examples=("gatewayfilter words remove --category gambling lottery 'a + b'",), prints_data=True, recorded="words.removed"
)
@click.argument("phrases", nargs=-1, required=True, metavar="PHRASE...")
@_category
@click.pass_obj
def remove(invocation: Invocation, *, phrases: tuple[str, ...], category: str) -> int:
    """Remove phrases as `words show` prints them, those that come with the program too.

    Exit code 1 when one of them is not there; the others are removed.
    """
    from gatewayfilter.use_cases.learning.words import remove_phrases

    found = remove_phrases(invocation.settings(), category, phrases)
    if invocation.json:
        print_json(found)
    else:
        say(f"{counted(found.removed, 'phrase')} of {category} removed. {_RUNNING}")
        for phrase in found.missing:
            say(f"gatewayfilter: {category} has no phrase {phrase!r}", err=True)
    return 1 if found.missing else 0


@words_group.command(examples=("gatewayfilter words show", "gatewayfilter words show gambling --own"), prints_data=True)
@click.argument("category", required=False, metavar="[CATEGORY]")
@click.option("--own", "only_own", is_flag=True, help="Only your own words of the category.")
@click.pass_obj
def show(invocation: Invocation, *, category: str | None, only_own: bool) -> None:
    """Show the categories, or the words of one, heaviest first."""
    from gatewayfilter.use_cases.learning.words import category_words, word_categories

    if category is None:
        _show_categories(invocation, word_categories(invocation.settings()))
        return
    found = category_words(invocation.settings(), category, only_own=only_own)
    if invocation.json:
        print_json(found)
    elif found.words:
        print_table(
            ("kind", "phrase", "weight"),
            [(row.kind, row.phrase, "" if row.weight is None else f"{row.weight:g}") for row in found.words],
        )
    else:
        say(f"There are no {'own ' if only_own else ''}words of {category}.")


def _show_categories(invocation: Invocation, categories: list[WordCategory]) -> None:
    if invocation.json:
        print_json(categories)
    else:
        names = ("category", "words", "context", "combinations", "limit", "short_share", "min_words")
        print_table(names, [astuple(item) for item in categories])


@words_group.command(
    "import",
    examples=(
        "gatewayfilter words import bad-words.txt --category hate --weight 4",
        "gatewayfilter words import weighted --category adult --scale 0.2",
        "gatewayfilter words import gambling.toml",
    ),
    prints_data=True,
    recorded="words.imported",
)
@click.argument("file", type=click.Path(allow_dash=True), metavar="FILE")
@click.option("--category", default="", metavar="NAME", help="The category; files of `words export` contain it.")
@new_category_option
@click.option(
    "--weight",
    type=click.FloatRange(0, 1000, min_open=True),
    default=5.0,
    show_default=True,
    metavar="W",
    help="For words that bring none.",
)
@click.option(
    "--scale",
    type=click.FloatRange(0, 100, min_open=True),
    default=0.2,
    show_default=True,
    metavar="X",
    help="What weights of e2guardian lists are multiplied by.",
)
@click.option("--charset", default="", metavar="NAME", help="gb2312, big5 … (default: found out).")
@click.pass_obj
def import_words(
    invocation: Invocation, *, file: str, category: str, new_category: bool, weight: float, scale: float, charset: str
) -> None:
    """Import words from FILE (- for standard input): one a line, e2guardian's phrase lists, or what `words export` writes.

    Bad lines are counted and named; the others are imported.
    """
    from gatewayfilter.use_cases.learning.words import ImportOptions, import_phrases

    options = ImportOptions(category, new_category, weight, scale, charset)
    with hint_at_new_category():
        found = import_phrases(invocation.settings(), read_bytes(file), file, options)
    if invocation.json:
        print_json(found)
        return
    say(f"{counted(found.read, 'phrase')} read, {found.changed:,} of {found.category} new or changed. {_RUNNING}")
    for sample in found.samples[:5]:
        say(f"gatewayfilter: {file}:{sample.line}: {sample.why}", err=True)
    if found.rejected > len(found.samples[:5]):
        say(f"gatewayfilter: {found.rejected:,} bad lines in all", err=True)


@words_group.command("export", examples=("gatewayfilter words export gambling > gambling.toml",))
@click.argument("category", metavar="CATEGORY")
@click.option("--own", "only_own", is_flag=True, help="Only your own words of the category.")
@click.pass_obj
def export_words(invocation: Invocation, *, category: str, only_own: bool) -> None:
    """Write the words of a category to standard output as TOML; `words import` reads it back."""
    from gatewayfilter.use_cases.learning.words import exported_words

    click.echo(exported_words(invocation.settings(), category, only_own=only_own), nl=False)


@words_group.command(
    examples=(
        "gatewayfilter words test 'free spins at our online casino'",
        "gatewayfilter words test page.html",
        "gatewayfilter words test https://example.com/",
        "curl -s https://example.com/ | gatewayfilter words test -",
    ),
    prints_data=True,
)
@click.argument("text", nargs=-1, required=True, metavar="TEXT...|FILE|URL|-")
@click.pass_obj
def test(invocation: Invocation, *, text: tuple[str, ...]) -> int:
    """Judge a text, a file, a page (an address with http) or standard input (-), mark the words, and show the score breakdown.

    Nothing is learned. Exit code 1 when it is harmful.
    """
    from gatewayfilter.use_cases.learning.word_sandbox import judge_page

    found = judge_page(invocation.settings(), _page(invocation, text))
    if invocation.json:
        print_json(found.classification)
    else:
        _show_marked(found)
        show_judgement(found.classification)
        if found.score_breakdown is not None:
            say()
            show_breakdown(found.score_breakdown)
    return int(found.classification.harmful)


def _page(invocation: Invocation, text: tuple[str, ...]) -> Page:
    from gatewayfilter.use_cases.learning.word_sandbox import page_of_text

    first = text[0] if len(text) == 1 else ""
    if first.startswith(("http://", "https://")):
        return _fetched(invocation, first)
    if first == "-" or _is_file(first):
        return page_of(read_bytes(first))
    return page_of_text(" ".join(text))


def _is_file(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_file()
    except (OSError, ValueError):  # a text too long for a name, or with a zero byte
        return False


def _fetched(invocation: Invocation, text: str) -> Page:
    from gatewayfilter.urls import parse_loose_url
    from gatewayfilter.use_cases.learning.single_page import judge_now

    try:
        return judge_now(invocation.settings(), parse_loose_url(text))[0]
    except UrlError as error:
        raise ClassifyError(f"{text!r} is no URL: {error}") from error
    except FetchError as error:
        raise FetchError(f"{text} was not fetched: {error}") from error


def _show_marked(found: JudgedPage) -> None:
    """Prints the lines that have a hit, zone by zone, with a little of what stands around it."""
    for zone in found.zones:
        shown: list[str] = []
        for index, segment in enumerate(zone.segments):
            if segment.evidence is None:
                shown.append(_around(segment.text, first=index == 0, last=index == len(zone.segments) - 1))
            else:
                shown.append(f"[{click.style(printable(segment.text), bold=True, fg='red')}]")
        click.echo((f"{zone.name}: " if found.all_zones > 1 else "") + "".join(shown) + "\n")


def _around(text: str, *, first: bool, last: bool) -> str:
    """Returns what stands between two hits, its middle left out where it is long."""
    if len(text) <= _CONTEXT * 2:
        return printable(text)
    head = "" if first else text[:_CONTEXT]
    tail = "" if last else text[-_CONTEXT:]
    return f"{printable(head)} … {printable(tail)}"
