"""The byte limit of a connection: it ends when more was received than a fetch may take.

A limit on decoded bytes does not see what never becomes a body: interim answers, chunk extensions and the zeros before a chunk's
size go on for as long as an origin likes, and the client library reads them all.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

ALLOWANCE = 262_144
"""For headers, and for what is read ahead of a limit."""
_BODY_FACTOR = 2
"""A body in chunks may take so much more than it holds; one in small chunks breaks off."""

_most: ContextVar[int | None] = ContextVar("wire_budget", default=None)


class FloodError(aiohttp.ClientError):
    """An origin sent more than its answer may have."""


def allow_body(limit: int) -> None:
    """Sets how many bytes the body of the next answer may have, for later requests of this task."""
    _most.set(limit * _BODY_FACTOR + ALLOWANCE)


class MeteredConnector(aiohttp.TCPConnector):
    """A connector whose connections count their bytes. To be made in the event loop.

    Args:
        options: as of `aiohttp.TCPConnector`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Not public, checked by tests/crawl/test_hostile_budgets.py: aiohttp has no way to give a connection another protocol.
        make: Callable[[], ResponseHandler] = partial(_Metered, asyncio.get_running_loop())
        self._factory = cast("partial[ResponseHandler]", make)


class _Metered(ResponseHandler):
    """A connection; its count begins again with each request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._left: int | None = None

    def set_response_params(self, **options: Any) -> None:
        """Begins a request, in its task."""
        self._left = _most.get()
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        """Takes what came, or ends the connection."""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self._end()
                return
        super().data_received(data)

    def _end(self) -> None:
        error = FloodError("the answer is longer than is read")
        payload, self._payload, self._parser = self._payload, None, None
        if self.transport is not None:
            self.transport.abort()
        self.set_exception(error)
        if payload is not None:
            payload.set_exception(error)
