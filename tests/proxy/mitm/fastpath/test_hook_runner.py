"""What goes to one connection in a row is sent in one piece, whatever is said for the log in between."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Server
from mitmproxy.proxy import commands, events

from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager, HookRunner, free

ONE, OTHER = Server(address=("a.example", 80)), Server(address=("b.example", 80))


class Top:
    """A layer that yields the same commands for every event."""

    context = None

    def __init__(self, *found: commands.Command) -> None:
        self._found = found

    def handle_event(self, _: events.Event) -> Iterator[commands.Command]:
        yield from self._found


class NoAddons:
    def run_or_defer(self, _: object) -> bool:
        return True


def sent(*found: commands.Command) -> list[Any]:
    runner = HookRunner(cast("Any", Top(*found)), cast("CachedAddonManager", NoAddons()))
    return [
        ("a" if command.connection is ONE else "b", command.data)
        if isinstance(command, commands.SendData)
        else type(command).__name__
        for command in runner.handle_event(events.Start())
    ]


def send(data: bytes, to: Server = ONE) -> commands.SendData:
    return commands.SendData(to, data)


@pytest.mark.parametrize(
    ("found", "want"),
    [
        ((send(b"head"), send(b"body")), [("a", b"headbody")]),
        ((send(b"head"), commands.Log("streaming", logging.DEBUG), send(b"body")), [("a", b"headbody")]),
        ((send(b"head"), send(b"x", OTHER), send(b"body")), [("a", b"head"), ("b", b"x"), ("a", b"body")]),
        ((send(b"head"), commands.CloseConnection(ONE), send(b"x", OTHER)), [("a", b"head"), "CloseConnection", ("b", b"x")]),
        ((commands.Log("streaming", logging.DEBUG),), []),
        ((send(b"head"), commands.Log("broken", logging.ERROR), send(b"body")), ["Log", ("a", b"headbody")]),
    ],
)
def test_pieces(found: tuple[commands.Command, ...], want: list[object], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "mitmproxy.proxy.server")
    assert sent(*found) == want


class Part:
    """A layer among others."""

    def __init__(self) -> None:
        self.context = SimpleNamespace(layers=[])


def test_the_layers_of_a_connection_that_has_ended_are_freed() -> None:
    outer, middle, inner = Part(), Part(), Part()
    outer.context.layers += [outer, middle]
    middle.context.layers += [outer, inner]
    top = Top()
    top.context = SimpleNamespace(layers=[outer])  # type: ignore[assignment]
    free(object())
    runner = HookRunner(cast("Any", top), cast("CachedAddonManager", NoAddons()))
    context = runner.context
    free(runner)
    assert [vars(part) for part in (outer, middle, inner)] == [{}, {}, {}]
    assert context.layers == []
