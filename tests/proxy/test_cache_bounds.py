"""What is remembered by texts of clients, pages and lists: filled with the worst keys, each stays small."""

import tracemalloc
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from gatewayfilter.config import UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.listener.connect_request import read_connect
from gatewayfilter.proxy.mitm.fastpath.http1_heads import read_request, read_response
from gatewayfilter.proxy.request.flow_request import _source
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.element_remover import remove_elements
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.settings import FilterSettings
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url, registrable_domain

_ROUNDS = 500
_LONG = 60_000
_MOST_BYTES = 4_000_000
"""Growth that is put up with; remembered as they are, the texts take 30 MB."""

OWN = parse_url("http://a.example/")


def _text(number: int, length: int = _LONG) -> str:
    return f"{number:08}".ljust(length, "x")


def _scheme_of_a_target(number: int) -> None:
    read_request(f"GET {_text(number)}://a.example/ HTTP/1.1\r\n\r\n".encode())


def _host_of_a_target(number: int) -> None:
    read_request(f"GET http://{_text(number)}/ HTTP/1.1\r\n\r\n".encode())


def _field_name(number: int) -> None:
    head = f"{_text(number)}: a\r\n\r\n"
    read_request(f"GET http://a.example/ HTTP/1.1\r\n{head}".encode())
    read_response(f"HTTP/1.1 200 OK\r\n{head}".encode(), b"GET")


def _connect_head(number: int) -> None:
    read_connect(f"CONNECT a.example:443 HTTP/1.1\r\nX: {_text(number)}\r\n\r\n".encode())


def _connect_host(number: int) -> None:
    read_connect(f"CONNECT {_text(number, 500)}:443 HTTP/1.1\r\n\r\n".encode())


def _referer(number: int) -> None:
    _source({b"referer": f"http://b.example/{_text(number)}"}, OWN)


def _referers_host(number: int) -> None:
    _source({b"referer": f"http://{_text(number)}"}, OWN)


def _selector(number: int) -> None:
    remove_elements("<p>text", [f"p.{_text(number)}:has-text({_text(number)})"])


def _domain(number: int) -> None:
    with pytest.raises(UrlError):
        registrable_domain(parse_url(f"http://{_text(number)}/").host)


@pytest.mark.parametrize(
    "fill",
    [
        _scheme_of_a_target,
        _host_of_a_target,
        _field_name,
        _connect_head,
        _connect_host,
        _referer,
        _referers_host,
        _selector,
        _domain,
    ],
)
def test_long_texts_are_not_remembered(fill: Callable[[int], None]) -> None:
    assert _growth(fill, _ROUNDS) < _MOST_BYTES


def test_long_urls_are_not_remembered_by_redirects() -> None:
    changes = TrafficChanges(Mock(), FilterSettings(), Counters())
    assert _growth(lambda number: changes._remember("192.0.2.1", parse_url(f"http://a.example/{_text(number)}")), 400) < 2_000_000
    asked = Request(parse_url(f"http://a.example/{_text(399)}"), None, ResourceType.DOCUMENT, "GET", "192.0.2.1")
    assert changes._was_redirected(asked)


def test_long_urls_are_neither_offered_nor_remembered() -> None:
    sink = Mock()
    url_reporter = UrlReporter(sink, UnknownRule.ALLOW)

    def fill(number: int) -> None:
        request = Request(parse_url(f"http://a.example/{_text(number)}"), None, ResourceType.DOCUMENT, "GET", "192.0.2.1")
        url_reporter.queue_page(Mock(request=request, private=False, foreign_frame=False))

    assert _growth(fill, 400) < 2_000_000
    assert not sink.offer.called


def _growth(fill: Callable[[int], None], rounds: int) -> int:
    """Returns by how many bytes memory is larger after so many different keys."""
    fill(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, rounds):
            fill(number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
