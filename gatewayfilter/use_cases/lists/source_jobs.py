"""Work on subscriptions for a child process: arguments and results are plain values, so that the parent stays small.

Each function takes the settings first, opens the database for itself, and publishes what it changed.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources import ListFormat, SourceFile, UpdateResult, UpdateStatus
from gatewayfilter.sources.preview import Preview
from gatewayfilter.use_cases.lists import source_undo
from gatewayfilter.use_cases.lists.source_changes import (
    SourceOptions,
    add_source,
    changeable_sources,
    check_source_category,
    compare_with_use,
    preview_source,
    update_sources,
)
from gatewayfilter.use_cases.lists.source_undo import Pairs
from gatewayfilter.wiring import open_store, publish_now

_SAMPLES: Final = 10


def subscribe(settings: Settings, addresses: Sequence[str], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Subscribes to lists, and publishes them. One that cannot be added is named in its result, and the others are added.

    Args:
        settings: the settings.
        addresses: names of the catalogue, or http(s) addresses.
        options: fields of `SourceOptions` as text.

    Raises:
        ListError: there is no such category.
    """
    chosen = _options(options)
    check_source_category(settings, chosen.category)
    known = changeable_sources(settings)
    results: list[dict[str, Any]] = []
    for address in addresses:
        try:
            results.append(_result(add_source(known, address, chosen)))
        except (SourceError, ListError) as error:
            results.append({"name": address, "status": "failed", "entries": 0, "error": str(error)})
    if any(result["status"] == UpdateStatus.UPDATED for result in results):
        publish(settings)
    return results


def update(settings: Settings, names: Sequence[str]) -> list[dict[str, Any]]:
    """Checks lists for changes, those named or every enabled one, and publishes what changed."""
    results = update_sources(changeable_sources(settings), names, every=not names)
    if any(result.status is UpdateStatus.UPDATED for result in results):
        publish(settings)
    return [_result(result) for result in results]


def switch(settings: Settings, name: str, *, enabled: bool) -> list[dict[str, Any]]:
    """Switches a list on or off, and publishes."""
    known = changeable_sources(settings)
    (known.enable if enabled else known.disable)(name)
    publish(settings)
    return [{"name": name, "status": "enabled" if enabled else "disabled", "entries": 0, "error": ""}]


def remove(settings: Settings, name: str) -> list[dict[str, Any]]:
    """Forgets a list, and publishes."""
    changeable_sources(settings).remove(name)
    publish(settings)
    return [{"name": name, "status": "removed", "entries": 0, "error": ""}]


def put_back(settings: Settings, pairs: Pairs) -> list[dict[str, Any]]:
    """Takes changes of subscriptions back, and publishes."""
    names = source_undo.put_back(settings, pairs)
    publish(settings)
    return [{"name": name, "status": "undone", "entries": 0, "error": ""} for name in names]


def publish(settings: Settings, *, full: bool = False) -> list[dict[str, Any]]:
    """Publishes all lists; with `full` each is read again, also where only entries changed."""
    with closing(open_store(settings)) as store:
        report = publish_now(settings, store, full=full)
    return [{"name": item.source.name, "status": "failed", "entries": 0, "error": item.error} for item in report.skipped]


def preview(settings: Settings, address: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Fetches a list, and tells what it holds and what it would change; nothing is kept.

    Raises:
        SourceError, ListError: it cannot be fetched or read; with the reason.
    """
    chosen = _options(options)
    check_source_category(settings, chosen.category)

    def compare(item: SourceFile) -> Preview:
        return compare_with_use(settings, item, lambda: closing(open_store(settings)))

    found = preview_source(changeable_sources(settings), address, chosen, compare)
    changes = None
    if found.changes is not None:
        visited = [{"host": one.host, "requests": one.requests, "rule": one.rule} for one in found.changes.visited]
        changes = {"known": found.changes.known, "visited": visited, "looked_at": found.changes.looked_at}
    return [{**_result(found.result), "changes": changes}]


def _options(given: dict[str, Any]) -> SourceOptions:
    return SourceOptions(
        str(given.get("name", "")),
        ListFormat(given["list_format"]) if given.get("list_format") else None,
        str(given.get("category", "")),
        ListAction(given["action"]) if given.get("action") else None,
        float(given.get("interval_h") or 0.0),
    )


def _result(result: UpdateResult) -> dict[str, Any]:
    report = result.report
    found: dict[str, Any] = {"name": result.name, "status": result.status.value, "entries": 0, "error": result.error}
    if report is not None:
        found |= {
            "entries": report.accepted,
            "format": report.list_format.value,
            "rejected": report.rejected,
            "unsupported": sum(report.unsupported.values()),
            "taken": list(report.taken[:_SAMPLES]),
            "samples": [list(sample) for sample in report.samples[:_SAMPLES]],
        }
    return found
