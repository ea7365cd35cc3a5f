"""What the short ways through mitmproxy's layers share: steps, hooks that were begun, layers behind their shells."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

from mitmproxy import http
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.layers.http import HttpLayer

type Sent = list[commands.SendData]
type Commands = Iterator[commands.Command]
type Step = tuple[layer.Layer | None, Iterator[commands.Command]]
"""A layer, and what it does; `None` for the HTTP layer itself."""


class Hooks(Protocol):
    """What runs hooks: `dispatch.CachedAddonManager`."""

    def call(self, name: str, subject: object) -> Awaitable[None] | None:
        """Runs a hook. Returns what remains when it has to wait."""
        ...

    def run_or_defer(self, event: Any) -> bool:
        """Runs a hook; returns False when it has to wait: whoever is above finishes it."""
        ...

    def defer(self, event: Any, waits: Awaitable[None]) -> None:
        """Takes what remains of a hook that was begun elsewhere."""
        ...


class CompletedHooks:
    """The hooks of a flow that ran already, while the rest goes the long way.

    Args:
        hooks: runs the others.
        flow: whose hooks they are.
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

    def run(self, hook: commands.StartHook) -> bool:
        """Runs a hook unless it ran; returns False when it has to wait."""
        kind = type(hook)
        if kind not in self._ran or hook.flow is not self._flow:  # type: ignore[attr-defined]
            return self._hooks.run_or_defer(hook)
        self._ran.discard(kind)
        self._flow.live = self._live  # the stream has just said that it is; a hook may have killed it
        if self._waits is None or kind is not self._last:
            return True
        self._hooks.defer(hook, self._waits)
        self._waits = None
        return False


type SlowPath = Callable[[HttpLayer, list[Step], CompletedHooks], Commands]
"""Does the rest of a message as mitmproxy does it."""


def behind(shell: layer.Layer) -> layer.Layer:
    """Returns the layer that a shell has put in its own place, as `NextLayer`, `HttpClient` and the modes do."""
    while shell._paused is None:  # noqa: SLF001  as Layer.handle_event asks
        stands_in = shell.__dict__.get("_handle_event")
        if stands_in is None or stands_in.__self__ is shell:
            break
        shell = stands_in.__self__
    return shell


def process(of: layer.Layer, doing: Commands) -> Commands:
    """Pauses a layer at commands that it has to wait for, as `Layer.handle_event` does."""
    found: Commands = of._Layer__process(doing)  # type: ignore[attr-defined]  # noqa: SLF001  it has no other name
    return found
