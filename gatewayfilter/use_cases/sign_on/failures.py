"""Reasons for which single sign-on fails: shown to the person as a code, and explained in the process's log."""

from enum import StrEnum

from gatewayfilter.errors import AccountError


class SignOnReason(StrEnum):
    """Why a log-in by single sign-on failed."""

    STATE = "state"
    """The answer belongs to no log-in that this browser began, or to one that is too old."""
    REPLAYED = "replayed"
    """The answer was used already."""
    WAIT = "wait"
    """Too many failures from this network."""
    BUSY = "busy"
    """The provider is answering other log-ins slowly."""
    CANCELLED = "cancelled"
    """The provider reports an error, as when the person cancels."""
    PROVIDER = "provider"
    """The provider cannot be reached, or its answers cannot be used."""
    ISSUER = "issuer"
    """Another issuer than the one in the settings."""
    CODE = "code"
    """The provider does not accept the authorization code, or the secret of the dashboard."""
    TOKEN = "token"  # noqa: S105  a word
    """The ID token is malformed or lacks a claim."""
    ALGORITHM = "algorithm"
    """The ID token is signed by another algorithm than RS256 or ES256, or not at all."""
    KEY = "key"
    """The provider has published no key with which the ID token could be signed."""
    SIGNATURE = "signature"
    """The signature of the ID token is wrong."""
    AUDIENCE = "audience"
    """The ID token was issued for another program."""
    TIME = "time"
    """The ID token is expired, or its time lies in the future or before this log-in; the clocks may differ."""
    NONCE = "nonce"
    """The ID token belongs to another log-in."""
    UNKNOWN = "unknown"
    """No account is linked to this person, and none was made."""
    ROLE = "role"
    """The provider gives the person no role here."""
    DISABLED = "disabled"
    """The account is disabled."""
    SECRET = "secret"  # noqa: S105  a word
    """The file with the secret of the dashboard cannot be read."""


class SignOnError(AccountError):
    """A log-in by single sign-on that failed.

    Args:
        reason: why.
        detail: for the log; it has no secrets.
        subject: identifies the person at the provider, where a verified ID token names it.
    """

    def __init__(self, reason: SignOnReason, detail: str = "", subject: str = "") -> None:
        super().__init__(f"single sign-on failed ({reason})" + (f": {detail}" if detail else ""))
        self.reason = reason
        self.detail = detail
        self.subject = subject
