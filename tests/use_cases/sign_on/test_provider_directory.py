"""What the provider publishes, by a provider that misbehaves: bounded, timed, and never followed elsewhere."""

import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest

from gatewayfilter.use_cases.sign_on.failures import SignOnError
from gatewayfilter.use_cases.sign_on.provider import ProviderDirectory
from gatewayfilter.use_cases.sign_on.provider_http import ProviderHttp
from tests.use_cases.sign_on.oidc_provider import OidcProvider

DISCOVERY = "/.well-known/openid-configuration"


def directory(provider: OidcProvider, clock: Callable[[], float] = time.monotonic, timeout_s: float = 60.0) -> ProviderDirectory:
    return ProviderDirectory(provider.address, ProviderHttp(provider.address, timeout_s=timeout_s), clock)


def _hangs(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(100):
        time.sleep(0.02)
        handler.wfile.write(b" ")


def _never_ends_its_head(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(100):
        time.sleep(0.02)
        handler.wfile.write(b"x-%d: y\r\n" % number)


def _is_huge(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
    for _ in range(1_600):
        handler.wfile.write(b" " * 65_536)


def _redirects(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 2\r\n\r\n{}")


def _answers(content: bytes, status: bytes = b"200 OK") -> Callable[[BaseHTTPRequestHandler], None]:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(content), content))

    return write


@pytest.mark.parametrize("path", [DISCOVERY, "/keys"])
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (_hangs, "no answer in time"),
        (_never_ends_its_head, "no answer in time"),
        (_is_huge, "more than 262,144 bytes"),
        (_redirects, "redirects"),
        (_answers(b"{}", b"500 No"), "HTTP 500"),
        (_answers(b"[]"), "without a JSON object"),
        (_answers(b"[" * 100_000), "without a JSON object"),
        (_answers(b"\xff"), "without a JSON object"),
        (_answers(b""), "without a JSON object"),
        (lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n"), "BadStatusLine"),
        (lambda _: None, "RemoteDisconnected"),
    ],
)
def test_answers_that_cannot_be_used(
    path: str, answer: Callable[[BaseHTTPRequestHandler], None], detail: str, provider: OidcProvider
) -> None:
    provider.answers[path] = answer
    found = directory(provider, timeout_s=0.2 if detail == "no answer in time" else 60.0)
    with pytest.raises(SignOnError, match=detail) as caught:
        found.provider()
    assert caught.value.reason == "provider"
    requests = len(provider.requests)
    with pytest.raises(SignOnError, match=detail):  # left alone for some seconds
        found.provider()
    assert len(provider.requests) == requests
    assert found.held() is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"issuer": "https://evil.example"}, "issuer"),
        ({"issuer": None}, "issuer"),
        ({"token_endpoint": "http://evil.example/token"}, "provider"),
        ({"token_endpoint": "file:///etc/passwd"}, "provider"),
        ({"token_endpoint": "https://user@evil.example/"}, "provider"),
        ({"token_endpoint": "https://evil.example:99999/"}, "provider"),
        ({"token_endpoint": "https://evil.example/\r\nx: y"}, "provider"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "provider"),
        ({"userinfo_endpoint": "gopher://x"}, "provider"),
        ({"jwks_uri": None}, "provider"),
        ({"jwks_uri": ["x"]}, "provider"),
    ],
)
def test_documents_that_cannot_be_used(change: dict[str, Any], reason: str, provider: OidcProvider) -> None:
    provider.change_document = lambda document: document | change
    with pytest.raises(SignOnError) as caught:
        directory(provider).provider()
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "address", ["https://10.0.0.1/keys", "https://192.168.1.1:8443/", "https://[fe80::1]/", "https://127.0.0.1/"]
)
def test_a_provider_elsewhere_leads_to_no_machine_of_the_lan(address: str) -> None:
    with pytest.raises(SignOnError, match=r"not public|not used"):
        ProviderHttp("https://id.example").get(address)


@pytest.mark.parametrize(("address", "port"), [("https://id.example/keys", 443), ("http://localhost/keys", 80)])
def test_the_port_is_that_of_the_scheme(address: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def resolve(*given: object, **_: object) -> list[object]:
        asked.append(given)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(SignOnError):
        ProviderHttp(address).get(address)
    assert asked == [(urlsplit(address).hostname, port)]


def test_addresses_of_both_versions_are_tried_for_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[object, float]] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        tried.append((address, timeout))
        raise ConnectionRefusedError(111, "Connection refused")

    found = [("::1", 80, 0, 0), ("127.0.0.1", 80)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 1, 6, "", address) for address in found])
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(SignOnError, match="Connection refused"):
        ProviderHttp("http://localhost", timeout_s=3.0).get("http://localhost/keys")
    assert tried == [(("::1", 80), 1.5), (("127.0.0.1", 80), 1.5)]


def test_of_a_long_address_the_beginning_is_shown(provider: OidcProvider) -> None:
    address = f"{provider.address}/{'x' * 300}"
    provider.answers[f"/{'x' * 300}"] = _answers(b"{}", b"404 No")
    with pytest.raises(SignOnError, match=f": {address[:200]} answers with HTTP 404$"):
        ProviderHttp(provider.address).get(address)


def test_of_a_long_issuer_the_beginning_is_shown(provider: OidcProvider) -> None:
    provider.change_document = lambda document: document | {"issuer": "x" * 300}
    with pytest.raises(SignOnError, match=f"of the issuer '{'x' * 200}'$"):
        directory(provider).provider()


def test_endpoints_are_held_for_an_hour(provider: OidcProvider) -> None:
    now = [1_000.0]
    found = directory(provider, lambda: now[0])
    known = found.provider()
    for now[0], held in ((4_599.5, known), (4_600.0, None)):
        assert found.held() == held
    assert found.provider() == known
    assert provider.requests.count(DISCOVERY) == 2


def test_documents_are_held_and_keys_fetched_anew_now_and_then(provider: OidcProvider) -> None:
    now = [1_000.0]
    found = directory(provider, lambda: now[0])
    assert found.held() is None
    assert found.provider() == found.held()
    assert found.keys() == found.keys()
    assert provider.requests == [DISCOVERY, "/keys"]
    provider.published = ["second"]
    assert '"second"' in (found.newer_keys() or "")
    assert found.newer_keys() is None
    now[0] += 59
    assert found.newer_keys() is None
    now[0] += 2
    assert found.newer_keys() is not None
    provider.answers["/keys"] = _redirects
    now[0] += 61
    with pytest.raises(SignOnError):
        found.newer_keys()
    assert found.newer_keys() is None
    held = found.keys()
    assert '"second"' in held
    provider.answers.clear()
    now[0] += 3_600
    assert found.held() is None
    found.provider()
    assert provider.requests.count(DISCOVERY) == 2
