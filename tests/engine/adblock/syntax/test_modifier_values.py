"""Values of modifiers in compiled form, and their types: `gatewayfilter.engine.adblock.syntax.modifier_values`."""

import pytest

from gatewayfilter.engine.adblock.syntax.modifier_values import PAGES, Prepared, RemovedHeader, Stub, default_types, prepare
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, TYPE_BITS
from gatewayfilter.errors import RuleError


def test_values_as_they_are_used() -> None:
    cases: list[tuple[str, str, Prepared]] = [
        ("csp", "script-src 'none'", "script-src 'none'"), ("csp", "a|b", "a|b"),
        ("permissions", "usb=()|midi=()", "usb=(), midi=()"),
        ("csp", "x-report-uri y", "x-report-uri y"),
        ("removeheader", "Refresh", RemovedHeader("refresh", of_request=False)),
        ("removeheader", " Request : DNT ", RemovedHeader("dnt", of_request=True)),
        ("removeheader", "request", RemovedHeader("request", of_request=False)),
        ("redirect", "noop.js:3", Stub("noopjs", 3)), ("redirect-rule", "none", Stub("", 0)),
        ("elemhide", "", ""), ("response", "noopjs", "noopjs"),
    ]  # fmt: skip
    for modifier, value, prepared in cases:
        assert prepare(modifier, value) == prepared, (modifier, value)


def test_policies_report_to_nobody() -> None:
    for value in ("report-uri x", "a;report-to x", "a; Report-URI x", "a b ;\treport-to", "report-to"):
        with pytest.raises(RuleError):
            prepare("csp", value)


def test_headers_that_stay() -> None:
    for name in (
        "host",
        "Content-Length",
        "request:sec-fetch-site",
        "sec-fetch-x",
        "proxy-x",
        "request:Proxy-Connection",
        "vary",
    ):
        with pytest.raises(RuleError, match="must not be removed"):
            prepare("removeheader", name)
    for name in ("", "request:", "a b", "a:b", "é"):
        with pytest.raises(RuleError, match="not a header name"):
            prepare("removeheader", name)
    with pytest.raises(RuleError, match=f"^not a header name: '{'é' * 100}'$"):
        prepare("removeheader", "é" * 101)


def test_types_of_rules_that_name_none() -> None:
    for modifier, types in (
        ("csp", PAGES), ("permissions", PAGES), ("elemhide", PAGES), ("generichide", PAGES), ("specifichide", PAGES),
        ("genericblock", PAGES), ("removeparam", PAGES | TYPE_BITS["xmlhttprequest"]), ("replace", ALL_TYPES),
        ("removeheader", ALL_TYPES), ("urlskip", ALL_TYPES),
    ):  # fmt: skip
        assert default_types(modifier) == types, modifier
