"""ClientHellos as OpenSSL makes them, as browsers make them, and as somebody makes them who means no good."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.proxy.listener import client_hello as client_hellos
from gatewayfilter.proxy.listener.client_hello import MAX_HELLO_BYTES, ClientHello, NotTls, read_client_hello
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import client_hello

GREASE = 0x3A3A


def vector(length_bytes: int, content: bytes) -> bytes:
    return len(content).to_bytes(length_bytes) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + vector(2, content)


def server_name(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(2, b"".join(bytes([kind]) + vector(2, name) for name in names)))


def message(*extensions: bytes, bare: bool = False) -> bytes:
    body = b"\3\3" + bytes(32) + vector(1, bytes(32)) + vector(2, b"\x13\x01\x3a\x3a") + vector(1, b"\0")
    body += b"" if bare else vector(2, b"".join(extensions))
    return b"\1" + vector(3, body)


def records(handshake: bytes, size: int = 16_384) -> bytes:
    parts = [handshake[start : start + size] for start in range(0, len(handshake), size)]
    return b"".join(b"\x16\3\1" + vector(2, part) for part in parts)


NAME = server_name(b"shop.example")
GOOD = [
    (records(message(NAME)), ClientHello("shop.example")),
    (records(message(server_name(b"SHOP.Example."))), ClientHello("shop.example")),
    (records(message(server_name(b"xn--bcher-kva.example"))), ClientHello("xn--bcher-kva.example")),
    (records(message(extension(GREASE, b""), NAME, extension(GREASE, b"\0"))), ClientHello("shop.example")),
    (records(message(NAME, extension(0xFE0D, bytes(200)))), ClientHello("shop.example", encrypted=True)),
    (records(message()), ClientHello("")),
    (records(message(bare=True)), ClientHello("")),
    (records(message(server_name(b"x", kind=7))), ClientHello("")),
    (records(message(NAME), 1), None),  # one byte a record: more records than anybody needs
    (records(message(NAME), 5), ClientHello("shop.example")),
    (records(message(extension(21, bytes(1500)), NAME), 512), ClientHello("shop.example")),
    (records(message(NAME)) + b"\x14\3\3\0\1\1 early data", ClientHello("shop.example")),
    (records(message(NAME, extension(GREASE, b""))), ClientHello("shop.example")),
    (records(message(NAME)[:1]) + records(message(NAME)[1:]), ClientHello("shop.example")),
    (records(message(extension(0, vector(2, b"\7\0\1x\0" + vector(2, b"shop.example"))))), ClientHello("shop.example")),
    (records(message(NAME) + bytes(16_384), 16_384), ClientHello("shop.example")),
]
BAD = [
    b"GET / HTTP/1.1\r\n",
    b"\x15\3\1\0\2\2\x28",
    b"\x16\2\0\0\5\1\0\0\0\0",
    b"\x16\3\1\0\0",
    b"\x16\3\1\xff\xff",
    records(b"\2\0\0\0"),  # a ServerHello
    records(b"\1\xff\xff\xff"),
    records(message(server_name(b"a.example", b"b.example"))),
    records(message(NAME, server_name(b"other.example"))),
    records(message(server_name(b"bad host"))),
    records(message(server_name(b"\xff\xfe"))),
    records(message(server_name(b""))),
    records(message(NAME[:-3])),
    records(b"\1\0\0\2\3\3"),
    b"\x15" + records(message(NAME))[1:],
    b"\x16\2" + records(message(NAME))[2:],
    b"\x16\3\1" + vector(2, message(NAME, extension(GREASE, bytes(16_400)))),  # longer than a record may be
    records(message(server_name(b"a" * 63 + b"." + b"b" * 300))),
    records(b"\1\1" + message(NAME)[2:]),  # 64 kB longer than it says in the two other bytes
    b"\x16\3\1" + (len(message(NAME)) - 1).to_bytes(2) + message(NAME),  # one byte longer than its record
    b"\x16\3\1" + vector(2, message(NAME, extension(GREASE, bytes(16_385 - len(message(NAME)) - 4)))),
    b"\x16\3\1" + vector(2, message(NAME)[:5]) + b"\x16\2\1" + vector(2, message(NAME)[5:]),
]
LONG_NAME = ".".join(["a" * 61] * 4)[:253]
USUAL = [
    client_hello("shop.example"),
    client_hello("a.example") + b"\x14\3\3\0\1\1",
    client_hello(None),
    records(message(server_name(b"a"))),
    records(message(server_name(LONG_NAME.encode()), extension(GREASE, bytes(700)))),
    records(message(NAME, extension(21, bytes(16_384 - len(message(NAME)) - 4)))),
]
"""A whole hello in one record, with one name at most: up to the longest record and the longest name."""


@all_cases(("data", "want"), GOOD)
def test_good(data: bytes, want: ClientHello | None) -> None:
    if want is None:
        with pytest.raises(NotTls):
            read_client_hello(data)
    else:
        assert read_client_hello(data) == want


def test_usual_hellos_are_read_without_joining_records_or_lists_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_message", "_host_name"):
        monkeypatch.setattr(client_hellos, name, lambda _: pytest.fail("the slow way"))
    names = [found.name for data in USUAL if (found := read_client_hello(data)) is not None]
    assert names == ["shop.example", "a.example", "", "a", LONG_NAME, "shop.example"]
    assert len(USUAL[-1]) == 5 + 16_384


@all_cases("data", BAD)
def test_bad(data: bytes) -> None:
    with pytest.raises(NotTls):
        read_client_hello(data)


@all_cases("name", ["shop.example", "a" * 63 + ".example", None])
@all_cases("version", [None, ssl.TLSVersion.TLSv1_2])
def test_openssl(name: str | None, version: ssl.TLSVersion | None) -> None:
    data = client_hello(name, version=version)
    assert read_client_hello(data) == ClientHello(name or "")
    for end in range(len(data)):
        assert read_client_hello(data[:end]) is None
    assert read_client_hello(bytearray(data)) == ClientHello(name or "")


def test_it_is_not_waited_for_without_end() -> None:
    endless = records(b"\1" + (MAX_HELLO_BYTES - 5).to_bytes(3) + bytes(MAX_HELLO_BYTES), 16_384)
    assert read_client_hello(endless[: MAX_HELLO_BYTES - 1]) is None
    with pytest.raises(NotTls):
        read_client_hello(endless[:MAX_HELLO_BYTES])


@given(st.binary(max_size=300))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    for start in (b"", b"\x16\3\1", records(b"\1\0\0\x40")[:9]):
        try:
            read_client_hello(start + data)
        except NotTls:
            continue


@given(st.integers(min_value=0), st.integers(0, 255))
def test_one_wrong_byte_never_raises_anything_else(position: int, value: int) -> None:
    data = bytearray(records(message(extension(GREASE, b""), NAME)))
    data[position % len(data)] = value
    try:
        found = read_client_hello(data)
    except NotTls:
        return
    assert found is None or isinstance(found.name, str)
