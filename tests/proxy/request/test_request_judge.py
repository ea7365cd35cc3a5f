"""The verdict of a request with several names: a block under one of them is a block."""

from typing import Any

from gatewayfilter.config import UnknownRule
from gatewayfilter.model import Action, Reason, Request, UnknownAction, Verdict
from gatewayfilter.proxy.request.flow_request import read_flow
from gatewayfilter.proxy.request.named_address import NamedAddresses
from gatewayfilter.proxy.request.request_judge import RequestJudge
from tests.case_tables import all_cases
from tests.proxy.proxy_fakes import ALLOW, BLOCK, UNKNOWN
from tests.proxy.request.test_flow_request import make_flow

MUST_BE_KNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True, unknown_action=UnknownAction.BLOCK)
MAY_BE_UNKNOWN = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True, unknown_action=UnknownAction.ALLOW)


class Decides:
    """Decides by the host, and notes what it was asked."""

    def __init__(self, **hosts: Verdict) -> None:
        self._hosts = hosts
        self.asked: list[str] = []

    def decide(self, request: Request) -> Verdict:
        host = request.url.host.partition(".")[0]
        self.asked.append(host)
        return self._hosts[host]


@all_cases(
    ("rule", "verdicts", "found", "asked"),
    [
        (UnknownRule.ALLOW, (ALLOW, ALLOW, ALLOW), ALLOW, "cba"),
        (UnknownRule.ALLOW, (BLOCK, ALLOW, ALLOW), BLOCK, "c"),
        (UnknownRule.ALLOW, (ALLOW, BLOCK, ALLOW), BLOCK, "cb"),
        (UnknownRule.ALLOW, (ALLOW, ALLOW, BLOCK), BLOCK, "cba"),
        (UnknownRule.ALLOW, (ALLOW, UNKNOWN, ALLOW), ALLOW, "cba"),
        (UnknownRule.ALLOW, (ALLOW, MAY_BE_UNKNOWN, ALLOW), ALLOW, "cba"),
        (UnknownRule.ALLOW, (ALLOW, MUST_BE_KNOWN, ALLOW), MUST_BE_KNOWN, "cba"),
        (UnknownRule.BLOCK, (ALLOW, UNKNOWN, ALLOW), UNKNOWN, "cba"),
        (UnknownRule.BLOCK, (ALLOW, ALLOW, ALLOW), ALLOW, "cba"),
        (UnknownRule.HOLD, (ALLOW, UNKNOWN, ALLOW), ALLOW, "cba"),
    ],
)
def test_each_name_is_judged_up_to_a_block(rule: UnknownRule, verdicts: tuple[Verdict, ...], found: Verdict, asked: str) -> None:
    decides: Any = Decides(**dict(zip("cba", verdicts, strict=True)))
    flow = make_flow("https://x/p", {"Host": "c.example"}, address=("a.example", 443), sni="b.example")
    judge = RequestJudge(decides, NamedAddresses(decides, None, rule), rule)
    assert judge.verdict(read_flow(flow)) == found
    assert "".join(decides.asked) == asked


@all_cases(
    ("named", "verdict", "found", "asked"),
    [
        (True, BLOCK, BLOCK, ["site", "192"]),
        (True, ALLOW, ALLOW, ["site", "192"]),
        (False, BLOCK, ALLOW, ["site"]),
        (None, BLOCK, BLOCK, ["site", "192"]),
    ],
)
def test_the_address_that_a_client_chose_is_judged_where_a_rule_may_name_it(
    verdict: Verdict, found: Verdict, asked: list[str], *, named: bool | None
) -> None:
    class Hosts:
        def decide_host(self, host: str, client: str = "", user: str = "") -> Any:
            assert (host, client, user) == ("192.0.2.1", "192.0.2.7", "")
            return type("Found", (), {"named": named})

    decides: Any = Decides(**{"site": ALLOW, "192": verdict})
    hosts: Any = Hosts() if named is not None else None
    flow = make_flow("http://x/p", {"Host": "site.example"}, address=("192.0.2.1", 80))
    judge = RequestJudge(decides, NamedAddresses(decides, hosts, UnknownRule.ALLOW), UnknownRule.ALLOW)
    assert (judge.verdict(read_flow(flow)), decides.asked) == (found, asked)
