"""The verdict of a request: that of its URL, of each other name it carries, and of the address its client chose."""

from typing import Final

from gatewayfilter.config import UnknownRule
from gatewayfilter.interfaces import Decide
from gatewayfilter.model import UnknownAction, Verdict
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.proxy.request.named_address import NamedAddresses

_BLOCK: Final = UnknownAction.BLOCK


class RequestJudge:
    """Judges a request under each name that can decide what the origin serves.

    Args:
        decide: the engine.
        addresses: judges addresses that a client chose.
        unknown: `proxy.unknown`.
    """

    def __init__(self, decide: Decide, addresses: NamedAddresses, unknown: UnknownRule) -> None:
        self._decide = decide
        self._addresses = addresses
        self._every_name_known = unknown is UnknownRule.BLOCK

    def verdict(self, flow_request: FlowRequest) -> Verdict:
        """Returns the verdict: a block under one name is a block."""
        return self.under_all_names(flow_request, self._decide.decide(flow_request.request))

    def under_all_names(self, flow_request: FlowRequest, verdict: Verdict) -> Verdict:
        """Returns the verdict of a request that has `aliases` or an `address`, given that of its URL."""
        for alias in flow_request.aliases:
            if verdict.blocked:
                break
            other = self._decide.decide(alias)
            # Where unknown URLs are blocked, one known name does not make up for another one that is not.
            if other.blocked or (other.unknown and (self._every_name_known or other.unknown_action is _BLOCK)):
                verdict = other
        return self._addresses.verdict(flow_request, verdict) if flow_request.address and not verdict.blocked else verdict
