"""A log-in that waits for the provider's answer: what the browser keeps of it in a signed cookie.

The cookie holds no secret. The nonce and the code verifier of PKCE (RFC 7636) are made of the state and the key of the
dashboard, so that nothing has to be stored for browsers that never come back.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

FLOW_S: Final = 600.0
"""How long a person may take at the provider."""
_STATE_BYTES: Final = 24
_LONGEST_TARGET: Final = 1_500
_LONGEST_COOKIE: Final = 3_000


@dataclass(frozen=True, slots=True)
class Flow:
    """A log-in by single sign-on.

    Attributes:
        state: identifies it; the provider gives it back.
        begun_at: Unix seconds.
        target: the page to open afterwards.
    """

    state: str
    begun_at: float
    target: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider sends the browser back with.

    Attributes:
        state: of the log-in.
        code: the authorization code, `""` for none.
        error: `""` for none.
        issuer: who answers (RFC 9207), `""` where it is not told.
    """

    state: str
    code: str = ""
    error: str = ""
    issuer: str = ""


class FlowCookies:
    """Signs and reads the cookies of log-ins.

    Args:
        key: of the dashboard.
        client: what a cookie is good for: issuer, client and address of the dashboard.
    """

    def __init__(self, key: bytes, client: str) -> None:
        self._key = hmac.digest(key, f"single sign-on {client}".encode(), "sha256")

    def begin(self, now: float, target: str) -> tuple[Flow, str]:
        """Returns a new log-in and the value of its cookie.

        Args:
            now: Unix seconds.
            target: a path of the dashboard; a very long one is left out.
        """
        encoded = base64.urlsafe_b64encode(target.encode()).decode()
        if len(encoded) > _LONGEST_TARGET:
            target, encoded = "/", "Lw=="
        flow = Flow(secrets.token_urlsafe(_STATE_BYTES), float(int(now)), target)
        text = f"{flow.state}.{int(now)}.{encoded}"
        return flow, f"{text}.{self._mac('cookie', text)}"

    def read(self, cookie: str, now: float) -> Flow | None:
        """Returns the log-in of a cookie; `None` when it was not signed here, or is too old."""
        text, _, mac = cookie.rpartition(".")
        if not cookie.isascii() or len(cookie) > _LONGEST_COOKIE or not hmac.compare_digest(mac, self._mac("cookie", text)):
            return None
        state, begun, encoded = text.split(".")
        flow = Flow(state, float(begun), base64.urlsafe_b64decode(encoded).decode())
        return flow if 0 <= now - flow.begun_at <= FLOW_S else None

    def nonce(self, flow: Flow) -> str:
        """Returns what the ID token must repeat."""
        return self._mac("nonce", flow.state)

    def verifier(self, flow: Flow) -> str:
        """Returns the code verifier, which the provider gets with the code."""
        return self._mac("verifier", flow.state)

    def challenge(self, flow: Flow) -> str:
        """Returns the code challenge (S256), which the provider gets by the browser."""
        return _base64(hashlib.sha256(self.verifier(flow).encode()).digest())

    def _mac(self, purpose: str, text: str) -> str:
        return _base64(hmac.digest(self._key, f"{purpose} {text}".encode(), "sha256"))


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
