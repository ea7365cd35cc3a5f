"""Downloads that a policy blocks by type or size, by their head and by their body."""

import asyncio
import gzip
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest

from gatewayfilter.model import (
    APPROVED,
    ListAction,
    ManualRule,
)
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.requests import granted
from tests.proxy.request.filtered_sites import EXE, TWICE, Sites, get, running

DOWNLOADS: list[tuple[str, dict[str, str], tuple[bytes, ...], str]] = [
    ("/setup.exe", {"content-type": "application/octet-stream"}, (EXE,), "file-type"),
    ("/get", {"content-type": "application/x-msdownload"}, (EXE,), "file-type"),
    ("/get", {"content-type": "text/plain", "content-disposition": "attachment; filename*=UTF-8''a%2Eexe"}, (EXE,), "file-type"),
    ("/a.txt", {"content-type": "text/plain"}, (b"text", b"more"), ""),
    ("/page.exe", {"content-type": "text/html"}, (b"<html>about exe",), ""),
    ("/film.zip", {"content-type": "application/zip"}, (b"PK\x03\x04" + bytes(100),), ""),
    ("/get", {"content-type": "multipart/byteranges; boundary=x"}, (b"--x\r\n\r\n" + EXE,), "file-type"),
    ("/long", {"content-type": "text/plain", "content-length": "3000000"}, (bytes(3_000_000),), "file-size"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "headers", "pieces", "reason"), DOWNLOADS)
async def test_downloads_are_blocked_by_their_head(
    path: str, headers: dict[str, str], pieces: tuple[bytes, ...], reason: str, sites: Sites, state: Path, tmp_path: Path
) -> None:
    sites.answers[path] = headers, pieces
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2") as (found, session):
        _, answer, body = await get(found, session, sites.url("http", "files.example", path))
        assert answer == (f"block; reason={reason}" if reason else "")
        assert reason or body == b"".join(pieces)


@pytest.mark.parametrize("site", [False, True])
async def test_an_approval_lifts_file_types_and_sizes(sites: Sites, state: Path, tmp_path: Path, *, site: bool) -> None:
    sites.answers["/setup.exe"] = {"content-type": "application/octet-stream"}, (EXE, bytes(3_000_000))
    url = sites.url("http", "files.example", "/setup.exe")
    kind, pattern = granted(parse_url(url), site=site)
    approved = ManualRule(1, ListAction.ALLOW, kind, pattern, "request 1", APPROVED)
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2", rules=(approved,)) as (found, session):
        status, answer, body = await get(found, session, url)
    assert (status, answer, len(body)) == (200, "", len(EXE) + 3_000_000)


CUT: list[tuple[str, dict[str, str], tuple[bytes, ...], str]] = [
    ("/cat.jpg", {"content-type": "image/jpeg"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg"}, (b"M", b"Z" + bytes(3000), bytes(3000)), "file-type"),
    ("/page", {"content-type": "text/html"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-range": "bytes 600-2607/2608"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "other"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "gzip"}, (b"M", EXE[1:]), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "gzip, br"}, (TWICE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", ":status": "201"}, (EXE,), "file-type"),
    ("/long", {"content-type": "text/plain"}, tuple(bytes(500_000) for _ in range(5)), "file-size"),
]


async def read_into(got: bytearray, content: aiohttp.StreamReader) -> None:
    while not content.at_eof():
        got += await content.readany()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("path", "headers", "pieces", "reason"), CUT)
async def test_downloads_are_cut_by_their_body(
    scheme: str,
    path: str,
    headers: dict[str, str],
    pieces: tuple[bytes, ...],
    reason: str,
    sites: Sites,
    state: Path,
    tmp_path: Path,
    client_tls: ssl.SSLContext,
) -> None:
    sites.answers[path] = headers, pieces
    got = bytearray()
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2") as (found, session):
        url = sites.url(scheme, "files.example", path)
        async with session.get(url, proxy=found.url, ssl=client_tls, auto_decompress=False) as response:
            with pytest.raises(aiohttp.ClientError):
                await read_into(got, response.content)
        record = await found.logged(reason)
    assert record.action == "block"
    assert b"MZ" not in got
    assert len(got) <= 2_000_000


async def test_downloads_are_cut_over_http_2(sites: Sites, state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> None:
    assert client_tls is not None
    sites.answers["/cat.jpg"] = {"content-type": "image/jpeg", "content-encoding": "gzip"}, (gzip.compress(EXE),)
    async with running(state, tmp_path, "file-types=programs") as (found, _):
        trust = str(state / "ca" / "mitmproxy-ca-cert.pem")
        url = sites.url("https", "files.example", "/cat.jpg")
        run = ["curl", "-sS", "--http2", "--proxy", found.url, "--cacert", trust, url]
        done = await asyncio.to_thread(subprocess.run, run, capture_output=True, check=False, timeout=30)
        assert (done.returncode != 0, done.stdout) == (True, b"")
        assert (await found.logged("file-type")).action == "block"
