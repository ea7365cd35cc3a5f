"""HTTP servers of child processes: a client that sends its request slowly, or opens many connections, holds up no other."""

import asyncio
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 20.0
"""How long a request head may take, from the connection or the answer before."""
MAX_PER_CLIENT: Final = 64
"""Connections of one address at once. Those of this machine, where a server may stand before the dashboard, are not counted."""


def bounded_config(application: Any, *, head_bytes: int, connections: int, drain_s: int = 2, **more: Any) -> uvicorn.Config:
    """Returns the configuration of a server with the limits of `BoundedProtocol`, without log of requests and WebSockets.

    Args:
        application: the ASGI application.
        head_bytes: largest head of a request.
        connections: at once; further ones get 503.
        drain_s: seconds that requests have at the end.
        more: further parameters of uvicorn's configuration.
    """
    return uvicorn.Config(
        application,
        access_log=False,
        log_config=None,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=BoundedProtocol,
        loop="asyncio",
        h11_max_incomplete_event_size=head_bytes,
        limit_concurrency=connections,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=drain_s,
        **more,
    )


class UnsignalledServer(uvicorn.Server):
    """uvicorn's server in a process that answers signals itself: it ends by `should_exit`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals as they are."""
        yield


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for heads, and a limit of connections per client."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins a connection, or ends it where its client has too many."""
        super().connection_made(transport)
        if self.client is not None and not _is_own(self.client[0]):
            others = [one.client for one in self.connections if isinstance(one, BoundedProtocol) and one.client is not None]
            if [client[0] for client in others].count(self.client[0]) > MAX_PER_CLIENT:
                transport.abort()
                return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the connection."""
        self._cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        self._cancel()
        self._head_timer = self.loop.call_later(HEAD_S, self._end_without_head)

    def _end_without_head(self) -> None:
        if self.conn.their_state in {h11.IDLE, h11.DONE, h11.ERROR} and (self.cycle is None or self.cycle.response_complete):
            self.transport.abort()

    def _cancel(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _is_own(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
