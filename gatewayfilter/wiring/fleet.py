"""Wiring of a fleet: the exporter of a publisher, the follower, and the filter on this machine as the follower uses it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from gatewayfilter import __version__
from gatewayfilter.errors import FleetError, SnapshotError
from gatewayfilter.fleet.adoption import Adopter
from gatewayfilter.fleet.bundle import Bundle, shared_bundle
from gatewayfilter.fleet.export import Exporter
from gatewayfilter.fleet.follower import Follower
from gatewayfilter.fleet.keys import KeyFile
from gatewayfilter.fleet.members import Members, read_token
from gatewayfilter.fleet.transport import Transport
from gatewayfilter.wiring.filtering import publish_now
from gatewayfilter.wiring.storage import fleet_folder, snapshot_folder

if TYPE_CHECKING:
    from pathlib import Path

    from gatewayfilter.config import Settings
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters


def signing_keys(settings: Settings) -> KeyFile:
    """Returns the file of a publisher's signing keys."""
    return KeyFile(fleet_folder(settings).signing_key)


def members(settings: Settings) -> Members:
    """Returns the followers that a publisher admits."""
    return Members(fleet_folder(settings).followers)


def export_now(settings: Settings, store: Store, counters: Counters | None = None) -> bool:
    """Exports what is in force now. Returns False when the export was up to date.

    Args:
        settings: with what is shared.
        store: rules and policies.
        counters: `fleet_exports`, `fleet_export_failures`.

    Raises:
        FleetError: there is no signing key, or it cannot be exported.
        StoreError: the database cannot be read.
    """
    keys = signing_keys(settings).read()
    exporter = Exporter(fleet_folder(settings).export, snapshot_folder(settings), settings.fleet)
    try:
        done = exporter.export(_bundle(settings, store), keys)
    except FleetError:
        if counters is not None:
            counters.add("fleet_export_failures")
        raise
    if done and counters is not None:
        counters.add("fleet_exports")
    return done


def _bundle(settings: Settings, store: Store) -> Bundle:
    return shared_bundle(store.lists.rules(), store.policies.read(), settings.fleet)


def follower(settings: Settings, store: Store, counters: Counters) -> Follower:
    """Returns the follower of the publisher that the settings name.

    Raises:
        FleetError: key, token or certificates cannot be used.
    """
    fleet = settings.fleet
    transport = Transport(fleet.follow, _token(settings), fleet.ca_file)
    return Follower(fleet_folder(settings), fleet, transport, FilterHere(settings, store), counters, __version__)


def _token(settings: Settings) -> str:
    text = settings.fleet.token.get_secret_value()
    if not text and settings.fleet.token_file is not None:
        try:
            text = settings.fleet.token_file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no token"
            raise FleetError(f"cannot read {settings.fleet.token_file} (fleet.token_file): {reason}") from error
    return read_token(text) if text else ""


class FilterHere:
    """The filter on this machine, for the follower.

    Args:
        settings: the state folder.
        store: rules and policies.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store

    def publish(self) -> None:
        """Publishes the publisher's lists with what is local.

        Raises:
            SnapshotError, StoreError: it failed; the last snapshot stays.
        """
        publish_now(self._settings, self._store)

    def adopter(self) -> Adopter:
        """Returns what adopts rules and policies."""
        return Adopter(self._store.lists, self._store.policies)

    def is_published(self, name: str) -> bool:
        """Returns whether the snapshot in use was made from the publisher's snapshot with this mark."""
        try:
            snapshot, _ = snapshot_folder(self._settings).open_newest(verify=False)
        except SnapshotError:
            return False
        with closing(snapshot):
            return bool(snapshot.meta["notes"].get("inputs") == f"fleet:{name}")

    def serving(self) -> tuple[int, int]:
        """Returns the number of list entries in the snapshot in use, and of proxy workers that serve."""
        workers = sum(map(_is_serving, (self._settings.data_dir / "run").glob("proxy-*.json")))
        try:
            snapshot, _ = snapshot_folder(self._settings).open_newest(verify=False)
        except SnapshotError:
            return 0, workers
        with closing(snapshot):
            return snapshot.info.blacklist + snapshot.info.whitelist + snapshot.info.splicelist, workers


def _is_serving(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_bytes())["state"] == "serving")
    except (OSError, ValueError, KeyError, TypeError):
        return False
