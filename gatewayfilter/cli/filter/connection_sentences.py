"""The treatment of connections to a host, in sentences for `check`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.model import HostAction, Verdict

if TYPE_CHECKING:
    from gatewayfilter.proxy.listener.connection_report import ConnectionReport
    from gatewayfilter.proxy.listener.pinned_apps import PinnedApp

_RAW = {
    "refused": "A tunnel to it that carries neither HTTP nor TLS is refused.",
    "unread": "A tunnel to it that carries neither HTTP nor TLS is relayed unread.",
}
_MOST_SHOWN = 10


def connection_sentences(report: ConnectionReport, client: str) -> Iterator[str]:
    """Yields what holds for HTTPS connections of a client, `""` for any."""
    decision = report.decision
    if decision.action is HostAction.DENY:
        page = "; a device that takes the filter's certificate sees the block page" if report.shows_page else ""
        yield f"Connections to this host are refused before their first request{_by(decision.verdict)}{page}."
    elif report.is_learned:
        yield f"Connections of {client} to this host pass through unread: the verdict above does not count for them."
    elif report.unread:
        yield f"Connections to this host pass through unread{_by(decision.verdict)}: the verdict above does not count for them."
    else:
        yield f"Connections to this host are opened, and each request decided{_by(decision.verdict)}."
        if decision.named and decision.because is not None:
            yield f"They never pass through unread: it or a page of it is blocked{_by(decision.because)}."
    if decision.connect_to:
        yield f"They end at an address of {decision.connect_to} in place of its own."
    yield from _of_devices(report, client)
    yield _RAW[report.raw]


def _of_devices(report: ConnectionReport, client: str) -> Iterator[str]:
    shown = report.learned[:_MOST_SHOWN]
    for entry in shown:
        yield _entry(entry) if report.counts else f"{_entry(entry)[:-1]}; this does not count now."
    if len(report.learned) > len(shown):
        yield f"{len(report.learned) - len(shown)} more devices are in gatewayfilter pinned-apps list."
    if report.counts and not client and not report.learned:
        yield "A device with an app that keeps aborting connections may later pass unread: gatewayfilter pinned-apps list."


def _entry(entry: PinnedApp) -> str:
    return (
        f"{entry.client} passes through unread until {show_moment(entry.expires_at)}, because it broke off {entry.failures} "
        f"connections with the filter's certificate by {show_moment(entry.learned_at)}."
    )


def _by(verdict: Verdict) -> str:
    if not verdict.rule:
        return ""
    place = f"{verdict.source_list}, " if verdict.source_list else ""
    return f" ({verdict.reason}, {place}{verdict.rule})"
