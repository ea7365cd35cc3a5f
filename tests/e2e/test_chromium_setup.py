"""A real browser sets itself up: the set-up page before and after the certificate is installed, a site, the block page.

The certificate is installed as people do it on Linux: into the browser's NSS database, with certutil.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.chromium import BINARY, Tab, chromium
from tests.e2e.e2e_gateway import GatewayProcess, Origin, until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(BINARY is None, reason="Chromium is not installed"),
    pytest.mark.skipif(shutil.which("certutil") is None, reason="certutil (libnss3-tools) is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

FALLBACK = "document.querySelector('object[data*=\"{}\"] span').getClientRects().length > 0"
"""Whether the words in a picture's place are shown."""


def picture_folder(tmp_path: Path) -> Path:
    """Where screenshots go: `GATEWAYFILTER_TEST_SCREENSHOTS`, else nowhere that lasts."""
    return Path(os.environ.get("GATEWAYFILTER_TEST_SCREENSHOTS", tmp_path))


def install(profile: Path, certificate: Path) -> None:
    """Puts an authority into the browser's database."""
    database = profile / ".pki" / "nssdb"
    database.mkdir(parents=True)
    for arguments in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "GatewayFilter", "-i", str(certificate)]):
        subprocess.run(["certutil", "-d", f"sql:{database}", *arguments], check=True, capture_output=True, timeout=30)


@asynccontextmanager
async def browser(profile: Path, gateway: GatewayProcess, *, trusting: bool, **headers: str) -> AsyncIterator[Tab]:
    if trusting:
        install(profile, gateway.state / "ca" / "mitmproxy-ca-cert.pem")
    async with chromium(profile, f"http://{gateway.address}", "") as running:
        yield await running.tab(**headers)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, trusting: dict[str, str]) -> Iterator[GatewayProcess]:
    """A filter that blocks one host, and learns nothing."""
    with GatewayProcess(
        tmp_path_factory.mktemp("setup") / "state", proxy__workers="1", learn__enabled="false", **trusting
    ) as run:
        assert run.cli("list", "add", "--block", "blocked.example").returncode == 0
        until("the rule", lambda: run.get("http://blocked.example/").status == 403)
        yield run


async def test_a_browser_without_the_certificate_is_told_so(box: GatewayProcess, tmp_path: Path) -> None:
    async with browser(tmp_path / "profile", box, trusting=False) as tab:
        await tab.go("http://gatewayfilter.internal/")
        assert await tab.evaluate("document.title") == "Set up this device · GatewayFilter"
        assert await tab.evaluate(FALLBACK.format("trusted.svg")) is True
        await tab.screenshot(picture_folder(tmp_path) / "setup-untrusting.png")


async def test_with_the_certificate_everything_opens(box: GatewayProcess, https_site: Origin, tmp_path: Path) -> None:
    pictures = picture_folder(tmp_path)
    async with browser(tmp_path / "profile", box, trusting=True) as tab:
        await tab.go("http://gatewayfilter.internal/")
        assert await tab.evaluate(FALLBACK.format("trusted.svg")) is False
        assert await tab.evaluate("document.querySelector('details[open] summary').innerText") == "Linux this device"
        assert await tab.evaluate("document.images.length") == 0  # the address of loopback helps no other device: no QR code
        assert "--listen" in await tab.evaluate("document.querySelector('.phone code').innerText")
        assert await tab.evaluate("document.scripts.length") == 0
        await tab.screenshot(pictures / "setup.png")
        await tab.go("http://gatewayfilter.internal/qr.svg")
        assert await tab.evaluate("document.documentElement.nodeName") == "svg"
        await tab.go("https://gatewayfilter.internal/")
        assert await tab.evaluate("isSecureContext && document.querySelectorAll('object').length") == 0
        await tab.go(f"{https_site.base}/garden/1")
        assert await tab.evaluate("document.querySelector('h1').innerText") == "Beans"
        await tab.go("https://blocked.example/page")
        assert await tab.evaluate("document.querySelector('h1').innerText") == "This page is blocked"
        await tab.screenshot(pictures / "blocked.png")
        assert [words for words in tab.messages if "ERR_CERT" in words or "Content Security Policy" in words] == []


@pytest.mark.parametrize("installed", [False, True])
async def test_it_fits_a_phone(*, installed: bool, box: GatewayProcess, tmp_path: Path) -> None:
    async with browser(tmp_path / "profile", box, trusting=installed) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=340, height=700, deviceScaleFactor=2, mobile=True)
        await tab.go("http://gatewayfilter.internal/")
        right = await tab.evaluate(
            "Math.max(...[...document.querySelectorAll('dd, dd *')].map(e => e.getBoundingClientRect().right))"
        )
        assert 0 < right <= 340
        await tab.screenshot(picture_folder(tmp_path) / f"setup-phone-{installed}.png")


async def test_opened_by_the_proxys_own_address_it_sees_that_the_browser_uses_it(box: GatewayProcess, tmp_path: Path) -> None:
    async with browser(tmp_path / "profile", box, trusting=True, Accept_Language="zh-CN") as tab:
        await tab.go(f"http://{box.address}/")
        assert await tab.evaluate("document.documentElement.lang") == "zh-Hans"
        assert await tab.evaluate(FALLBACK.format("through.svg")) is False
        assert await tab.evaluate(FALLBACK.format("trusted.svg")) is False
        await tab.screenshot(picture_folder(tmp_path) / "setup-zh.png")


def test_a_browser_finds_the_filter_by_its_pac_file(box: GatewayProcess, tmp_path: Path) -> None:
    assert BINARY is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--dump-dom"]
    done = subprocess.run(
        [
            BINARY,
            *flags,
            f"--user-data-dir={tmp_path}",
            f"--proxy-pac-url=http://{box.address}/proxy.pac",
            "http://blocked.example/",
        ],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert "<h1>This page is blocked</h1>" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("mode", ["upstream:http://127.0.0.1:1", "regular"])
def test_own_pages_need_no_way_to_the_internet(mode: str, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "state", proxy__workers="1", learn__enabled="false", proxy__mode=mode) as run:
        for scheme in ("http", "https"):
            answer = run.get(f"{scheme}://gatewayfilter.internal/")
            assert (answer.status, "Set up this device" in answer.text) == (200, True)
