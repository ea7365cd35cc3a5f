"""Bytes to text: BOM, strict UTF-8, HTTP header, meta prescan, detection, and at last gb18030 with replacement.

A label is believed only when the bytes bear it out: pages lie about their charset more often than they are damaged.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from resiliparse.parse.encoding import detect_encoding

_PRESCAN_BYTES = 4096
_DETECT_BYTES = 65_536
_MAX_DAMAGE = 1 / 200
"""Share of undecodable characters up to which a charset is still taken for the right one."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<(?:meta\b|\?xml\b)[^>]{0,500}?(?:charset|encoding)\s*=\s*[\"']?\s*([a-z0-9_:.-]{2,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([a-z0-9_:.-]{2,40})", re.IGNORECASE)
_HIGH_PAIR = re.compile(rb"[\x80-\xff][\x40-\xff]")
_HIGH = re.compile(rb"[\x80-\xff]")

# Python's codec → (the WHATWG name we report, the labels that mean it). Codecs that are no charset of the web
# (idna, unicode_escape, utf-7 …) are left out on purpose: a label must not choose them.
_CHARSETS = {
    "utf-8": ("utf-8", "utf-8 utf8 unicode-1-1-utf-8"),
    "gb18030": (
        "gb18030",
        "gb18030 gbk gb2312 gb_2312 gb_2312-80 gb2312-80 csgb2312 chinese euc-cn euccn x-gbk cp936 ms936 iso-ir-58",
    ),
    "big5hkscs": ("big5", "big5 big5-hkscs big5hkscs cn-big5 csbig5 x-x-big5 cp950"),
    "cp932": ("shift_jis", "shift_jis shift-jis sjis x-sjis ms_kanji windows-31j ms932 cp932 csshiftjis"),
    "euc_jp": ("euc-jp", "euc-jp eucjp x-euc-jp cseucpkdfmtjapanese"),
    "iso2022_jp": ("iso-2022-jp", "iso-2022-jp csiso2022jp"),
    "cp949": ("euc-kr", "euc-kr euckr ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949 cp949 uhc"),
    "utf-16-le": ("utf-16le", "utf-16 utf-16le utf16 unicode ucs-2 iso-10646-ucs-2"),
    "utf-16-be": ("utf-16be", "utf-16be"),
    "cp1252": ("windows-1252", "windows-1252 cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 ascii us-ascii"),
    "cp1250": ("windows-1250", "windows-1250 cp1250"),
    "cp1251": ("windows-1251", "windows-1251 cp1251"),
    "cp1253": ("windows-1253", "windows-1253 cp1253"),
    "cp1254": ("windows-1254", "windows-1254 cp1254 iso-8859-9 latin5"),
    "cp1255": ("windows-1255", "windows-1255 cp1255"),
    "cp1256": ("windows-1256", "windows-1256 cp1256"),
    "cp1257": ("windows-1257", "windows-1257 cp1257"),
    "cp1258": ("windows-1258", "windows-1258 cp1258"),
    "cp874": ("windows-874", "windows-874 cp874 tis-620 iso-8859-11"),
    "iso8859-2": ("iso-8859-2", "iso-8859-2 iso8859-2 latin2"),
    "iso8859-5": ("iso-8859-5", "iso-8859-5 cyrillic"),
    "iso8859-7": ("iso-8859-7", "iso-8859-7 greek"),
    "iso8859-15": ("iso-8859-15", "iso-8859-15 latin9 latin-9"),
    "koi8-r": ("koi8-r", "koi8-r koi8 koi"),
    "koi8-u": ("koi8-u", "koi8-u"),
}
_CODECS = {label: codec for codec, (_, labels) in _CHARSETS.items() for label in labels.split()}
_SINGLE_BYTE = frozenset(codec for codec in _CHARSETS if codec.startswith(("cp125", "cp874", "iso8859", "koi8")))


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text and the WHATWG name of the charset it was read as."""

    text: str
    charset: str


def decode(body: bytes, content_type: str = "") -> Decoded:
    """Decodes a page; never raises and never gives up. Linear in the body's length.

    Args:
        body: the page's bytes; may be cut anywhere.
        content_type: the HTTP header's value, `""` when there is none.
    """
    for bom, codec in _BOMS:
        if body.startswith(bom):
            return _decoded(body[len(bom) :], codec)
    labels = [_CODECS[label] for label in _labels(body, content_type) if label in _CODECS]
    if utf16 := _unmarked_utf16(body):
        return _decoded(body, utf16)
    if b"\x1b" in body and "iso2022_jp" in labels:
        return _decoded(body, "iso2022_jp")
    try:
        return Decoded(codecs.getincrementaldecoder("utf-8")().decode(body), "utf-8")
    except UnicodeDecodeError:
        pass
    multibyte = _looks_multibyte(body)
    trusted = [codec for codec in labels if not (multibyte and codec in _SINGLE_BYTE)]
    for codec in (*trusted, *_detected(body), *labels):
        found = _decoded(body, codec)
        if found.text.count("\ufffd") <= len(found.text) * _MAX_DAMAGE:
            return found
    return _decoded(body, "gb18030")


def _decoded(body: bytes, codec: str) -> Decoded:
    return Decoded(body.decode(codec, "replace"), _CHARSETS[codec][0])


def _labels(body: bytes, content_type: str) -> Iterator[str]:
    if match := _HEADER.search(content_type[:1000]):
        yield match[1].lower()
    if found := _META.search(_COMMENT.sub(b"", body[:_PRESCAN_BYTES])):
        label = found[1].decode("ascii").lower()
        yield "utf-8" if label.startswith("utf-16") else label  # it was read as ASCII, so it cannot be UTF-16


def _detected(body: bytes) -> Iterator[str]:
    label = detect_encoding(body[:_DETECT_BYTES])
    if label and label.lower() in _CODECS:
        yield _CODECS[label.lower()]


def _unmarked_utf16(body: bytes) -> str:
    """Tells UTF-16 without a BOM by the zero bytes of its ASCII characters."""
    head = body[:400]
    if len(head) < 4 or b"\x00" not in head:
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 10 > len(head) // 2 and max(even, odd) > 4 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    return ""


def _looks_multibyte(body: bytes) -> bool:
    """Tells whether bytes above ASCII come in pairs, as in East Asian charsets, and not one by one, as in European ones."""
    sample = body[:_DETECT_BYTES]
    high = len(_HIGH.findall(sample))
    return len(_HIGH_PAIR.findall(sample)) * 2 >= high * 0.9 and len(re.findall(rb"[\x80-\xff]{2}", sample)) * 4 >= high
