"""Hooks for what mitmproxy has no hook for: unreadable requests, heads that arrive in parts, origins with HTTP/2 alone."""

from dataclasses import dataclass

from mitmproxy.connection import Client, Server
from mitmproxy.proxy import commands


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
