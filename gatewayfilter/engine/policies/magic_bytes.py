"""File types by the first bytes of a file. Several types share a container: what a file claims to be tells them apart."""

from typing import Final

NEEDED: Final = 512
"""Bytes of a file that are looked at."""

_OFFICE: Final = frozenset({"docx", "docm", "xlsx", "xlsm", "pptx", "pptm"})
_ZIPPED: Final = _OFFICE | {"zip", "apk", "xapk", "ipa", "jar", "xpi", "msix", "appx", "odt", "ods", "odp", "epub", "crx"}
_COMPOUND: Final = frozenset({"msi", "doc", "xls", "ppt"})
_DOS: Final = frozenset({"exe", "dll", "com", "scr", "cpl"})

_BEGINNINGS: Final[tuple[tuple[bytes, frozenset[str]], ...]] = (
    (b"MZ", _DOS),
    (b"\x7fELF", frozenset({"elf", "appimage"})),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _COMPOUND),
    (b"PK\x03\x04", _ZIPPED),
    (b"PK\x05\x06", frozenset({"zip"})),
    (b"Rar!\x1a\x07", frozenset({"rar"})),
    (b"7z\xbc\xaf\x27\x1c", frozenset({"7z"})),
    (b"\x1f\x8b\x08", frozenset({"gz", "tgz"})),
    (b"BZh", frozenset({"bz2"})),
    (b"\xfd7zXZ\x00", frozenset({"xz"})),
    (b"\x28\xb5\x2f\xfd", frozenset({"zst"})),
    (b"MSCF\x00\x00\x00\x00", frozenset({"cab"})),
    (b"!<arch>\ndebian", frozenset({"deb"})),
    (b"\xed\xab\xee\xdb", frozenset({"rpm"})),
    (b"xar!", frozenset({"pkg"})),
    (b"Cr24", frozenset({"crx"})),
    (b"dex\n03", frozenset({"dex"})),
    (b"L\x00\x00\x00\x01\x14\x02\x00", frozenset({"lnk"})),
    (b"#!", frozenset({"sh"})),
    (b"%PDF-", frozenset({"pdf"})),
    (b"{\\rtf", frozenset({"rtf"})),
    (b"\x1aE\xdf\xa3", frozenset({"mkv", "webm"})),
    (b"FLV\x01", frozenset({"flv"})),
    (b"0&\xb2u\x8ef\xcf\x11", frozenset({"wmv", "wma"})),
    (b"\x00\x00\x01\xba", frozenset({"mpg", "mpeg"})),
    (b"\x00\x00\x01\xb3", frozenset({"mpg", "mpeg"})),
    (b"OggS", frozenset({"ogg", "oga", "ogv", "opus"})),
    (b"fLaC", frozenset({"flac"})),
    (b"ID3", frozenset({"mp3"})),
    (b"#EXTM3U", frozenset({"m3u8"})),
    (b"d8:announce", frozenset({"torrent"})),
    (b"d13:announce-list", frozenset({"torrent"})),
    (b"d7:comment", frozenset({"torrent"})),
    (b"d10:created by", frozenset({"torrent"})),
)
_MACH_O: Final = frozenset(
    {b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"}
)
_FIRST: Final = frozenset(begin[0] for begin, _ in _BEGINNINGS)
_USUAL: Final = ("exe", "zip", "gz", "mkv", "ogg", "mpg", "wmv", "elf")
"""Of types that share a container, the one that a file is which claims to be none of them."""
_BRANDS: Final = {b"M4A": "m4a", b"M4B": "m4a", b"qt ": "mov", b"M4V": "m4v", b"3gp": "3gp", b"3g2": "3gp"}
_PICTURES: Final = frozenset({b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis"})


def found_type(begin: bytes, claimed: frozenset[str], blocked: frozenset[str]) -> str:
    """Returns the file type that the first bytes of a file show, `""` for none that is known.

    Args:
        begin: the first bytes, up to `NEEDED`.
        claimed: the types that the file claims to be.
        blocked: of types that cannot be told apart, one of these is returned where the file claims to be something else
            altogether.
    """
    candidates = _candidates(begin)
    if not candidates:
        return ""
    if len(candidates) == 1:
        return next(iter(candidates))
    if own := sorted(claimed & candidates):
        return next((name for name in own if name in blocked), own[0])
    usual = next((name for name in _USUAL if name in candidates), "")
    if usual in blocked or not claimed:
        return usual
    return next(iter(sorted(candidates & blocked)), usual)


def _candidates(begin: bytes) -> frozenset[str]:
    if not begin:
        return frozenset()
    if begin[0] in _FIRST:
        for beginning, types in _BEGINNINGS:
            if begin.startswith(beginning):
                return _in_zip(begin) if types is _ZIPPED else types
    if begin[:4] in _MACH_O:
        # A Java class begins like a fat binary; its version is above the number of architectures of one.
        java = begin[:4] == b"\xca\xfe\xba\xbe" and int.from_bytes(begin[4:8]) > 40
        return frozenset() if java else frozenset({"macho"})
    if begin[4:8] == b"ftyp":
        return frozenset() if begin[8:12] in _PICTURES else frozenset({_BRANDS.get(begin[8:11], "mp4")})
    if begin[:4] == b"RIFF":
        return frozenset({{b"AVI ": "avi", b"WAVE": "wav"}.get(begin[8:12], "")} - {""})
    if begin[257:262] == b"ustar":
        return frozenset({"tar"})
    if begin[:2] in {b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"}:
        return frozenset({"mp3"})
    return frozenset({"aac"}) if begin[:2] in {b"\xff\xf1", b"\xff\xf9"} else frozenset()


def _in_zip(begin: bytes) -> frozenset[str]:
    """Returns what an archive may be by the name of its first member (APPNOTE §4.3.7)."""
    name = begin[30 : 30 + int.from_bytes(begin[26:28], "little")]
    if name == b"AndroidManifest.xml" or name.startswith((b"classes.dex", b"resources.arsc")):
        return frozenset({"apk"})
    if name.startswith(b"META-INF/"):
        return frozenset({"jar", "apk", "xpi"})
    if name == b"[Content_Types].xml":
        return _OFFICE | {"msix", "appx"}
    if name == b"mimetype":
        return frozenset({"odt", "ods", "odp", "epub"})
    return frozenset({"ipa"}) if name.startswith(b"Payload/") else _ZIPPED
