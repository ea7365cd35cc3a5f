"""Bytes to text: BOM, strict UTF-8, and else the charset by which the bytes look most like writing (charset_score.py).

A label, of the HTTP header or the meta prescan, is believed only when the bytes bear it out: pages lie about their charset
more often than they are damaged.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from resiliparse.parse.encoding import detect_encoding

from gatewayfilter.documents.encoding.charset_score import plausibility
from gatewayfilter.documents.html.tags import without_zeros

_PRESCAN_BYTES = 4096
_DETECT_BYTES = 65_536
_MOST_KEPT = 500_000
"""Bytes of the page whose text is kept."""
_MAX_DAMAGE = 1 / 200
"""Share of undecodable characters up to which a charset is still taken for the right one."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"<(?:meta\b|\?xml\b)[^>]{0,500}?(?:charset|encoding)\s*+=\s*+[\"']?\s*+([a-z0-9_:.-]{2,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*+=\s*+[\"']?\s*+([a-z0-9_:.-]{2,40})", re.IGNORECASE)
_HIGH_RUN = re.compile(rb"[\x40-\x7f]*+[\x80-\xff][^\x00-\x2f\x3a-\x3f]*+(?:[\x30-\x39][\x80-\xff][^\x00-\x2f\x3a-\x3f]*+)*+")
_SAMPLE_BYTES = 12_000
_GUESSES = ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "cp1252", "cp1251", "koi8-r")
_LABEL_BONUS = 0.25
_DETECTED_BONUS = 0.15
_DAMAGE_MALUS = 2.0
_JAPANESE = frozenset({"cp932", "euc_jp"})
_FOREIGN_KANA = 0.5
"""EUC-JP and GB 18030 write kana alike: a text full of them is Japanese, whatever its label."""

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


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text and the WHATWG name of the charset it was read as."""

    text: str
    charset: str


_last = (b"", "", Decoded("", "utf-8"))


def decode(body: bytes, content_type: str = "") -> Decoded:
    """Decodes a page; never raises and never gives up. Linear in the body's length.

    Args:
        body: the page's bytes; may be cut anywhere.
        content_type: the HTTP header's value, `""` when there is none.

    What it returned last is kept for the same object, unless that is longer than `_MOST_KEPT`: who judges a page, and who asks
    for its forms before the verdict is kept, begin with its text.
    """
    global _last  # noqa: PLW0603  one value, replaced as a whole: threads may share it
    last_body, last_type, known = _last
    if last_body is body and last_type == content_type:
        return known
    decoded = _decode(body, content_type)
    if len(body) <= _MOST_KEPT:
        _last = body, content_type, decoded
    return decoded


def _decode(body: bytes, content_type: str) -> Decoded:
    for bom, codec in _BOMS:
        if body.startswith(bom):
            return _decoded(body[len(bom) :], codec)
    if utf16 := _unmarked_utf16(body):
        return _decoded(body, utf16)
    if b"\x1b" in body and b"\x1b$" in body and (body.isascii() or "iso2022_jp" in _named_codecs(body, content_type)):
        return _decoded(body, "iso2022_jp")
    return _as_shown(body, content_type)


def decode_as_labelled(body: bytes, content_type: str, chosen: str) -> Decoded | None:
    """Decodes a page as a browser does that believes its label; `None` where that is what `decode` did, or where there is none.

    Bytes that are no text can be put beside a page to make its charset look like another one, while browsers follow the label
    and show the page. A label whose charset was not `chosen` is worth a second look. Strict UTF-8 is UTF-8 whatever the label.
    So is UTF-16 with no evidence but zero bytes: no browser guesses it.
    """
    if chosen in {"", "utf-8"} or any(body.startswith(bom) for bom, _ in _BOMS):
        return None
    codec = next(iter(_named_codecs(body, content_type)), "")
    if not codec and chosen.startswith("utf-16"):
        return _strict_utf8(body) or _decoded(body, _most_plausible(body, []))
    return _decoded(body, codec) if codec and _CHARSETS[codec][0] != chosen else None


def _as_shown(body: bytes, content_type: str) -> Decoded:
    """Decodes what has neither BOM nor escapes nor zero bytes of its own: strict UTF-8, or what looks most like writing."""
    return _strict_utf8(body) or _decoded(body, _most_plausible(body, _named_codecs(body, content_type)))


def _strict_utf8(body: bytes) -> Decoded | None:
    """Decodes UTF-8, of which a character may be cut off at the end; `None` where it is something else."""
    try:
        text, _ = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return None
    # In bytes a zero is found twenty times as fast as in wide characters, half of which are zero bytes.
    return Decoded(without_zeros(text) if b"\0" in body else text, "utf-8")


def _most_plausible(body: bytes, labels: list[str]) -> str:
    """Returns the codec by which the bytes look most like writing.

    A label or the detector tips the balance, and does not decide: servers send their default charset with any page. One by
    which more than `_MAX_DAMAGE` of the text cannot be decoded is out.
    """
    sample = _high_part(body)
    bonuses = dict.fromkeys((*_GUESSES, *labels), 0.0)
    for codec in _detected(body):
        bonuses[codec] = bonuses.get(codec, 0.0) + _DETECTED_BONUS
    for codec in dict.fromkeys(labels):
        bonuses[codec] += _LABEL_BONUS
    best, best_score = "gb18030", float("-inf")
    for codec, bonus in bonuses.items():
        text = sample.decode(codec, "replace")
        damaged = text.count("\ufffd") > 1 + len(text) * _MAX_DAMAGE
        kana = 1.0 if codec in _JAPANESE else _FOREIGN_KANA
        score = plausibility(text, kana) + bonus - (_DAMAGE_MALUS if damaged else 0.0)
        if score > best_score:
            best, best_score = codec, score
    return best


def _high_part(body: bytes) -> bytes:
    """Returns the parts of the body that have bytes above ASCII, bounded, each with what stands before and after it.

    Cut at ASCII bytes below `@`, which are never the second byte of a character of two.
    """
    sample = bytearray()
    for match in _HIGH_RUN.finditer(body):
        sample += match[0] + b" "
        if len(sample) > _SAMPLE_BYTES:
            break
    return bytes(sample[:_SAMPLE_BYTES])


def _decoded(body: bytes, codec: str) -> Decoded:
    return Decoded(without_zeros(body.decode(codec, "replace")), _CHARSETS[codec][0])


def _named_codecs(body: bytes, content_type: str) -> list[str]:
    """Returns the codecs of the page's labels. Read only where the bytes leave a choice: most pages are UTF-8."""
    return [_CODECS[label] for label in _labels(body, content_type) if label in _CODECS]


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
    """Recognises UTF-16 without a BOM by the zero bytes of its ASCII characters."""
    head = body[:400]
    if len(head) < 4 or b"\x00" not in head:
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 10 > len(head) // 2 and max(even, odd) > 4 * min(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    return ""
