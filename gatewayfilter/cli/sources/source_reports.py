"""Texts and tables about the contents and the state of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import counted, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.sources import ParseReport, Subscription, UpdateResult


def entries_sentence(report: ParseReport | None) -> str:
    """Returns what became of a list's lines, in one line."""
    if report is None:
        return "nothing was read yet"
    parts = [f"{counted(report.accepted, 'entry', 'entries')} ({report.list_format})"]
    if report.duplicates:
        parts.append(f"{report.duplicates:,} repeated")
    if report.cosmetic:
        parts.append(f"{report.cosmetic:,} cosmetic")
    if report.unsupported:
        named = ", ".join(sorted(report.unsupported, key=lambda name: -report.unsupported[name])[:5])
        parts.append(f"{sum(report.unsupported.values()):,} not supported ({named})")
    if report.rejected:
        refused = f", {report.refused:,} of them refused as too broad or too costly" if report.refused else ""
        parts.append(counted(report.rejected, "bad line") + refused)
    return ", ".join(parts)


def say_added(result: UpdateResult) -> None:
    """Prints what became of a list that was added."""
    if result.error:
        say(f"{result.name}: pending, the running filter fetches it later: {result.error}", err=True)
    else:
        say(f"{result.name}: {entries_sentence(result.report)}")
        complain_of_samples(result.name, result.report, most=3)


def complain_of_samples(name: str, report: ParseReport | None, *, most: int) -> None:
    """Names the first bad lines on standard error; rules that are only not supported are none, those refused come all first."""
    if report is None or not report.rejected:
        return
    for line, text, why in report.samples[: max(most, report.refused)]:
        say(f"  {name}:{line}: {text[:100]!r}: {why}", err=True)


def show_details(item: Subscription) -> None:
    """Prints all that is known of a source."""
    definition, state = item.definition, item.state
    origin = "comes with the program" if definition.bundled else definition.address
    print_table(
        ("what", "value"),
        [
            ("name", definition.name),
            ("address", origin),
            ("counts", "yes" if definition.enabled else "no"),
            ("means", f"{definition.action}, category {definition.category}"),
            ("holds", entries_sentence(item.report)),
            ("asked", show_day(state.checked_at or None)),
            ("changed", show_day(state.changed_at or None)),
            ("next", show_day(item.next_due_at or None) if not definition.bundled else ""),
            ("problem", _problem_in_full(item)),
        ],
    )
    complain_of_samples(definition.name, item.report, most=10)
    say()


def _problem_in_full(item: Subscription) -> str:
    from gatewayfilter.use_cases.lists.source_changes import problem_of

    state = item.state
    if item.is_pending or not state.error:
        return problem_of(item)
    return f"{state.error} ({counted(state.failures, 'failure')} since it last went well); the last good copy is in use"
