"""Which of the names in a request are judged, and when Host is replaced."""

import pytest
from mitmproxy import http
from mitmproxy.proxy.mode_specs import ProxyMode

from gatewayfilter.errors import UrlError
from gatewayfilter.proxy.request.host_names import host_header_for, host_names
from gatewayfilter.urls import MAX_HOST_LENGTH, parse_url
from tests.case_tables import all_cases
from tests.proxy.request.test_flow_request import make_flow


def names_of(
    hosts: list[str],
    *,
    host: str = "a.example",
    authority: bytes = b"",
    sni: str | None = None,
    scheme: str = "https",
    tunnel: bool = True,
    transparent: bool = False,
) -> tuple[list[str], str]:
    flow = make_flow(f"{scheme}://x/", address=(host, 443) if tunnel else None, sni=sni)
    flow.request.data.host = host
    flow.request.data.authority = authority
    if transparent:
        flow.client_conn.proxy_mode = ProxyMode.parse("transparent")
    return host_names(flow, hosts)


def test_an_explicit_proxy_judges_the_target_alone() -> None:
    for hosts in ([], ["a.example"], ["b.example"], [""]):
        assert names_of(hosts, tunnel=False) == (["a.example"], "")
    assert names_of(["b.example"], host="A.Example", tunnel=False, sni="c.example") == (["a.example"], "")


def test_inside_a_tunnel_each_name_is_judged_once_the_one_that_chooses_the_site_first() -> None:
    assert names_of(["a.example"]) == (["a.example"], "")
    assert names_of(["A.Example:443"], sni="a.example") == (["a.example"], "")
    assert names_of([]) == (["a.example"], "")
    assert names_of([], sni="b.example") == (["b.example", "a.example"], "")
    assert names_of(["c.example"], sni="b.example", authority=b"d.example:8443") == (
        ["d.example", "c.example", "b.example", "a.example"],
        "",
    )


@all_cases(
    ("hosts", "sni", "scheme", "transparent", "found"),
    [
        ([], None, "https", False, (["192.0.2.1"], "")),
        (["192.0.2.1"], "", "https", False, (["192.0.2.1"], "")),
        (["b.example"], None, "https", True, (["b.example"], "192.0.2.1")),
        (["b.example"], None, "http", True, (["b.example"], "192.0.2.1")),
        (["b.example"], "b.example", "http", True, (["b.example"], "192.0.2.1")),
        (["b.example"], "b.example", "https", True, (["b.example"], "")),  # the certificate is verified for it
        (["b.example"], "b.example", "https", False, (["b.example"], "192.0.2.1")),  # a CONNECT that names the address
        ([], "b.example", "https", True, (["b.example"], "")),
    ],
)
def test_an_address_is_told_where_nothing_else_ties_the_name_to_its_server(
    hosts: list[str], sni: str | None, scheme: str, *, transparent: bool, found: tuple[list[str], str]
) -> None:
    assert names_of(hosts, host="192.0.2.1", sni=sni, scheme=scheme, transparent=transparent) == found


LONGEST = ".".join(["a" * 61] * 4) + ".b"


@all_cases(
    "hosts",
    [["a.example", "a.example"], ["a.example", ""], ["a" * (MAX_HOST_LENGTH + 1)], ["b\xfccher.example"], ["a\x7f.example"]],
)
def test_what_is_no_host_is_refused(hosts: list[str]) -> None:
    for tunnel in (True, False):
        with pytest.raises(UrlError):
            names_of(hosts, tunnel=tunnel)
    if len(hosts) == 1:
        with pytest.raises(UrlError):
            names_of([], authority=hosts[0].encode("latin-1"))


def test_the_longest_host_is_read() -> None:
    assert names_of([LONGEST], host=LONGEST) == ([LONGEST], "")
    fitting = LONGEST + ":" + "0" * (MAX_HOST_LENGTH - len(LONGEST) - 1) if len(LONGEST) < MAX_HOST_LENGTH else LONGEST
    assert names_of([], host=LONGEST, authority=fitting.encode()) == ([LONGEST], "")


@all_cases(
    ("text", "host"),
    [
        ("a.example:", "a.example"),
        ("a.example:80", "a.example"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:80", "[2001:db8::1]"),
        ("[2001:DB8::1]:", "[2001:db8::1]"),
    ],
)
def test_a_port_is_no_part_of_a_host(text: str, host: str) -> None:
    assert names_of([text])[0][0] == host


def data_of(authority: bytes = b"", version: bytes = b"HTTP/1.1") -> http.RequestData:
    data = http.Request.make("GET", "https://x/").data
    data.authority, data.http_version = authority, version
    return data


@all_cases(
    ("url", "hosts", "authority", "version", "header"),
    [
        ("https://a.example/", ["a.example"], b"", b"HTTP/1.1", ""),
        ("https://a.example/", ["A.EXAMPLE:443"], b"", b"HTTP/1.1", ""),
        ("http://a.example/", ["a.example:80"], b"", b"HTTP/1.1", ""),
        ("ws://a.example/", ["a.example:80"], b"", b"HTTP/1.1", ""),
        ("wss://a.example/", ["a.example:443"], b"", b"HTTP/1.1", ""),
        ("https://a.example/", ["a.example:80"], b"", b"HTTP/1.1", "a.example"),
        ("https://a.example:81/", ["a.example"], b"", b"HTTP/1.1", ""),
        ("https://a.example:81/", ["a.example:81"], b"", b"HTTP/1.1", ""),
        ("https://a.example:81/", ["a.example:82"], b"", b"HTTP/1.1", "a.example:81"),
        ("https://a.example/", [], b"", b"HTTP/1.1", "a.example"),
        ("https://a.example/", [], b"a.example", b"HTTP/1.1", "a.example"),
        ("https://a.example/", [], b"a.example", b"HTTP/2.0", ""),
        ("https://a.example/", [], b"b.example", b"HTTP/2.0", "a.example"),
        ("https://a.example/", ["a.example"], b"a.example:443", b"HTTP/1.1", ""),
        ("https://a.example/", ["a.example"], b"b.example", b"HTTP/1.1", "a.example"),
        ("https://a.example/", ["b.example"], b"a.example", b"HTTP/2.0", "a.example"),
    ],
)
def test_host_is_replaced_where_it_names_another_site_or_is_missing(
    url: str, hosts: list[str], authority: bytes, version: bytes, header: str
) -> None:
    assert host_header_for(data_of(authority, version), hosts, parse_url(url)) == header
