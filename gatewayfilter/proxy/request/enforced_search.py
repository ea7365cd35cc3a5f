"""The enforcement of SafeSearch and of YouTube's Restricted Mode on a request: its parameters, cookies and header fields."""

import re
from typing import Final

from mitmproxy import http

from gatewayfilter.model import Enforcement
from gatewayfilter.urls import Url, parameter_name

_SEPARATOR: Final = re.compile("([&;])")


def enforce(request: http.Request, url: Url, enforced: Enforcement) -> None:
    """Changes a request so that its site filters its results.

    Args:
        request: allowed; it is sent to its origin afterwards.
        url: as it was judged.
        enforced: what is changed.
    """
    data = request.data
    if enforced.parameters:
        path, _, query = data.path.partition(b"?")
        data.path = path + b"?" + with_parameters(query.decode("latin-1"), enforced.parameters).encode("latin-1")
    if enforced.cookies or enforced.headers:
        data.headers.fields = _with_fields(data.headers.fields, enforced)
    # Where the client chose an address or another name, this one has to be looked up: it leads to the enforced addresses
    # (reach_guard.py).
    if enforced.address:
        data.host = url.host


def with_parameters(query: str, parameters: tuple[tuple[str, str], ...]) -> str:
    """Returns a query with these parameters in place of all that a server may read as one of them."""
    names = {name for name, _ in parameters}
    kept: list[str] = []
    pieces = _SEPARATOR.split(query)
    for mark, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        if piece and parameter_name(piece.partition("=")[0]) not in names:
            kept.append(f"{mark if kept else ''}{piece}")
    kept += [f"{'&' if kept or place else ''}{name}={value}" for place, (name, value) in enumerate(parameters)]
    return "".join(kept)


def _with_fields(fields: tuple[tuple[bytes, bytes], ...], enforced: Enforcement) -> tuple[tuple[bytes, bytes], ...]:
    ours = {name.encode(): value.encode() for name, value in enforced.headers}
    cookies = {name.encode(): value.encode() for name, value in enforced.cookies}
    kept: list[tuple[bytes, bytes]] = []
    sent: list[bytes] = []
    for name, value in fields:
        lower = name.lower()
        if lower == b"cookie" and cookies:
            pieces = (piece.strip() for piece in value.split(b";"))
            sent += [piece for piece in pieces if piece and piece.partition(b"=")[0].strip() not in cookies]
        elif lower not in ours:
            kept.append((name, value))
    if cookies:
        sent += [b"%b=%b" % cookie for cookie in cookies.items()]
        kept.append((b"cookie", b"; ".join(sent)))
    return (*kept, *ours.items())
