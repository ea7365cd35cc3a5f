"""The dashboard for tests: in the test's process without sockets, or served on loopback for a browser."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from fastapi import Request
from starlette.testclient import TestClient

from gatewayfilter import wiring
from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Loaded, load
from gatewayfilter.web.access.authenticator import AccountAuthenticator
from gatewayfilter.web.access.identity import Identity, Role
from gatewayfilter.web.app import create_app
from gatewayfilter.web.services import WebServices

CSRF = "token-of-this-session"
ADMIN = Identity("Ada", Role.ADMIN, CSRF)
APPROVER = Identity("Pat", Role.APPROVER, CSRF)
VIEWER = Identity("Vi", Role.VIEWER, CSRF)


class Accounts:
    """Identifies browsers by their log-ins."""


class Always:
    """Identifies everybody as the same account, or nobody."""

    def __init__(self, identity: Identity | None) -> None:
        self.identity = identity

    def identify(self, request: Request) -> Identity | None:
        del request
        return self.identity


def loaded_for(data_dir: Path, **options: object) -> Loaded:
    """Settings of a state folder, without file and environment."""
    given = {key.replace("__", "."): value for key, value in options.items()}
    return load(options={"data_dir": data_dir, **given})


@dataclass(slots=True)
class Dashboard:
    """A dashboard without sockets.

    Attributes:
        client: sends requests as a browser does, with the CSRF token in a header.
        services: what its handlers use.
        who: decides who sends the requests.
    """

    client: TestClient
    services: WebServices
    who: Always


@cache
def _ca_files() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        ensure_ca(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _give_ca(folder: Path) -> None:
    """Gives a state folder the same CA as all others of this process, unless it has one."""
    if folder.exists():
        ensure_ca(folder)
    else:
        folder.mkdir(mode=0o700, parents=True)
        for name, content in _ca_files().items():
            path = folder / name
            path.touch(mode=0o600)
            path.write_bytes(content)


@contextmanager
def dashboard(data_dir: Path, identity: Identity | None = ADMIN, **options: object) -> Iterator[Dashboard]:
    """Opens a dashboard over a state folder."""
    loaded = loaded_for(data_dir, **options)
    with closing(wiring.open_store(loaded.settings)) as store:
        _give_ca(data_dir / "ca")
        services, who = WebServices(loaded, store), Always(identity)
        app = create_app(services, who)
        with TestClient(app, base_url="http://127.0.0.1:8081", follow_redirects=False, raise_server_exceptions=False) as client:
            client.headers["x-csrf-token"] = CSRF
            yield Dashboard(client, services, who)


@contextmanager
def served(data_dir: Path, identity: Identity | Accounts | None = ADMIN, **options: object) -> Iterator[str]:
    """Serves a dashboard on loopback; yields its address, as `http://127.0.0.1:41234`. With `Accounts` it has log-ins."""
    loaded = loaded_for(data_dir, **options)
    with closing(wiring.open_store(loaded.settings)) as store, socket.socket() as listener:
        _give_ca(data_dir / "ca")
        services = WebServices(loaded, store)
        authenticator = AccountAuthenticator(services.access) if isinstance(identity, Accounts) else Always(identity)
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(create_app(services, authenticator), log_config=None, lifespan="off", access_log=False)
        )
        server.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
