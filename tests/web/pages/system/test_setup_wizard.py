"""The wizard after the first account."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import Role
from tests.web.account_fakes import Accounted, accounted


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Accounted]:
    with accounted(tmp_path / "state") as opened:
        opened.add("ada")
        yield opened


def test_purpose_lists_devices(dashboard: Accounted, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(type(dashboard.services.source_worker), "start", lambda _self, *values: started.append(values))
    browser = dashboard.logged_in("ada")
    assert "/setup/lists?for=home" in browser.get("/setup/purpose").text
    page = browser.get("/setup/lists?for=home")
    assert page.status_code == 200
    names = [part.split('"')[0] for part in page.text.split('name="lists" value="')[1:]]
    assert len(names) >= 2
    form = {"for": "home", "lists": names[:1], "timezone": "Asia/Shanghai", "safe_search": "on"}
    done = browser.post("/setup/lists", data=form)
    assert (done.status_code, done.headers["location"]) == (303, "/setup/devices")
    assert started == [("update", names[0], [names[0]])]
    assert [item.definition.name for item in dashboard.services.subscriptions.all() if item.is_pending] == names[:1]
    assert "Asia/Shanghai" in (dashboard.services.settings.data_dir / "config.toml").read_text()
    assert dashboard.services.store.policies.read().policy("default")
    assert dashboard.services.store.audit.page(action="setup.done")[0].subject == "home"
    assert browser.get("/setup/devices").status_code == 200
    again = browser.get("/setup/lists?for=home").text
    assert f'value="{names[1]}"' in again


def test_without_a_purpose_it_asks_for_one(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    for path in ("/setup/lists", "/setup/lists?for="):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/setup/purpose")


@pytest.mark.parametrize("purpose", ["prison", "../x", "<b>"])
def test_purposes_that_are_none(purpose: str, dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    answer = browser.get("/setup/lists", params={"for": purpose})
    assert answer.status_code in {404, 422}
    assert "<b>" not in answer.text
    assert browser.post("/setup/lists", data={"for": purpose}).status_code in {404, 422}


def test_bad_zones_change_nothing(dashboard: Accounted) -> None:
    browser = dashboard.logged_in("ada")
    answer = browser.post("/setup/lists", data={"for": "home", "timezone": "Mars/Olympus"})
    assert answer.status_code == 422
    assert not (dashboard.services.settings.data_dir / "config.toml").exists()


def test_it_is_for_admins(dashboard: Accounted) -> None:
    dashboard.add("kim", Role.APPROVER)
    browser = dashboard.logged_in("kim")
    for path in ("/setup/purpose", "/setup/lists?for=home", "/setup/devices"):
        assert browser.get(path).status_code == 403
    assert browser.post("/setup/lists", data={"for": "home"}).status_code == 403
