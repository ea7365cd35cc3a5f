"""DNS messages of the zone, byte for byte: queries with every bound of theirs, answers, TSIG records."""

import base64
import struct

import pytest

from gatewayfilter.integration.rpz import messages as dns
from gatewayfilter.integration.rpz.messages import MessageError, Query
from gatewayfilter.integration.rpz.tsig import TsigKey
from gatewayfilter.integration.rpz.zone import Record, Target

ZONE = b"\x02gf\x03rpz\0"
QUESTION = ZONE + b"\0\xfc\0\x01"


def head(*, number: int = 7, flags: int = 0, counts: tuple[int, int, int, int] = (1, 0, 0, 0)) -> bytes:
    return struct.pack(">6H", number, flags, *counts)


def record(kind: int, data: bytes, name: bytes = b"\xc0\x0c") -> bytes:
    return name + struct.pack(">HHIH", kind, 1, 0, len(data)) + data


def soa_data(serial: int, names: bytes = b"\0\0") -> bytes:
    return names + struct.pack(">IIIII", serial, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("data", "query"),
    [
        (head() + QUESTION, Query(7, 0, ZONE, 252, QUESTION)),
        (head(flags=0x7FFF) + QUESTION, Query(7, 15, ZONE, 252, QUESTION)),
        (head(flags=0x0800) + QUESTION, Query(7, 1, ZONE, 252, QUESTION)),
        (head() + b"\x02GF\x03Rpz\0\0\xfb\0\x01", Query(7, 0, ZONE, 251, b"\x02GF\x03Rpz\0\0\xfb\0\x01")),
        (head(counts=(1, 0, 1, 0)) + QUESTION + record(6, soa_data(9)), Query(7, 0, ZONE, 252, QUESTION, 9)),
        (head(counts=(1, 1, 0, 0)) + QUESTION + record(6, soa_data(9)), Query(7, 0, ZONE, 252, QUESTION, 9)),
        (head(counts=(1, 0, 1, 0)) + QUESTION + record(6, soa_data(9, b"")), Query(7, 0, ZONE, 252, QUESTION, 9)),
        (head(counts=(1, 0, 1, 0)) + QUESTION + record(6, soa_data(9)[-19:]), Query(7, 0, ZONE, 252, QUESTION)),
        (head(counts=(1, 0, 1, 0)) + QUESTION + record(2, soa_data(9)), Query(7, 0, ZONE, 252, QUESTION)),
        (head(counts=(1, 0, 0, 1)) + QUESTION + record(6, soa_data(9)), Query(7, 0, ZONE, 252, QUESTION)),
        (head(counts=(1, 0, 0, 2)) + QUESTION + record(41, b"") + record(250, b"k"), Query(7, 0, ZONE, 252, QUESTION, None, 36)),
        (head(counts=(1, 1, 1, 1)) + QUESTION + record(6, soa_data(1)) * 2 + record(250, b""), Query(
            7, 0, ZONE, 252, QUESTION, 1, 92,
        )),
    ],
)  # fmt: skip
def test_a_query_is_read(data: bytes, query: Query) -> None:
    assert dns.read_query(data) == query


@pytest.mark.parametrize(
    "data",
    [
        head()[:-1],
        head(flags=0x8000) + QUESTION,
        head(counts=(0, 0, 0, 0)) + QUESTION,
        head(counts=(2, 0, 0, 0)) + QUESTION * 2,
        head(counts=(1, 2, 0, 0)) + QUESTION + record(2, b"") * 2,
        head(counts=(1, 0, 2, 0)) + QUESTION + record(2, b"") * 2,
        head(counts=(1, 0, 0, 3)) + QUESTION + record(2, b"") * 3,
        head() + QUESTION[:-1],
        head(counts=(1, 0, 1, 0)) + QUESTION,
        head(counts=(1, 0, 1, 0)) + QUESTION + record(6, soa_data(9))[:-1],
        head(counts=(1, 0, 1, 0)) + QUESTION + record(6, b"")[:-1],
    ],
)
def test_what_is_no_query_is_refused(data: bytes) -> None:
    with pytest.raises(MessageError):
        dns.read_query(data)


