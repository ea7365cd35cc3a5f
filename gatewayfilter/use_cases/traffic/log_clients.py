"""Clients in the log by their names: addresses and proxy users as logged, and the clients and groups of the policies."""

from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import DEFAULT, Client, MatcherKind, canonical_address
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.proxy.sync.client_key import hash_client, load_client_key
from gatewayfilter.store import Store
from gatewayfilter.use_cases.network_facts import neighbours_now

_MOST_NAMES: Final = 20_000
"""Names that are kept."""


class LogClients:
    """Names the clients of log records, and finds the records of named clients.

    Args:
        store: with the policies and the log.
        settings: `log.hash_clients` counts here: then addresses are found, but no address in the log can be named but those of
            known clients.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._policies = store.policies.read()
        self._neighbours = neighbours_now()
        self._compiled = compile_policies(self._policies, 0.0, neighbours=self._neighbours)
        self._key = load_client_key(settings.data_dir) if settings.log.hash_clients else None
        self._names: dict[str, str] = {}
        if self._key is not None:
            for client in self._policies.clients.values():
                self._names.update(dict.fromkeys(map(self._as_logged, self._matched(client)), client.name))

    @property
    def is_current(self) -> bool:
        """Whether policies and devices are still those by which it names clients; far cheaper than another one."""
        is_same = self._store.policies.read() is self._policies and neighbours_now() == self._neighbours
        return is_same and len(self._names) < _MOST_NAMES

    def name(self, client: str) -> str:
        """Returns the name of a client, `""` for an unnamed one.

        Args:
            client: an address as logged, or `user:NAME`.
        """
        found = self._names.get(client)
        if found is None:
            client_found = self._find(client)
            found = self._names[client] = client_found.name if client_found is not None else ""
        return found

    def shown(self, client: str) -> str:
        """Returns the name of a client, or what is logged of it."""
        return self.name(client) or client

    def named(self, text: str) -> frozenset[str]:
        """Returns what is logged of a client.

        Args:
            text: its name, an address, or `user:NAME`.

        Raises:
            PolicyError: it is none of these.
        """
        client = self._policies.clients.get(text)
        if client is not None:
            seen = {one.client for one in self._store.log_stats.clients() if self.name(one.client) == text}
            return frozenset(seen | set(map(self._as_logged, self._matched(client))))
        if text.startswith(USER_PREFIX):
            return frozenset({self._as_logged(text)})
        try:
            return frozenset({self._as_logged(canonical_address(text))})
        except ValueError as error:
            if any(one.client == text for one in self._store.log_stats.clients()):
                return frozenset({text})  # a hash
            raise PolicyError(f"{text!r} is neither an address nor the name of a client") from error

    def user(self, name: str) -> frozenset[str]:
        """Returns what is logged of a proxy user."""
        return frozenset({self._as_logged(f"{USER_PREFIX}{name.removeprefix(USER_PREFIX)}")})

    def group(self, name: str) -> frozenset[str]:
        """Returns what is logged of the clients of a group; the group `default` has the unnamed ones, too.

        Raises:
            PolicyError: there is no such group.
        """
        if self._policies.group(name) is None:
            raise MissingItemError(f"there is no group {name!r}")
        members = {client.name for client in self._policies.clients.values() if client.group == name}
        found: set[str] = set()
        for member in members:
            found |= self.named(member)
        if name == DEFAULT:
            found |= {one.client for one in self._store.log_stats.clients() if not self.name(one.client)}
        return frozenset(found)

    def _find(self, client: str) -> Client | None:
        if self._key is not None:
            return None
        user = client.removeprefix(USER_PREFIX)
        return self._compiled.find("", user).client if user != client else self._compiled.find(client).client

    def _matched(self, client: Client) -> set[str]:
        """Returns the addresses and users that a client is recognized by, networks left out."""
        found: set[str] = set()
        for matcher in client.matchers:
            match matcher.kind:
                case MatcherKind.USER:
                    found.add(f"{USER_PREFIX}{matcher.value}")
                case MatcherKind.ADDRESS:
                    found.add(matcher.value)
                case MatcherKind.MAC:
                    found |= {address for address, mac in self._neighbours.items() if mac == matcher.value}
                case MatcherKind.NETWORK:
                    pass
        return found

    def _as_logged(self, client: str) -> str:
        if self._key is None:
            return client
        hashed = hash_client(client, self._key)
        return f"{USER_PREFIX}{hashed}" if client.startswith(USER_PREFIX) else hashed
