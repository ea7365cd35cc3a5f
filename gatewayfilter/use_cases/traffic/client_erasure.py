"""The erasure of a client: everything that is stored about it, wherever that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import Client, MatcherKind, canonical_address
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.client_traces import ClientIdentity
from gatewayfilter.use_cases.network_facts import neighbours_now
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.traffic.log_clients import LogClients

_BACKUPS = "backups"
_MOVED = "gatewayfilter.sqlite3.*"


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, and what could not be.

    Attributes:
        counts: number of erased decisions, requests, messages, links, days of quotas, devices and clients.
        backups: files of the state folder that still hold the client; those elsewhere are not found.
    """

    counts: Mapping[str, int]
    backups: tuple[Path, ...]


def erase_client(store: Store, settings: Settings, text: str, *, keep: bool = False) -> Erased:
    """Erases a client from log, counts, requests, messages, links, quotas, devices and policies.

    A running filter that still holds records in its queues writes them within a second: what the client does from then on is
    stored as before.

    Args:
        store: the database.
        settings: of the state folder; `log.hash_clients` counts here.
        text: the client's name, its address, or `user:NAME`.
        keep: whether the client and its rules stay in the policies.

    Raises:
        MissingItemError: it is none of these.
    """
    client = store.policies.read().clients.get(text)
    try:
        logged = LogClients(store, settings).named(text)
    except PolicyError as error:
        raise MissingItemError(str(error)) from error
    addresses = _addresses(store, client, text)
    if not settings.log.hash_clients:
        addresses |= {one for one in logged if not one.startswith(USER_PREFIX)}
    identity = ClientIdentity(logged, addresses, client.name if client is not None else "")
    counts = {"decisions": store.log.purge_clients(logged), **store.client_traces.erase(identity), "clients": 0}
    if client is not None and not keep:
        PolicyEditor(store.policies).remove_client(client.name)
        counts["clients"] = 1
    return Erased(counts, tuple(_backups(settings.data_dir)))


def _backups(state: Path) -> list[Path]:
    """Returns the backups of a state folder, and the databases that a repair or a rollback has moved aside."""
    found = [*(state / _BACKUPS).glob("*"), *state.glob(_MOVED)]
    return sorted(path for path in found if path.is_file())


def _addresses(store: Store, client: Client | None, text: str) -> frozenset[str]:
    if client is None:
        try:
            return frozenset({canonical_address(text)})
        except ValueError:
            return frozenset()
    found = {matcher.value for matcher in client.matchers if matcher.kind is MatcherKind.ADDRESS}
    macs = {matcher.value for matcher in client.matchers if matcher.kind is MatcherKind.MAC}
    found |= {address for address, mac in neighbours_now().items() if mac in macs}
    found |= {device.address for device in store.devices.all() if device.mac in macs}
    return frozenset(found)
