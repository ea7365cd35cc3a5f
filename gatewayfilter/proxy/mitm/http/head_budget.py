"""A budget for bytes of unfinished heads, of one client and of all.

One connection may keep `MAX_HEADER_BYTES`, and a client may open a thousand of them. Whole heads are never kept, so this counts
rarely: a head that does not come in one piece, and is longer than `FREE_BYTES`.
"""

from typing import Final

from mitmproxy.connection import Client

from gatewayfilter.addresses.client_network import network_of

FREE_BYTES: Final = 8_192
"""Of each connection, not counted: less than a connection costs in any case."""
MOST_OF_CLIENT: Final = 8_000_000
"""Of one address, or one IPv6 network (/64)."""
MOST: Final = 64_000_000


class HeadBudget:
    """Counts the bytes that are kept of each client.

    Args:
        most_of_client, most: bytes.
    """

    def __init__(self, most_of_client: int = MOST_OF_CLIENT, most: int = MOST) -> None:
        self._most_of_client = most_of_client
        self._most = most
        self._of_client: dict[str, int] = {}
        self.held = 0

    def add(self, client: str, count: int) -> None:
        """Notes that so many bytes more (or, below zero, less) are kept of a client."""
        self.held += count
        left = self._of_client.get(client, 0) + count
        if left > 0:
            self._of_client[client] = left
        else:
            self._of_client.pop(client, None)

    def is_over(self, client: str) -> bool:
        """Returns whether too much is kept, of this client or of all."""
        return self.held > self._most or self._of_client.get(client, 0) > self._most_of_client


class HeldBytes:
    """The bytes that one connection keeps. They are given back when this object is freed, however the connection ends.

    Args:
        budget: what it counts towards.
        address: the client's.
    """

    __slots__ = ("_budget", "_client", "_held")

    def __init__(self, budget: HeadBudget, address: str) -> None:
        self._budget = budget
        self._client = network_of(address)
        self._held = 0

    def hold(self, size: int) -> bool:
        """Notes how many bytes are kept now. Returns False when they are too many, by themselves or with those of others."""
        count = size if size > FREE_BYTES else 0
        if count != self._held:
            grows = count > self._held
            self._budget.add(self._client, count - self._held)
            self._held = count
            if grows and self._budget.is_over(self._client):
                self._budget.add(self._client, -count)
                self._held = 0
                return False
        return True

    def __del__(self) -> None:
        """Gives back what is left."""
        if self._held:
            self._budget.add(self._client, -self._held)


_HEADS: Final = HeadBudget()
"""Of this process: mitmproxy makes connections by itself, so that a budget cannot be passed to them."""


def held_by(client: Client) -> HeldBytes:
    """Returns the count of a new connection of a client."""
    return HeldBytes(_HEADS, client.peername[0] if client.peername else "")
