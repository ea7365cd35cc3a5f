"""HTTP/2 connections made frame by frame, with what no library would send."""

import random

import hpack
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame, PriorityFrame, SettingsFrame, WindowUpdateFrame

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

type Fields = list[tuple[bytes, bytes]]


def request(authority: bytes, path: bytes) -> bytes:
    """Returns a connection with one ordinary request."""
    fields = [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", authority),
        (b":path", path),
        (b"accept", b"text/html"),
    ]
    return _PREFACE + SettingsFrame(0).serialize() + _frames(1, fields)


def connection(pick: random.Random, mark: bytes, hosts: tuple[bytes, ...], paths: tuple[bytes, ...]) -> bytes:
    """Returns a connection with a few requests, most of them for what is blocked."""
    sent = _PREFACE + SettingsFrame(0).serialize()
    for number in range(pick.choice([1, 1, 2, 4])):
        stream = 1 + 2 * number
        fields = _fields(pick, mark, hosts, paths)
        sent += _frames(stream, fields, pieces=pick.choice([1, 1, 1, 2, 3]), end=pick.random() < 0.85)
        if pick.random() < 0.2:
            extra: Frame = pick.choice(
                [
                    DataFrame(stream, b"GET /secret/x HTTP/1.1\r\nHost: blocked.test\r\n\r\n", flags=["END_STREAM"]),
                    WindowUpdateFrame(0, window_increment=1000),
                    PriorityFrame(stream, depends_on=0),
                    SettingsFrame(0, {SettingsFrame.HEADER_TABLE_SIZE: 0}),
                    HeadersFrame(stream, b"\x82", flags=["END_HEADERS", "END_STREAM"]),
                ]
            )
            sent += extra.serialize()
    return sent


def _fields(  # noqa: C901  one branch for each part of a request
    pick: random.Random, mark: bytes, hosts: tuple[bytes, ...], paths: tuple[bytes, ...]
) -> Fields:
    ok = b"/ok/" + mark
    authority, path, method, scheme = b"ok.test", b"/secret/" + mark, b"GET", b"https"
    kind = pick.choice(
        ["path", "path", "authority", "authority", "host", "method", "scheme", "connect", "twice", "late", "smuggle", "case"]
    )
    more: Fields = [(b"x-mark", mark)]
    if kind == "path":
        path = pick.choice(
            [
                *(form % mark for form in paths),
                b"*",
                b"",
                b"http://blocked.test/" + mark,
                b"/ok HTTP/1.1\r\nHost: blocked.test\r\n\r\nGET /x",
                b"secret/" + mark,
            ]
        )
    elif kind == "authority":
        authority, path = pick.choice(hosts), ok
    elif kind == "host":
        path = ok
        more = [(pick.choice([b"host", b"Host", b"host "]), pick.choice(hosts))] * pick.choice([1, 2]) + more
    elif kind == "method":
        method = pick.choice([b"GET /secret/x HTTP/1.1\r\nHost: blocked.test\r\n\r\nGET", b"", b"G T", b"get", b"CONNECT"])
    elif kind == "scheme":
        scheme, path = pick.choice([b"http", b"foo", b"", b"https://blocked.test/x?", b"http\r\nHost: blocked.test"]), ok
    elif kind == "connect":
        target = pick.choice([b"blocked.test:443", b"ok.test:443", b"blocked.test"])
        protocol = [(b":protocol", b"websocket"), (b":scheme", b"https"), (b":path", path)] if pick.random() < 0.5 else []
        return [(b":method", b"CONNECT"), *protocol, (b":authority", target), *more]
    elif kind == "smuggle":
        path = ok
        more += pick.choice(
            [
                [(b"transfer-encoding", b"chunked")],
                [(b"content-length", b"0")],
                [(b"content-length", b"5"), (b"content-length", b"0")],
                [(b"connection", b"upgrade"), (b"upgrade", b"foo")],
                [(b"x", b"a\r\nHost: blocked.test")],
                [(b"x\r\nhost", b"blocked.test")],
                [(b"x: y\r\nhost: blocked.test\r\nz", b"1")],
                [(b"te", b"trailers, deflate")],
                [(b"", b"x")],
                [(b"x", b"a\0b")],
                [(b"cookie", b"a=b")] * 3,
            ]
        )
    fields = [(b":method", method), (b":scheme", scheme), (b":authority", authority), (b":path", path), *more]
    if kind == "twice":
        fields.insert(
            pick.randrange(4), pick.choice([(b":authority", b"blocked.test"), (b":path", b"/ok/" + mark), (b":method", b"GET")])
        )
    elif kind == "late":
        pick.shuffle(fields)
    elif kind == "case":
        fields[2] = (b":Authority", b"blocked.test")
    if pick.random() < 0.1:
        del fields[pick.randrange(4)]
    return fields


def _frames(stream: int, fields: Fields, *, pieces: int = 1, end: bool = True) -> bytes:
    block = hpack.Encoder().encode(fields, huffman=False)
    size = max(1, -(-len(block) // pieces))
    parts = [block[at : at + size] for at in range(0, len(block), size)]
    frames: list[Frame] = [HeadersFrame(stream, parts[0], flags=["END_STREAM"] if end else [])]
    frames += [ContinuationFrame(stream, part) for part in parts[1:]]
    frames[-1].flags.add("END_HEADERS")
    return b"".join(frame.serialize() for frame in frames)
