"""HTTPS, settings and backup by the API and on their pages."""

from pathlib import Path

import pytest

from gatewayfilter.client import ApiProblem, Client
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.web.access.identity import Identity, Role
from tests.web.web_fakes import APPROVER, VIEWER, dashboard, served

TOKEN = Identity("Ada", Role.ADMIN)  # a token: there is no cookie to forge
SCRIPT = '"><script>alert(1)</script>'


def test_the_certificate_and_never_its_key(tmp_path: Path) -> None:
    with served(tmp_path, TOKEN) as url:
        client = Client(url, "any")
        facts = client.https.get_authority().value
        assert facts["current"]["days_left"] > 3600
        pem = client.https.download_certificate(form="pem").value
        assert (pem.count(b"BEGIN CERTIFICATE"), b"PRIVATE" in pem) == (1, False)
        with pytest.raises(ApiProblem) as caught:
            client.https.download_certificate(form="pem", waiting=True)
        assert caught.value.status == 404
        made = client.https.renew_authority({"step": "new-key"}).value
        assert client.https.get_authority().value["waiting"] == made
        assert client.https.renew_authority({"step": "activate"}).value["sha256"] == made["sha256"]
        assert client.https.list_pinned_apps().value == []
        assert client.https.remove_pinned_app("app.example").value == {"removed": 0}


def test_settings_are_shown_and_changed(tmp_path: Path) -> None:
    with served(tmp_path, TOKEN) as url:
        client = Client(url, "any")
        shown = {one["key"]: one for one in client.settings.list_settings().value}
        assert shown["web.listen"]["value"] == "127.0.0.1:8081"
        changed = client.settings.change_setting("log.retention_days", {"value": "3"}).value
        assert (changed["before"], changed["after"]) == (shown["log.retention_days"]["value"], 3)
        assert "retention_days = 3" in (tmp_path / "config.toml").read_text()
        with pytest.raises(ApiProblem, match="422"):
            client.settings.change_setting("log.retention_days", {"value": SCRIPT})
        with pytest.raises(ApiProblem, match="there is no setting"):
            client.settings.change_setting("log.nothing", {"value": "1"})


def test_a_backup_goes_there_and_back(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        web.services.store.lists.put_rule(ManualRule(0, ListAction.BLOCK, EntryKind.HOST, "one.example"))
        made = web.client.post("/api/v1/backup", json={}).content
        web.services.store.lists.put_rule(ManualRule(0, ListAction.BLOCK, EntryKind.HOST, "two.example"))
        preview = web.client.post("/api/v1/restore/preview", files={"file": ("x.gfbackup", made)}).json()
        assert any(change["removed"] == 1 for change in preview["changes"])
        assert web.client.post("/api/v1/restore", files={"file": ("x.gfbackup", made)}).status_code == 200
        assert [rule.pattern for rule in web.services.store.lists.rules()] == ["one.example"]
        assert list((tmp_path / "transfers").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a backup", b"PK\x03\x04" + bytes(1000)])
def test_what_is_no_backup_changes_nothing(tmp_path: Path, content: bytes) -> None:
    with dashboard(tmp_path) as web:
        answer = web.client.post("/api/v1/restore", files={"file": (f"../../{SCRIPT}", content)})
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        page = web.client.post("/backup/restore", data={"step": "restore"}, files={"file": (SCRIPT, content)})
        assert page.status_code == 422
        assert SCRIPT not in page.text
        assert list((tmp_path / "transfers").iterdir()) == []


@pytest.mark.parametrize(
    "path", ["/https", "/settings", "/settings?q=proxy", "/backup", "/device", pytest.param("/api", marks=pytest.mark.slow)]
)
def test_pages_of_the_system_are_shown(tmp_path: Path, path: str) -> None:
    with dashboard(tmp_path) as web:
        answer = web.client.get(path, headers={"accept-language": "zh"})
        assert answer.status_code == 200
        assert 'lang="zh' in answer.text


@pytest.mark.slow
@pytest.mark.parametrize("identity", [VIEWER, APPROVER], ids=["viewer", "approver"])
def test_they_are_for_admins(tmp_path: Path, identity: Identity) -> None:
    with dashboard(tmp_path, identity) as web:
        shown = web.client.get("/api").text
        for path in ("/https", "/settings", "/backup"):
            assert web.client.get(path).status_code == 403
            assert f'href="{path}"' not in shown


def test_a_wrong_setting_stays_in_its_field(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        answer = web.client.post("/settings", data={"key": "log.retention_days", "value": SCRIPT})
        assert answer.status_code == 422
        assert SCRIPT not in answer.text
        assert "&lt;script&gt;" in answer.text
        assert web.client.post("/settings", data={"key": "log.retention_days", "value": "4"}).status_code == 303
        assert "4" in web.client.get("/settings?q=log.retention_days").text
        (entry,) = web.services.store.audit.page(action="setting.changed")
        assert (entry.actor.name, entry.subject) == ("Ada", "log.retention_days"), "the one that was refused is no change"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_filter_for_this_machine_alone_names_its_own_port(tmp_path: Path, language: str) -> None:
    with dashboard(tmp_path, None, proxy__listen="127.0.0.1:3128") as web:
        assert "--listen 0.0.0.0:3128" in web.client.get("/device", headers={"accept-language": language}).text


def test_a_device_needs_no_account(tmp_path: Path) -> None:
    with dashboard(tmp_path, None, proxy__listen="192.0.2.7:3128") as web:
        page = web.client.get("/device")
        assert "http://192.0.2.7:3128/" in page.text
        assert web.client.get("/device/qr.svg").headers["content-type"] == "image/svg+xml"
