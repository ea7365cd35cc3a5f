"""Hook dispatch without a search through all addons for each event.

mitmproxy searches all addons for the methods of each hook, in a new task each: 44 % of its CPU for a small request
(docs/benchmarks.md). Here a table keeps the bound methods of each hook, and hooks that do not have to wait run inline.

`CachedAddonManager` replaces the `AddonManager` of one master. `HookRunner` is the top layer of one connection.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any, Final

from mitmproxy import addonmanager, exceptions, flow, hooks
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.tls import ClientTLSLayer

from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Hooks, behind
from gatewayfilter.proxy.mitm.fastpath.tls_path import awaits_nothing, deliver, deliver_http

_log = logging.getLogger(__name__)
_connections_log = logging.getLogger("mitmproxy.proxy.server")
"""Where mitmproxy's connection handler writes the log commands of its layers."""
_INNERMOST: Final = frozenset({FastHttpLayer, ClientTLSLayer})


@cache
def _argument_names(hook: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(hooks.all_hooks[hook]))  # type: ignore[arg-type]  # every hook is a dataclass


def _arguments(event: hooks.Hook) -> list[Any]:
    # As event.args(), which reads the fields of its class again each time.
    return [getattr(event, name) for name in _argument_names(event.name)]


class CachedAddonManager(addonmanager.AddonManager):
    """An `AddonManager` that remembers which methods each hook has."""

    def __init__(self, master: Any) -> None:
        super().__init__(master)  # type: ignore[no-untyped-call]
        self._table: dict[str, tuple[Callable[..., Any], ...]] = {}
        self._at_once: dict[str, bool] = {}
        self._late: set[asyncio.Future[None]] = set()
        self._unfinished: dict[int, Awaitable[None]] = {}

    def add(self, *addons: object) -> None:
        """Adds addons to the end of the chain."""
        self._forget()
        super().add(*addons)  # type: ignore[no-untyped-call]

    def remove(self, addon: object) -> None:
        """Removes an addon."""
        self._forget()
        super().remove(addon)  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        """Removes all addons."""
        super().clear()  # type: ignore[no-untyped-call]
        self._forget()

    def handlers(self, name: str) -> tuple[Callable[..., Any], ...]:
        """Returns the methods of a hook, in the order of the addons."""
        found = self._table.get(name)
        if found is None:
            methods = (getattr(addon, name, None) for addon in addonmanager.traverse(self.chain))
            found = self._table[name] = tuple(method for method in methods if callable(method))
        return found

    def run_at_once(self, name: str) -> bool:
        """Returns whether no method of a hook waits: none is a coroutine function, or has ever returned something to wait for."""
        found = self._at_once.get(name)
        if found is None:
            found = self._at_once[name] = not any(map(inspect.iscoroutinefunction, self.handlers(name)))
        return found

    def run_now(self, name: str, subject: object) -> None:
        """Runs a hook of which `run_at_once` holds. If it waits for the first time, that goes on beside what follows."""
        waits = self.call(name, subject)
        if waits is not None:
            task = asyncio.ensure_future(waits)
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    def run(self, event: hooks.Hook) -> Awaitable[None] | None:
        """Runs a hook. Returns what remains when one of its methods has to wait, else `None`."""
        return self.call(event.name, *_arguments(event)) if self.handlers(event.name) else None

    def call(self, name: str, *arguments: object) -> Awaitable[None] | None:
        """Runs a hook by its name. Returns what remains when one of its methods has to wait, else `None`."""
        handlers = self._table.get(name)
        if handlers is None:
            handlers = self.handlers(name)
        for position, handler in enumerate(handlers):
            try:
                waits = handler(*arguments)
            except exceptions.AddonHalt:
                return None
            except Exception:  # noqa: BLE001  as mitmproxy: an addon that fails must not stop the others
                _log.exception("hook %s failed", name)
            else:
                if waits is not None and inspect.isawaitable(waits):
                    self._at_once[name] = False
                    return self._finish(waits, handlers[position + 1 :], name, arguments)
        return None

    def run_or_defer(self, event: hooks.Hook) -> bool:
        """Runs a hook, once. Returns False when it has to wait: `handle_lifecycle` then finishes it."""
        if id(event) in self._unfinished:
            return False
        waits = self.run(event)
        if waits is None:
            return True
        self.defer(event, waits)
        return False

    def defer(self, event: hooks.Hook, waits: Awaitable[None]) -> None:
        """Takes what remains of a hook, for `handle_lifecycle` to finish it."""
        self._unfinished[id(event)] = waits

    async def trigger_event(self, event: hooks.Hook) -> None:
        """Runs a hook to its end."""
        if (waits := self.run(event)) is not None:
            await waits

    async def handle_lifecycle(self, event: hooks.Hook) -> None:
        """Runs a hook of a connection or flow to its end, or finishes one that was deferred."""
        unfinished = self._unfinished.pop(id(event), None)
        if unfinished is not None:
            await unfinished
        else:
            await self.trigger_event(event)
        if self.handlers("update") and isinstance(subject := event.args()[0], flow.Flow):
            await self.trigger_event(hooks.UpdateHook([subject]))

    def _forget(self) -> None:
        self._table.clear()
        self._at_once.clear()

    async def _finish(
        self, waits: Awaitable[None], rest: tuple[Callable[..., Any], ...], name: str, arguments: tuple[object, ...]
    ) -> None:
        try:
            await waits
            for handler in rest:
                waits = handler(*arguments)
                if waits is not None and inspect.isawaitable(waits):
                    await waits
        except exceptions.AddonHalt:
            return
        except Exception:  # noqa: BLE001  as mitmproxy: an addon that fails must not stop the others
            _log.exception("hook %s failed", name)


