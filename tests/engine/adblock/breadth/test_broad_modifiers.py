"""Which modifiers do harm on every site: `gatewayfilter.engine.adblock.breadth.broad_modifiers`."""

from gatewayfilter.engine.adblock.breadth.broad_modifiers import does_harm
from gatewayfilter.engine.adblock.syntax.parser import parse_line


def test_which_modifiers_do_harm_on_every_site() -> None:
    for line, harm in (
        ("*$script", True), ("@@*$script", True), ("*$csp=sandbox", True), ("*$replace=/a/b/", True),
        ("*$removeparam", True), ("*$removeparam=q", True), ("*$removeparam=utm_source", False), ("*$removeparam=~q", True),
        ("*$removeparam=/^q=weather$/", True), ("*$removeparam=/^q=cats$/", False), ("*$removeparam=/^utm_/", False),
        ("*$removeheader=set-cookie", True), ("*$removeheader=Set-Cookie", True), ("*$removeheader=x-ads", False),
        ("*$removeheader=request:cookie", True), ("*$removeheader=request: cookie", True),
        ("*$removeheader=request:dnt", False),
        ("*$permissions=fullscreen=()", True), ("*$permissions=Fullscreen=()", True), ("*$permissions=usb=()", False),
        ("*$permissions=usb=()|camera=()", True), ("*$permissions=usb=()|midi=()", False),
        ("*$redirect-rule=noopjs", False),
    ):  # fmt: skip
        (rule,) = parse_line(line).rules
        assert does_harm(rule) is harm, line


def test_an_exception_with_a_value_disables_one_rule_alone() -> None:
    for line, harm in (
        ("@@*$csp=sandbox", False), ("@@*$csp", True), ("@@*$removeparam=q", False), ("@@*$removeparam", True),
        ("@@*$removeheader=set-cookie", False), ("@@*$redirect-rule=noopjs", False), ("@@*$redirect-rule", True),
        ("@@*$elemhide", True), ("@@*$generichide", True), ("@@*$specifichide", True), ("@@*$genericblock", True),
    ):  # fmt: skip
        (rule,) = parse_line(line).rules
        assert does_harm(rule) is harm, line
