"""Stub resources: what stands in for a blocked response so that the page goes on working (`$redirect`).

The files lie in `stubs/`, written for this project from the public documentation of the interfaces they imitate; the media are
made by scripts/make_stub_media.py. Which names there are: engine/adblock/stub_names.py.
"""

from pathlib import Path
from typing import Final

from mitmproxy import http

from gatewayfilter.model import Reason

_FOLDER: Final = Path(__file__).parent / "stubs"
_TYPES: Final = {
    "noopjs": "text/javascript; charset=utf-8",
    "nooptext": "text/plain; charset=utf-8",
    "empty": "text/plain; charset=utf-8",
    "noopcss": "text/css; charset=utf-8",
    "noopframe": "text/html; charset=utf-8",
    "click2load": "text/html; charset=utf-8",
    "noopjson": "application/json",
}
_TYPES_BY_SUFFIX: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".gif": "image/gif",
    ".png": "image/png",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
}
_XML: Final = "application/xml; charset=utf-8"


def stub_response(name: str, reason: Reason, *, method: str = "GET", origin: str = "") -> http.Response | None:
    """Returns the answer that stands in for a blocked one, `None` when there is no stub of that name.

    Args:
        name: our name of the stub.
        reason: of the verdict.
        method: of the request.
        origin: its Origin header: the stub may be read from there, with credentials or without.
    """
    found = _STUBS.get(name)
    if found is None:
        return None
    content_type, content = found
    headers = {
        "content-type": content_type,
        "cache-control": "no-store",
        "access-control-allow-origin": origin or "*",
        "cross-origin-resource-policy": "cross-origin",
        "x-content-type-options": "nosniff",
        "x-gatewayfilter": f"stub; reason={reason}",
    }
    if origin:
        headers["access-control-allow-credentials"] = "true"
        headers["vary"] = "origin"
    if method == "OPTIONS":  # a preflight of CORS: everything is allowed
        headers["access-control-allow-headers"] = headers["access-control-allow-methods"] = "*"
    return http.Response.make(200, b"" if method == "HEAD" else content, headers)


def _load(path: Path) -> tuple[str, bytes]:
    kind = _TYPES.get(path.name) or _TYPES_BY_SUFFIX.get(path.suffix)
    return kind or _XML, path.read_bytes()


_STUBS: Final = {path.name: _load(path) for path in sorted(_FOLDER.iterdir()) if path.is_file()}
"""All of them, read once: a hook reads no file."""
