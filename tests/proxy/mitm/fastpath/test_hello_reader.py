import ssl
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import tls
from mitmproxy.proxy.layers import tls as tls_layers

from gatewayfilter.proxy.mitm.fastpath.hello_reader import FastClientHello, parse_client_hello
from tests.case_tables import all_cases

original = tls_layers.parse_client_hello


def real_hello(name: str | None, protocols: Sequence[str] = (), ceiling: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.maximum_version = ceiling
    if protocols:
        context.set_alpn_protocols(list(protocols))
    sent = ssl.MemoryBIO()
    made = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        made.do_handshake()
    return sent.read()


def vector(content: bytes, width: int = 2) -> bytes:
    return len(content).to_bytes(width) + content


def hello(*extensions: tuple[int, bytes], ciphers: bytes = b"\x13\x01", rest: bytes = b"") -> bytes:
    listed = b"".join(kind.to_bytes(2) + vector(body) for kind, body in extensions)
    message = b"\3\3" + bytes(32) + vector(b"", 1) + vector(ciphers) + vector(b"\0", 1) + vector(listed) + rest
    return b"\x16\3\1" + vector(b"\1" + vector(message, 3))


def name(*hosts: bytes, kind: bytes = b"\0") -> tuple[int, bytes]:
    return 0, vector(b"".join(kind + vector(host) for host in hosts))


def changed(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes([value]) + data[place + 1 :]


def protocols(*listed: bytes) -> tuple[int, bytes]:
    return 16, vector(b"".join(vector(one, 1) for one in listed))


NAMED = hello(name(b"a.example"))
LONG = b".".join([b"a" * 49] * 5)
"""A name of 249 bytes, each part of it of 49."""
PLAIN = {
    "a browser's": real_hello("www.site.example", ["h2", "http/1.1"]),
    "one without a name": real_hello(None),
    "TLS 1.2": real_hello("site.example", ["http/1.1"], ssl.TLSVersion.TLSv1_2),
    "an invalid name": hello(name(b"not a name"), protocols(b"h2")),
    "an international name": hello(name(b"xn--bcher-kva.example")),
    "no extensions": hello(),
    "an empty list of protocols": hello(name(b"site.example"), protocols()),
    "an unknown extension": hello((0xFE0D, b"\0" * 40), name(b"site.example")),
    "bytes of the next message": hello(name(b"site.example")) + b"\x14\3\3\0\1\1",
    "a record of version 3.0": changed(NAMED, 2, 0),
    "a record of version 3.3": changed(NAMED, 2, 3),
    "a name of one letter": hello(name(b"a")),
    "the longest name": hello(name(LONG + b"a")),
}
ODD = {
    "two names": hello(name(b"a.example", b"b.example")),
    "two extensions of names": hello(name(b"a.example"), name(b"b.example")),
    "two lists of protocols": hello(protocols(b"h2"), protocols(b"http/1.1")),
    "a name of another kind": hello(name(b"a.example", kind=b"\1")),
    "an odd length of ciphers": hello(name(b"a.example"), ciphers=b"\x13\x01\0"),
    "bytes after the extensions": hello(name(b"a.example"), rest=b"\0\0\0\0"),
    "two records": b"\x16\3\1\0\4" + hello(name(b"a.example"))[5:9] + b"\x16\3\1" + vector(hello(name(b"a.example"))[9:]),
    "half of it": PLAIN["a browser's"][:100],
    "nothing": b"",
    "no TLS": b"GET / HTTP/1.1\r\n\r\n",
    "an empty record": b"\x16\3\1\0\0" + bytes(20),
    "another kind of record": changed(NAMED, 0, 23),
    "a record of version 2": changed(NAMED, 1, 2),
    "a record of version 3.4": changed(NAMED, 2, 4),
    "a record without its last byte": NAMED[:-1],
    "a message that is longer than its record": changed(NAMED, 4, NAMED[4] - 1),
    "a message of 65,536 bytes more": changed(NAMED, 6, 1),
    "no field of extensions": b"\x16\3\1" + vector(b"\1" + vector(b"\3\3" + bytes(32) + b"\0" + vector(b"\x13\1") + b"\1\0", 3)),
    "a name without a letter": hello(name(b"")),
    "a name that is too long": hello(name(LONG + b"ab")),
    "a protocol that is cut off": hello((16, vector(b"\3h2"))),
    "protocols without their length": hello((16, b"\0")),
    "a wrong length of protocols": hello((16, b"\0\4\2h2")),
    "a wrong length of names": hello((0, b"\0\x09\0\0\5a.exa")),
    "a wrong length of a name": hello((0, b"\0\x08\0\0\6a.exa")),
    "a last extension that is too long": hello((21, b""))[:-1] + b"\1",
}


def outcome(parsed: tls.ClientHello | None) -> object:
    if parsed is None:
        return None
    return parsed.sni, parsed.alpn_protocols, parsed.cipher_suites, parsed.extensions, parsed.raw_bytes(), repr(parsed)


def both(data: bytes) -> list[object]:
    found: list[object] = []
    for parse in (parse_client_hello, original):
        try:
            found.append(outcome(parse(data)))
        except (ValueError, AttributeError) as error:  # mitmproxy raises the latter for some
            found.append(type(error))
    return found


@all_cases("data", PLAIN.values())
def test_plain_hellos_are_read_at_once(data: bytes) -> None:
    assert type(parse_client_hello(data)) is FastClientHello
    ours, theirs = both(data)
    assert ours == theirs


@all_cases("data", ODD.values())
def test_what_is_odd_is_left_to_mitmproxy(data: bytes) -> None:
    ours, theirs = both(data)
    assert ours == theirs
    with suppress(ValueError):
        assert type(parse_client_hello(data)) is not FastClientHello


@settings(max_examples=30)
@given(base=st.sampled_from([*PLAIN.values(), *ODD.values()]), data=st.data())
def test_changed_hellos_are_read_as_mitmproxy_reads_them(base: bytes, data: st.DataObject) -> None:
    made = bytearray(base)
    for _ in range(data.draw(st.integers(1, 3))):
        if made:
            made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    ours, theirs = both(bytes(made[: data.draw(st.integers(0, len(made)))] if data.draw(st.booleans()) else made))
    assert ours == theirs
