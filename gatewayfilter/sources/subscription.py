"""The records of a subscription: its definition, its state, its last report; each a small JSON file in its folder."""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gatewayfilter.errors import SourceError
from gatewayfilter.model import ListAction, Source
from gatewayfilter.private_files import private
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport

_LONGEST_WAIT_S: Final = 7 * 86_400.0
"""Longest wait that a server may request (Retry-After), in seconds."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition of a subscription (`source.json`).

    Attributes:
        name: unique; lower-case letters, digits and hyphens.
        address: an http(s) address, or a path to a file or UT1 folder.
        list_format: how it is read, `None` until the first download finds out.
        interval_h: update interval in hours; 0 for `sources.interval_h`.
        added_at: Unix seconds.
        bundled: comes with the program; can be disabled, not changed or removed.
    """

    name: str
    address: str
    list_format: ListFormat | None
    category: str
    action: ListAction
    interval_h: float
    enabled: bool = True
    added_at: float = 0.0
    bundled: bool = False


@dataclass(frozen=True, slots=True)
class SourceState:
    """How the last downloads went (`state.json`). Times are Unix seconds, 0 for never.

    Attributes:
        sha256: of the copy in use, unpacked, in hexadecimal.
        checked_at: time of the last download, successful or not.
        changed_at: when the copy in use was taken.
        failed_at: when it last failed; `failures` counts those since the last success.
        error: why it last failed, `""` when the last attempt went well.
        retry_after_s: Retry-After of the server when it failed.
        failing_since: when the failures began that `failures` counts.
    """

    etag: str = ""
    last_modified: str = ""
    sha256: str = ""
    checked_at: float = 0.0
    changed_at: float = 0.0
    failed_at: float = 0.0
    failures: int = 0
    error: str = ""
    retry_after_s: float = 0.0
    failing_since: float = 0.0

    def failed(self, now: float, why: str, retry_after_s: float = 0.0) -> "SourceState":
        """Returns the state after a download that failed.

        Args:
            now: Unix seconds.
            why: one sentence.
            retry_after_s: Retry-After of the server, 0 for none.
        """
        return replace(
            self,
            checked_at=now,
            failed_at=now,
            failures=self.failures + 1,
            failing_since=self.failing_since if self.failures else now,
            error=why,
            retry_after_s=min(retry_after_s, _LONGEST_WAIT_S),
        )


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as `source status` shows it.

    Attributes:
        list_path: the last good copy; it may be missing.
        report: what became of its lines, `None` when it was never read.
        next_due_at: Unix seconds from which an update is due.
    """

    definition: Definition
    list_path: Path
    state: SourceState = field(default_factory=SourceState)
    report: ParseReport | None = None
    next_due_at: float = 0.0

    @property
    def is_pending(self) -> bool:
        """Whether it is enabled and was never fetched: no copy is in use."""
        return self.definition.enabled and not self.definition.bundled and not self.list_path.exists()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A list on disk that takes part in the next snapshot."""

    source: Source
    path: Path
    list_format: ListFormat


class UpdateStatus(StrEnum):
    """The outcome of an update. `PENDING`: subscribed to, and to be fetched later."""

    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT_BACK = "kept-back"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The outcome of the update of one source.

    Attributes:
        report: of the copy that was fetched, or of the one in use when nothing was.
        error: one sentence when it failed, was kept back or is pending, else `""`.
    """

    name: str
    status: UpdateStatus
    report: ParseReport | None = None
    error: str = ""


def write_json(path: Path, value: Any) -> None:
    """Writes a dataclass as JSON: aside, synced, renamed.

    Raises:
        OSError: it cannot be written; the last one stays.
    """
    aside = path.with_name(f".{path.name}.new")
    with open(aside, "w", encoding="utf-8", opener=private) as file:
        json.dump(asdict(value), file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def read_definition(path: Path) -> Definition:
    """Reads `source.json`.

    Raises:
        SourceError: it is missing or damaged.
    """
    try:
        table: dict[str, Any] = json.loads(path.read_text("utf-8"))
        table["list_format"] = ListFormat(table["list_format"]) if table["list_format"] else None
        table["action"] = ListAction(table["action"])
        return Definition(**table)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is damaged; remove the source and add it again") from error


def read_state(path: Path) -> SourceState:
    """Reads `state.json`; a missing or damaged one only means that the list is downloaded again."""
    try:
        return SourceState(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return SourceState()


def read_report(path: Path) -> ParseReport | None:
    """Reads `report.json`; `None` for a missing or damaged one."""
    try:
        table: dict[str, Any] = json.loads(path.read_text("utf-8"))
        table["list_format"] = ListFormat(table["list_format"])
        table["samples"] = tuple((int(line), str(text), str(why)) for line, text, why in table["samples"])
        table["taken"] = tuple(map(str, table.get("taken", ())))
        return ParseReport(**table)
    except (OSError, ValueError, KeyError, TypeError):
        return None
