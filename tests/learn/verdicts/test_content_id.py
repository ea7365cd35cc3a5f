import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import StartupError
from gatewayfilter.learn import ContentIds, load_key
from gatewayfilter.learn.verdicts.content_id import image_digest, image_identity
from gatewayfilter.model import ContentId, ContentKind

IDS = ContentIds(b"k" * 32)


@given(st.binary(max_size=20_000), st.binary(max_size=20_000))
def test_pages_have_one_identity_only_if_they_are_equal(one: bytes, other: bytes) -> None:
    assert (IDS.of_page(one) == IDS.of_page(other)) is (one == other)


def test_what_differs_in_the_middle_alone_has_another_proof() -> None:
    body = bytearray(b"x" * 100_000)
    one = IDS.of_page(bytes(body))
    body[50_000] ^= 1
    other = IDS.of_page(bytes(body))
    assert one.digest != other.digest
    assert one.proof != other.proof


def test_identities_stay_what_stores_keep() -> None:
    page, text = IDS.of_page(b"<p>casino"), IDS.of_text("casino")
    assert page.digest == page.proof == bytes.fromhex("c36b8b61eec01a7ff3f84e32267a602a")
    assert (text.digest, text.proof) == (
        bytes.fromhex("5d26386b04e2adbf537f946f6511a6ec"),
        bytes.fromhex("2b141ec08b2429017dddd07ffc5df858"),
    )


def test_kinds_and_keys_are_kept_apart() -> None:
    assert IDS.of_page(b"text").kind is ContentKind.PAGE
    assert IDS.of_text("text").kind is ContentKind.TEXT
    assert IDS.of_text("text").proof != ContentIds(b"j" * 32).of_text("text").proof
    assert IDS.of_text("\ud800") == IDS.of_text("?")


def test_the_key_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: load_key(path), range(32)))
    assert keys == {path.read_bytes()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_a_damaged_key_and_a_folder_that_is_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x")
    with pytest.raises(StartupError, match="damaged"):
        load_key(tmp_path / "short")
    with pytest.raises(StartupError, match="cannot make the key"):
        load_key(tmp_path / "missing" / "key")
    with pytest.raises(StartupError, match="cannot read the key"):
        load_key(tmp_path)


def test_a_new_key_is_on_the_disk_before_it_is_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced = tmp_path / "fingerprints.key", list[tuple[int, bool]]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append((os.fstat(descriptor).st_size, path.exists())))
    load_key(path)
    assert synced == [(32, False)]


def test_an_image_is_known_by_its_md5_alone() -> None:
    assert image_identity(image_digest(b"GIF89a")) == ContentId(
        ContentKind.IMAGE, bytes.fromhex(hashlib.md5(b"GIF89a", usedforsecurity=False).hexdigest()), bytes(16)
    )