class HookRunner:
    """Wraps a connection's top layer: runs the hooks of its layers, and hands all other commands on.

    The reply to a hook follows after the current event, as in mitmproxy's own handler, without a task and a turn of the event
    loop for each.

    Args:
        top: the layer.
        addons: runs the hooks.

    Attributes:
        context: of the wrapped layer; it stays when the layer is freed.
    """

    def __init__(self, top: layer.Layer, addons: Hooks) -> None:
        self._top = top
        self.context: Context = top.context
        self._run_or_defer = addons.run_or_defer
        self._inner = top

    @property
    def top(self) -> layer.Layer:
        """The wrapped layer."""
        return self._top

    def handle_event(self, event: events.Event) -> Iterable[commands.Command]:
        """Returns the commands that follow from an event."""
        if type(event) is not events.DataReceived:
            return self._climb(self._top.handle_event(event))
        inner = self._inner
        if type(inner) is FastHttpLayer:
            coming = deliver_http(inner, event)
        else:
            coming = deliver(inner, event)
            if type(inner) is not ClientTLSLayer and type(found := behind(inner)) in _INNERMOST:
                self._inner = found  # the shells around it have been replaced for good
        return coming if type(coming) is list else self._climb(iter(coming))

    def _climb(self, coming: Iterator[commands.Command]) -> Iterator[commands.Command]:  # noqa: C901, PLR0912  a call costs more
        """Yields commands.

        What is sent to one connection in a row goes out in one piece: headers and body take one system call instead of two.
        """
        replies: deque[events.Event] = deque()
        unsent: commands.SendData | None = None
        try:
            while True:
                for command in coming:
                    if isinstance(command, commands.SendData):
                        if unsent is None:
                            unsent = command
                        elif unsent.connection is command.connection:
                            unsent = commands.SendData(command.connection, unsent.data + command.data)
                        else:
                            yield unsent
                            unsent = command
                    elif isinstance(command, commands.Log):  # one for each streamed response, between head and body
                        if _connections_log.isEnabledFor(command.level):
                            yield command
                    elif not isinstance(command, commands.StartHook) or not self._run_or_defer(command):
                        if unsent is not None:
                            yield unsent
                            unsent = None
                        yield command
                    elif command.blocking:
                        replies.append(events.HookCompleted(command, None))
                if not replies:
                    break
                coming = self._top.handle_event(replies.popleft())
        except Exception:
            if unsent is not None:
                yield unsent  # what was said before the fault counts as said: a table of header fields may have changed with it
            raise
        if unsent is not None:
            yield unsent


def is_at_rest(top: object) -> bool:
    """Returns whether nothing follows from the end of the client whose top layer this is."""
    return type(top) is HookRunner and awaits_nothing(top.top)


def free(top: object) -> None:
    """Frees the layers of a connection that has ended, which hold each other in circles, and with them their TLS state.

    Without it that waits for the garbage collector, and the next connection takes new memory instead of what is in the cache.
    """
    if type(top) is not HookRunner:
        return
    found: set[layer.Layer] = set()
    lists: set[int] = set()
    left = [*top.context.layers]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            layers = one.context.layers
            if id(layers) not in lists:  # most layers share theirs
                lists.add(id(layers))
                left += layers
            if isinstance(one, HttpLayer):
                left += (*one.connections.values(), *one.streams.values())
            if type(one) is FastHttpLayer and one.spare is not None:
                left.append(one.spare)
    for one in found:
        vars(one).clear()
    top.context.layers.clear()
