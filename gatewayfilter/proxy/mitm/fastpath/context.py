"""The context that the layers of a connection share where the fast path is in use, and the options that they read."""

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, Self

from mitmproxy import http
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context

from gatewayfilter.proxy.mitm.fastpath.steps import Hooks
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client


class FrozenOptions(Options):
    """Options as plain attributes. mitmproxy copies a value deeply for each reading, ten times a request.

    Args:
        current: what is copied, once.
    """

    def __init__(self, current: Options) -> None:
        names: list[str] = current.keys()
        vars(self).update({name: getattr(current, name) for name in names}, _options=vars(current)["_options"])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuses: options are read once.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(f"{name} is frozen")


class AdoptsOrigins(Protocol):
    """What takes idle connections to origins from the keep-alive pool: `adoption.OriginAdoption`."""

    def adopt(self, http_layer: Any, flow: http.HTTPFlow) -> GatewayHttp1Client | None:
        """Returns the origin's side of a connection for a request without a body whose HTTP layer has none, else `None`."""
        ...


@dataclass(frozen=True, slots=True)
class FastPath:
    """What the fast path needs beside the layers of a connection; one for each worker.

    Attributes:
        hooks: runs hooks.
        options: mitmproxy's, read once.
        keeps_bodies: an option requires bodies to be kept or measured, which the fast path does not do.
        origins: takes connections from the keep-alive pool; `None` where a command has to.
    """

    hooks: Hooks
    options: FrozenOptions
    keeps_bodies: bool
    origins: AdoptsOrigins | None = None

    @classmethod
    def of(cls, hooks: Hooks, current: Options, origins: AdoptsOrigins | None = None) -> Self:
        """Returns the fast path for options that do not change any more."""
        options: Any = FrozenOptions(current)
        keeps = options.stream_large_bodies or options.body_size_limit or options.store_streamed_bodies
        return cls(hooks, options, bool(keeps), origins)


class FastPathContext(Context):
    """A context whose connection takes the fast path. A fork costs less than mitmproxy's, which makes a connection to drop it.

    Attributes:
        fast_path: of the worker.
    """

    fast_path: FastPath

    @classmethod
    def of(cls, context: Context, fast_path: FastPath) -> Self:
        """Returns a context like another one, for the fast path."""
        made = cls.__new__(cls)
        made.client, made.server, made.options = context.client, context.server, fast_path.options
        made.layers = context.layers
        made.fast_path = fast_path
        return made

    def fork(self) -> "FastPathContext":
        """Returns a context of its own for a layer beside others."""
        made = FastPathContext.__new__(FastPathContext)
        made.client, made.server, made.options = self.client, self.server, self.options
        made.layers = self.layers.copy()
        made.fast_path = self.fast_path
        return made
