"""mitmproxy's server as a worker has it: which tunnels skip their CONNECT, and the outermost layer of each mode."""

from types import SimpleNamespace
from typing import Any

from mitmproxy.connection import Client
from mitmproxy.options import Options
from mitmproxy.proxy import mode_specs
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes

from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.hook_runner import HookRunner
from gatewayfilter.proxy.mitm.server import GatewayProxyserver, GatewayServer
from tests.case_tables import all_cases


def server(mode: str, hooks: dict[str, int] | None) -> GatewayServer[Any]:
    """Returns a server, with the fast path where there are hooks: so many methods of each."""
    fast_path: Any = None
    if hooks is not None:
        found = SimpleNamespace(handlers=lambda name: (None,) * hooks.get(name, 0), run_or_defer=lambda _: True)
        fast_path = SimpleNamespace(hooks=found, keeps_bodies=False, origins=None, options=Options())
    manager: Any = object.__new__(GatewayProxyserver)
    make_listener: Any = None
    return GatewayServer(mode_specs.ProxyMode.parse(mode), manager, make_listener, fast_path)


@all_cases(
    ("mode", "hooks", "takes"),
    [
        ("regular", {"http_connected": 1}, True),
        ("regular", {"http_connected": 2}, False),
        ("regular", {"http_connected": 0}, False),
        ("regular", {"http_connected": 1, "http_connect": 1}, False),
        ("transparent", {"http_connected": 1}, False),
        ("upstream:http://parent.example:3128", {"http_connected": 1}, False),
        ("regular", None, False),
    ],
)
def test_which_tunnels_need_no_flow_of_their_connect(mode: str, hooks: dict[str, int] | None, *, takes: bool) -> None:
    assert server(mode, hooks)._takes_tunnels() is takes


@all_cases(
    ("mode", "layer"),
    [
        ("regular", modes.HttpProxy),
        ("transparent", modes.TransparentProxy),
        ("upstream:http://parent.example:3128", modes.HttpUpstreamProxy),
    ],
)
def test_the_outermost_layer_of_each_mode(mode: str, layer: type[Any]) -> None:
    context = Context(Client(peername=("192.0.2.7", 1), sockname=("192.0.2.1", 8080)), Options())
    assert type(server(mode, None).make_top_layer(context)) is layer
    fast: Any = server(mode, {}).make_top_layer(context)
    assert (type(fast), type(fast.top), type(fast.context)) == (HookRunner, layer, FastPathContext)
