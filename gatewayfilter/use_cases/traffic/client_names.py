"""The names of clients in the log."""

from typing import Protocol


class ClientNames(Protocol):
    """Names clients, as `log_clients.LogClients` does."""

    def shown(self, client: str) -> str:
        """Returns the name of a client, or what is logged of it: an address, a hash, or `user:NAME`."""
        ...
