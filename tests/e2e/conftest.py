"""Pages, sites and a filter that several tests share."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from gatewayfilter.store import upgrade
from tests.e2e.e2e_gateway import GatewayProcess, Origin

LIMIT_S = 300
"""Of each test here without one of its own: its waits are put off while the machine is busy with other things (`until`)."""
FILLER = "<p>" + "The path along the hedge dried slowly after the rain. " * 5 + "</p>"
CASINO = (
    "<html><head><meta charset=utf-8><title>Golden Reef online casino - 300% welcome bonus</title></head><body>"
    "<h1>Golden Reef online casino</h1><p>Play online slots, roulette, blackjack and baccarat for real money. Take your no "
    "deposit bonus and 100 free spins, place your bets in our sportsbook, hit the jackpot and withdraw your winnings.</p>"
    f"{FILLER}</body></html>"
)
CASINO_ZH = (
    "<html><head><meta charset=gb18030><title>金沙娱乐城 在线赌场</title></head><body><p>在线赌场,真人百家乐,老虎机,轮盘赌,"
    "体育投注,首存送彩金,注册即送,六合彩、时时彩投注平台,真人荷官,提款秒到账。</p></body></html>"
)
GARDEN = (
    "<html><head><title>A garden in May</title></head><body><h1>Beans</h1><p>Sow beans when the soil is warm.</p>"
    f"{FILLER}</body></html>"
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets the limit, after tests/conftest.py has sorted the files by limits of their own."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))


def pages() -> dict[str, tuple[str, bytes]]:
    """The site: path → content type and body."""
    html = "text/html; charset=utf-8"
    site: dict[str, tuple[str, bytes]] = {f"/casino/{number}": (html, CASINO.encode()) for number in range(20)}
    site |= {f"/garden/{number}": (html, GARDEN.encode()) for number in range(20)}
    site["/zh"] = ("text/html", CASINO_ZH.encode("gb18030"))
    site["/ads/banner.js"] = ("text/javascript", b"document.title = 'an advertisement'")
    site["/data.bin"] = ("application/octet-stream", bytes(100_000))
    return site


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Signs the https site."""
    return trustme.CA()


@pytest.fixture(scope="session")
def http_site() -> Iterator[Origin]:
    """The site over http."""
    origin = Origin(pages())
    yield origin
    origin.close()


@pytest.fixture(scope="session")
def https_site(authority: trustme.CA) -> Iterator[Origin]:
    """The site over https."""
    origin = Origin(pages(), authority)
    yield origin
    origin.close()


@pytest.fixture(scope="session")
def trusting(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings that trust the https site's authority."""
    path = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return {"proxy__upstream_ca": str(path), "crawl__upstream_ca": str(path)}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, trusting: dict[str, str]) -> Iterator[GatewayProcess]:
    """A running filter for tests that do not disturb each other."""
    with GatewayProcess(tmp_path_factory.mktemp("gateway") / "state", **trusting) as running:
        yield running


@pytest.fixture(scope="session")
def _new_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("new") / "gatewayfilter.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def state(_new_database: Path, tmp_path: Path) -> Path:
    """A state folder with nothing but a new database: a filter that makes it takes a second longer to start."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    shutil.copy(_new_database, folder)
    return folder


@pytest.fixture(scope="session")
def _once_used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("used") / "state"
    with GatewayProcess(folder) as gateway:
        assert gateway.stop() == 0
    return folder


@pytest.fixture
def used(_once_used: Path, state: Path) -> Path:
    """The state folder of a filter that has run and was stopped: a copy of one that all tests share."""
    shutil.copytree(_once_used, state, symlinks=True, dirs_exist_ok=True)
    return state
