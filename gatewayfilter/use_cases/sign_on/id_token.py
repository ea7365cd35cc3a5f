"""Verification of ID tokens [OpenID Connect Core §3.1.3.7], with PyJWT. It imports cryptography: 12 MB.

The algorithms are pinned: a token that is not signed, or signed by a secret (HS256) that could be the public key, is refused
before any key is looked at.
"""

import hmac
import json
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from gatewayfilter.use_cases.sign_on.failures import SignOnError, SignOnReason
from gatewayfilter.use_cases.sign_on.token_facts import CheckedToken, ExpectedToken

LONGEST_TOKEN: Final = 32_768
"""Characters of an ID token."""
LEEWAY_S: Final = 60.0
"""By how much the clocks may differ."""
_KEY_TYPES: Final = {"RS256": {"kty": "RSA"}, "ES256": {"kty": "EC", "crv": "P-256"}}
"""The algorithms that are accepted, and what their keys are."""
_LEAST_RSA_BITS: Final = 2_048
_LONGEST_SUBJECT: Final = 255
_REQUIRED: Final = ("iss", "aud", "sub", "exp", "iat", "nonce")
_FAULTS: Final[tuple[tuple[type[jwt.PyJWTError], SignOnReason], ...]] = (
    (jwt.ExpiredSignatureError, SignOnReason.TIME),
    (jwt.ImmatureSignatureError, SignOnReason.TIME),
    (jwt.InvalidAudienceError, SignOnReason.AUDIENCE),
    (jwt.InvalidIssuerError, SignOnReason.ISSUER),
    (jwt.InvalidAlgorithmError, SignOnReason.ALGORITHM),
    (jwt.InvalidSignatureError, SignOnReason.SIGNATURE),
)


def checked_token(token: str, keys: str, expected: ExpectedToken) -> CheckedToken:
    """Returns the claims of an ID token, or why it is refused.

    Args:
        token: as the provider sent it.
        keys: the provider's JWK set as JSON.
        expected: what it must state.
    """
    try:
        return CheckedToken(_claims(token, keys, expected))
    except SignOnError as error:
        return CheckedToken({}, error.reason, error.detail)


def _claims(token: str, keys: str, expected: ExpectedToken) -> dict[str, Any]:
    if len(token) > LONGEST_TOKEN:
        raise SignOnError(SignOnReason.TOKEN, "the ID token is too long")
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in _KEY_TYPES:
            raise SignOnError(SignOnReason.ALGORITHM, f"the ID token is signed by {str(algorithm)[:20]!r}")
        if "crit" in header:
            raise SignOnError(SignOnReason.TOKEN, "the ID token has critical extensions")
        key = _key(keys, algorithm, header.get("kid"))
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=expected.client_id,
            issuer=expected.issuer,
            leeway=LEEWAY_S,
            options={"require": list(_REQUIRED)},
        )
    except jwt.PyJWTError as error:
        reason = next((reason for kind, reason in _FAULTS if isinstance(error, kind)), SignOnReason.TOKEN)
        raise SignOnError(reason, f"the ID token is refused: {type(error).__name__}") from error
    except (ValueError, TypeError, RecursionError, OverflowError) as error:  # of claims of other types than expected
        raise SignOnError(SignOnReason.TOKEN, f"the ID token is malformed: {type(error).__name__}") from error
    _check_claims(claims, expected)
    return claims


def _key(keys: str, algorithm: str, kid: object) -> jwt.PyJWK:
    """Returns the key with an identifier; without one, the only key there is for the algorithm."""
    wanted = _KEY_TYPES[algorithm]
    entries = json.loads(keys).get("keys")
    usable = [
        entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and all(entry.get(name) == value for name, value in wanted.items())
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", algorithm) == algorithm
        and (kid is None or entry.get("kid") == kid)
    ]
    if len(usable) != 1:
        raise SignOnError(SignOnReason.KEY, f"the provider has {len(usable)} keys for this ID token")
    try:
        key = jwt.PyJWK.from_dict(
            {name: usable[0][name] for name in ("kty", "crv", "x", "y", "n", "e") if name in usable[0]}, algorithm
        )
    except jwt.PyJWTError as error:
        raise SignOnError(SignOnReason.KEY, f"the provider's key cannot be used: {type(error).__name__}") from error
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < _LEAST_RSA_BITS:
        raise SignOnError(SignOnReason.KEY, f"the provider's key has {key.key.key_size} bits only")
    return key


def _check_claims(claims: dict[str, Any], expected: ExpectedToken) -> None:
    """Checks what PyJWT does not: the log-in that the token belongs to, and the program that it was issued to."""
    nonce, subject, issued_at = claims["nonce"], claims["sub"], claims["iat"]
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise SignOnError(SignOnReason.NONCE, "the ID token has the nonce of another log-in")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else expected.client_id) != expected.client_id:
        raise SignOnError(SignOnReason.AUDIENCE, "the ID token was issued to another program (azp)")
    if not isinstance(issued_at, int | float) or issued_at < expected.begun_at - LEEWAY_S:
        raise SignOnError(SignOnReason.TIME, "the ID token is older than this log-in")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
        raise SignOnError(SignOnReason.TOKEN, "the ID token names no subject")
