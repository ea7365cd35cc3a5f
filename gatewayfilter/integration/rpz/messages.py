"""DNS messages of zone transfers: queries read, answers written. Every length of a query is checked.

Source: RFC 1035 §4 (messages), RFC 5936 (AXFR), RFC 1995 (IXFR), RFC 1996 (NOTIFY).
"""

import struct
from dataclasses import dataclass
from typing import Final

from gatewayfilter.integration.rpz.zone import Record, Target

HEAD: Final = struct.Struct(">HHHHHH")
_TYPE_CLASS: Final = struct.Struct(">HH")
_RR: Final = struct.Struct(">HHIH")
SOA, NS, CNAME, AXFR, IXFR, TSIG = 6, 2, 5, 252, 251, 250
IN: Final = 1
NOTIFY: Final = 4
QUERY: Final = 0
NO_ERROR, FORMAT_ERROR, NOT_IMPLEMENTED, REFUSED, NOT_AUTHORITATIVE = 0, 1, 4, 5, 9
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 255
_TO_ZONE: Final = b"\xc0\x0c"
"""A pointer to the name in the question, which is the zone's."""
_REFRESH: Final = struct.pack(">IIII", 60, 30, 604_800, 5)
"""Refresh, retry, expire, minimum of the SOA: a resolver that missed a NOTIFY asks again after a minute."""


class MessageError(ValueError):
    """A message that is malformed."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        number: its id.
        opcode: of its head.
        zone: lower-case wire form of the name in the question.
        qtype: what is asked for.
        question: as it came.
        serial: of the SOA that an IXFR query has, `None` without.
        tsig_at: offset of a TSIG record, `None` without.
    """

    number: int
    opcode: int
    zone: bytes
    qtype: int
    question: bytes
    serial: int | None = None
    tsig_at: int | None = None


def wire_name(name: str) -> bytes:
    """Returns a name in wire form.

    Raises:
        MessageError: a label or the name is too long, or empty.
    """
    out = b""
    for label in name.rstrip(".").split("."):
        raw = label.encode("ascii", "replace")
        if not raw or len(raw) > _LONGEST_LABEL:
            raise MessageError("a label that is empty or too long")
        out += bytes([len(raw)]) + raw
    if len(out) >= _LONGEST_NAME:
        raise MessageError("a name that is too long")
    return out + b"\0"


def read_query(data: bytes) -> Query:
    """Reads a query.

    Raises:
        MessageError: it is malformed, or an answer.
    """
    if len(data) < HEAD.size:
        raise MessageError("no head")
    number, flags, questions, answers, authority, additional = HEAD.unpack_from(data)
    if flags & 0x8000 or questions != 1 or answers > 1 or authority > 1 or additional > 2:
        raise MessageError("no query")
    zone, at = read_name(data, HEAD.size)
    qtype, _ = _unpack(_TYPE_CLASS, data, at)
    question, at = data[HEAD.size : at + 4], at + 4
    serial = tsig_at = None
    for section in range(answers + authority + additional):
        begin = at
        _, at = read_name(data, at)
        kind, _, _, length = _unpack(_RR, data, at)
        at += _RR.size
        if at + length > len(data):
            raise MessageError("a record that is cut")
        if kind == SOA and section < answers + authority and length >= 20:
            serial = int.from_bytes(data[at + length - 20 : at + length - 16], "big")
        if kind == TSIG:
            tsig_at = begin
        at += length
    return Query(number, flags >> 11 & 0xF, zone, qtype, question, serial, tsig_at)


def read_name(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns a name in lower-case wire form, and the offset behind it; pointers are followed a few times.

    Raises:
        MessageError: it is malformed.
    """
    out, end, jumps = b"", 0, 0
    while True:
        if at >= len(data) or len(out) >= _LONGEST_NAME:
            raise MessageError("a name that is cut or too long")
        length = data[at]
        if length == 0:
            return out + b"\0", end or at + 1
        if length >= 0xC0:
            if at + 1 >= len(data) or jumps > 4:
                raise MessageError("a pointer to nowhere")
            end, jumps = end or at + 2, jumps + 1
            at = (length & 0x3F) << 8 | data[at + 1]
            continue
        if length > _LONGEST_LABEL:
            raise MessageError("a label that is too long")
        out += data[at : at + 1 + length].lower()
        at += 1 + length


def answer_head(query: Query, answers: int, code: int = NO_ERROR) -> bytes:
    """Returns head and question of an authoritative answer."""
    flags = 0x8400 | query.opcode << 11 | code
    return HEAD.pack(query.number, flags, 1, answers, 0, 0) + query.question


def notification(number: int, zone: bytes, serial: int) -> bytes:
    """Returns a NOTIFY for a zone."""
    question = zone + _TYPE_CLASS.pack(SOA, IN)
    return HEAD.pack(number, NOTIFY << 11 | 0x0400, 1, 1, 0, 0) + question + soa(serial)


def soa(serial: int) -> bytes:
    """Returns the SOA record of the zone."""
    data = b"\x09localhost\0" + b"\x0ahostmaster\x09localhost\0" + serial.to_bytes(4, "big") + _REFRESH
    return _TO_ZONE + _RR.pack(SOA, IN, 60, len(data)) + data


def ns() -> bytes:
    """Returns the NS record of the zone."""
    data = b"\x09localhost\0"
    return _TO_ZONE + _RR.pack(NS, IN, 60, len(data)) + data


_TARGETS: Final = {Target.BLOCK: b"\0", Target.ALLOW: b"\x0crpz-passthru\0"}
_TAILS: Final = {target: _TO_ZONE + _RR.pack(CNAME, IN, 60, len(data)) + data for target, data in _TARGETS.items()}


def policy(record: Record, zone_length: int) -> bytes:
    """Returns a record of the zone in wire form, `b""` for a name that is too long below the zone's."""
    name = b"".join([bytes([len(label)]) + label for label in reversed(record.name.encode("ascii").split(b"."))])
    if record.below:
        name = b"\x01*" + name
    return name + _TAILS[record.target] if len(name) + zone_length <= _LONGEST_NAME else b""


def _unpack(form: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + form.size > len(data):
        raise MessageError("a record that is cut")
    return form.unpack_from(data, at)
