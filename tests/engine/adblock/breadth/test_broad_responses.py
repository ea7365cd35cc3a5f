"""Which conditions on the response few servers meet: `gatewayfilter.engine.adblock.breadth.broad_responses`."""

from gatewayfilter.engine.adblock.breadth.broad_responses import is_bound_by_response
from gatewayfilter.engine.adblock.syntax.rule import Conditions


def test_conditions_that_most_servers_fail() -> None:
    for header, address, bound in (
        ("", "", False), ("x-ads", "", True), ("date", "", False), ("server", "", False),
        ("server:nginx", "", False), ("server:Apache", "", True), ("content-length", "", False),
        ("content-length:91", "", True), ("content-type:text/css", "", False), ("content-type:text/calendar", "", True),
        ("", "~192.0.2.1", False), ("", "192.0.2.1", True), ("", "0.0.0.0/0", False), ("", "0.0.0.0/1", False),
        ("", "0.0.0.0/2", True), ("", "::/0", True),
        ("date", "0.0.0.0/2", True), ("x-ads", "0.0.0.0/0", True), ("date", "0.0.0.0/0", False),
    ):  # fmt: skip
        assert is_bound_by_response(Conditions(header=header, address=address)) is bound, (header, address)