@pytest.mark.parametrize(
    ("data", "at", "found"),
    [
        (b"\0", 0, (b"\0", 1)),
        (b"\x3f" + b"a" * 63 + b"\0", 0, (b"\x3f" + b"a" * 63 + b"\0", 65)),
        (b"\x01a" * 127 + b"\0", 0, (b"\x01a" * 127 + b"\0", 255)),
        (b"\x01A\0\xc0\0", 3, (b"\x01a\0", 5)),
        (b"\0\xc0\0\xc0\1\xc0\3\xc0\5\xc0\7", 9, (b"\0", 11)),
        (bytes(256) + b"\x01b\0\xc1\0", 259, (b"\x01b\0", 261)),
    ],
)
def test_a_name_is_read(data: bytes, at: int, found: tuple[bytes, int]) -> None:
    assert dns.read_name(data, at) == found


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"", 0),
        (b"\x01a", 0),
        (b"\x02a", 0),
        (b"\x40" + b"a" * 64 + b"\0", 0),
        (b"\xbf" + b"a" * 200 + b"\0", 0),
        (b"\x01a" * 128 + b"\0", 0),
        ((b"\x3f" + b"a" * 63) * 3 + b"\x3e" + b"a" * 62 + b"\0", 0),  # 256 bytes (RFC 1035 §2.3.4: 255)
        (b"\0\xc0", 1),
        (b"\xc0\0", 0),
        (b"\0\xc0\0\xc0\1\xc0\3\xc0\5\xc0\7\xc0\x09", 11),
    ],
)
def test_a_malformed_name_is_refused(data: bytes, at: int) -> None:
    with pytest.raises(MessageError):
        dns.read_name(data, at)


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("a.b", b"\x01a\x01b\0"),
        ("a.b.", b"\x01a\x01b\0"),
        ("a" * 63, b"\x3f" + b"a" * 63 + b"\0"),
        (".".join("a" * 127), b"\x01a" * 127 + b"\0"),
        ("ä.b", b"\x01?\x01b\0"),
    ],
)
def test_a_name_is_written(name: str, wire: bytes) -> None:
    assert dns.wire_name(name) == wire


@pytest.mark.parametrize("name", ["", "a..b", ".a", "a" * 64, ".".join("a" * 128), ".".join(["a" * 62] * 4) + ".aa"])
def test_a_name_that_cannot_be_written_is_refused(name: str) -> None:
    with pytest.raises(MessageError):
        dns.wire_name(name)


SOA_TAIL = struct.pack(">IIII", 60, 30, 604_800, 5)
SOA_DATA = b"\x09localhost\0\x0ahostmaster\x09localhost\0\0\0\0\x07" + SOA_TAIL


def test_answers_are_the_bytes_of_the_standard() -> None:
    query = Query(9, 4, ZONE, 252, QUESTION)
    assert dns.answer_head(query, 3, dns.REFUSED) == struct.pack(">6H", 9, 0xA405, 1, 3, 0, 0) + QUESTION
    assert dns.answer_head(Query(9, 0, ZONE, 252, QUESTION), 1) == struct.pack(">6H", 9, 0x8400, 1, 1, 0, 0) + QUESTION
    assert dns.soa(7) == b"\xc0\x0c" + struct.pack(">HHIH", 6, 1, 60, len(SOA_DATA)) + SOA_DATA
    assert dns.ns() == b"\xc0\x0c" + struct.pack(">HHIH", 2, 1, 60, 11) + b"\x09localhost\0"
    assert dns.notification(5, ZONE, 7) == struct.pack(">6H", 5, 0x2400, 1, 1, 0, 0) + ZONE + b"\0\6\0\1" + dns.soa(7)


def test_records_of_names_are_the_bytes_of_the_standard() -> None:
    blocks = b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 60, 1) + b"\0"
    allows = b"\xc0\x0c" + struct.pack(">HHIH", 5, 1, 60, 14) + b"\x0crpz-passthru\0"
    assert dns.policy(Record("com.ads", False, Target.BLOCK), 8) == b"\x03ads\x03com" + blocks
    assert dns.policy(Record("com.ads", True, Target.ALLOW), 8) == b"\x01*\x03ads\x03com" + allows
    long = ".".join(["a" * 60] * 4)
    assert dns.policy(Record(long, False, Target.BLOCK), 255 - 244).endswith(blocks)
    assert dns.policy(Record(long, False, Target.BLOCK), 256 - 244) == b""


