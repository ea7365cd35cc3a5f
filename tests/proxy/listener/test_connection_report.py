"""What `check` tells of HTTPS connections: the listener's own decision, and what was learned about devices."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import HostAction, HostVerdict
from gatewayfilter.proxy.listener.connection_report import RawTunnels, report_connection
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp, PinnedAppsFile
from gatewayfilter.urls import parse_url
from tests.proxy.connection_fakes import DENY, LOOK, NAMED, PASS

NOW = 1_000.0
PHONE, HOST = "192.0.2.7", "app.example"


@dataclass
class Hosts:
    """Decides all hosts alike."""

    verdict: HostVerdict

    def policy_mark(self) -> None:
        """There are no policies."""

    def decide_host(self, host: str, client: str = "", user: str = "") -> HostVerdict:
        assert (host, user) == (HOST, "")
        assert client in {"", PHONE}
        return self.verdict


def report(state: Path, verdict: HostVerdict, *, client: str = PHONE, url: str = f"https://{HOST}/", **settings: Any) -> Any:
    whole = Settings.model_validate({"data_dir": state, **settings})
    return report_connection(whole, Hosts(verdict), parse_url(url), client, lambda: NOW)


def learn(
    state: Path, *, client: str = PHONE, host: str = HOST, learned_at: float = NOW, expires_at: float = NOW + 1
) -> PinnedApp:
    entry = PinnedApp(client, host, learned_at, expires_at, 3)
    PinnedAppsFile.in_folder(state).add(entry)
    return entry


@pytest.mark.parametrize(("verdict", "unread"), [(PASS, True), (LOOK, False), (NAMED, False), (DENY, False)])
def test_the_listeners_decision_is_told(verdict: HostVerdict, tmp_path: Path, *, unread: bool) -> None:
    found = report(tmp_path, verdict)
    assert (found.decision, found.unread, found.is_learned, found.learned) == (verdict, unread, False, ())
    assert found.counts is (verdict is LOOK)
    assert report(tmp_path, verdict, tls={"pinned_apps": False}).counts is False
    assert report(tmp_path, verdict, proxy={"unknown": "block"}).counts is False


def test_a_name_that_was_learned_passes_unread_for_its_device(tmp_path: Path) -> None:
    entry = learn(tmp_path)
    other = learn(tmp_path, client="192.0.2.8")
    learn(tmp_path, host="other.example")
    found = report(tmp_path, LOOK)
    assert (found.unread, found.is_learned, found.counts, found.learned) == (True, True, True, (entry,))
    for verdict in (NAMED, DENY):
        blocked = report(tmp_path, verdict)
        assert (blocked.unread, blocked.is_learned, blocked.counts, blocked.learned) == (False, False, False, (entry,))
    everyone = report(tmp_path, LOOK, client="")
    assert (everyone.is_learned, everyone.counts, everyone.learned) == (False, True, (entry, other))


@pytest.mark.parametrize(
    ("learned_at", "expires_at", "told"), [(NOW, NOW + 1, True), (NOW + 1, NOW + 2, False), (NOW - 1, NOW, False)]
)
def test_what_is_learned_counts_until_it_expires(learned_at: float, expires_at: float, tmp_path: Path, *, told: bool) -> None:
    learn(tmp_path, learned_at=learned_at, expires_at=expires_at)
    assert bool(report(tmp_path, PASS).learned) is told


@pytest.mark.parametrize(
    ("deny", "shown_by_host", "shows"), [("page", True, True), ("page", False, False), ("alert", True, False)]
)
def test_whether_a_blocked_host_shows_a_page(deny: str, tmp_path: Path, *, shown_by_host: bool, shows: bool) -> None:
    verdict = replace(DENY, shows_page=shown_by_host)
    assert report(tmp_path, verdict, tls={"deny": deny}).shows_page is shows


@pytest.mark.parametrize(
    ("rule", "verdict", "port", "raw"),
    [
        ("known", PASS, ":22", RawTunnels.UNREAD),
        ("known", PASS, "", RawTunnels.REFUSED),
        ("known", PASS, ":80", RawTunnels.REFUSED),
        ("known", LOOK, ":22", RawTunnels.REFUSED),
        ("on", LOOK, ":22", RawTunnels.UNREAD),
        ("on", LOOK, "", RawTunnels.REFUSED),
        ("on", DENY, ":22", RawTunnels.REFUSED),
        ("off", PASS, ":22", RawTunnels.REFUSED),
    ],
)
def test_which_tunnels_pass_unread(rule: str, verdict: HostVerdict, port: str, raw: RawTunnels, tmp_path: Path) -> None:
    found = report(tmp_path, verdict, url=f"https://{HOST}{port}/", proxy={"raw_tcp": rule})
    assert found.raw is raw
    assert (found.decision.action is HostAction.SPLICE) is (verdict is PASS)
