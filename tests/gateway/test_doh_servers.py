"""How many well-known servers of DNS over HTTPS are blocked."""

from gatewayfilter.gateway.doh_servers import WELL_KNOWN, blocked_resolvers
from gatewayfilter.model import Action, Explanation, Reason, Request, Verdict


class Decides:
    def __init__(self, *blocked: str) -> None:
        self._blocked = {f"https://{host}/dns-query" for host in blocked}

    def decide(self, request: Request) -> Verdict:
        return Verdict(Action.BLOCK if request.url.text in self._blocked else Action.ALLOW, Reason.BLACKLIST)

    def explain(self, request: Request) -> Explanation:
        raise NotImplementedError


def test_blocked_servers_are_counted() -> None:
    assert blocked_resolvers(Decides()) == (0, len(WELL_KNOWN))
    assert blocked_resolvers(Decides("dns.google", "doh.pub", "other.test")) == (2, len(WELL_KNOWN))
    assert blocked_resolvers(Decides(*WELL_KNOWN)) == (len(WELL_KNOWN), len(WELL_KNOWN))
