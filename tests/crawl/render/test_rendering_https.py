"""Rendering over TLS: scripts come through the guarded proxy, and only from origins whose certificates Chromium accepts."""

import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from gatewayfilter.crawl.render import renderer
from gatewayfilter.crawl.render.renderer import Renderer, can_render
from gatewayfilter.interfaces import Page
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_origin import Origin, loopback_settings, reply, serving
from tests.crawl.render.real_browser import be_patient

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(can_render()), reason=can_render() or "can render"),
    pytest.mark.skipif(shutil.which("certutil") is None, reason="there is no certutil to make Chromium trust an authority"),
]

SCRIPT = b"fetch('/data.json').then(r => r.text()).then(t => { document.getElementById('root').textContent = 'built ' + t })"
SHELL = b"<html><body><div id=root></div><script src=/app.js></script></body></html>"


@pytest.fixture(autouse=True)
def without_sandbox_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run as root too, to whom Chromium refuses its sandbox; the pages here are ours."""
    monkeypatch.setattr(renderer, "SANDBOX", os.geteuid() != 0)
    be_patient(monkeypatch)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which Chromium's own store of authorities is empty."""
    store = tmp_path / "home" / ".pki" / "nssdb"
    store.mkdir(parents=True)
    subprocess.run(["certutil", "-N", "-d", f"sql:{store}", "--empty-password"], check=True, capture_output=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return store


@pytest.fixture
async def site(authority: trustme.CA) -> AsyncIterator[Origin]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with serving(context) as origin:
        origin.answers["/app.js"] = reply(SCRIPT, content_type="text/javascript")
        origin.answers["/data.json"] = reply(b"casino", content_type="application/json")
        yield origin


async def improved(origin: Origin, counters: Counters, **changes: object) -> bytes:
    url = f"https://127.0.0.1:{origin.port}/shop"
    async with Renderer(loopback_settings(render="auto", **changes), counters) as browser:
        return (await browser.improved(Page(url, url, 200, {"content-type": "text/html"}, SHELL))).body


async def test_a_page_over_tls_is_rendered(site: Origin, authority: trustme.CA, home: Path, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    command = ["certutil", "-A", "-d", f"sql:{home}", "-n", "test", "-t", "C,,", "-i", str(tmp_path / "authority.pem")]
    subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221  before the browser starts
    counters = Counters()
    assert b"built casino" in await improved(site, counters)
    assert site.requests == ["/app.js", "/data.json"]
    assert counters["pages_rendered"] == 1


@pytest.mark.usefixtures("home")
async def test_scripts_of_an_origin_that_cannot_prove_itself_are_not_run(site: Origin) -> None:
    assert b"built" not in await improved(site, Counters())
    assert site.requests == []


async def test_the_guard_holds_over_tls(site: Origin, authority: trustme.CA, home: Path, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    command = ["certutil", "-A", "-d", f"sql:{home}", "-n", "test", "-t", "C,,", "-i", str(tmp_path / "authority.pem")]
    subprocess.run(command, check=True, capture_output=True)  # noqa: ASYNC221  before the browser starts
    assert b"built" not in await improved(site, Counters(), allow_networks=("127.0.0.9/32",))
    assert site.requests == []
