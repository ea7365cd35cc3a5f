from base64 import b64encode
from pathlib import Path

import pytest

from gatewayfilter.proxy.auth.user_file import PasswordHash, Users, write_users


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (basic("kim:wrong"), "kim"),
        (basic("hunter2:"), ""),
        (basic("secret-typed-as-name:kim"), ""),
        ("Basic %%%", ""),
        ("", ""),
    ],
)
def test_only_existing_users_are_named(header: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "users"
    write_users(file, {"kim": PasswordHash.of("right")})
    assert Users(file).named(header) == name


def test_a_new_password_is_hashed_at_full_cost() -> None:
    assert str(PasswordHash.of("right")).startswith("scrypt:16384:8:1:")
