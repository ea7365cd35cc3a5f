"""Rows of the tables of install.py and upstream_digests.py, and the one function that sets attributes on objects of mitmproxy."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from h2.connection import H2Connection
from mitmproxy.connection import Server
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO


class NeededFor(StrEnum):
    """Why something is replaced."""

    CORRECTNESS = "correctness"
    SPEED = "speed"
    """Results are equal without it; `proxy.fast_path = false` leaves mitmproxy's own in place."""


CORRECTNESS: Final = NeededFor.CORRECTNESS
SPEED: Final = NeededFor.SPEED


@dataclass(frozen=True, slots=True)
class Replacement:
    """A name in a module or an attribute of a class that is replaced for the whole process.

    Attributes:
        target: the module or class.
        attribute: its name there.
        replacement: what takes its place.
        needed_for: why.
        upstream: `module:name` of the code that it replaces, or that uses the name.
        digest: of that code's source, the first 16 digits of its SHA-256.
        makes_pages: it takes the `ErrorAnswers` of the process as its first argument.
    """

    target: object
    attribute: str
    replacement: Callable[..., object]
    needed_for: NeededFor
    upstream: str
    digest: str
    makes_pages: bool = False


@dataclass(frozen=True, slots=True)
class Reliance:
    """Code that is relied on and not replaced.

    Attributes:
        by: a module of proxy/.
        how: what it does with that code, or expects of it.
        module: where the code is.
        digests: the first 16 digits of the SHA-256 of each function's or class's source, by its name.
    """

    by: str
    how: str
    module: str
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class InstanceAttribute:
    """An attribute that is set on single objects, where mitmproxy makes them and no subclass can take their place.

    Attributes:
        kind: the class of the objects.
        attribute: its name.
        how: what takes its place.
    """

    kind: type
    attribute: str
    how: str


INSTANCES: Final = (
    InstanceAttribute(asyncio.AbstractEventLoop, "getaddrinfo", "a cache (tunnel/resolver.py)"),
    InstanceAttribute(asyncio.AbstractEventLoop, "create_connection", "both address families at once (mitm/event_loop.py)"),
    InstanceAttribute(ConnectionHandler, "max_conns", "limits with a time-out (mitm/origin_pool.py)"),
    InstanceAttribute(ConnectionIO, "reader", "a reader without a task's turn for each read (mitm/fastpath/direct_reader.py)"),
    InstanceAttribute(Server, "sharing", "what the keep-alive pool needs of a connection (mitm/sharing.py)"),
    InstanceAttribute(
        asyncio.StreamWriter, "_transport", "a closed one, where the pool took the connection (mitm/shared_origins.py)"
    ),
    InstanceAttribute(H2Connection, "acknowledge_received_data", "back pressure of single streams (mitm/http/http2_flow.py)"),
    InstanceAttribute(
        H2Connection, "decoder", "compiled, and can be given back what it has read (mitm/fastpath/http2/hpack_codec.py)"
    ),
    InstanceAttribute(
        H2Connection, "encoder", "bounded (mitm/http/header_table.py), compiled (mitm/fastpath/http2/hpack_codec.py)"
    ),
    InstanceAttribute(BufferedH2Connection, "connection_window_updated", "once for a read (mitm/http/http2_bounds.py)"),
    InstanceAttribute(H2Connection, "_handle_data_on_closed_stream", "counts what is answered (mitm/http/http2_bounds.py)"),
    InstanceAttribute(H2Connection, "_stream_is_closed_by_reset", "counts what is answered (mitm/http/http2_bounds.py)"),
)


def set_on(instance: object, attribute: str, value: object) -> None:
    """Sets an attribute of an object of mitmproxy, its libraries or the event loop.

    Raises:
        LookupError: the attribute is not in `INSTANCES`.
    """
    kind: Any = type(instance)
    if not _may_be_set(kind, attribute):
        raise LookupError(f"{attribute} of {type(instance).__name__} is not among the attributes that are replaced")
    setattr(instance, attribute, value)


@lru_cache(maxsize=256)
def _may_be_set(kind: type, attribute: str) -> bool:
    return any(row.attribute == attribute and issubclass(kind, row.kind) for row in INSTANCES)
