"""The preview of a list, `gatewayfilter source add --preview`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.sources.source_reports import complain_of_samples, entries_sentence
from gatewayfilter.cli.ui.output import counted, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.sources.preview import Preview
    from gatewayfilter.use_cases.lists.source_changes import PreviewedSource

_SHOWN_ENTRIES = 5


def show_previews(invocation: Invocation, found: Sequence[PreviewedSource]) -> None:
    """Prints what each list holds and would change."""
    if invocation.json:
        changes = {item.result.name: item.changes for item in found if item.changes is not None}
        print_json({"results": [item.result for item in found], "changes": changes, "published": None})
        return
    for item in found:
        result = item.result
        say(f"{result.name}: {entries_sentence(result.report)}")
        if result.report is not None and result.report.taken:
            say(f"   such as {', '.join(key.removeprefix('.') for key in result.report.taken[:_SHOWN_ENTRIES])}")
        if item.changes is not None and result.report is not None:
            _say_changes(item.changes, result.report.accepted)
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
