"""The entry of a proxy worker's process."""

import os
import secrets
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from gatewayfilter.config import Settings, UnknownRule
from gatewayfilter.errors import StartupError
from gatewayfilter.model import Request
from gatewayfilter.processes.inspection.client import InspectionPool
from gatewayfilter.processes.supervision.child_setup import begin_child
from gatewayfilter.processes.supervision.gc_tuning import keep_small, settle
from gatewayfilter.processes.supervision.heartbeat import Heartbeat
from gatewayfilter.proxy.worker import run_worker
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import categories, category_title, newest_engine, setup_pages, snapshot_folder
from gatewayfilter.wiring.proxy import WorkerComponents, assemble_components

_KEY_BYTES = 32
_FIRST_REQUEST = Request(parse_url("http://first.invalid/"), parse_url("http://source.invalid/"))
"""Decided once before anybody is served: the first decision loads what later ones find loaded, such as the public suffixes."""


def run_proxy_worker(index: int, settings: Settings, line: Connection) -> None:
    """Runs a proxy worker until SIGTERM, which says on `line` that it lives. Exits with 2 when it cannot start."""
    begin_child(settings)
    run_worker(index, settings, settled_parts, Heartbeat(line).beat)


def settled_parts(settings: Settings) -> WorkerComponents:
    """As `worker_parts`, in a process that serves nothing else: its memory is arranged for that.

    Raises:
        SnapshotError: there is no good snapshot.
    """
    parts = worker_parts(settings)
    settle()
    keep_small()
    return parts


def worker_parts(settings: Settings, *, standalone: bool = False) -> WorkerComponents:
    """Joins what a proxy process runs: the engine on the newest good snapshot, and the database, which may be away.

    Raises:
        SnapshotError: there is no good snapshot.
    """
    store = ReconnectingStore(settings)
    engine = newest_engine(settings)
    engine.decide(_FIRST_REQUEST)
    return assemble_components(
        settings,
        engine,
        snapshot_folder(settings),
        store,
        client_key=client_key(settings.data_dir) if settings.log.hash_clients else b"",
        title_of=partial(category_title, categories()),
        internal_pages=None if standalone else setup_pages(settings, engine),  # mitmdump has a CA and an address of its own
        inspector=InspectionPool(settings) if settings.proxy.unknown is UnknownRule.INSPECT else None,
        standalone=standalone,
    )


def client_key(data_dir: Path) -> bytes:
    """Returns the secret of this state folder under which `log.hash_clients` hashes, made when there is none.

    Raises:
        StartupError: it can be neither read nor made.
    """
    path = data_dir / "client.key"
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(descriptor, "wb") as file:
            key = secrets.token_bytes(_KEY_BYTES)
            file.write(key)
            return key
    except OSError as error:
        raise StartupError(f"cannot read or make {path}: {error.strerror}") from error
