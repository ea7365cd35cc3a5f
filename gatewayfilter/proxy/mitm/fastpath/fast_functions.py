"""Faster forms of functions of mitmproxy, with equal results (tests/proxy/mitm/fastpath/test_fast_functions.py compares them).

proxy/mitm/install.py puts them in place.
"""

from collections.abc import Iterator
from itertools import count
from os import register_at_fork, urandom
from time import time
from typing import Any, ClassVar, Final

from mitmproxy import http
from mitmproxy.connection import Client, Connection, Server
from mitmproxy.proxy import commands, events

from gatewayfilter.proxy.request.header_fields import has_name, value_of, values_of

_bare: Final[Any] = object.__new__
_VARIANT: Final = "89ab"
_FIRST: Final = frozenset({"address", "transport_protocol"})
_init: Final[Any] = Server.__init__
_PLAIN: Final = {name: value for name, value in vars(Server(address=None)).items() if name != "id"}


def skip_type_checks(_message: http.MessageData) -> None:
    """Stands in for `MessageData.__post_init__`, which checks each field against its annotation: 80 µs a request."""


def get_all(self: http.Headers, name: str | bytes) -> list[str]:
    """Stands in for `Headers.get_all`, which decodes and compares all fields through four calls each, twenty times a request."""
    return values_of(self.fields, name)


def get(self: http.Headers, name: str | bytes, default: Any = None) -> Any:
    """Stands in for `Headers.get`."""
    return value_of(self.fields, name, default)


def contains(self: http.Headers, name: object) -> bool:
    """Stands in for `Headers.__contains__`."""
    return isinstance(name, str | bytes) and has_name(self.fields, name)


def to_bytes(self: http.Headers) -> bytes:
    """Stands in for `Headers.__bytes__`."""
    return b"\r\n".join(map(b": ".join, self.fields)) + b"\r\n" if self.fields else b""


def make_hook(kind: type[commands.StartHook], *_arguments: object, **_named: object) -> Any:
    """Stands in for `StartHook.__new__`, which checks through three classes whether its class is a dataclass."""
    return _bare(kind)


def make_completed(kind: type[events.CommandCompleted], *_arguments: object, **_named: object) -> Any:
    """Stands in for `CommandCompleted.__new__`, which checks the same."""
    return _bare(kind)


class FastIds:
    """Stands in for the module `uuid` where mitmproxy makes identifiers, which it uses as text."""

    _begin: ClassVar[str] = ""
    _numbers: ClassVar[Iterator[int]] = count()

    @classmethod
    def uuid4(cls) -> str:
        """Returns a UUID (RFC 9562 §5.8) as text: 74 random bits of this process, and a number. It is distinct, but no secret."""
        return f"{cls._begin}{next(cls._numbers):012x}"

    @classmethod
    def renew(cls) -> None:
        """Draws the random bits: a forked process must not go on with those of its parent."""
        digits = urandom(10).hex()
        cls._begin = f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-{_VARIANT[int(digits[15], 16) & 3]}{digits[16:19]}-"


FastIds.renew()
register_at_fork(after_in_child=FastIds.renew)


def make_flow(client: Client, server: Server) -> http.HTTPFlow:
    """Returns what `HTTPFlow(client, server, live=True)` returns, without two calls that set a dozen fields."""
    flow: http.HTTPFlow = _bare(http.HTTPFlow)
    flow.__dict__ = {
        "id": FastIds.uuid4(), "client_conn": client, "server_conn": server, "live": True, "timestamp_created": time(),
        "intercepted": False, "_resume_event": None, "_backup": None, "marked": "", "is_replay": None, "metadata": {},
        "comment": "",
    }  # fmt: skip
    return flow


def make_server(self: Server, **given: Any) -> None:
    """Stands in for `Server.__init__`, which sets two dozen fields through a check of each."""
    if "address" not in given or not given.keys() <= _FIRST:
        _init(self, **given)
        return
    fields = vars(self)
    fields.update(_PLAIN)
    fields["id"] = FastIds.uuid4()
    fields.update(given)


def is_same(self: Connection, other: object) -> bool:
    """Stands in for `Connection.__eq__`, which asks an abstract base class before it compares."""
    return self is other or (isinstance(other, Connection) and self.id == other.id)
