"""The resource type of a request: from its Fetch metadata, else guessed from Accept and the extension of its path.

Source: Fetch Standard §3.2.7 (Sec-Fetch-Dest), in the words of Adblock options.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from gatewayfilter.model import ResourceType

_BY_DESTINATION: Final = {
    "document": ResourceType.DOCUMENT,
    "iframe": ResourceType.SUBDOCUMENT,
    "frame": ResourceType.SUBDOCUMENT,
    "fencedframe": ResourceType.SUBDOCUMENT,
    "object": ResourceType.OBJECT,
    "embed": ResourceType.OBJECT,
    "script": ResourceType.SCRIPT,
    "worker": ResourceType.SCRIPT,
    "sharedworker": ResourceType.SCRIPT,
    "serviceworker": ResourceType.SCRIPT,
    "audioworklet": ResourceType.SCRIPT,
    "paintworklet": ResourceType.SCRIPT,
    "style": ResourceType.STYLESHEET,
    "xslt": ResourceType.STYLESHEET,
    "image": ResourceType.IMAGE,
    "font": ResourceType.FONT,
    "audio": ResourceType.MEDIA,
    "video": ResourceType.MEDIA,
    "track": ResourceType.MEDIA,
    "report": ResourceType.PING,
    "websocket": ResourceType.WEBSOCKET,
    "empty": ResourceType.XMLHTTPREQUEST,
    "json": ResourceType.XMLHTTPREQUEST,
    "manifest": ResourceType.OTHER,
    "webidentity": ResourceType.OTHER,
}

_BY_ACCEPT: Final = (
    ("text/html", ResourceType.DOCUMENT),
    ("application/xhtml", ResourceType.DOCUMENT),
    ("text/css", ResourceType.STYLESHEET),
    ("image/", ResourceType.IMAGE),
    ("video/", ResourceType.MEDIA),
    ("audio/", ResourceType.MEDIA),
    ("font/", ResourceType.FONT),
    ("application/font", ResourceType.FONT),
    ("text/javascript", ResourceType.SCRIPT),
    ("application/javascript", ResourceType.SCRIPT),
    ("application/json", ResourceType.XMLHTTPREQUEST),
    ("text/event-stream", ResourceType.XMLHTTPREQUEST),
)
"""By the first media type of Accept, for clients without Sec-Fetch headers."""
_LONGEST_PREFIX: Final = max(len(prefix) for prefix, _ in _BY_ACCEPT)

_BY_EXTENSION: Final = {
    extension: kind
    for kind, extensions in (
        (ResourceType.DOCUMENT, "htm html php asp aspx jsp shtml xhtml"),
        (ResourceType.SCRIPT, "js mjs"),
        (ResourceType.STYLESHEET, "css"),
        (ResourceType.IMAGE, "png jpg jpeg gif webp avif svg ico bmp apng jxl"),
        (ResourceType.FONT, "woff woff2 ttf otf eot"),
        (ResourceType.MEDIA, "mp4 webm mp3 m4a m4v ogg oga ogv wav flac m3u8 mpd ts m4s mov aac opus"),
        (ResourceType.XMLHTTPREQUEST, "json"),
        (ResourceType.OBJECT, "swf"),
    )
    for extension in extensions.split()
}


def resource_type_of(headers: Mapping[bytes, str], path: str, *, websocket: bool) -> ResourceType:
    """Returns the resource type of a request.

    Args:
        headers: lower-case name → value.
        path: of the URL, without its query.
        websocket: the request is an upgrade to a WebSocket.
    """
    if websocket:
        return ResourceType.WEBSOCKET
    if b"ping-to" in headers or headers.get(b"content-type", "").startswith("text/ping"):
        return ResourceType.PING
    destination = headers.get(b"sec-fetch-dest")
    if destination is not None:
        mode = headers.get(b"sec-fetch-mode")
        if destination == "empty" and mode == "no-cors":  # navigator.sendBeacon and fetch(…, {keepalive, no-cors})
            return ResourceType.PING
        fallback = ResourceType.DOCUMENT if mode == "navigate" else ResourceType.OTHER
        return _BY_DESTINATION.get(destination, fallback)
    if headers.get(b"x-requested-with", "").lower() == "xmlhttprequest":
        return ResourceType.XMLHTTPREQUEST
    accepted = _first_accepted(headers.get(b"accept", "").lstrip()[:_LONGEST_PREFIX])
    if accepted is not None:
        return accepted
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    if dot and (known := _BY_EXTENSION.get(extension.lower())) is not None:
        return known
    if b"origin" in headers:
        return ResourceType.XMLHTTPREQUEST
    return ResourceType.OTHER if b"referer" in headers else ResourceType.DOCUMENT


@lru_cache(maxsize=512)
def _first_accepted(beginning: str) -> ResourceType | None:
    for prefix, kind in _BY_ACCEPT:
        if beginning.startswith(prefix):
            return kind
    return None
