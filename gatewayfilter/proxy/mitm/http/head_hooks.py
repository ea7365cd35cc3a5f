"""Hooks of our own, with which the HTTP servers report the heads of requests that come in parts."""

from dataclasses import dataclass

from mitmproxy.connection import Client
from mitmproxy.proxy import commands


@dataclass
class HeadBegunHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A part of a request's head has come, and more of it is awaited."""

    client: Client
    blocking = False


@dataclass
class HeadDoneHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A head that came in parts is whole, or will never be."""

    client: Client
    blocking = False
