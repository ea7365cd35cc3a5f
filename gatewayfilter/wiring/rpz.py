"""Wiring of the response policy zone."""

import time
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.integration.rpz.base_file import write_base
from gatewayfilter.integration.rpz.keeper import ZoneFile, ZoneKeeper
from gatewayfilter.integration.rpz.own_rules import OwnRules
from gatewayfilter.integration.rpz.server import RpzServer
from gatewayfilter.integration.rpz.tsig import TsigKey
from gatewayfilter.integration.rpz.zone import BaseNames, OwnNames, Zone, ZoneHistory
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring.storage import open_store, snapshot_folder, subscriptions


def base_file(settings: Settings) -> Path:
    """Returns the path of the file of names that subscribed lists block."""
    return settings.data_dir / "rpz" / "names"


def write_base_names(settings: Settings, path: Path) -> None:
    """Writes that file from the lists. Raises OSError. One that would be the same is left as it is."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_base(subscriptions(settings).files(), settings.filter.disabled_categories, path)


def rpz_keeper(settings: Settings, counters: Counters, build: Callable[[], None]) -> tuple[ZoneKeeper, ZoneHistory]:
    """Returns what keeps the zone, and the zone.

    Args:
        settings: all settings.
        counters: of the process.
        build: writes the file of names, in another process.

    Raises:
        StoreError: the database cannot be opened.
    """
    store = open_store(settings)
    history = ZoneHistory(Zone(int(time.time()) - 1, BaseNames(), OwnNames()))
    rpz = settings.rpz
    file = ZoneFile(rpz.file, rpz.reload, rpz.file_every_s, counters) if rpz.file is not None else None
    folder = snapshot_folder(settings)
    keeper = ZoneKeeper(OwnRules(store.lists, store.feed), base_file(settings), build, folder.pointing, history, counters, file)
    return keeper, history


def rpz_server(settings: Settings, history: ZoneHistory, counters: Counters) -> RpzServer:
    """Returns the server of the zone.

    Raises:
        StartupError: its TSIG key cannot be used.
    """
    rpz = settings.rpz
    networks = [ip_network(network) for network in rpz.allow_networks]
    return RpzServer(rpz.zone, history, counters, networks, _key(settings))


def _key(settings: Settings) -> TsigKey | None:
    rpz = settings.rpz
    if not rpz.tsig_name:
        return None
    try:
        secret = rpz.tsig_file.read_text(encoding="ascii").strip() if rpz.tsig_file is not None else ""
        return TsigKey(rpz.tsig_name, secret or rpz.tsig_secret.get_secret_value())
    except (OSError, ValueError) as error:
        raise StartupError(f"the TSIG key (rpz.tsig_name, rpz.tsig_file) cannot be used: {error}") from error
