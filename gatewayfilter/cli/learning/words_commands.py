"""`gatewayfilter words`: the sensitive words that pages are judged by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.categories import check_category, new_category_option
from gatewayfilter.cli.ui.classification_view import show_breakdown, show_judgement
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, printable, say
from gatewayfilter.cli.ui.page_files import page_of, read_bytes
from gatewayfilter.errors import ClassifyError, FetchError, UrlError

if TYPE_CHECKING:
    from gatewayfilter.classify import Category, CustomWords, Explained, Lexicon, PhraseList, WordFile
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.interfaces import Page

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


def _own(invocation: Invocation) -> CustomWords:
    from gatewayfilter.wiring import custom_words

    return custom_words(invocation.settings())


def _checked(invocation: Invocation, category: str, *, new: bool) -> CustomWords:
    """Returns the operator's own words when the category is known or may be made."""
    from gatewayfilter.classify.lexicon.word_file import CATEGORY_NAME
    from gatewayfilter.use_cases.network_facts import known_categories

    own = _own(invocation)
    if CATEGORY_NAME.fullmatch(category):  # `CustomWords` refuses another with what a name is
        known = known_categories(invocation.settings(), allowing=True)
        check_category(category, known | set(_lexicon(invocation).categories), new=new)
    return own


def _lexicon(invocation: Invocation) -> Lexicon:
    from gatewayfilter.wiring import load_lexicon

    return load_lexicon(invocation.settings())


@words_group.command(
    examples=(
        "gatewayfilter words add --category gambling 'lucky wheel' --weight 8",
        "gatewayfilter words add --category gambling 'deposit + bonus code' --weight 10",
        "gatewayfilter words add --category gambling 'gambling commission' --context --weight 6",
        "gatewayfilter words add --category gambling 'bingo wings' --exception",
    ),
    prints_data=True,
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
    from gatewayfilter.classify import PhraseList

    if context and exception:
        raise ClassifyError("a phrase is either context or an exception")
    own = _checked(invocation, category, new=new_category)
    if exception:
        changed = sum(own.add_exception(category, phrase) for phrase in phrases)
    else:
        changed = own.add_all(category, _weighted(PhraseList(), phrases, -weight if context else weight))
    if invocation.json:
        print_json({"category": category, "changed": changed})
    else:
        say(f"{counted(changed, 'phrase')} of {category} added or changed. {_RUNNING}")


def _weighted(target: PhraseList, phrases: tuple[str, ...], weight: float) -> PhraseList:
    for phrase in phrases:
        parts = tuple(part.strip() for part in phrase.split(" + "))
        if len(parts) > 1:
            target.combinations[parts] = weight
        else:
            target.words[phrase] = weight
    return target


@words_group.command(examples=("gatewayfilter words remove --category gambling lottery 'a + b'",), prints_data=True)
@click.argument("phrases", nargs=-1, required=True, metavar="PHRASE...")
@_category
@click.pass_obj
def remove(invocation: Invocation, *, phrases: tuple[str, ...], category: str) -> int:
    """Remove phrases as `words show` prints them, those that come with the program too.

    Exit code 1 when one of them is not there; the others are removed.
    """
    own, lexicon = _own(invocation), _lexicon(invocation)
    missing = [phrase for phrase in phrases if not own.remove(category, phrase, lexicon)]
    removed = len(phrases) - len(missing)
    if invocation.json:
        print_json({"removed": removed, "missing": missing})
    else:
        say(f"{counted(removed, 'phrase')} of {category} removed. {_RUNNING}")
        for phrase in missing:
            say(f"gatewayfilter: {category} has no phrase {phrase!r}", err=True)
    return 1 if missing else 0


@words_group.command(examples=("gatewayfilter words show", "gatewayfilter words show gambling --own"), prints_data=True)
@click.argument("category", required=False, metavar="[CATEGORY]")
@click.option("--own", "only_own", is_flag=True, help="Only your own words of the category.")
@click.pass_obj
def show(invocation: Invocation, *, category: str | None, only_own: bool) -> None:
    """Show the categories, or the words of one, heaviest first."""
    from gatewayfilter.classify import export_category

    if category is None:
        _show_categories(invocation, list(_lexicon(invocation).categories.values()))
        return
    file = _own(invocation).read(category) if only_own else export_category(_lexicon(invocation), category)
    rows = _rows(file)
    if invocation.json:
        names = ("kind", "phrase", "weight")
        print_json(
            {
                "category": category,
                "limit": file.limit,
                "short_share": file.short_share,
                "min_words": file.min_words,
                "words": [dict(zip(names, row, strict=True)) for row in rows],
            }
        )
    elif rows:
        print_table(
            ("kind", "phrase", "weight"),
            [(kind, phrase, "" if weight is None else f"{weight:g}") for kind, phrase, weight in rows],
        )
    else:
        say(f"There are no {'own ' if only_own else ''}words of {category}.")


def _show_categories(invocation: Invocation, categories: list[Category]) -> None:
    rows = [
        (item.name, len(item.words), len(item.context), combined, item.limit, item.short_share, item.min_words)
        for item in sorted(categories, key=lambda item: item.name)
        for combined in [len(item.combinations) + len(item.near)]
    ]
    names = ("category", "words", "context", "combinations", "limit", "short_share", "min_words")
    if invocation.json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows)


