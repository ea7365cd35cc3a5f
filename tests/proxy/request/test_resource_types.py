"""The resource type of a request, by each of its signs in their order."""

from gatewayfilter.model import ResourceType
from gatewayfilter.proxy.request.resource_type import resource_type_of
from tests.case_tables import all_cases

KIND = ResourceType


@all_cases(
    ("headers", "path", "kind"),
    [
        ({b"ping-to": "x", b"sec-fetch-dest": "document"}, "/", KIND.PING),
        ({b"content-type": "text/ping; x", b"sec-fetch-dest": "document"}, "/", KIND.PING),
        ({b"content-type": "text/plain", b"sec-fetch-dest": "document"}, "/", KIND.DOCUMENT),
        ({b"sec-fetch-dest": "empty", b"sec-fetch-mode": "no-cors"}, "/", KIND.PING),
        ({b"sec-fetch-dest": "empty", b"sec-fetch-mode": "cors"}, "/", KIND.XMLHTTPREQUEST),
        ({b"sec-fetch-dest": "image", b"sec-fetch-mode": "no-cors"}, "/", KIND.IMAGE),
        ({b"sec-fetch-dest": "later", b"sec-fetch-mode": "navigate"}, "/", KIND.DOCUMENT),
        ({b"sec-fetch-dest": "later", b"sec-fetch-mode": "cors"}, "/", KIND.OTHER),
        ({b"sec-fetch-dest": "script", b"accept": "text/css"}, "/a.png", KIND.SCRIPT),
        ({b"x-requested-with": "XMLHttpRequest", b"accept": "text/html"}, "/", KIND.XMLHTTPREQUEST),
        ({b"x-requested-with": "com.app", b"accept": "text/html"}, "/", KIND.DOCUMENT),
        ({b"accept": " text/html,*/*"}, "/a.png", KIND.DOCUMENT),
        ({b"accept": "application/javascript;q=1"}, "/", KIND.SCRIPT),
        ({b"accept": "*/*, text/html"}, "/a.png", KIND.IMAGE),
        ({b"accept": "*/*"}, "/dir.css/a.PNG", KIND.IMAGE),
        ({}, "/a.css/b", KIND.DOCUMENT),
        ({}, "/a.tar.mp4", KIND.MEDIA),
        ({}, "/png", KIND.DOCUMENT),
        ({}, "/.png", KIND.IMAGE),
        ({b"origin": "http://a.example"}, "/a.unknown", KIND.XMLHTTPREQUEST),
        ({b"origin": "http://a.example"}, "/a.png", KIND.IMAGE),
        ({b"referer": "http://a.example/"}, "/a.unknown", KIND.OTHER),
        ({b"origin": "null", b"referer": "http://a.example/"}, "/", KIND.XMLHTTPREQUEST),
    ],
)
def test_the_first_sign_that_tells_counts(headers: dict[bytes, str], path: str, kind: ResourceType) -> None:
    assert resource_type_of(headers, path, websocket=False) is kind
    assert resource_type_of(headers, path, websocket=True) is KIND.WEBSOCKET
