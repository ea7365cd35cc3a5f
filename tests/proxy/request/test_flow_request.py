import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.connection import Client, Server
from mitmproxy.test import tflow

from gatewayfilter.errors import UrlError
from gatewayfilter.model import ResourceType
from gatewayfilter.proxy.request.flow_request import has_body, read_flow, read_tunnel
from tests.case_tables import all_cases


def make_flow(
    url: str = "http://example.com/",
    headers: dict[str, str] | None = None,
    *,
    method: str = "GET",
    address: tuple[str, int] | None = None,
    sni: str | None = None,
) -> http.HTTPFlow:
    """A flow as the explicit proxy sees it, or with `address` as inside a tunnel to there."""
    request = http.Request.make(method, url)
    request.headers = http.Headers([(k.encode(), v.encode()) for k, v in (headers or {}).items()])
    flow = tflow.tflow(req=request)
    flow.server_conn.address = address
    flow.client_conn.sni = sni
    flow.client_conn.peername = ("192.0.2.7", 5000)
    if address is not None:
        flow.request.data.host, flow.request.data.port = address
    return flow


@all_cases(
    ("flow", "url"),
    [
        (make_flow("http://Example.COM:80/a/../b?q=1"), "http://example.com/b?q=1"),
        (make_flow("http://example.com:8080/"), "http://example.com:8080/"),
        (make_flow("http://[2001:db8::1]/"), "http://[2001:db8::1]/"),
        # the request target wins over a Host header that disagrees
        (make_flow("http://real.example/", {"Host": "lie.example"}), "http://real.example/"),
        (make_flow("http://192.0.2.1/", {"Host": "lie.example"}), "http://192.0.2.1/"),
        # inside CONNECT
        (make_flow("https://example.com/x", {"Host": "example.com"}, address=("example.com", 443)), "https://example.com/x"),
        (make_flow("https://x/", {}, address=("example.com", 8443)), "https://example.com:8443/"),
        # transparent: the address is a number, Host and SNI have the name
        (make_flow("https://x/p", {"Host": "site.example"}, address=("192.0.2.1", 443)), "https://site.example/p"),
        (make_flow("https://x/p", {}, address=("192.0.2.1", 443), sni="sni.example"), "https://sni.example/p"),
        (make_flow("http://x/p", {}, address=("192.0.2.1", 80)), "http://192.0.2.1/p"),
        (make_flow("http://x/p", {"Host": "site.example:8080"}, address=("192.0.2.1", 80)), "http://site.example/p"),
        # websocket
        (make_flow("http://example.com/s", {"Upgrade": "WebSocket"}), "ws://example.com/s"),
    ],
)
def test_url(flow: http.HTTPFlow, url: str) -> None:
    assert read_flow(flow).request.url.text == url


@all_cases(("scheme", "read"), [(b"http", "http"), (b"HTTP", "http"), (b"Https", "https")])
def test_a_scheme_is_read_in_any_case(scheme: bytes, read: str) -> None:
    flow = make_flow("http://example.com:8080/")
    flow.request.data.scheme = scheme
    assert read_flow(flow).request.url.text == f"{read}://example.com:8080/"


def test_host_header_is_corrected_only_when_it_lies() -> None:
    assert read_flow(make_flow("http://a.example/", {"Host": "a.example"})).host_header == ""
    assert read_flow(make_flow("http://a.example/", {"Host": "A.example:80"})).host_header == ""
    assert read_flow(make_flow("http://a.example:81/", {"Host": "b.example"})).host_header == "a.example:81"
    assert read_flow(make_flow("http://a.example:81/")).host_header == "a.example:81"  # origins refuse a request without one
    assert read_flow(make_flow("https://x/", {"Host": "b.example"}, address=("a.example", 443))).host_header == ""


def test_every_name_that_can_choose_the_site_is_judged() -> None:
    found = read_flow(make_flow("https://x/p", {"Host": "c.example"}, address=("a.example", 443), sni="b.example"))
    assert found.request.url.text == "https://c.example/p"
    assert [alias.url.text for alias in found.aliases] == ["https://b.example/p", "https://a.example/p"]
    same = read_flow(make_flow("https://x/p", {"Host": "a.example"}, address=("a.example", 443), sni="A.example"))
    assert same.aliases == ()


@all_cases(
    ("method", "path"),
    [(b"GET /secret", b"/"), (b"", b"/"), (b"GET", b"/secret HTTP/1.1"), (b"GET", b"/a\tb"), (b"GET", b"*"), (b"GET", b"/a%00b")],
)
def test_what_no_request_line_can_hold_is_refused(method: bytes, path: bytes) -> None:
    """HTTP/2 can say it."""
    flow = make_flow("https://x/p", {}, address=("a.example", 443), sni="a.example")
    flow.request.data.method, flow.request.data.path = method, path
    with pytest.raises(UrlError):
        read_flow(flow)