def _rows(file: WordFile) -> list[tuple[str, str, float | None]]:
    weighted = [
        *(("word", phrase, weight) for phrase, weight in file.words.items()),
        *(("combination", " + ".join(parts), weight) for parts, weight in file.combinations.items()),
        *(("near", near.name, near.weight) for near in file.near),
        *(("context", phrase, -weight) for phrase, weight in file.context.items()),
    ]
    weighted.sort(key=lambda row: (-row[2], row[1]))
    return [
        *weighted,
        *(("exception", phrase, None) for phrase in file.exceptions),
        *(("removed", phrase, None) for phrase in file.removed),
    ]


@words_group.command(
    "import",
    examples=(
        "gatewayfilter words import bad-words.txt --category hate --weight 4",
        "gatewayfilter words import weighted --category adult --scale 0.2",
        "gatewayfilter words import gambling.toml",
    ),
    prints_data=True,
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
    from gatewayfilter.classify import parse_phrase_list

    content = read_bytes(file)
    own = _checked(invocation, category, new=new_category) if category else _own(invocation)
    exceptions: list[str] = []
    if file.endswith(".toml"):
        category, phrases, exceptions = _of_word_file(content, file, category)
    else:
        phrases = parse_phrase_list(content, weight=weight, scale=scale, charset=charset)
    if not category:
        raise ClassifyError("name the category of the words: --category NAME")
    if not (phrases.words or phrases.combinations or phrases.near or exceptions):
        line, why = phrases.samples[0] if phrases.samples else (1, "nothing but comments")
        raise ClassifyError(f"{file} holds no usable word; line {line}: {why}")
    changed = own.add_all(category, phrases) + sum(own.add_exception(category, phrase) for phrase in exceptions)
    read = len(phrases.words) + len(phrases.combinations) + len(phrases.near) + len(exceptions)
    if invocation.json:
        samples = [{"line": line, "why": why} for line, why in phrases.samples]
        print_json({"category": category, "read": read, "changed": changed, "rejected": phrases.rejected, "samples": samples})
        return
    say(f"{counted(read, 'phrase')} read, {changed:,} of {category} new or changed. {_RUNNING}")
    for line, why in phrases.samples[:5]:
        say(f"gatewayfilter: {file}:{line}: {why}", err=True)
    if phrases.rejected > len(phrases.samples[:5]):
        say(f"gatewayfilter: {phrases.rejected:,} bad lines in all", err=True)


def _of_word_file(content: bytes, name: str, category: str) -> tuple[str, PhraseList, list[str]]:
    from gatewayfilter.classify import PhraseList
    from gatewayfilter.classify.lexicon.word_file import parse_word_file

    try:
        file = parse_word_file(content.decode(), name)
    except UnicodeDecodeError as error:
        raise ClassifyError(f"{name} is not UTF-8 text: byte {error.start}") from error
    against = {phrase: -weight for phrase, weight in file.context.items()}
    return (
        category or file.category,
        PhraseList({**file.words, **against}, dict(file.combinations), near=file.near),
        file.exceptions,
    )


@words_group.command("export", examples=("gatewayfilter words export gambling > gambling.toml",))
@click.argument("category", metavar="CATEGORY")
@click.option("--own", "only_own", is_flag=True, help="Only your own words of the category.")
@click.pass_obj
def export_words(invocation: Invocation, *, category: str, only_own: bool) -> None:
    """Write the words of a category to standard output as TOML; `words import` reads it back."""
    from gatewayfilter.classify import export_category, format_word_file

    file = _own(invocation).read(category) if only_own else export_category(_lexicon(invocation), category)
    click.echo(format_word_file(file), nl=False)


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
    from gatewayfilter.classify import breakdown_of
    from gatewayfilter.wiring import classifier

    explained = classifier(invocation.settings()).explain(_page(invocation, text))
    if invocation.json:
        print_json(explained.classification)
    else:
        _show_marked(explained)
        show_judgement(explained.classification)
        if (breakdown := breakdown_of(explained, words_version="")) is not None:
            say()
            show_breakdown(breakdown)
    return int(explained.classification.harmful)


def _page(invocation: Invocation, text: tuple[str, ...]) -> Page:
    from gatewayfilter.interfaces import Page

    first = text[0] if len(text) == 1 else ""
    if first.startswith(("http://", "https://")):
        return _fetched(invocation, first)
    if first == "-" or _is_file(first):
        return page_of(read_bytes(first))
    return Page("", "", 200, {"content-type": "text/plain; charset=utf-8"}, " ".join(text).encode(errors="replace"))


def _is_file(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_file()
    except (OSError, ValueError):  # a text too long for a name, or with a zero byte
        return False


def _fetched(invocation: Invocation, text: str) -> Page:
    from gatewayfilter.urls import parse_loose_url
    from gatewayfilter.use_cases.single_page import judge_now

    try:
        return judge_now(invocation.settings(), parse_loose_url(text))[0]
    except UrlError as error:
        raise ClassifyError(f"{text!r} is no URL: {error}") from error
    except FetchError as error:
        raise FetchError(f"{text} was not fetched: {error}") from error


def _show_marked(explained: Explained) -> None:
    """Prints the lines that have a hit, zone by zone, with a little of what stands around it."""
    from gatewayfilter.classify import highlight_zone

    zones = [zone for zone in explained.zones if any(hit.zone == zone for hit in explained.classification.evidence)]
    for zone in zones or list(explained.zones)[:1]:
        segments = highlight_zone(explained.zones[zone], zone, explained.classification)
        shown: list[str] = []
        for index, segment in enumerate(segments):
            if segment.evidence is None:
                shown.append(_around(segment.text, first=index == 0, last=index == len(segments) - 1))
            else:
                shown.append(f"[{click.style(printable(segment.text), bold=True, fg='red')}]")
        click.echo((f"{zone}: " if len(explained.zones) > 1 else "") + "".join(shown) + "\n")


def _around(text: str, *, first: bool, last: bool) -> str:
    """Returns what stands between two hits, its middle left out where it is long."""
    if len(text) <= _CONTEXT * 2:
        return printable(text)
    head = "" if first else text[:_CONTEXT]
    tail = "" if last else text[-_CONTEXT:]
    return f"{printable(head)} … {printable(tail)}"
