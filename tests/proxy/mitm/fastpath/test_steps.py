"""Hooks that ran before the rest of a message takes the slow path, and layers that stand in for others."""

from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook, HttpRequestHook, HttpResponseHook
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm.fastpath.steps import CompletedHooks, behind


class Hooks:
    """Notes what it runs and what is left to it."""

    def __init__(self) -> None:
        self.ran: list[object] = []
        self.deferred: list[object] = []

    def run_or_defer(self, event: object) -> bool:
        self.ran.append(event)
        return len(self.ran) == 1

    def defer(self, event: object, waits: object) -> None:
        self.deferred.append((event, waits))


def completed(
    hooks: Hooks, flow: http.HTTPFlow, *ran: type[commands.StartHook], waits: object = None
) -> tuple[CompletedHooks, Any]:
    made: Any = hooks
    remains: Any = waits
    return CompletedHooks(made, flow, *ran, waits=remains), remains


def test_a_hook_that_ran_is_not_run_again() -> None:
    hooks, flow, other = Hooks(), tflow.tflow(), tflow.tflow()
    done, _ = completed(hooks, flow, HttpRequestHeadersHook, HttpRequestHook)
    first, second, third = HttpRequestHeadersHook(flow), HttpRequestHook(flow), HttpResponseHook(flow)
    assert done.run(of_other := HttpRequestHook(other)) is True
    assert [done.run(first), done.run(second)] == [True, True]
    assert hooks.ran == [of_other]
    assert [done.run(third), done.run(first)] == [False, False], "what the hooks return"
    assert hooks.ran == [of_other, third, first]
    assert hooks.deferred == []


def test_what_remains_of_the_last_hook_is_waited_for_once() -> None:
    hooks, flow = Hooks(), tflow.tflow()
    done, remains = completed(hooks, flow, HttpRequestHeadersHook, HttpRequestHook, waits=object())
    last = HttpRequestHook(flow)
    assert done.run(HttpRequestHeadersHook(flow)) is True
    assert done.run(last) is False
    assert hooks.deferred == [(last, remains)]
    assert hooks.ran == []
    none, _ = completed(hooks, flow)
    assert none.run(last) is True
    assert hooks.ran == [last]


@pytest.mark.parametrize("kind", [HttpRequestHeadersHook, HttpRequestHook])
@pytest.mark.parametrize("live", [True, False])
def test_what_a_hook_has_changed_stays(kind: type[HttpRequestHeadersHook | HttpRequestHook], *, live: bool) -> None:
    flow = tflow.tflow()
    flow.live = live
    meant = flow.request.data
    meant.host, meant.port, meant.scheme, meant.authority = "led.example", 81, b"http", b"led.example:81"
    done, _ = completed(Hooks(), flow, kind)
    flow.live = True  # as the stream does, before it asks for the hook
    meant.host, meant.port, meant.scheme, meant.authority = "tunnel.example", 443, b"https", b""
    assert done.run(kind(flow)) is True
    assert flow.live is live
    found = (meant.host, meant.port, meant.scheme, meant.authority)
    if kind is HttpRequestHeadersHook:
        assert found == ("led.example", 81, b"http", b"led.example:81")
    else:
        assert found == ("tunnel.example", 443, b"https", b"")


def test_the_layer_that_stands_in_for_others() -> None:
    def shell(inner: Any = None) -> Any:
        made = SimpleNamespace(_paused=None)
        if inner is not None:
            made._handle_event = SimpleNamespace(__self__=inner)
        return made

    innermost = shell()
    assert behind(innermost) is innermost
    middle = shell(innermost)
    outer = shell(middle)
    assert behind(outer) is innermost
    middle._paused = object()
    assert behind(outer) is middle, "it handles what comes when it goes on"
    outer._paused = object()
    assert behind(outer) is outer
    itself = shell()
    itself._handle_event = SimpleNamespace(__self__=itself)
    assert behind(itself) is itself
    real: Any = layer.NextLayer.__new__(layer.NextLayer)
    real._paused = None
    assert behind(real) is real
