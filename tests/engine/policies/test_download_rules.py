"""Download rules: file types by names, media types and first bytes, and what each of them may claim."""

import struct
import time
import zipfile
from io import BytesIO

from gatewayfilter.engine.policies.download_rules import DownloadRules, file_names
from gatewayfilter.model import Action, Reason, Verdict, expanded_types
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases


def zipped(*names: str) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * 40)
    return made.getvalue()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
MP4 = b"\x00\x00\x00\x20ftypisom" + bytes(600)
HEIC = b"\x00\x00\x00\x20ftypheic" + bytes(600)
JAVA = b"\xca\xfe\xba\xbe" + struct.pack(">I", 65)


def judge(kinds: str, path: str, begin: bytes = b"", **headers: str) -> str:
    """Returns what is blocked, `""` for nothing."""
    names = frozenset(kinds.split())
    rules = DownloadRules("kids", expanded_types(names), names & {"video", "audio"}, 5_000_000)
    url = parse_url(f"https://files.example{path}")
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    verdict = rules.judge_head(url, fields) or rules.judge_begin(url, fields, begin)
    return verdict.detail if verdict is not None else ""


@all_cases(
    ("kinds", "path", "begin", "headers", "blocked"),
    [
        ("programs", "/a.exe", b"", {}, "exe"),
        ("programs", "/a.EXE?x=1", b"", {"content_type": "text/plain"}, "exe"),
        ("programs", "/a.exe%20", b"", {}, "exe"),
        ("programs", "/a.exe.", b"", {}, "exe"),
        ("programs", "/about.exe", b"<html>", {"content_type": "text/html"}, ""),
        ("programs", "/get", b"", {"content_disposition": "attachment; filename=\"a.txt\"; filename*=UTF-8''a.exe"}, "exe"),
        ("programs", "/get", b"", {"content_disposition": 'attachment; filename="gpj.\u202eexe"'}, "exe"),
        ("programs", "/get", b"", {"content_disposition": "attachment; filename=a.txt:b.exe"}, ""),
        ("programs", "/cat.jpg", b"MZ\x90" + bytes(100), {"content_type": "image/jpeg"}, "exe by its content"),
        ("programs", "/x", b"\x7fELF" + bytes(100), {}, "elf by its content"),
        ("programs", "/x.class", JAVA, {}, ""),
        ("programs", "/x", OLE, {"content_type": "application/msword"}, ""),
        ("programs", "/x.jpg", OLE, {"content_type": "image/jpeg"}, ""),
        ("programs", "/x.pdf", OLE, {}, "msi by its content"),
        ("apk", "/x.zip", zipped("AndroidManifest.xml"), {"content_type": "application/zip"}, "apk by its content"),
        ("apk", "/x.zip", zipped("readme.txt"), {"content_type": "application/zip"}, ""),
        ("archives", "/x", zipped("[Content_Types].xml"), {}, ""),
        ("archives", "/x.docx", zipped("[Content_Types].xml"), {}, ""),
        ("archives", "/x.jpg", zipped("a"), {"content_type": "image/jpeg"}, "zip by its content"),
        ("jar", "/x.jpg", zipped("META-INF/MANIFEST.MF"), {}, ""),
        ("video", "/x", MP4, {}, "mp4 by its content"),
        ("video", "/x", HEIC, {}, ""),
        ("video", "/x", b"", {"content_type": "video/x-unheard-of"}, "video/x-unheard-of"),
        ("audio", "/x.mp4", MP4, {}, ""),
        ("documents", "/x", b"%PDF-1.7", {}, "pdf by its content"),
        ("torrents", "/x.torrent", b"", {}, "torrent"),
        ("programs", "/x", b"", {"content_range": "bytes 1-100/5000"}, "a part that begins behind the first bytes of a file"),
        ("programs", "/x", b"", {"content_range": "bytes 512-5000/5001"}, ""),
        ("programs", "/x", b"", {"content_range": "bytes 4096-5000/6000000"}, "larger than 5 MB"),
        ("", "/x", b"", {"content_length": "5000001"}, "larger than 5 MB"),
        ("", "/x", b"", {"content_length": "9" * 40}, "larger than 5 MB"),
        ("", "/x.exe", b"MZ", {"content_length": "5000000"}, ""),
        ("", "/x", b"", {"content_length": "5000000".zfill(18)}, ""),
        ("", "/x", b"", {"content_length": "5000000".zfill(19)}, "larger than 5 MB"),
        ("", "/x", b"", {"content_length": "\uff19" * 9}, ""),
        ("", "/x", b"", {"content_length": "large"}, ""),
        ("", "/x", b"", {"content_range": "bytes 0-9/*"}, ""),
        ("", "/x", b"", {"content_range": "bytes 1-100/5000"}, ""),
        ("", "/x", b"", {"content_type": "multipart/byteranges; boundary=x"}, "larger than 5 MB"),
        ("programs", "/x", b"", {"content_type": "multipart/byteranges; boundary=x"}, "several parts of a file"),
        ("programs", "/x", b"", {"content_range": "bytes 0-100/5000"}, ""),
        ("programs", "/x", b"", {"content_range": "bytes 511-5000/5001"}, "a part that begins behind the first bytes of a file"),
        ("programs", "/a.exe" + "." * 296, b"", {}, "exe"),
        ("programs", "/a.exe" + "." * 297, b"", {}, ""),  # only the end of a path is read
        ("programs", "/get", b"", {"content_disposition": "attachment; filename=a\\b.exe"}, "exe"),
        ("programs", "/a.exe", b"", {"content_disposition": "attachment; filename=a.txt"}, ""),
        ("programs", "/a.exe", b"", {"content_disposition": "attachment; filename=a"}, "exe"),
        ("programs", "/a.exe", b"", {"content_disposition": "inline", "content_type": "text/html"}, ""),
    ],
)
def test_what_is_blocked(kinds: str, path: str, begin: bytes, headers: dict[str, str], blocked: str) -> None:
    assert judge(kinds, path, begin, **headers) == blocked


