"""Verification of ID tokens: one that is good, and every way to be none."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatewayfilter.use_cases.sign_on.id_token import _LONGEST_SUBJECT, LEEWAY_S, checked_token
from gatewayfilter.use_cases.sign_on.token_facts import CheckedToken, ExpectedToken
from tests.use_cases.sign_on.oidc_provider import CLIENT, KEYS, es256, public_jwk, rs256, unsigned

ISSUER = "https://id.example"
NOW = int(time.time())
EXPECTED = ExpectedToken(ISSUER, CLIENT, "n-0S6_WzA2Mj", NOW)
CLAIMS = {"iss": ISSUER, "aud": CLIENT, "sub": "jane", "iat": NOW, "exp": NOW + 3_000, "nonce": EXPECTED.nonce}
PUBLISHED = [public_jwk("first"), public_jwk("curve")]


def checked(token: str, keys: object = PUBLISHED) -> CheckedToken:
    return checked_token(token, json.dumps({"keys": keys}), EXPECTED)


@pytest.mark.parametrize("sign", [rs256, es256])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"aud": [CLIENT]},
        {"azp": CLIENT},
        {"aud": [CLIENT, "another"], "azp": CLIENT},
        {"iat": NOW - 30},
        {"iat": NOW - LEEWAY_S},
        {"sub": "x"},
        {"sub": "x" * _LONGEST_SUBJECT},
    ],
)
def test_good_tokens(change: dict[str, Any], sign: Callable[[dict[str, Any]], str]) -> None:
    assert checked(sign(CLAIMS | change)) == CheckedToken(CLAIMS | change)


def _hmac_with_public_key(claims: dict[str, Any]) -> str:
    """The public key as the secret of HS256, which PyJWT refuses to make."""
    pem = KEYS["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "first"}, claims)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    mac = base64.urlsafe_b64encode(hmac.new(pem, text, hashlib.sha256).digest()).rstrip(b"=")
    return (text + b"." + mac).decode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nonce": "of another log-in"}, "nonce"),
        ({"nonce": 7}, "nonce"),
        ({"nonce": "é"}, "nonce"),
        ({"nonce": None}, "token"),
        ({"aud": "another"}, "audience"),
        ({"aud": []}, "token"),
        ({"aud": {"filter": 1}}, "audience"),
        ({"aud": [CLIENT, "another"]}, "audience"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "audience"),
        ({"azp": "another"}, "audience"),
        ({"azp": [CLIENT]}, "audience"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": f"{ISSUER}/"}, "issuer"),
        ({"exp": NOW - 90}, "time"),
        ({"exp": None}, "token"),
        ({"exp": "soon"}, "token"),
        ({"exp": float("inf")}, "token"),
        ({"iat": NOW + 4_000}, "time"),
        ({"iat": NOW - 4_000}, "time"),
        ({"iat": float("nan")}, "token"),
        ({"nbf": NOW + 4_000}, "time"),
        ({"sub": ""}, "token"),
        ({"sub": 42}, "token"),
        ({"sub": "x" * (_LONGEST_SUBJECT + 1)}, "token"),
        ({"iat": NOW - LEEWAY_S - 1}, "time"),
        ({"sub": "a\nb"}, "token"),
        ({"padding": "x" * 40_000}, "token"),
    ],
)
def test_claims_that_are_refused(change: dict[str, Any], reason: str) -> None:
    claims = {key: value for key, value in (CLAIMS | change).items() if value is not None}
    found = checked(rs256(claims))
    assert (found.claims, found.reason) == ({}, reason)


@pytest.mark.parametrize(
    ("sign", "reason"),
    [
        (unsigned, "algorithm"),
        (_hmac_with_public_key, "algorithm"),
        (lambda claims: jwt.encode(claims, KEYS["first"], "RS512", {"kid": "first"}), "algorithm"),
        (lambda claims: jwt.encode(claims, KEYS["first"], "PS256", {"kid": "first"}), "algorithm"),
        (lambda claims: rs256(claims, "second"), "key"),
        (lambda claims: jwt.encode(claims, KEYS["first"], "RS256", {"kid": "curve"}), "key"),
        (lambda claims: jwt.encode(claims, KEYS["second"], "RS256", {"kid": "first"}), "signature"),
        (lambda claims: rs256(claims)[:-8] + "AAAAAAAA", "signature"),
        (lambda claims: rs256(claims).rpartition(".")[0] + ".", "signature"),
        (lambda claims: jwt.encode(claims, KEYS["first"], "RS256", {"kid": "first", "crit": ["exp"]}), "token"),
        (lambda _: "not.a.token", "token"),
        (lambda _: "", "token"),
        (lambda _: "." * 30_000, "token"),
    ],
)
def test_signatures_that_are_refused(sign: Callable[[dict[str, Any]], str], reason: str) -> None:
    found = checked(sign(CLAIMS))
    assert (found.claims, found.reason) == ({}, reason)


def test_without_an_identifier_the_only_key_counts() -> None:
    token = jwt.encode(CLAIMS, KEYS["first"], "RS256")
    assert checked(token).reason is None
    assert checked(token, [public_jwk("first"), public_jwk("second")]).reason == "key"


SMALL = jwt.algorithms.RSAAlgorithm.to_jwk(
    rsa.generate_private_key(public_exponent=65_537, key_size=1_024).public_key(), as_dict=True
)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        None,
        "first",
        [None, 1, []],
        [SMALL | {"kid": "first"}],
        [public_jwk("first") | {"use": "enc"}],
        [public_jwk("first") | {"alg": "RS512"}],
        [public_jwk("first"), public_jwk("first")],
        [{"kty": "RSA", "kid": "first"}],
        [{"kty": "RSA", "kid": "first", "n": 7, "e": []}],
        [{"kty": "oct", "kid": "first", "k": "AAAA"}],
    ],
)
def test_keys_that_cannot_be_used(keys: object) -> None:
    found = checked(rs256(CLAIMS), keys)
    assert found.reason in {"key", "token"}
    assert found.claims == {}
