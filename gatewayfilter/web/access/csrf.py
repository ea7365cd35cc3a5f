"""Forgery of requests: what a browser sends with the cookie of a log-in must come from a page of the dashboard."""

import hmac
from typing import Final

from fastapi import HTTPException, Request

from gatewayfilter.web.access.identity import current

FIELD: Final = "csrf"
HEADER: Final = "x-csrf-token"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


async def check_csrf(request: Request) -> None:
    """A dependency that refuses changes that do not repeat the token of the session, in a header or a form's field.

    Requests with an API token have no cookie that a foreign page could use.
    """
    if request.method in _SAFE:
        return
    identity = current(request)
    if identity is None or not identity.csrf:
        return
    given = request.headers.get(HEADER, "")
    if not given and request.headers.get("content-type", "").startswith(_FORMS):
        field = (await request.form()).get(FIELD, "")
        given = field if isinstance(field, str) else ""
    if not hmac.compare_digest(given.encode(), identity.csrf.encode()):
        raise HTTPException(403, "this page was open for too long, or the request did not come from it: load it again")
