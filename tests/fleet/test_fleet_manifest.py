"""Keys and manifests: what is signed is opened, anything else is refused."""

import json
import stat
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import manifest as module
from gatewayfilter.fleet.keys import KeyFile, SigningKeys
from gatewayfilter.fleet.manifest import Manifest, SnapshotPart, open_manifest, sign_manifest
from gatewayfilter.fleet.public_keys import parse_public_key, write_public_key

ONE, TWO = SigningKeys((b"1" * 32,)), SigningKeys((b"2" * 32,))
BOTH = SigningKeys(ONE.secrets + TWO.secrets)
PART = SnapshotPart("a" * 64, 70_000, 3, 1.5, 65_536, (4_000, 66_000), b"d" * 48)
MANIFEST = Manifest(7, 2.5, None, "1.0", ONE.public, PART, "b" * 64, 12)
SIGNED = sign_manifest(MANIFEST, ONE)


def test_a_signed_manifest_is_what_was_signed() -> None:
    assert open_manifest(SIGNED, ONE.public) == MANIFEST
    assert open_manifest(sign_manifest(MANIFEST, BOTH), TWO.public) == MANIFEST


@pytest.mark.parametrize(
    "data",
    [
        b"",
        SIGNED[:-1],
        SIGNED.replace(b'"sequence":7', b'"sequence":9'),
        sign_manifest(MANIFEST, TWO),
        SIGNED.replace(b"GWFLEET1", b"GWFLEET2"),
        SIGNED.partition(b"\n\n")[2],
        b"GWFLEET1\n" + SIGNED.split(b"\n")[1] * 3 + b"\n\n{}",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(FleetError):
        open_manifest(data, ONE.public)


def signed(payload: bytes, *keys: SigningKeys) -> bytes:
    lines = [
        b64encode(key) + b" " + b64encode(signature)
        for some in keys
        for key, signature in some.sign(b"gatewayfilter fleet manifest 1\0" + payload)
    ]
    return b"\n".join((b"GWFLEET1", *lines, b"", payload))


def test_a_manifest_has_the_signatures_of_one_or_two_keys() -> None:
    payload = SIGNED.partition(b"\n\n")[2]
    for keys in ((ONE,), (TWO, ONE), (BOTH,)):
        assert open_manifest(signed(payload, *keys), ONE.public) == MANIFEST
    for others in ((), (BOTH, ONE)):
        with pytest.raises(FleetError, match="is no manifest of a fleet"):
            open_manifest(signed(payload, *others), ONE.public)
    with pytest.raises(FleetError, match="no valid signature"):
        open_manifest(signed(payload, TWO), ONE.public)


def test_the_largest_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_MANIFEST", len(SIGNED))
    assert open_manifest(SIGNED, ONE.public) == MANIFEST
    monkeypatch.setattr(module, "LARGEST_MANIFEST", len(SIGNED) - 1)
    with pytest.raises(FleetError, match="is no manifest of a fleet"):
        open_manifest(SIGNED, ONE.public)


def test_what_is_signed_is_read_to_its_bounds() -> None:
    program = sign_manifest(replace(MANIFEST, program="x" * 41), ONE)
    assert open_manifest(program, ONE.public).program == "x" * 40
    document = json.loads(SIGNED.partition(b"\n\n")[2])
    older = {name: value for name, value in document.items() if name != "deltas"}
    assert open_manifest(signed(json.dumps(older).encode(), ONE), ONE.public) == MANIFEST, "of a program before there were any"
    blocks = document["snapshot"]["blocks"]
    for part in ({"blocks": blocks[:5] + "!" + blocks[5:]}, {"size": "x"}, {"made_at": None}):
        payload = json.dumps(document | {"snapshot": document["snapshot"] | part}).encode()
        with pytest.raises(FleetError, match="cannot be read"):
            open_manifest(signed(payload, ONE), ONE.public)


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_each_flipped_byte_is_refused(at: int, by: int) -> None:
    broken = bytearray(SIGNED)
    broken[at] ^= by
    with pytest.raises(FleetError):
        open_manifest(bytes(broken), ONE.public)


@pytest.mark.parametrize(
    "part",
    [
        replace(PART, size=70_001),
        replace(PART, blocks=b"d" * 32),
        replace(PART, block_bytes=1),
        replace(PART, name="../../etc/passwd"),
        replace(PART, segments=(-1, 70_001)),
        replace(PART, segments=()),
    ],
)
def test_a_signed_contradiction_is_refused(part: SnapshotPart) -> None:
    with pytest.raises(FleetError, match=r"contradicts|cannot be read"):
        open_manifest(sign_manifest(replace(MANIFEST, snapshot=part), ONE), ONE.public)


def test_the_key_file_is_private_and_rotates(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "fleet" / "signing.key")
    with pytest.raises(FleetError, match="fleet init"):
        file.read()
    first = file.create()
    assert stat.S_IMODE((tmp_path / "fleet" / "signing.key").stat().st_mode) == 0o600
    with pytest.raises(FleetError, match="already"):
        file.create()
    with pytest.raises(FleetError, match="no rotation"):
        file.finish()
    both = file.rotate()
    assert both.public[0] == first.public[0]
    with pytest.raises(FleetError, match="under way"):
        file.rotate()
    assert file.finish().public == both.public[1:] == file.read().public


@pytest.mark.parametrize("text", ["", "ed25519:", "ed25519:AAAA", "AAAA", "ed25519:" + "é" * 44])
def test_public_keys_that_are_none(text: str) -> None:
    with pytest.raises(FleetError):
        parse_public_key(text)
    assert parse_public_key(write_public_key(ONE.public[0])) == ONE.public[0]
