import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.use_cases.access.passwords import LONGEST, Passwords, check_new_password

pytestmark = pytest.mark.usefixtures("full_cost")


def test_a_hash_fits_its_password_alone(passwords: Passwords) -> None:
    made = passwords.hash("correct horse battery")
    assert made.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert made != passwords.hash("correct horse battery")
    assert passwords.fits(made, "correct horse battery")
    for other in ("", "correct horse batterY", "correct horse battery ", "x" * 100_000, "\ud800"):
        assert not passwords.fits(made, other)


@pytest.mark.parametrize("broken", ["", "x", "$argon2id$v=19$m=19456,t=2,p=1$AAAA", "$argon2id$v=19$m=1,t=1,p=1$" + "A" * 60])
def test_what_is_no_hash_fits_nothing(broken: str, passwords: Passwords) -> None:
    assert not passwords.fits(broken, "")
    assert not passwords.fits(broken, "AAAAAAAAAAAA")


def test_keyboards_that_compose_in_other_ways(passwords: Passwords) -> None:
    assert passwords.fits(passwords.hash("pa\u0308sswo\u0308rter"), "p\u00e4ssw\u00f6rter")
    assert passwords.fits(passwords.hash("\uff11\uff12\uff13\uff14 hello there"), "1234 hello there")


def test_hashes_with_other_parameters_are_outdated(passwords: Passwords) -> None:
    assert not passwords.is_outdated(passwords.hash("correct horse"))
    assert passwords.is_outdated("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlA")
    assert passwords.is_outdated("nothing")


@pytest.mark.parametrize("password", ["correct horse", "密码要有十个字符才可以", "aB3$aB3$aB3$", "x" * 4 + "abcdef"])
def test_good_passwords(password: str) -> None:
    check_new_password(password, "ada")


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("", "at least"),
        ("123456789", "at least"),
        ("x" * (LONGEST + 1), "at most"),
        ("aaaaaaaaaaaa", "first"),
        ("abababababab", "first"),
        ("Password123", "first"),
        ("\uff50assword123", "first"),
        ("adalovelace", "name"),
        ("AdaLovelace", "name"),
        ("adalovelace2026!", "name"),
    ],
)
def test_refused_passwords(password: str, why: str) -> None:
    with pytest.raises(AccountError, match=why):
        check_new_password(password, "AdaLovelace")
