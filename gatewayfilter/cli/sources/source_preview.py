"""The preview of a list, `gatewayfilter source add --preview`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.sources.source_reports import complain_of_samples, entries_sentence
from gatewayfilter.cli.ui.output import counted, print_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.sources import SourceFile, UpdateResult
    from gatewayfilter.sources.preview import Preview
    from gatewayfilter.wiring import Progress

_LOOKED_AT = 50_000
"""Newest logged requests that a list is tried on."""

_SHOWN_ENTRIES = 5


def look(invocation: Invocation, item: SourceFile, progress: Progress) -> Preview:
    """Holds a list against the lists in use and against what was visited lately.

    Where nothing was published yet, the lists that would be are read, and nothing is left behind: no database, no snapshot.

    Raises:
        SnapshotError, StoreError: the snapshot in use or the log cannot be read.
    """
    from gatewayfilter.sources.preview import preview_list
    from gatewayfilter.wiring import open_engine, snapshot_folder, unpublished_engine

    progress(f"comparing {item.source.name} with what is in use", 0, 0)
    settings = invocation.settings()
    if snapshot_folder(settings).current() is None:
        engine = unpublished_engine(settings)
        return preview_list(item, engine.snapshot, engine, ())
    with invocation.store() as store:
        engine = open_engine(settings, store)
        visits = [(record.url, record.resource_type) for _, record in store.log.tail(_LOOKED_AT) if record.action == "allow"]
    return preview_list(item, engine.snapshot, engine, visits)


def show_previews(invocation: Invocation, results: Sequence[UpdateResult], previews: Mapping[str, Preview]) -> None:
    """Prints what each list holds and would change."""
    if invocation.json:
        changes = {name: preview for name, preview in previews.items() if preview is not None}
        print_json({"results": results, "changes": changes, "published": None})
        return
    for result in results:
        say(f"{result.name}: {entries_sentence(result.report)}")
        if result.report is not None and result.report.taken:
            say(f"   such as {', '.join(key.removeprefix('.') for key in result.report.taken[:_SHOWN_ENTRIES])}")
        if (preview := previews.get(result.name)) is not None and result.report is not None:
            _say_changes(preview, result.report.accepted)
        complain_of_samples(result.name, result.report, most=10)
    say("Nothing was kept.")


def _say_changes(preview: Preview, entries: int) -> None:
    if preview.known is not None:
        say(f"   {max(0, entries - preview.known):,} of them new, {preview.known:,} on a list in use already")
    if not preview.looked_at:
        say("   (no requests are logged that it could be tried on)")
    elif not preview.visited:
        say(f"   blocks none of the last {counted(preview.looked_at, 'request')} that were let pass")
    for visited in preview.visited:
        say(f"   would have blocked {visited.host}: {counted(visited.requests, 'request')} ({visited.rule})")
