"""Requests to an address that the client chose, with the site in Host: nothing ties the one to the other.

A block of the address holds under any name. Where `proxy.unknown` is not `allow`, a known name must not stand for an unknown
server: such a request is sent to an address of its name, like connections that pass unread.
Where TLS names the site, its certificate is verified for that name.
"""

from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from mitmproxy import http

from gatewayfilter.config import UnknownRule
from gatewayfilter.interfaces import Decide, DecideHost
from gatewayfilter.model import Request, Verdict
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.urls import parse_url

_TLS_SCHEMES: Final = frozenset({"https", "wss"})


class NamedAddresses:
    """Decides such requests by their address, and directs them to their name.

    Args:
        decide: the engine.
        hosts: the same for hosts alone, with a cache; `None` has each request decided.
        unknown: `proxy.unknown`.
    """

    def __init__(self, decide: Decide, hosts: DecideHost | None, unknown: UnknownRule) -> None:
        self._decide = decide
        self._hosts = hosts
        self._unknown = unknown

    def verdict(self, flow_request: FlowRequest, verdict: Verdict) -> Verdict:
        """Returns the verdict of a request that its names allow: the block of its address, where there is one."""
        if not self._is_named(flow_request):
            return verdict
        found = self._decide.decide(_under_address(flow_request))
        return found if found.blocked else verdict

    def _is_named(self, flow_request: FlowRequest) -> bool:
        """Returns whether anything may block the address."""
        request = flow_request.request
        return self._hosts is None or self._hosts.decide_host(flow_request.address, request.client, request.user).named

    def lead(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> None:
        """Directs a request to an address of its name, where it is allowed because of that name alone."""
        if self._unknown is UnknownRule.ALLOW or verdict.unknown or not _is_public(flow_request.address):
            return
        url = flow_request.request.url
        if url.scheme in _TLS_SCHEMES and flow.client_conn.sni:
            return
        if self._decide.decide(_under_address(flow_request)).unknown:
            flow.request.data.host = url.host.strip("[]")


def _under_address(flow_request: FlowRequest) -> Request:
    url = flow_request.request.url
    port = f":{url.port}" if url.port else ""
    return replace(flow_request.request, url=parse_url(f"{url.scheme}://{flow_request.address}{port}{url.path}{url.query}"))


@lru_cache(maxsize=1024)
def _is_public(address: str) -> bool:
    """Returns whether an address is global: a client reaches its own network without the filter."""
    return ip_address(address.strip("[]")).is_global