SECRET = base64.b64encode(b"secret of both").decode()
NOW = 1_800_000_000.0
MESSAGE = head() + QUESTION


def key(now: float = NOW, name: str = "gateway.key") -> TsigKey:
    return TsigKey(name, SECRET, lambda: now)


def signed(**fields: bytes) -> tuple[bytes, int]:
    """A signed query with other fields in its TSIG record, and the offset of that."""
    whole, mac = key().sign(MESSAGE, b"")
    of = {
        "name": b"\x07gateway\x03key\0",
        "kind": b"\0\xfa",
        "class": b"\0\xff\0\0\0\0",
        "algorithm": b"\x0bhmac-sha256\0",
        "moment": int(NOW).to_bytes(6, "big"),
        "fudge": struct.pack(">H", 300),
        "size": b"\0\x20",
        "mac": mac,
        "number": b"\0\7",
        "error": b"\0\0",
        "other": b"\0\0",
    }
    changed = of | fields
    data = b"".join(list(changed.values())[3:])
    length = fields.get("length", len(data).to_bytes(2, "big"))
    made = head(counts=(1, 0, 0, 1)) + QUESTION + changed["name"] + changed["kind"] + changed["class"] + length + data
    if not fields:
        assert made == whole
    return made, len(MESSAGE)


def test_a_signed_query_is_the_bytes_of_the_standard_and_is_verified() -> None:
    data, at = signed()
    assert dns.read_query(data).tsig_at == at
    mac = key().verify(data, at)
    assert mac is not None
    assert mac == key().sign(MESSAGE, b"")[1]
    assert key(NOW, "GATEWAY.key.").verify(data, at) == mac


@pytest.mark.parametrize(
    ("later_s", "fudge", "holds"), [(300, 300, True), (-300, 300, True), (301, 300, False), (-301, 300, False), (301, 900, False)]
)
def test_a_signature_holds_for_five_minutes(later_s: int, fudge: int, *, holds: bool) -> None:
    signer = key()
    whole, _ = signer.sign(MESSAGE, b"")
    assert (key(NOW + later_s).verify(whole, len(MESSAGE)) is not None) is holds
    if fudge != 300:
        data, at = signed(fudge=struct.pack(">H", fudge))
        assert key(NOW + later_s).verify(data, at) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"name": b"\x05other\x03key\0"},
        {"kind": b"\0\xfb"},
        {"algorithm": b"\x09hmac-sha1\0"},
        {"mac": bytes(32)},
        {"size": b"\0\x1f"},
        {"size": b"\xff\xff"},
        {"number": b"\0\x08"},
        {"error": b"\0\x01"},
        {"other": b"\0\x01"},
        {"length": b"\0\0"},
        {"moment": (int(NOW) + 1).to_bytes(6, "big")},
        {"fudge": b"\0\x01"},
        {"name": b"\xc0"},
        {"algorithm": b"\x50"},
    ],
)
def test_a_signature_with_another_field_is_none(fields: dict[str, bytes]) -> None:
    data, at = signed(**fields)
    assert key().verify(data, at) is None


def test_messages_of_a_transfer_are_signed_in_a_chain() -> None:
    first, mac = key().sign(MESSAGE, b"m" * 32)
    second, further = key().sign(MESSAGE, mac, first=False)
    assert first[10:12] == second[10:12] == b"\0\x01"
    assert len({mac, further, key().sign(MESSAGE, mac)[1], key().sign(MESSAGE, b"")[1]}) == 4
    moment = int(NOW).to_bytes(6, "big")
    import hmac as library  # noqa: PLC0415  beside what it computes again

    wanted = library.digest(b"secret of both", b"\0\x20" + mac + MESSAGE + moment + b"\x01\x2c", "sha256")
    assert further == wanted
    variables = b"\x07gateway\x03key\0" + b"\0\xff\0\0\0\0" + b"\x0bhmac-sha256\0" + moment + b"\x01\x2c\0\0\0\0"
    assert mac == library.digest(b"secret of both", b"\0\x20" + b"m" * 32 + MESSAGE + variables, "sha256")


@pytest.mark.parametrize("secret", ["", "no base64!", "YQ=\n="])
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match=r"empty|base64|padding|data"):
        TsigKey("gateway.key", secret)