def test_file_names_are_read_as_any_browser_may() -> None:
    assert file_names('attachment; filename="a \\"b\\".exe"') == ['a "b".exe']
    assert file_names("attachment; filename*0=a; filename*1=.exe") == ["a.exe"]
    assert file_names("attachment; FileName = x.msi ; y=z") == ["x.msi"]
    assert file_names("inline") == []


def test_coded_names_are_read() -> None:
    assert file_names("attachment; filename*=UTF-8'en'a%20b.exe") == ["a b.exe"]
    assert file_names("attachment; filename=a%20b.txt; filename*0*=UTF-8''c; filename*1=.exe") == ["a b.txt", "c.exe"]


@all_cases(
    ("names", "most_bytes", "summary"),
    [
        ("", 0, ""),
        ("zip exe", 0, "file types exe, zip"),
        ("", 2_000_000, "files above 2 MB"),
        ("exe", 2_000_000, "file types exe; files above 2 MB"),
    ],
)
def test_what_is_blocked_is_told(names: str, most_bytes: int, summary: str) -> None:
    named = frozenset(names.split())
    rules = DownloadRules("kids", expanded_types(named), most_bytes=most_bytes, named=named)
    assert (rules.summary, rules.judges_content) == (summary, bool(named))


def test_a_verdict_names_the_policy_and_the_reason() -> None:
    rules = DownloadRules("kids", frozenset({"exe"}), most_bytes=2_000_000)
    url = parse_url("https://files.example/a.exe")
    large, typed = rules.judge_head(url, {"content-length": "2000001"}), rules.judge_head(url, {})
    assert large == Verdict(Action.BLOCK, Reason.FILE_SIZE, rule="kids", detail="larger than 2 MB")
    assert typed == Verdict(Action.BLOCK, Reason.FILE_TYPE, rule="kids", detail="exe")
    assert (
        DownloadRules("kids", frozenset({"exe"})).judge_head(parse_url("https://a.example/"), {"content-length": "9" * 40})
        is None
    )


@all_cases("text", ["filename=" * 100_000, 'filename="' + "\\" * 100_000, "filename*0" * 50_000, " " * 1_000_000])
def test_a_hostile_header_takes_bounded_time(text: str) -> None:
    began = time.process_time()
    file_names(text)
    judge("programs", "/x", content_type=text, content_disposition=text, content_range=text)
    assert time.process_time() - began < 0.5