@all_cases(
    ("path", "refused"),
    [
        (b"/ok/..;/x", True),
        (b"/ok/..;a=b/x", True),
        (b"/ok/%2e%2E;/x", True),
        (b"/ok/..%2fx", True),
        (b"/ok%2F..%2Fx", True),
        (b"/ok%2f../x", True),
        (b"/ok%5c..", True),
        (b"/ok/..%5cx", True),
        (b"/ok/..%3bx", True),
        (b"/ok/../x", False),
        (b"/ok/x;v=1/y", False),
        (b"/group%2fproject", False),
        (b"/ok/x..%2fy", False),
        (b"/ok/...%2fy", False),
        (b"/ok?to=..%2fy", False),
    ],
)
def test_dot_segments_that_only_some_servers_resolve_are_refused(path: bytes, *, refused: bool) -> None:
    flow = make_flow("https://x/p", {}, address=("a.example", 443), sni="a.example")
    flow.request.data.path = path
    if refused:
        with pytest.raises(UrlError, match="dot segment"):
            read_flow(flow)
    else:
        assert read_flow(flow).request.url.host == "a.example"


def test_absolute_form_inside_a_tunnel_is_judged_too() -> None:
    flow = make_flow("https://x/p", {"Host": "a.example"}, address=("a.example", 443), sni="a.example")
    flow.request.data.authority = b"evil.example"
    found = read_flow(flow)
    assert {found.request.url.host, *(alias.url.host for alias in found.aliases)} == {"a.example", "evil.example"}
    assert found.host_header == "evil.example"
    for authority, header in ((b"a.example:443", ""), (b"a.example:80", "a.example")):
        flow.request.data.authority = authority
        assert read_flow(flow).host_header == header


