"""The resource type that a media type stands for, where a log has nothing better."""

from __future__ import annotations

from typing import Final

_EXACT: Final = {
    "text/html": "document",
    "application/xhtml+xml": "document",
    "text/css": "stylesheet",
    "text/javascript": "script",
    "application/javascript": "script",
    "application/x-javascript": "script",
    "application/ecmascript": "script",
    "application/json": "xmlhttprequest",
    "application/xml": "xmlhttprequest",
    "text/xml": "xmlhttprequest",
}
_FAMILIES: Final = {"image": "image", "font": "font", "audio": "media", "video": "media"}


def type_of(media_type: str) -> str:
    """Returns the name of a resource type; `other` where the media type tells nothing."""
    name = media_type.partition(";")[0].strip().lower()
    return _EXACT.get(name) or _FAMILIES.get(name.partition("/")[0], "other")
