"""The holds of the queue that machines share: it has none, and refuses them."""

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import Hold, HoldKind, QueueHolds


class NoHolds:
    """Implements `interfaces.QueueHolds`. Holds that the machine's own queue had before are shown, and can be ended.

    Args:
        own: those of the machine's own queue.
    """

    def __init__(self, own: QueueHolds | None = None) -> None:
        self._own = own

    def hold(self, kind: HoldKind, name: str, now: float) -> bool:  # noqa: ARG002  the protocol's
        """Refuses.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"a single {kind} cannot be paused while machines share the queue in Redis (queue.url); "
            "`queue pause` pauses the whole queue"
        )

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Ends a hold of the machine's own queue. Returns False when there is none."""
        return self._own is not None and self._own.unhold(kind, name)

    def all(self) -> list[Hold]:
        """Returns the holds of the machine's own queue."""
        return self._own.all() if self._own is not None else []
