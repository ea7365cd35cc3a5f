"""The key that hashes clients in the log: made once, private, the same for all processes."""

from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.proxy.sync.client_key import hash_client, load_client_key


def test_a_key_is_made_once_and_read_afterwards(tmp_path: Path) -> None:
    key = load_client_key(tmp_path)
    assert len(key) == 32
    assert (tmp_path / "client.key").stat().st_mode & 0o777 == 0o600
    assert load_client_key(tmp_path) == (tmp_path / "client.key").read_bytes() == key
    (tmp_path / "other").mkdir()
    assert load_client_key(tmp_path / "other") != key
    with pytest.raises(StartupError, match=r"cannot read or make .*missing/client.key"):
        load_client_key(tmp_path / "missing")


def test_addresses_of_a_log_can_be_compared_across_releases() -> None:
    key = bytes(range(32))
    assert hash_client("192.0.2.7", key) == "0e9f39d13b37f248"
    assert hash_client("192.0.2.7", key) != hash_client("192.0.2.8", key) != hash_client("192.0.2.8", b"other")
    assert len(hash_client("user:\udc80", key)) == 16
