"""What may not lie open in a backup: encrypted, and read back with its passphrase alone."""

from base64 import b64encode
from hashlib import scrypt
from pathlib import Path
from typing import cast

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gatewayfilter.certificates.authority import CA_FILE, ensure_ca
from gatewayfilter.errors import BackupError
from gatewayfilter.use_cases.backup import restore_plan, sealing
from gatewayfilter.use_cases.backup.archive_reader import Archive
from gatewayfilter.use_cases.backup.sealing import check_passphrase, seal, unseal
from gatewayfilter.use_cases.backup.state_files import Places

GOOD = "correct horse battery"
CONTENT = b"a key" * 20
DAMAGED = "the certificate authority of the backup is damaged"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_COST", 2**4)


def test_it_is_read_with_its_passphrase_alone() -> None:
    sealed = seal(CONTENT, GOOD)
    assert unseal(sealed, GOOD) == CONTENT
    assert CONTENT[:5] not in sealed
    assert sealed != seal(CONTENT, GOOD)  # another salt, another nonce
    with pytest.raises(BackupError, match="the passphrase is wrong"):
        unseal(sealed, f"{GOOD} ")


@pytest.mark.parametrize("place", [25, 40, 55, -1])
def test_a_change_anywhere_is_noticed(place: int) -> None:
    sealed = bytearray(seal(CONTENT, GOOD))
    sealed[place] ^= 1
    with pytest.raises(BackupError, match="is damaged"):
        unseal(bytes(sealed), GOOD)


def test_what_is_too_short_or_of_another_version() -> None:
    sealed = seal(b"", GOOD)
    assert unseal(sealed, GOOD) == b""
    start = len(sealed) - 16  # the tag
    with pytest.raises(BackupError, match="newer version, or is damaged"):
        unseal(sealed[: start - 1], GOOD)
    with pytest.raises(BackupError, match="newer version, or is damaged"):
        unseal(b"gatewayfilter-sealed-2\n" + sealed[23:], GOOD)
    with pytest.raises(BackupError):
        unseal(sealed[:start], GOOD)


@pytest.mark.parametrize(("length", "fits"), [(7, False), (8, True), (1_024, True), (1_025, False)])
def test_the_length_of_a_passphrase(length: int, *, fits: bool) -> None:
    if fits:
        assert check_passphrase("x" * length) == "x" * length
        return
    with pytest.raises(BackupError, match="the passphrase is too"):
        seal(CONTENT, "x" * length)


def test_what_was_sealed_stays_readable() -> None:
    salt, nonce, head = bytes(range(16)), bytes(range(12)), b"gatewayfilter-sealed-1\n"
    key = scrypt(GOOD.encode(), salt=salt, n=2**4, r=8, p=1, dklen=32)
    assert unseal(head + salt + nonce + AESGCM(key).encrypt(nonce, CONTENT, head), GOOD) == CONTENT


def test_a_passphrase_that_is_no_text() -> None:
    with pytest.raises(BackupError, match="not text in UTF-8"):
        seal(CONTENT, "\ud800" * 8)


class Backup:
    """A backup that holds what it is given as the sealed authority."""

    def __init__(self, sealed: bytes | None) -> None:
        self._sealed = sealed

    def has(self, _: str) -> bool:
        return self._sealed is not None

    def content(self, _: str) -> bytes:
        assert self._sealed is not None
        return self._sealed


def _changes(backup: Backup, folder: Path) -> list[restore_plan.FileChange]:
    places = Places(folder, folder / "config.toml", folder / "proxy-users", folder / "ca")
    return list(restore_plan._authority_changes(cast("Archive", backup), places, GOOD))


def test_the_authority_of_a_backup_takes_the_place_of_another(tmp_path: Path) -> None:
    key = ensure_ca(tmp_path / "other").path.read_bytes()
    encoded = b64encode(key).decode()
    document = f'{{"{CA_FILE}": "{encoded}", "a.crt": "YQ=="}}'.encode()
    (tmp_path / "ca" / "folder").mkdir(parents=True)
    for name in (CA_FILE, "left.pem"):
        (tmp_path / "ca" / name).touch()
    found = {change.target.name: change for change in _changes(Backup(seal(document, GOOD)), tmp_path)}
    assert {*found} == {CA_FILE, "a.crt", "left.pem"}
    assert (found[CA_FILE].content, found["a.crt"].content, found["left.pem"].content) == (key, b"a", None)
    assert len(_changes(Backup(seal(document, GOOD)), tmp_path / "empty")) == 2
    with pytest.raises(BackupError, match="restore without --with-ca"):
        _changes(Backup(None), tmp_path)
    for name in (f"../{CA_FILE}", ".hidden", "a\\u0000b", "sub/x.pem", ""):
        bad = f'{{"{CA_FILE}": "{encoded}", "{name}": "YQ=="}}'.encode()
        with pytest.raises(BackupError, match=DAMAGED):
            _changes(Backup(seal(bad, GOOD)), tmp_path)


@pytest.mark.parametrize(
    "document",
    ["", "[]", "{}", '{"a": 1}', '{"a": "é"}', f'{{"{CA_FILE}": "YQ=="}}', f'{{"{CA_FILE}": "Y Q=="}}', '{"a": "YQ=="}'],
)
def test_an_authority_that_is_none_is_refused(tmp_path: Path, document: str) -> None:
    with pytest.raises(BackupError, match=DAMAGED):
        _changes(Backup(seal(document.encode(), GOOD)), tmp_path)
