"""Signed tokens: the address of the page that shows a request's state, and bypass links.

Both are authenticated by HMAC-SHA256 with a secret of the state folder, each with a label of its own, so that neither passes for
the other. Signatures are compared in constant time.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from gatewayfilter.urls import parse_url

UNBLOCK_PATH: Final = "/.well-known/gatewayfilter/unblock"
"""Where the form of a block page and bypass links lead, on the site of the page; the filter answers there itself."""

MOST_CHARACTERS: Final = 12_000
"""Characters of a token; a URL has some 8,000 at most."""

_DAY_S: Final = 86_400
_STATE: Final = b"state\0"
_LINK: Final = b"link\0"


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """What a bypass link names.

    Attributes:
        number: of the link in the store.
        url: canonical text of the page that it leads to.
        scope: whom it is for: `client:NAME`, `group:NAME`, or `""` for everybody.
        until: Unix seconds at which it ends.
        once: it works for one visit.
    """

    number: int
    url: str
    scope: str
    until: float
    once: bool


def state_token(key: bytes, who: str, url: str, now: float) -> str:
    """Returns the token of a client's request, which is good for the rest of its day (UTC) and the next one."""
    return _state_of_day(key, who, url, int(now // _DAY_S))


def is_state_token(key: bytes, token: str, who: str, url: str, now: float) -> bool:
    """Returns whether a token was made for this client and URL, yesterday or today."""
    sent = token[:MOST_CHARACTERS].encode("utf-8", "replace")
    day = int(now // _DAY_S)
    today, yesterday = (hmac.compare_digest(sent, _state_of_day(key, who, url, one).encode()) for one in (day, day - 1))
    return today or yesterday


def _state_of_day(key: bytes, who: str, url: str, day: int) -> str:
    message = json.dumps([who, url, day], ensure_ascii=True).encode()
    return _encode(hmac.digest(key, _STATE + message, "sha256")[:16])


def sign_link(key: bytes, claims: LinkClaims) -> str:
    """Returns the token of a bypass link."""
    fields = [claims.number, claims.url, claims.scope, claims.until, claims.once]
    body = json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode()
    return f"{_encode(body)}.{_encode(hmac.digest(key, _LINK + body, 'sha256'))}"


def link_address(key: bytes, claims: LinkClaims) -> str:
    """Returns the address that opens a bypass link, on the site of its page."""
    url = parse_url(claims.url)
    return f"{url.scheme}://{url.netloc}{UNBLOCK_PATH}?link={sign_link(key, claims)}"


def read_link(key: bytes, token: str) -> LinkClaims | None:
    """Returns what the token of a bypass link names, `None` when it was not signed with this key."""
    if len(token) > MOST_CHARACTERS or not token.isascii():
        return None
    written, _, signature = token.partition(".")
    try:
        body, sent = _decode(written), _decode(signature)
    except ValueError:
        return None
    # The encoding is compared too: of a token there is one form.
    if not hmac.compare_digest(hmac.digest(key, _LINK + body, "sha256"), sent) or token != f"{_encode(body)}.{_encode(sent)}":
        return None
    number, url, scope, until, once = json.loads(body)
    return LinkClaims(int(number), str(url), str(scope), float(until), bool(once))


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
