import base64

import pytest

from gatewayfilter.use_cases.access.second_factor import (
    STEP_S,
    code_at,
    enrolment_address,
    matching_step,
    new_recovery_codes,
    new_secret,
    recovery_digest,
)

RFC = base64.b32encode(b"12345678901234567890").decode()


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (59, "94287082"), (1111111109, "07081804"), (1111111111, "14050471"), (1234567890, "89005924"),
        (2000000000, "69279037"), (20000000000, "65353130"),
    ],
)  # fmt: skip
def test_the_vectors_of_the_rfc(at: int, code: str) -> None:
    """RFC 6238, appendix B; of its eight digits ours are the last six."""
    assert code_at(RFC, at // STEP_S) == code[2:]
    assert matching_step(RFC, f" {code[2:5]} {code[5:]} ", float(at), 0) == at // STEP_S


def test_neighbouring_steps_are_accepted_and_no_others() -> None:
    now = 1_800_000_000.0
    step = int(now // STEP_S)
    found = {delta: matching_step(RFC, code_at(RFC, step + delta), now, 0) for delta in range(-3, 4)}
    assert found == {-3: None, -2: None, -1: step - 1, 0: step, 1: step + 1, 2: None, 3: None}


def test_a_step_is_used_once() -> None:
    now = 1_800_000_000.0
    step = int(now // STEP_S)
    assert matching_step(RFC, code_at(RFC, step), now, step) is None
    assert matching_step(RFC, code_at(RFC, step - 1), now, step) is None
    assert matching_step(RFC, code_at(RFC, step + 1), now, step) == step + 1


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "\ud800" * 6, "x" * 100_000])
def test_what_is_no_code(code: str) -> None:
    assert matching_step(RFC, code, 59.0, 0) is None


def test_a_broken_secret_fits_nothing() -> None:
    assert matching_step("not base32!", "123456", 59.0, 0) is None


def test_secrets_and_recovery_codes() -> None:
    secret = new_secret()
    assert len(base64.b32decode(secret)) == 20
    assert secret != new_secret()
    codes = new_recovery_codes()
    assert len({recovery_digest(code) for code in codes}) == 10
    assert recovery_digest(codes[0].upper().replace("-", " ")) == recovery_digest(codes[0])
    assert enrolment_address("ABC", "ada & co", "Filter") == (
        "otpauth://totp/Filter:ada%20%26%20co?secret=ABC&issuer=Filter&digits=6&period=30"
    )
