"""File types by their first bytes, kind by kind: `gatewayfilter.engine.policies.magic_bytes`."""

import struct

from gatewayfilter.engine.policies.magic_bytes import found_type

NONE: frozenset[str] = frozenset()


def member(name: bytes, *, length: int | None = None) -> bytes:
    """The head of an archive's first member; what follows its name is no part of it."""
    return b"PK\x03\x04" + bytes(22) + struct.pack("<H", len(name) if length is None else length) + bytes(2) + name + b"more"


def fat(number: int) -> bytes:
    return b"\xca\xfe\xba\xbe" + struct.pack(">I", number)


def boxed(brand: bytes) -> bytes:
    return b"\x00\x00\x00\x20ftyp" + brand + bytes(8)


def test_what_a_file_is_that_claims_nothing() -> None:
    for begin, found in (
        (b"", ""), (b"hello", ""), (b"%PDF-1", "pdf"), (b"%PDX-1", ""), (b"d8:announce1", "torrent"),
        (b"d10:created by1", "torrent"), (b"\x00\x00\x01\xb3", "mpg"), (b"\xce\xfa\xed\xfe" + bytes(9), "macho"),
        (fat(40), "macho"), (fat(41), ""), (b"\xfe\xed\xfa\xcf" + b"\xff" * 9, "macho"), (boxed(b"isom"), "mp4"),
        (boxed(b"M4A "), "m4a"), (boxed(b"qt  "), "mov"), (boxed(b"3gp5"), "3gp"), (boxed(b"heic"), ""), (boxed(b"avif"), ""),
        (b"\x00ftypisom", ""), (b"RIFF\x00\x00\x00\x00AVI x", "avi"), (b"RIFF\x00\x00\x00\x00WAVEx", "wav"),
        (b"RIFF\x00\x00\x00\x00WEBPx", ""), (b"x" * 257 + b"ustar\x00", "tar"), (b"x" * 256 + b"ustar\x00", ""),
        (b"x" * 258 + b"ustar\x00", ""), (b"\xff\xfbx", "mp3"), (b"\xff\xf2x", "mp3"), (b"\xff\xf1x", "aac"),
        (b"\xff\xf9x", "aac"), (b"\xff\xf8x", ""), (member(b"AndroidManifest.xml"), "apk"),
        (member(b"AndroidManifest.xm"), "zip"), (member(b"classes.dex"), "apk"), (member(b"classes2.dex"), "zip"),
        (member(b"resources.arsc"), "apk"), (member(b"Payload/a"), "ipa"), (member(b"a/Payload/"), "zip"),
        (member(b"mimetype", length=5), "zip"),
    ):  # fmt: skip
        assert found_type(begin, NONE, NONE) == found


def test_types_that_share_a_container_are_told_apart_by_the_claim() -> None:
    for begin, claimed, blocked, found in (
        (b"MZ", "dll", "", "dll"), (b"MZ", "dll exe", "exe", "exe"), (b"MZ", "dll exe", "", "dll"),
        (b"MZ", "dll", "exe", "dll"), (b"MZ", "", "dll", "exe"), (b"MZ", "jpg", "exe dll", "exe"),
        (b"MZ", "jpg", "scr dll", "dll"), (b"MZ", "jpg", "", "exe"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "msi", ""),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "jpg", "msi", "msi"), (b"%PDF-", "exe", "exe", "pdf"), (b"#!x", "txt", "", "sh"),
        (member(b"META-INF/x"), "", "jar", ""), (member(b"META-INF/x"), "jpg", "jar", "jar"),
        (member(b"META-INF/x"), "xpi", "jar", "xpi"), (member(b"[Content_Types].xml"), "docx", "zip", "docx"),
        (member(b"[Content_Types].xml"), "jpg", "zip msix", "msix"), (member(b"mimetype"), "jpg", "epub zip", "epub"),
        (member(b"x"), "docx", "zip", "docx"), (member(b"x"), "jpg", "zip", "zip"),
    ):  # fmt: skip
        assert found_type(begin, frozenset(claimed.split()), frozenset(blocked.split())) == found
