"""Queries of the decision log."""

from collections.abc import Collection, Sequence
from typing import Protocol

from gatewayfilter.model import LogCount, LogDimension, LogPage, LogQuery, LogRecord, LogSummary, LogTimeline, SeenClient


class LogSearch(Protocol):
    """Search in the decision log."""

    def page(self, query: LogQuery, limit: int = ..., *, before: int | None = None, budget_s: float = ...) -> LogPage:
        """Returns the newest records that fulfil a query, with ids below `before`; ends when its time is over."""
        ...


class LogStats(Protocol):
    """Counts of decisions."""

    def summary(
        self,
        since: float | None = None,
        until: float | None = None,
        clients: frozenset[str] | None = None,
        top: int = ...,
        dimensions: Collection[LogDimension] = ...,
    ) -> LogSummary:
        """Returns the counts of a time span, widened to whole hours, for some clients or everybody."""
        ...

    def tops(
        self,
        since: float,
        until: float,
        clients: frozenset[str] | None = None,
        top: int = ...,
        dimensions: Collection[LogDimension] = ...,
    ) -> dict[LogDimension, tuple[LogCount, ...]]:
        """Returns the names of a summary with the most blocked decisions."""
        ...

    def timeline(self, edges: Sequence[float], clients: frozenset[str] | None = None) -> LogTimeline:
        """Returns the counts between each two of these times, in whole hours, for some clients or everybody."""
        ...

    def clients(self) -> list[SeenClient]:
        """Returns the clients that are counted, the newest first."""
        ...

    def covered(self) -> tuple[int, int]:
        """Returns the id up to which the log is counted, and the newest id."""
        ...


class LogFollowers(Protocol):
    """Readers of the decision log outside of the database, and how far each has come."""

    def position(self, name: str) -> int | None:
        """Returns the id up to which a follower has read, `None` for one that has not begun."""
        ...

    def bounds(self) -> tuple[int, int]:
        """Returns the oldest id that is kept, and the newest below which no record can still appear; zeros for an empty log."""
        ...

    def after(self, position: int, up_to: int, most: int) -> Sequence[tuple[int, LogRecord]]:
        """Returns the oldest records with `position < id <= up_to`, each with its id."""
        ...

    def move(self, name: str, up_to: int) -> None:
        """Stores the id up to which a follower has read."""
        ...
