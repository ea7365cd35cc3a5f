"""Makes the media among the stub resources, byte by byte: `scripts/make_stub_media.py gatewayfilter/proxy/pages/stubs`."""

import struct
import sys
import zlib
from pathlib import Path


def png(width: int, height: int) -> bytes:
    """Returns a transparent image, one bit grey with a transparent white (PNG, third edition, §11)."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\x00" + b"\xff" * ((width + 7) // 8)) * height
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"tRNS", b"\x00\x01"), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def gif() -> bytes:
    """Returns a transparent pixel (GIF89a)."""
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\xff\xff\xff\x00\x00\x00"
    transparent = b"\x21\xf9\x04\x01\x00\x00\x00\x00"
    return head + transparent + b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00" + b"\x3b"


def mp3(milliseconds: int) -> bytes:
    """Returns silence: MPEG-2 layer III frames of 24 ms at 24 kHz, mono, 8 kbit/s, whose side information says "no data"."""
    frame = bytes((0xFF, 0xF3, 0x14, 0xC4)) + bytes(20)
    return frame * max(1, round(milliseconds / 24))


class _Bits:
    def __init__(self) -> None:
        self._text = ""

    def bits(self, value: int, count: int) -> "_Bits":
        self._text += f"{value:0{count}b}"
        return self

    def ue(self, value: int) -> "_Bits":
        code = f"{value + 1:b}"
        self._text += "0" * (len(code) - 1) + code
        return self

    def se(self, value: int) -> "_Bits":
        return self.ue(2 * value - 1 if value > 0 else -2 * value)

    def align(self, fill: str = "0") -> "_Bits":
        self._text += fill * (-len(self._text) % 8)
        return self

    def raw(self, data: bytes) -> "_Bits":
        self._text += "".join(f"{byte:08b}" for byte in data)
        return self

    def end(self) -> bytes:
        self._text += "1"
        self.align()
        return bytes(int(self._text[at : at + 8], 2) for at in range(0, len(self._text), 8))


def _escaped(payload: bytes) -> bytes:
    out, zeros = bytearray(), 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out)


def mp4(seconds: int) -> bytes:
    """Returns a film of one black picture of 16 by 16 (H.264 §7.3, one I_PCM macroblock; ISO/IEC 14496-12)."""
    sps = (
        _Bits()
        .bits(66, 8)
        .bits(0xC0, 8)
        .bits(10, 8)
        .ue(0)
        .ue(0)
        .ue(2)
        .ue(1)
        .bits(0, 1)
        .ue(0)
        .ue(0)
        .bits(1, 1)
        .bits(1, 1)
        .bits(0, 2)
    )
    parameters = b"\x67" + _escaped(sps.end())
    pps = _Bits().ue(0).ue(0).bits(0, 2).ue(0).ue(0).ue(0).bits(0, 1).bits(0, 2).se(0).se(0).se(0).bits(1, 1).bits(0, 2)
    picture = b"\x68" + _escaped(pps.end())
    head = _Bits().ue(0).ue(7).ue(0).bits(0, 4).ue(0).bits(0, 1).bits(0, 1).se(0).ue(1)
    piece = head.ue(25).align().raw(b"\x10" * 256 + b"\x80" * 128)
    slice_ = b"\x65" + _escaped(piece.end())
    sample = struct.pack(">I", len(slice_)) + slice_

    def box(name: bytes, *parts: bytes) -> bytes:
        data = b"".join(parts)
        return struct.pack(">I", len(data) + 8) + name + data

    def full(name: bytes, *parts: bytes, flags: int = 0) -> bytes:
        return box(name, struct.pack(">I", flags), *parts)

    matrix = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    length = seconds * 1000
    config = bytes((1, parameters[1], parameters[2], parameters[3], 0xFF, 0xE1))
    avcc = config + struct.pack(">H", len(parameters)) + parameters + b"\x01" + struct.pack(">H", len(picture)) + picture
    entry = bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HHII", 16, 16, 0x480000, 0x480000) + bytes(4)
    entry += struct.pack(">H", 1) + bytes(32) + struct.pack(">Hh", 24, -1)
    kind = box(b"ftyp", b"isom", struct.pack(">I", 512), b"isomiso2avc1mp41")

    def movie(offset: int) -> bytes:
        table = box(
            b"stbl",
            full(b"stsd", struct.pack(">I", 1), box(b"avc1", entry, box(b"avcC", avcc))),
            full(b"stts", struct.pack(">III", 1, 1, length)),
            full(b"stsc", struct.pack(">IIII", 1, 1, 1, 1)),
            full(b"stsz", struct.pack(">III", 0, 1, len(sample))),
            full(b"stco", struct.pack(">II", 1, offset)),
        )
        data = box(b"dinf", full(b"dref", struct.pack(">I", 1), full(b"url ", flags=1)))
        media = box(
            b"mdia",
            full(b"mdhd", struct.pack(">IIIIHH", 0, 0, 1000, length, 0x55C4, 0)),
            full(b"hdlr", bytes(4), b"vide", bytes(12), b"\x00"),
            box(b"minf", full(b"vmhd", bytes(8), flags=1), data, table),
        )
        header = struct.pack(">IIIII", 0, 0, 1, 0, length) + bytes(16) + matrix + struct.pack(">II", 16 << 16, 16 << 16)
        track = box(b"trak", full(b"tkhd", header, flags=3), media)
        whole = struct.pack(">IIIIIH", 0, 0, 1000, length, 0x10000, 0x100) + bytes(10) + matrix + bytes(24) + struct.pack(">I", 2)
        return box(b"moov", full(b"mvhd", whole), track)

    offset = len(kind) + len(movie(0)) + 8
    return kind + movie(offset) + box(b"mdat", sample)


def main() -> None:
    """Writes the files into the folder that the command line names."""
    folder = Path(sys.argv[1])
    media = {
        "1x1.gif": gif(),
        "2x2.png": png(2, 2),
        "3x2.png": png(3, 2),
        "32x32.png": png(32, 32),
        "noop-0.1s.mp3": mp3(100),
        "noop-0.5s.mp3": mp3(500),
        "noop-1s.mp4": mp4(1),
    }
    for name, content in media.items():
        (folder / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
