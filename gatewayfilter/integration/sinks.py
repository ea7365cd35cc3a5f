"""The protocols that decisions for other proxies are counted, logged and queued by."""

from typing import Protocol

from gatewayfilter.model import Request, ResourceType, Verdict


class RecordDecisions(Protocol):
    """The decision log, behind a bounded queue. Neither waits nor raises."""

    def record(self, request: Request, verdict: Verdict, elapsed_us: int) -> None:
        """Records a decision."""
        ...

    def record_unreadable(self, client: str, method: str, verdict: Verdict, user: str = "") -> None:
        """Records a request that has no URL."""
        ...


class CountUse(Protocol):
    """The use of quotas, collected for the database.

    Attributes:
        active: whether there is any quota; to be tested before `request` is called.
    """

    active: bool

    def request(self, request: Request, verdict: Verdict) -> None:
        """Counts a request that was allowed."""
        ...


class GuessType(Protocol):
    """The resource type of a request by its header fields and path."""

    def __call__(self, headers: dict[bytes, str], path: str, *, websocket: bool) -> ResourceType:
        """Returns the type."""
        ...
