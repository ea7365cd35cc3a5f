"""`filter.cosmetic`: which of the engine's style sheets reach a page."""

from collections.abc import Mapping

import pytest
from mitmproxy import http
from mitmproxy.test import tflow, tutils
from pydantic import ValidationError

from gatewayfilter.config import CosmeticScope, FilterSettings
from gatewayfilter.model import Enforcement, Request, RequestChange, ResponseChange
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

OWN = ".own{display:none!important}"
MANY = ".many{display:none!important}"


class Engine:
    """Says the same of every page."""

    def __init__(self, change: ResponseChange) -> None:
        self.change = change

    def enforced(self, request: Request) -> Enforcement | None:
        return None

    def change_request(self, request: Request) -> RequestChange | None:
        return None

    def change_response(
        self,
        request: Request,
        status: int,
        headers: Mapping[str, str],
        address: str = "",
    ) -> ResponseChange | None:
        return self.change


def page_with(change: ResponseChange, cosmetic: object) -> tuple[str, str]:
    """Returns the page as it goes on, and its content-security-policy."""
    headers = http.Headers(content_type="text/html; charset=utf-8", content_security_policy="style-src 'none'")
    flow = tflow.tflow(resp=tutils.tresp(headers=headers))
    assert flow.response is not None
    settings = FilterSettings.model_validate({} if cosmetic is None else {"cosmetic": cosmetic})
    TrafficChanges(Engine(change), settings, Counters()).after(flow, Request(parse_url("https://example.com/")))
    page = b"<html><head></head><body></body></html>"
    stream = flow.response.stream
    if callable(stream):
        pieces = [stream(page), stream(b"")]
        page = b"".join(piece if isinstance(piece, bytes) else b"".join(piece) for piece in pieces)
    return page.decode(), flow.response.headers["content-security-policy"]


@all_cases(
    ("cosmetic", "own", "many"),
    [
        (None, True, False),
        ("specific", True, False),
        ("all", True, True),
        ("off", False, False),
        (True, True, True),
        (False, False, False),
        ("true", True, True),
        ("false", False, False),
    ],
)
def test_the_scope_chooses_the_style_sheets(cosmetic: object, own: bool, many: bool) -> None:  # noqa: FBT001  # a case table
    page, policy = page_with(ResponseChange(style=OWN, generic_style=MANY), cosmetic)
    assert (OWN in page, MANY in page) == (own, many)
    assert page.count("<style>") == int(own or many)
    assert ("sha256-" in policy) is (own or many)


def test_a_page_with_nothing_but_generic_rules_stays_as_it_is() -> None:
    change = ResponseChange(generic_style=MANY)
    assert "<style>" not in page_with(change, "specific")[0]
    assert f"<style>{MANY}</style>" in page_with(change, "all")[0]


@all_cases("value", ["some", 2, "generic", None])
def test_other_words_are_no_scope(value: object) -> None:
    with pytest.raises(ValidationError):
        FilterSettings.model_validate({"cosmetic": value})
    assert FilterSettings().cosmetic is CosmeticScope.SPECIFIC
