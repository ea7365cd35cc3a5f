"""What the modules of the fast path share: steps, completed hooks, the layer that another one has been replaced by."""

from collections.abc import Awaitable, Iterator
from typing import Any, Protocol

from mitmproxy import http
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook

type Sent = list[commands.SendData]
type Commands = Iterator[commands.Command]
type Step = tuple[layer.Layer | None, Iterator[commands.Command]]
"""A layer and its commands; `None` for the HTTP layer itself."""


class Hooks(Protocol):
    """What runs hooks: `hook_runner.CachedAddonManager`."""

    def handlers(self, name: str) -> tuple[Any, ...]:
        """Returns the methods of a hook."""
        ...

    def run_at_once(self, name: str) -> bool:
        """Returns whether no method of a hook waits."""
        ...

    def run_now(self, name: str, subject: object) -> None:
        """Runs a hook of which `run_at_once` holds."""
        ...

    def call(self, name: str, subject: object) -> Awaitable[None] | None:
        """Runs a hook. Returns what remains when it has to wait."""
        ...

    def run_or_defer(self, event: Any) -> bool:
        """Runs a hook; returns False when it has to wait: mitmproxy's connection handler finishes it."""
        ...

    def defer(self, event: Any, waits: Awaitable[None]) -> None:
        """Takes what remains of a hook that was begun elsewhere."""
        ...


class CompletedHooks:
    """The hooks of a flow that ran already, while the rest of the message takes the slow path.

    Args:
        hooks: runs the others.
        flow: the flow of the hooks.
        ran: their kinds.
        waits: what remains of the last of them, `None` when it is done.
    """

    def __init__(self, hooks: Hooks, flow: http.HTTPFlow, *ran: type[commands.StartHook], waits: Awaitable[None] | None) -> None:
        self._hooks = hooks
        self._flow = flow
        self._ran = set(ran)
        self._last = ran[-1] if ran else None
        self._waits = waits
        self._live = flow.live
        meant = flow.request.data
        self._target = meant.host, meant.port, meant.scheme, meant.authority

    def run(self, hook: commands.StartHook) -> bool:
        """Runs a hook unless it ran; returns False when it has to wait."""
        kind = type(hook)
        if kind not in self._ran or hook.flow is not self._flow:  # type: ignore[attr-defined]
            return self._hooks.run_or_defer(hook)
        self._ran.discard(kind)
        self._flow.live = self._live  # the stream has just set it to True; a hook may have killed the flow
        if kind is HttpRequestHeadersHook:  # and where the request leads, by the tunnel: a hook may have led it elsewhere
            meant = self._flow.request.data
            meant.host, meant.port, meant.scheme, meant.authority = self._target
        if self._waits is None or kind is not self._last:
            return True
        self._hooks.defer(hook, self._waits)
        self._waits = None
        return False


def behind(shell: layer.Layer) -> layer.Layer:
    """Returns the layer that a shell has put in its own place, as mitmproxy's `NextLayer`, `HttpClient` and modes do.

    They set their own `_handle_event` to the method of the other layer.
    """
    while shell._paused is None:  # noqa: SLF001  as Layer.handle_event checks
        stands_in = shell.__dict__.get("_handle_event")
        if stands_in is None or stands_in.__self__ is shell:
            break
        shell = stands_in.__self__
    return shell


def process(of: layer.Layer, doing: Commands) -> Commands:
    """Pauses a layer at blocking commands, as `Layer.handle_event` does."""
    found: Commands = of._Layer__process(doing)  # type: ignore[attr-defined]  # noqa: SLF001  it has no other name
    return found