@all_cases(
    ("url", "headers", "kind"),
    [
        ("http://h/x", {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}, ResourceType.DOCUMENT),
        ("http://h/x.js", {"Sec-Fetch-Dest": "iframe"}, ResourceType.SUBDOCUMENT),
        ("http://h/x", {"Sec-Fetch-Dest": "script"}, ResourceType.SCRIPT),
        ("http://h/x", {"Sec-Fetch-Dest": "worker"}, ResourceType.SCRIPT),
        ("http://h/x", {"Sec-Fetch-Dest": "style"}, ResourceType.STYLESHEET),
        ("http://h/x", {"Sec-Fetch-Dest": "image"}, ResourceType.IMAGE),
        ("http://h/x", {"Sec-Fetch-Dest": "font"}, ResourceType.FONT),
        ("http://h/x", {"Sec-Fetch-Dest": "video"}, ResourceType.MEDIA),
        ("http://h/x", {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"}, ResourceType.XMLHTTPREQUEST),
        ("http://h/x", {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "no-cors"}, ResourceType.PING),
        ("http://h/x", {"Sec-Fetch-Dest": "report"}, ResourceType.PING),
        ("http://h/x", {"Sec-Fetch-Dest": "new-thing", "Sec-Fetch-Mode": "navigate"}, ResourceType.DOCUMENT),
        ("http://h/x", {"Sec-Fetch-Dest": "new-thing"}, ResourceType.OTHER),
        ("http://h/x", {"Ping-To": "http://t/"}, ResourceType.PING),
        ("http://h/x", {"Upgrade": "websocket", "Sec-Fetch-Dest": "empty"}, ResourceType.WEBSOCKET),
        ("http://h/x.js", {"Accept": "text/html,*/*;q=0.8"}, ResourceType.DOCUMENT),
        ("http://h/x", {"Accept": "text/css,*/*;q=0.1"}, ResourceType.STYLESHEET),
        ("http://h/x", {"Accept": "image/webp,*/*"}, ResourceType.IMAGE),
        ("http://h/x", {"Accept": "application/json"}, ResourceType.XMLHTTPREQUEST),
        ("http://h/x", {"X-Requested-With": "XMLHttpRequest", "Accept": "text/html"}, ResourceType.XMLHTTPREQUEST),
        ("http://h/a.JS?x=1", {"Accept": "*/*"}, ResourceType.SCRIPT),
        ("http://h/a.woff2", {"Accept": "*/*"}, ResourceType.FONT),
        ("http://h/a.b/c", {"Accept": "*/*"}, ResourceType.DOCUMENT),
        ("http://h/", {"Accept": "*/*"}, ResourceType.DOCUMENT),
        ("http://h/", {}, ResourceType.DOCUMENT),
        ("http://h/", {"Referer": "http://p/"}, ResourceType.OTHER),
        ("http://h/", {"Origin": "http://p"}, ResourceType.XMLHTTPREQUEST),
    ],
)
def test_resource_type(url: str, headers: dict[str, str], kind: ResourceType) -> None:
    assert read_flow(make_flow(url, headers)).request.resource_type is kind


@all_cases(
    ("headers", "source"),
    [
        ({"Referer": "https://page.example/a#b"}, "https://page.example/a"),
        ({"Origin": "https://page.example"}, "https://page.example/"),
        ({"Referer": "https://r.example/", "Origin": "https://o.example"}, "https://r.example/"),
        ({"Origin": "null"}, None),
        ({"Referer": "about:blank"}, None),
        ({"Referer": "not a url"}, None),
        ({"Referer": "https://long.example/" + "x" * 5000}, "https://long.example/"),
        ({"Referer": "https://long.example/".ljust(2_048, "x")}, "https://long.example/".ljust(2_048, "x")),
        ({"Referer": "https://long.example/a/".ljust(2_049, "x")}, "https://long.example/"),
        ({"Sec-Fetch-Site": "same-origin"}, "http://example.com/"),
        ({"Sec-Fetch-Site": "cross-site"}, None),
        ({}, None),
    ],
)
def test_source(headers: dict[str, str], source: str | None) -> None:
    found = read_flow(make_flow("http://example.com/", headers)).request.source
    assert (found.text if found else None) == source


def test_client_method_and_privacy() -> None:
    found = read_flow(make_flow("http://example.com/", {"Authorization": "Basic x"}, method="post"))
    assert (found.request.client, found.request.method, found.private) == ("192.0.2.7", "POST", True)
    assert read_flow(make_flow("http://example.com/", {"Range": "bytes=0-"})).private
    assert not read_flow(make_flow()).private


def test_raw_bytes_in_the_path_are_escaped_as_they_were_sent() -> None:
    flow = make_flow("http://example.com/")
    flow.request.data.path = b"/\xd6\xd0?q=\xff"
    assert read_flow(flow).request.url.text == "http://example.com/%D6%D0?q=%FF"
    flow.request.data.method, flow.request.data.path = b"OPTIONS", b"*"
    assert read_flow(flow).request.url.text == "http://example.com/"


@all_cases("host", ["", "a b", "a/b", "a?b", "a@b", "..", "a\x00b", "x" * 300, "[::1", "a#b"])
def test_bad_hosts_are_url_errors(host: str) -> None:
    flow = make_flow("https://x/", {"Host": host} if host else {}, address=("a.example", 443))
    if host:
        with pytest.raises(UrlError):
            read_flow(flow)
    explicit = make_flow("http://x/")
    explicit.request.data.host = host
    with pytest.raises(UrlError):
        read_flow(explicit)


def test_two_host_headers_and_odd_paths_are_url_errors() -> None:
    flow = make_flow("https://x/", {"Host": "a.example"}, address=("a.example", 443))
    flow.request.headers.add("Host", "b.example")
    with pytest.raises(UrlError, match="more than one Host"):
        read_flow(flow)
    flow = make_flow("http://a.example/")
    flow.request.data.path = b"nonsense"
    with pytest.raises(UrlError):
        read_flow(flow)
    flow.request.data.path = b"/" + b"x" * 70_000
    with pytest.raises(UrlError):
        read_flow(flow)


@settings(max_examples=30)
@given(
    host=st.text(max_size=40),
    path=st.binary(max_size=60),
    headers=st.lists(st.tuples(st.sampled_from([b"Host", b"Referer", b"Origin", b"Accept"]), st.binary(max_size=40)), max_size=4),
    tunnelled=st.booleans(),
)
def test_whatever_a_client_sends_is_a_request_or_a_url_error(
    host: str, path: bytes, headers: list[tuple[bytes, bytes]], *, tunnelled: bool
) -> None:
    flow = make_flow("http://example.com/", address=("192.0.2.1", 80) if tunnelled else None)
    flow.request.data.host = host
    flow.request.data.path = path
    flow.request.data.headers = http.Headers(headers)
    try:
        found = read_flow(flow)
    except UrlError:
        return
    assert found.request.url.scheme == "http"


CHROME = {
    "Host": "example.com", "Connection": "keep-alive", "sec-ch-ua": '"Chromium";v="140"', "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"', "Upgrade-Insecure-Requests": "1", "User-Agent": "Mozilla/5.0", "Accept": "text/html",
    "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1", "Sec-Fetch-Dest": "document",
    "Accept-Encoding": "gzip", "Accept-Language": "en", "DNT": "1", "Sec-GPC": "1", "Priority": "u=0, i", "TE": "trailers",
    "If-None-Match": '"a"', "If-Modified-Since": "Mon, 01 Jan 2024 00:00:00 GMT", "Cache-Control": "max-age=0",
    "Referer": "http://example.com/a", "Proxy-Connection": "keep-alive", "Proxy-Authorization": "Basic eA==",
}  # fmt: skip


def test_what_any_browser_sends_is_anonymous() -> None:
    assert read_flow(make_flow()).anonymous
    assert read_flow(make_flow(headers=CHROME)).anonymous


@all_cases(
    "name",
    [
        "Cookie", "Authorization", "Range", "X-Api-Key", "X-Auth-Token", "X-Forwarded-For", "X-CSRF-Token", "Forwarded",
        "Via", "From", "Origin", "Content-Length", "Transfer-Encoding", "X-Requested-With", "Upgrade", "CF-Access-Token", "Token",
    ],
)  # fmt: skip
def test_one_other_field_makes_a_request_its_senders_own(name: str) -> None:
    assert not read_flow(make_flow(headers={**CHROME, name: "a"})).anonymous
    assert not read_flow(make_flow(headers={name.lower(): "a", **CHROME})).anonymous


@all_cases(
    ("headers", "foreign"),
    [
        ({"Sec-Fetch-Dest": "iframe"}, False),
        ({"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Dest": "iframe", "Referer": "http://www.example.com/"}, False),
        ({"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Dest": "frame", "Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Dest": "iframe", "Referer": "http://example.org/"}, True),
        ({"Sec-Fetch-Dest": "fencedframe", "Sec-Fetch-Site": "same-origin", "Referer": "http://example.org/"}, True),
        ({"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_frames_in_pages_of_other_sites(headers: dict[str, str], *, foreign: bool) -> None:
    assert read_flow(make_flow(headers=headers)).foreign_frame is foreign


@all_cases(
    ("method", "headers", "may_have"),
    [
        ("GET", {}, False),
        ("GET", {"Content-Length": "0"}, True),
        ("GET", {"Transfer-Encoding": "chunked"}, True),
        ("POST", {}, True),
        ("HEAD", {}, True),
    ],
)
def test_which_requests_may_have_a_body(method: str, headers: dict[str, str], *, may_have: bool) -> None:
    assert has_body(read_flow(make_flow(headers=headers, method=method))) is may_have


@all_cases(
    ("address", "sni", "urls"),
    [
        (("A.example", 22), None, ["https://a.example:22/"]),
        (("a.example", 443), "a.example", ["https://a.example/"]),
        (("a.example", 993), "B.example", ["https://a.example:993/", "https://b.example:993/"]),
        (("", 993), "b.example", ["https://b.example:993/"]),
        (("2001:db8::1", 22, 0, 0), None, ["https://[2001:db8::1]:22/"]),
    ],
)
def test_a_tunnel_is_read_by_each_of_its_names(address: tuple[str, int], sni: str | None, urls: list[str]) -> None:
    client = Client(peername=("192.0.2.7", 5000), sockname=("192.0.2.1", 8080), sni=sni)
    found = read_tunnel(client, Server(address=address), "ada")
    assert [one.url.text for one in found] == urls
    assert {(one.client, one.user, one.method, one.resource_type, one.source) for one in found} == {
        ("192.0.2.7", "ada", "CONNECT", ResourceType.OTHER, None)
    }


def test_a_tunnel_to_nowhere_and_one_of_a_client_that_is_gone() -> None:
    client = Client(peername=("192.0.2.7", 5000), sockname=("192.0.2.1", 8080))
    with pytest.raises(UrlError, match="a tunnel to nowhere"):
        read_tunnel(client, Server(address=None))
    client.peername = None  # type: ignore[assignment]
    (found,) = read_tunnel(client, Server(address=("a.example", 22)))
    assert (found.client, found.user) == ("", "")


@all_cases(
    ("path", "target"),
    [
        (b"/a/b?c", b""),
        (b"/a/../b?c", b"/b?c"),
        (b"/a/./b", b"/a/b"),
        (b"/caf\xe9", b"/caf%E9"),
        (b"/caf%E9", b""),
        (b"/\x80", b"/%80"),
        (b"", b"/"),
    ],
)
def test_what_is_sent_where_the_path_is_not_what_was_judged(path: bytes, target: bytes) -> None:
    flow = make_flow("https://x/p", {}, address=("a.example", 443), sni="a.example")
    flow.request.data.path = path
    assert read_flow(flow).target == target
