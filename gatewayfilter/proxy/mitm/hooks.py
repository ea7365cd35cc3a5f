"""Hooks for what mitmproxy has no hook for: tunnels without a flow, heads that arrive in parts, and what the classes name."""

from dataclasses import dataclass

from mitmproxy.connection import Client, Server
from mitmproxy.proxy import commands


@dataclass
class TunnelOpenedHook(commands.StartHook):
    """A tunnel is open whose CONNECT the listener has read: it has no flow, and none of mitmproxy's hooks for a CONNECT."""

    client: Client
    blocking = False


@dataclass
class UnreadableRequestHook(commands.StartHook):
    """A client was refused because it sent no valid HTTP request."""

    client: Client
    blocking = False


@dataclass
class Http2NeededHook(commands.StartHook):
    """An origin that was offered HTTP/1.1 alone answers by HTTP/2."""

    server: Server
    blocking = False


@dataclass
class HeadBegunHook(commands.StartHook):
    """A part of a request's head has come, and more of it is awaited."""

    client: Client
    blocking = False


@dataclass
class HeadDoneHook(commands.StartHook):
    """A head that came in parts is whole, or will never be."""

    client: Client
    blocking = False
