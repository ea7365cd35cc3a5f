"""One-time codes by time (TOTP, RFC 6238) and recovery codes."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import quote

STEP_S: Final = 30
DIGITS: Final = 6
_SECRET_BYTES: Final = 20
_TOLERATED_STEPS: Final = 1
"""Before and after the present one: the clocks of phones differ by seconds, and people type slowly (RFC 6238, 5.2)."""

RECOVERY_CODES: Final = 10
_RECOVERY_BYTES: Final = 10
"""80 bits: such a code needs no slow hash."""


def new_secret() -> str:
    """Returns a secret of 160 bits in base32."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def code_at(secret: str, step: int) -> str:
    """Returns the code of a time step. Source: [RFC 4226 §5.3], [RFC 6238 §4]."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8), "sha1")
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4]) & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def matching_step(secret: str, code: str, now: float, after_step: int = 0) -> int | None:
    """Returns the time step whose code was typed, `None` when it is none of now.

    Args:
        secret: in base32.
        code: as typed.
        now: Unix seconds.
        after_step: the newest step of which a code was accepted: that one, and earlier ones, are refused.
    """
    typed = "".join(code.split())
    if len(typed) != DIGITS or not typed.isascii() or not typed.isdigit():
        return None
    present = int(now // STEP_S)
    found: int | None = None
    try:
        for step in range(present - _TOLERATED_STEPS, present + _TOLERATED_STEPS + 1):
            if hmac.compare_digest(code_at(secret, step), typed) and step > after_step:
                found = step
    except binascii.Error:  # a restored row with another text
        return None
    return found


def enrolment_address(secret: str, account_name: str, issuer: str) -> str:
    """Returns the `otpauth:` address that authenticator apps read from a QR code."""
    label = f"{quote(issuer, safe='')}:{quote(account_name, safe='')}"
    return f"otpauth://totp/{label}?secret={secret}&issuer={quote(issuer, safe='')}&digits={DIGITS}&period={STEP_S}"


def new_recovery_codes() -> list[str]:
    """Returns codes that replace a one-time code, each once: sixteen characters in four groups."""
    made = (base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES))
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in made]


def recovery_digest(code: str) -> str:
    """Returns the digest of a recovery code as typed, hexadecimal."""
    return hashlib.sha256("".join(mark for mark in code.lower() if mark.isalnum()).encode()).hexdigest()
