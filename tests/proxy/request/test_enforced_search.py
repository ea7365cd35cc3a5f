"""What a search engine gets in place of the parameters, cookies and header fields that would lift the enforcement."""

from mitmproxy import http

from gatewayfilter.model import Enforcement
from gatewayfilter.proxy.request.enforced_search import enforce, with_parameters
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

SAFE = (("safe", "active"),)
URL = parse_url("https://www.search.example/find")


@all_cases(
    ("query", "parameters", "sent"),
    [
        ("", SAFE, "safe=active"),
        ("q=a", SAFE, "q=a&safe=active"),
        ("safe=off", SAFE, "safe=active"),
        ("safe=off&q=a", SAFE, "q=a&safe=active"),
        ("q=a&safe=off&t=b", SAFE, "q=a&t=b&safe=active"),
        ("q=a;SAFE=off;t=b&u", SAFE, "q=a;t=b&u&safe=active"),
        ("q=a&&t=b&", SAFE, "q=a&t=b&safe=active"),
        ("q=safe=off&%73afe=off", SAFE, "q=safe=off&safe=active"),
        ("q=a", (*SAFE, ("ssui", "on")), "q=a&safe=active&ssui=on"),
        ("", (*SAFE, ("ssui", "on")), "safe=active&ssui=on"),
    ],
)
def test_the_parameters_of_a_query(query: str, parameters: tuple[tuple[str, str], ...], sent: str) -> None:
    assert with_parameters(query, parameters) == sent


def changed(enforced: Enforcement, *fields: tuple[bytes, bytes], path: bytes = b"/find?q=a") -> http.Request:
    request = http.Request.make("GET", "https://192.0.2.1/")
    request.data.path = path
    request.data.headers.fields = fields
    enforce(request, URL, enforced)
    return request


def test_what_is_not_enforced_stays() -> None:
    cookie = (b"Cookie", b"a=1")
    plain = changed(Enforcement("safesearch", ""), cookie, path=b"/find")
    assert (plain.data.path, plain.data.host, plain.data.headers.fields) == (b"/find", "192.0.2.1", (cookie,))
    asked = changed(Enforcement("safesearch", "", SAFE), cookie, path=b"/find")
    assert (asked.data.path, asked.data.headers.fields) == (b"/find?safe=active", (cookie,))
    headed = changed(Enforcement("youtube", "", headers=(("prefer", "safe"),)), cookie)
    assert (headed.data.path, headed.data.headers.fields) == (b"/find?q=a", (cookie, (b"prefer", b"safe")))


def test_the_name_is_resolved_where_other_addresses_are_enforced() -> None:
    assert changed(Enforcement("safesearch", "strict.search.example")).data.host == "www.search.example"


def test_fields_and_cookies_replace_those_of_the_client() -> None:
    enforced = Enforcement("safesearch", "", cookies=(("adlt", "strict"), ("x", "1")), headers=(("prefer", "safe"),))
    found = changed(
        enforced,
        (b"Accept", b"*/*"),
        (b"Prefer", b"unsafe"),
        (b"PREFER", b"other"),
        (b"Cookie", b"a=1; adlt=off;; b=adlt=2 "),
        (b"cookie", b" adlt =off; c"),
    )
    assert found.data.headers.fields == (
        (b"Accept", b"*/*"),
        (b"cookie", b"a=1; b=adlt=2; c; adlt=strict; x=1"),
        (b"prefer", b"safe"),
    )
    assert changed(enforced).data.headers.fields == ((b"cookie", b"adlt=strict; x=1"), (b"prefer", b"safe"))
