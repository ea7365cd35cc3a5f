"""`gatewayfilter source`: subscriptions to lists of others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.sources.publish_command import publish_lists, published_sentence
from gatewayfilter.cli.sources.source_preview import show_previews
from gatewayfilter.cli.sources.source_reports import (
    complain_of_samples,
    entries_sentence,
    say_added,
    show_details,
)
from gatewayfilter.cli.ui.categories import hint_at_new_category, new_category_option
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.sources.parallel import WIDTH, in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.sources import SourceFile, Subscriptions, UpdateResult
    from gatewayfilter.sources.preview import Preview
    from gatewayfilter.use_cases.lists.source_changes import SourceOptions
    from gatewayfilter.wiring import Progress

_FORMATS = ("hosts", "domains", "adblock", "dnsmasq", "urls", "ut1", "digests", "rpz", "json", "csv")
_no_publish = click.option(
    "--no-publish", is_flag=True, help="Leave running workers as they are; `gatewayfilter publish` swaps later."
)


@click.group(
    "source",
    cls=FilterGroup,
    short_help="Subscriptions to lists of others.",
    examples=("gatewayfilter source catalog", "gatewayfilter source add easylist easyprivacy", "gatewayfilter source status"),
)
def source_group() -> None:
    """Subscriptions to lists of others: addresses, files and folders, in any usual format.

    The learner checks each for changes when it is due. A change is published at once: running workers swap without a pause.
    """


def _subscriptions(invocation: Invocation) -> Subscriptions:
    from gatewayfilter.use_cases.lists.source_changes import changeable_sources

    return changeable_sources(invocation.settings())


def _finish(invocation: Invocation, results: Sequence[Any], *, publish: bool) -> None:
    """Publishes and reports it; with --json prints everything in one document."""
    report = publish_lists(invocation.settings(), quiet=invocation.json) if publish else None
    if invocation.json:
        print_json({"results": results, "published": report})
    elif report is not None:
        say(published_sentence(report))


@source_group.command(
    examples=(
        "gatewayfilter source add easylist",
        "gatewayfilter source add https://lists.example/hosts.txt --name ads --category ads --interval 12",
        "gatewayfilter source add ./blacklists/gambling ./my-hosts.txt",
        "gatewayfilter source add trusted.txt --action allow --preview",
        "gatewayfilter source add --defaults",
        "gatewayfilter source add --for school",
    ),
    prints_data=True,
    recorded="source.added",
)
@click.argument("addresses", nargs=-1, metavar="ADDRESS|NAME...")
@click.option("--defaults", is_flag=True, help="The usual lists of the catalogue, without those already subscribed to.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["home", "school", "office"]),
    help="The lists of the catalogue that fit this purpose, without those already subscribed to.",
)
@click.option("--name", default="", metavar="NAME", help="What to call it (default: from the address).")
@click.option("--format", "list_format", type=click.Choice(_FORMATS), help="How it is written (default: found out).")
@click.option("--category", default="", metavar="NAME", help="What its entries are (default: guessed from the address).")
@new_category_option
@click.option(
    "--action", type=click.Choice(["block", "allow", "splice"]), help="The action of its entries (default: that of the category)."
)
@click.option(
    "--interval",
    type=click.FloatRange(0, 24 * 365, min_open=True),
    metavar="HOURS",
    help="How often to check for changes (default: sources.interval_h).",
)
@click.option("--preview", is_flag=True, help="Only show what it holds and what would change; nothing is kept.")
@_no_publish
@click.pass_obj
def add(  # noqa: PLR0913  one parameter an option
    invocation: Invocation,
    *,
    addresses: tuple[str, ...],
    defaults: bool,
    purpose: str | None,
    name: str,
    list_format: str | None,
    category: str,
    new_category: bool,
    action: str | None,
    interval: float | None,
    preview: bool,
    no_publish: bool,
) -> int:
    """Subscribe to lists: names of the catalogue, http(s) addresses, files, or UT1 folders and archives.

    A list of the catalogue that cannot be fetched now, and any list whose server cannot be reached now, is subscribed to and
    pending: the running filter tries again. Exit code 1 when one is pending, or one of several could not be added.
    """
    from gatewayfilter.model import ListAction
    from gatewayfilter.sources import ListFormat
    from gatewayfilter.use_cases.lists.source_changes import SourceOptions, add_source, check_source_category
    from gatewayfilter.use_cases.lists.source_undo import inverse_of_several

    if name and len(addresses) > 1:
        raise SourceError("--name can only be given with one address")
    if not addresses and not defaults and purpose is None:
        raise click.UsageError("name an address or a list of the catalogue, or give --defaults or --for")
    known = _subscriptions(invocation)
    if not new_category:
        with hint_at_new_category():
            check_source_category(invocation.settings(), category)
    addresses += known.missing(purpose, defaults=defaults)
    if not addresses and not invocation.json:
        say("All of them are there.")
    options = SourceOptions(
        name, ListFormat(list_format) if list_format else None, category, ListAction(action) if action else None, interval or 0.0
    )
    if preview:
        return _preview(invocation, known, addresses, options)

    def add_one(address: str) -> UpdateResult:
        return add_source(known, address, options, progress=progress if len(addresses) == 1 else None)

    with showing(quiet=invocation.json) as progress:
        results, failed = _each(addresses, add_one, progress, width=WIDTH)
    invocation.undo = inverse_of_several([(None, {"name": result.name}) for result in results])
    _finish_adding(invocation, results, publish=not no_publish)
    return 1 if failed or any(result.error for result in results) else 0


def _preview(invocation: Invocation, known: Subscriptions, addresses: Sequence[str], options: SourceOptions) -> int:
    from gatewayfilter.use_cases.lists.source_changes import PreviewedSource, compare_with_use, preview_source

    def compare(item: SourceFile) -> Preview:
        progress(f"comparing {item.source.name} with what is in use", 0, 0)
        return compare_with_use(invocation.settings(), item, invocation.store)

    def preview_one(address: str) -> PreviewedSource:
        return preview_source(known, address, options, compare, progress=progress)

    with showing(quiet=invocation.json) as progress:
        found, failed = _each(addresses, preview_one, progress)
    show_previews(invocation, found)
    return 1 if failed else 0


def _finish_adding(invocation: Invocation, results: Sequence[UpdateResult], *, publish: bool) -> None:
    if not invocation.json:
        for result in results:
            say_added(result)
    _finish(invocation, results, publish=publish and any(result.report is not None for result in results))


def _each[T](
    names: Sequence[str], work: Callable[[str], T], progress: Progress | None = None, *, width: int = 1
) -> tuple[list[T], int]:
    """Does the work for each name; one that fails is reported and counted, unless it is the only one.

    Args:
        names: of sources.
        work: is called for each, in threads if `width` is more than one.
        progress: is told which one is fetched; of several at once, how many are done.
        width: how many at once.
    """
    if len(names) == 1:
        if progress is not None:
            progress(f"fetching {names[0]}", 0, 1)
        return [work(names[0])], 0
    if width > 1:
        report = None if progress is None else partial(progress, f"fetching {len(names)} lists")
        outcomes = in_parallel(names, partial(_caught, work), width, report)
    else:
        outcomes = []
        for number, name in enumerate(names):
            if progress is not None:
                progress(f"fetching {name}", number, len(names))
            outcomes.append(_caught(work, name))
    results = [outcome for outcome in outcomes if not isinstance(outcome, SourceError | ListError)]
    for outcome in outcomes:
        if isinstance(outcome, SourceError | ListError):
            say(f"gatewayfilter: {outcome}", err=True)
    return results, len(outcomes) - len(results)


def _caught[T](work: Callable[[str], T], name: str) -> T | SourceError | ListError:
    try:
        return work(name)
    except (SourceError, ListError) as error:
        return error


@source_group.command(examples=("gatewayfilter source remove ads",), prints_data=True, recorded="source.removed")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_no_publish
@click.pass_obj
def remove(invocation: Invocation, *, names: tuple[str, ...], no_publish: bool) -> int:
    """Forget sources and their copies. Lists that come with the program can be disabled instead."""
    return _change(invocation, names, enabled=None, publish=not no_publish)


@source_group.command(examples=("gatewayfilter source enable starter-ads",), prints_data=True, recorded="source.enabled")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_no_publish
@click.pass_obj
def enable(invocation: Invocation, *, names: tuple[str, ...], no_publish: bool) -> int:
    """Let disabled sources count again."""
    return _change(invocation, names, enabled=True, publish=not no_publish)


@source_group.command(examples=("gatewayfilter source disable starter-ads",), prints_data=True, recorded="source.disabled")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@_no_publish
@click.pass_obj
def disable(invocation: Invocation, *, names: tuple[str, ...], no_publish: bool) -> int:
    """Let sources not count, and keep their copies."""
    return _change(invocation, names, enabled=False, publish=not no_publish)


def _change(invocation: Invocation, names: Sequence[str], *, enabled: bool | None, publish: bool) -> int:
    from gatewayfilter.use_cases.lists.source_undo import changed_source, inverse_of_several

    known = _subscriptions(invocation)
    done = {None: "removed", True: "enabled", False: "disabled"}[enabled]
    results, failed = _each(names, lambda name: (name, changed_source(known, name, enabled=enabled)))
    invocation.undo = inverse_of_several([pair for _, pair in results])
    if not invocation.json:
        for name, _ in results:
            say(f"{name} {done}.")
    _finish(invocation, [{"name": name, "status": done} for name, _ in results], publish=bool(results) and publish)
    return 1 if failed else 0


@source_group.command(
    examples=("gatewayfilter source update", "gatewayfilter source update easylist --force", "gatewayfilter source update --all"),
    prints_data=True,
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "every", is_flag=True, help="All enabled sources, due or not.")
@click.option("--force", is_flag=True, help="Fetch unconditionally, and accept a list that shrank suddenly.")
@_no_publish
@click.pass_obj
def update(invocation: Invocation, *, names: tuple[str, ...], every: bool, force: bool, no_publish: bool) -> int:
    """Check sources for changes: those named, or those that are due. The learner does so by itself.

    A source that cannot be fetched keeps its last good copy. Exit code 1 when one failed or was kept back.
    """
    from gatewayfilter.sources import UpdateStatus
    from gatewayfilter.use_cases.lists.source_changes import update_sources

    known = _subscriptions(invocation)
    with showing(quiet=invocation.json) as progress:
        results = update_sources(known, names, every=every, force=force, progress=progress)
    if not invocation.json:
        for result in results:
            say(f"{result.name}: {result.error or f'{result.status}, {entries_sentence(result.report)}'}", err=bool(result.error))
            if result.status is UpdateStatus.UPDATED and result.report is not None and result.report.refused:
                complain_of_samples(result.name, result.report, most=0)
        if not results:
            say("No source is due for an update." if not every else "There are no sources to update.")
    changed = any(result.status is UpdateStatus.UPDATED for result in results)
    _finish(invocation, results, publish=changed and not no_publish)
    return 1 if any(result.error for result in results) else 0


@source_group.command(examples=("gatewayfilter source status", "gatewayfilter source status easylist"), prints_data=True)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def status(invocation: Invocation, *, names: tuple[str, ...]) -> None:
    """Show all sources, or details of those named: what they hold, when they changed, and what went wrong."""
    from gatewayfilter.use_cases.lists.source_changes import problem_of
    from gatewayfilter.wiring import subscriptions

    known = subscriptions(invocation.settings())
    found = [known.get(name) for name in names] if names else known.all()
    if invocation.json:
        print_json(found)
    elif names:
        for item in found:
            show_details(item)
    elif not found:
        hint("There are no sources. Add one: gatewayfilter source catalog")
    else:
        print_table(
            ("name", "on", "means", "category", "format", "entries", "changed", "next", "problem"),
            [
                (
                    item.definition.name,
                    "yes" if item.definition.enabled else "no",
                    item.definition.action,
                    item.definition.category,
                    item.definition.list_format,
                    f"{item.report.accepted:,}" if item.report else "",
                    "bundled" if item.definition.bundled else show_day(item.state.changed_at or None),
                    show_day(item.next_due_at or None) if not item.definition.bundled else "",
                    problem_of(item),
                )
                for item in found
            ],
        )


@source_group.command(examples=("gatewayfilter source catalog", "gatewayfilter source catalog --category ads"), prints_data=True)
@click.option("--category", default="", metavar="NAME", help="Only lists of this category.")
@click.pass_obj
def catalog(invocation: Invocation, *, category: str) -> None:
    """Show well-known lists that `source add` accepts by name. Read a list's licence before you subscribe."""
    from gatewayfilter.use_cases.lists.source_changes import list_catalogue

    rows = list_catalogue(invocation.settings(), category)
    if not rows:
        raise SourceError(f"no list of the catalogue is of the category {category!r}")
    if invocation.json:
        print_json([row.entry for row in rows])
    else:
        print_table(
            ("name", "default", "added", "category", "licence", "description"),
            [
                (
                    row.entry.name,
                    "on" if row.entry.default else "off",
                    "yes" if row.added else "",
                    row.entry.category,
                    row.entry.licence,
                    row.entry.description,
                )
                for row in rows
            ],
        )
