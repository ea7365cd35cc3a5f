"""What `run` says when it is ready."""

from contextlib import closing
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter import __version__
from gatewayfilter.addresses.links import Links
from gatewayfilter.certificates import authority
from gatewayfilter.config import Settings
from gatewayfilter.model import Account, Role
from gatewayfilter.processes import banner as banners
from gatewayfilter.processes.banner import banner
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY, setup_code
from gatewayfilter.wiring import open_store


def lines(state: Path, listen: str = "192.168.1.1:8080", mode: str = "regular") -> str:
    authority.ensure_ca(state / "ca")
    settings = Settings.model_validate({"data_dir": state, "proxy": {"listen": listen, "mode": mode}})
    return "\n".join(banner(settings, workers=2))


@pytest.mark.parametrize(
    ("listen", "mode", "page"),
    [
        ("192.168.1.1:8080", "regular", "http://192.168.1.1:8080/"),
        ("0.0.0.0:8080", "regular", "http://192.168.7.1:8080/"),
        ("127.0.0.1:8080", "regular", "http://127.0.0.1:8080/ (this machine only; for others: --listen 192.168.7.1:8080)"),
        ("[::]:8080", "transparent", "http://192.0.2.80/"),
    ],
)
def test_it_tells_where_devices_are_set_up(
    tmp_path: Path, listen: str, mode: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = frozenset({ip_address("127.0.0.1"), ip_address("192.168.7.1"), ip_address("2001:db8::1")})
    monkeypatch.setattr("gatewayfilter.addresses.rtnetlink.read_links", lambda: Links(own))
    said = lines(tmp_path, listen, mode)
    assert f"  Devices   open {page}\n" in said
    assert ("gateway up" in said) is (mode == "transparent")
    tries = [line for line in said.split("\n") if line.startswith("  Try ")]
    local = listen.replace("0.0.0.0", "127.0.0.1")
    assert tries == ([] if mode == "transparent" else [f"  Try       curl -x http://{local} http://blocked.gatewayfilter.test/"])
    assert said.startswith(f"GatewayFilter {__version__} is filtering on {listen} (2 workers, learning on).\n\n")
    assert "  Dashboard http://127.0.0.1:8081/\n" in said
    assert f"  State     {tmp_path}\n" in said
    assert said.endswith("  Stop      Ctrl-C")
    assert ("  Browser   set HTTP and HTTPS proxy to" in said) is (mode != "transparent")
    assert "Warning" not in said


def test_it_warns_before_the_authority_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "_VALID_FOR", timedelta(days=30))
    assert "gatewayfilter ca renew" in lines(tmp_path)


def test_the_first_account_is_made_with_a_code_from_other_machines(tmp_path: Path) -> None:
    def said(listen: str) -> str:
        authority.ensure_ca(tmp_path / "ca")
        settings = Settings.model_validate({"data_dir": tmp_path, "web": {"listen": listen}})
        return "\n".join(banner(settings, workers=1))

    assert "/setup?code=" not in said("127.0.0.1:8081")
    assert "Set up" in said("127.0.0.1:8081")
    shown = said("192.0.2.1:8081")
    assert f"https://192.0.2.1:8081/setup?code={setup_code(load_key(tmp_path, WEB_KEY))}" in shown
    assert shown == said("192.0.2.1:8081")
    with closing(open_store(Settings.model_validate({"data_dir": tmp_path}))) as store:
        store.accounts.add(Account(0, "ada", Role.ADMIN))
    assert "Set up" not in said("192.0.2.1:8081")


def test_it_tells_of_lists_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = list[Any]()
    info = SimpleNamespace(blacklist=1_234, whitelist=5, adblock_rules=6, manual_rules=7)
    snapshot = SimpleNamespace(info=info, sources=[1, 2], close=lambda: None)
    monkeypatch.setattr(banners, "snapshot_folder", lambda _: SimpleNamespace(open_newest=lambda verify: (snapshot, verify)))
    monkeypatch.setattr(banners, "subscriptions", lambda _: SimpleNamespace(all=lambda: own))

    def source(*, bundled: bool, enabled: bool, pending: bool = False) -> Any:
        return SimpleNamespace(definition=SimpleNamespace(bundled=bundled, enabled=enabled), is_pending=pending)

    counted = "  Lists     2 sources: 1,234 blocked and 5 known good entries, 6 Adblock rules, 7 of your own"
    own[:] = [source(bundled=True, enabled=True), source(bundled=False, enabled=False)]
    first, note = banners._lists(Settings(data_dir=tmp_path))
    assert first == counted
    assert "it filters little yet" in note
    own.append(source(bundled=False, enabled=True))
    assert list(banners._lists(Settings(data_dir=tmp_path))) == [counted]
    own.append(source(bundled=False, enabled=True, pending=True))
    assert "1 of 2 lists could not be fetched yet" in list(banners._lists(Settings(data_dir=tmp_path)))[1]
