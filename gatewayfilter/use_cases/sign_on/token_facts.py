"""What an ID token must state, and what it stated; apart from its verification, which imports cryptography."""

from dataclasses import dataclass
from typing import Any, Protocol

from gatewayfilter.use_cases.sign_on.failures import SignOnReason


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """What an ID token must state.

    Attributes:
        issuer: of the settings.
        client_id: its audience.
        nonce: of the log-in.
        begun_at: Unix seconds at which the log-in began.
    """

    issuer: str
    client_id: str
    nonce: str
    begun_at: float


@dataclass(frozen=True, slots=True)
class CheckedToken:
    """An ID token that was checked.

    Attributes:
        claims: what it states; empty when it was refused.
        reason: why it was refused, `None` when it is good.
        detail: for the log.
    """

    claims: dict[str, Any]
    reason: SignOnReason | None = None
    detail: str = ""


class TokenCheck(Protocol):
    """Verifies ID tokens: `id_token.checked_token`, in a process of its own."""

    def __call__(self, token: str, keys: str, expected: ExpectedToken) -> CheckedToken:
        """Returns the claims of an ID token, or why it is refused.

        Args:
            token: as the provider sent it.
            keys: the provider's JWK set as JSON.
            expected: what it must state.
        """
        ...
