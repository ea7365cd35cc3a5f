"""Compressed lists, archives and encodings, as people meet them; bombs and cut streams."""

import bz2
import codecs
import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.sources.download import unpack as unpack_module
from gatewayfilter.sources.download.unpack import unpack

LIST = b"".join(b"host%d.example.com\n" % number for number in range(20_000))
MAX = 1_000_000

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def unpacked(data: bytes, tmp_path: Path, *folders: str, max_bytes: int = MAX) -> bytes:
    origin, target = tmp_path / "origin", tmp_path / "list"
    origin.write_bytes(data)
    unpack(origin, target, folders, max_bytes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "origin"]
    return target.read_bytes()


def zipped(members: dict[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("kind", COMPRESS)
def test_every_compression_is_undone(kind: str, tmp_path: Path) -> None:
    compress = COMPRESS[kind]
    assert unpacked(compress(LIST), tmp_path) == LIST
    assert unpacked(compress(LIST) + compress(LIST), tmp_path) == LIST * 2  # streams may be joined
    assert unpacked(compress(compress(LIST)), tmp_path) == LIST
    assert unpacked(compress(tarred({"a/domains": b"x.example", "a/urls": b"y.example/z"})), tmp_path) == (
        b"x.example\ny.example/z\n"
    )


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_cut_stream_is_damage(kind: str, tmp_path: Path) -> None:
    whole = COMPRESS[kind](LIST)
    for length in (9, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ListError, match="damaged or cut off"):
            unpacked(whole[:length], tmp_path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_flipped_bytes_are_damage_or_another_list_and_never_a_crash(kind: str, tmp_path: Path) -> None:
    whole = bytearray(COMPRESS[kind](LIST[:50_000]))
    for position in range(8, len(whole), len(whole) // 40):
        damaged = bytes([*whole[:position], whole[position] ^ 0x55, *whole[position + 1 :]])
        try:
            unpacked(damaged, tmp_path)
        except (ListError, SourceError):
            continue


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_bomb_stops_at_the_limit(kind: str, tmp_path: Path) -> None:
    bomb = COMPRESS[kind](bytes(60 * MAX))
    assert len(bomb) < MAX // 10
    with pytest.raises(SourceError, match="larger than 1,000,000 bytes"):
        unpacked(bomb, tmp_path)
    with pytest.raises((SourceError, ListError)):
        unpacked(COMPRESS[kind](bomb), tmp_path)


def test_a_zip_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="larger than 1,000,000 bytes"):
        unpacked(zipped({"list.txt": bytes(60 * MAX)}), tmp_path)


def test_a_window_that_would_take_gigabytes_is_refused(tmp_path: Path) -> None:
    greedy = zstandard.ZstdCompressionParameters(window_log=30)
    data = zstandard.ZstdCompressor(compression_params=greedy).compressobj()
    with pytest.raises(ListError, match="damaged"):
        unpacked(data.compress(LIST) + data.flush(), tmp_path)
    xz = lzma.compress(LIST, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30, "mf": lzma.MF_HC3}])
    with pytest.raises(ListError, match="damaged"):
        unpacked(xz, tmp_path)


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize(
    ("members", "plain"),
    [
        ({"hosts.txt": b"0.0.0.0 a.example\n"}, b"0.0.0.0 a.example\n"),
        ({"x/LICENSE": b"MIT", "x/list": b"a.example", "__MACOSX/._list": b"\0"}, b"a.example\n"),
        ({"b/vpn/urls": b"u.example/x\n", "b/vpn/domains": b"d.example\n"}, b"d.example\nu.example/x\n"),
    ],
)
def test_the_list_in_an_archive_is_found(
    pack: Callable[[dict[str, bytes]], bytes], members: dict[str, bytes], plain: bytes, tmp_path: Path
) -> None:
    assert unpacked(pack(members), tmp_path) == plain


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"a.txt": b"a.example\n", "b.txt": b"b.example\n"}, r"several files \(a.txt, b.txt\)"),
        ({"a/domains": b"a.example\n", "b/domains": b"b.example\n"}, "several categories; name one of a, b"),
        ({"README.md": b"x"}, "neither `domains` nor `urls`"),
    ],
)
def test_an_archive_that_leaves_a_choice_is_refused(
    pack: Callable[[dict[str, bytes]], bytes], members: dict[str, bytes], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ListError, match=why):
        unpacked(pack(members), tmp_path)


def test_a_category_is_chosen_by_its_name(tmp_path: Path) -> None:
    data = tarred({"a/domains": b"a.example\n", "b/domains": b"b.example\n"})
    assert unpacked(data, tmp_path, "b", "other-name") == b"b.example\n"


def test_links_and_devices_of_an_archive_are_not_followed(tmp_path: Path) -> None:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("a/domains")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ListError, match="neither `domains`"):
        unpacked(out.getvalue(), tmp_path)


def test_an_encrypted_member_is_said(tmp_path: Path) -> None:
    data = bytearray(zipped({"list.txt": b"a.example\n"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ListError, match="cannot be unpacked"):
        unpacked(bytes(data), tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_wide_text_with_a_mark_becomes_utf8(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack_module, "_CHUNK", 7)  # characters are cut in two between chunks
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    plain = unpacked((mark + "bücher.example\n例子.example").encode(encoding), tmp_path)
    assert plain.removeprefix(b"\xef\xbb\xbf") == "bücher.example\n例子.example\n".encode()


def test_other_bytes_stay_as_they_are(tmp_path: Path) -> None:
    assert unpacked(b"caf\xe9.example\r\n\0", tmp_path) == b"caf\xe9.example\r\n\0\n"


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: zipped({"list.txt": data})])
def test_a_list_of_one_line_over_and_over_is_refused_before_it_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    line = b"0.0.0.0 bad.example.com\n"
    with pytest.raises(SourceError, match="unpacks to more than 200 times its size"):
        unpacked(pack(line * 1_000_000), tmp_path, max_bytes=100_000_000)


def test_a_small_list_may_be_packed_as_well_as_it_can_be(tmp_path: Path) -> None:
    data = b"0.0.0.0 bad.example.com\n" * 100_000
    assert unpacked(gzip.compress(data), tmp_path, max_bytes=100_000_000) == data


def test_whether_it_is_a_ut1_category_is_told(tmp_path: Path) -> None:
    origin, target = tmp_path / "origin", tmp_path / "list"
    for data, folders, is_ut1 in (
        (LIST, (), False),
        (gzip.compress(LIST), (), False),
        (zipped({"hosts.txt": LIST}), (), False),
        (tarred({"adult/domains": LIST, "adult/urls": b"a.example/b\n"}), ("adult",), True),
    ):
        origin.write_bytes(data)
        assert unpack(origin, target, folders, MAX) is is_ut1
    origin.unlink()
    origin.mkdir()
    (origin / "domains").write_bytes(LIST)
    assert unpack(origin, target, (), MAX) is True


def test_a_second_byte_order_mark_is_a_character(tmp_path: Path) -> None:
    wide = codecs.BOM_UTF32_LE * 2 + "a.example".encode("utf-32-le")
    assert unpacked(wide, tmp_path) == "\ufeffa.example\n".encode()
