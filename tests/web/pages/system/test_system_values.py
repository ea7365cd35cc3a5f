"""The pages of accounts, log-ins, certificates, settings and backups: what they show, what they change, what is recorded."""

import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.model import ListAction, Role
from gatewayfilter.use_cases import https as https_case
from gatewayfilter.use_cases.backup.restore_plan import KindChanges
from gatewayfilter.web.pages.system import backup, https, probes, setup, system
from gatewayfilter.web.source_worker import JobState
from tests.web.account_fakes import GOOD
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept
from tests.web.web_fakes import ADMIN, APPROVER, loaded_for

ISSUER = "https://id.example"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("system") / "state"
    oidc = {f"web__oidc__{name}": value for name, value in (("issuer", ISSUER), ("client_id", "c"), ("client_secret", "s"))}
    with kept(folder, filter__timezone="UTC", web__listen="127.0.0.1:8081", proxy__listen="127.0.0.1:8080", **oidc) as web:
        web.services.access.accounts.add("ada", Role.ADMIN, GOOD)
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    access = opened.services.access
    opened.who.identity = ADMIN
    for account in opened.services.store.accounts.all():
        access.sessions.close_all(account)
        if account.name != "ada":
            access.accounts.remove(account)
    opened.client.cookies.clear()
    opened.worker.begun.clear()
    opened.worker.state = JobState()
    opened.child.results.clear()
    opened.child.jobs.clear()


def account(web: Kept, name: str = "ada") -> Any:
    return web.services.access.accounts.find(name)


def test_the_audit_log_is_read_in_pages(web: Kept) -> None:
    before = web.changes
    for number in range(51):
        web.services.access.trail.record(ADMIN.actor, "test.done", f"s{number}")
    shown = web.get("/audit?action=test.&who=Ada")
    assert ([entry.subject for entry in shown["entries"]], shown["newer"]) == ([f"s{n}" for n in range(50, 0, -1)], "")
    last = shown["entries"][-1].entry_id
    assert shown["older"] == f"/audit?who=Ada&action=test.&before={last}"
    assert (shown["who"], shown["action"], shown["active"], shown["undo_url"](7), shown["undo_url"](0)) == (
        "Ada", "test.", "audit", "/audit/7/undo", "",
    )  # fmt: skip
    exact = web.get(f"/audit?action=test.&before={shown['entries'][0].entry_id}")
    assert (len(exact["entries"]), exact["older"]) == (50, "")
    rest = web.get(shown["older"])
    assert ([entry.subject for entry in rest["entries"]], rest["older"], rest["newer"]) == (
        ["s0"],
        "",
        "/audit?who=Ada&action=test.",
    )
    assert web.get(f"/audit?before={before + 1}")["newer"].startswith("/audit?")
    rule = web.client.post("/rules", data={"rules": "a.example"})
    assert rule.status_code == 303
    entry = web.last_change.entry_id
    web.post(f"/audit/{entry}/undo?next=/rules", 303, "/rules")
    undone = web.last_change
    answer = web.post(f"/audit/{undone.entry_id}/undo", 200, headers=HTMX)
    assert (answer.headers["hx-trigger"], web.pages.template, web.pages.values["entry"].undone_by) == (
        "undone", "system/_undone.html", "Ada",
    )  # fmt: skip
    web.post(f"/audit/{web.last_change.entry_id}/undo?next=//evil", 303, "/")
    assert web.services.store.lists.rules() == []


def test_certificates_and_what_passes_unread(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    current = SimpleNamespace(name="CA 1")
    authorities = SimpleNamespace(current=current, waiting=None)
    monkeypatch.setattr(type(web.services), "authorities", lambda _: authorities)
    asked: list[tuple[Any, ...]] = []
    removed = [1]

    def forget(*given: Any) -> int:
        asked.append(given)
        return removed[-1]

    monkeypatch.setattr(https_case, "forget_pinned_app", forget)
    monkeypatch.setattr(https_case, "pinned_apps", lambda settings, now: [(settings is web.services.settings, now)])
    monkeypatch.setattr(https_case, "renew_authority", lambda _, step: SimpleNamespace(name=f"CA {step}"))
    web.client.post("/rules", data={"rules": "bank.example", "action": "splice"})
    web.client.post("/rules", data={"rules": "b.example", "action": "allow"})
    shown = web.get("/https")
    assert (shown["authorities"], shown["pinned"], shown["active"]) == (authorities, [(True, NOW)], "https")
    assert [rule.action for rule in shown["passed"]] == [ListAction.SPLICE]
    for rule in web.services.store.lists.rules():
        web.services.store.lists.remove_rule(rule.rule_id)
    web.post("/https/renew", 303, "/https", step="new-key")
    assert web.told() == ("authority.renewed", "CA new-key", "new-key")
    web.post("/https/pinned-apps/remove", 303, "/https", host="a.example", client="10.0.0.1")
    assert (web.told(), asked) == (
        ("pinned-app.removed", "a.example", "10.0.0.1"),
        [(web.services.settings, "a.example", "10.0.0.1")],
    )
    removed.append(0)
    before = web.changes
    web.post("/https/pinned-apps/remove", 303, "/https", host="a.example")
    assert web.changes == before
    web.who.identity = None
    shown = web.get("/device")
    assert {name: shown[name] for name in ("active", "address", "transparent", "local", "port", "authority")} == {
        "active": "device", "address": "127.0.0.1:8080", "transparent": False, "local": True, "port": 8080, "authority": current,
    }  # fmt: skip
    picture = web.client.get("/device/qr.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith('<svg xmlns="http://www.w3.org/2000/svg" width="198" height="198"')


def test_pages_for_everybody_find_out_who_opens_them(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(web.who, "identify", lambda request: asked.append(request.url.path))
    monkeypatch.setattr(web.services.access, "has_accounts", lambda: False)
    monkeypatch.setattr(web.services, "authorities", lambda: SimpleNamespace(current=None))
    for path in ("/device", "/setup"):
        web.get(path)
    assert asked == ["/device", "/setup"]


def test_settings_are_found_and_changed(web: Kept) -> None:
    every = web.get("/settings")
    assert (every["q"], every["changed"], every["error"], every["wrong"], every["typed"], every["active"]) == (
        "",
        "",
        "",
        "",
        "",
        "settings",
    )
    assert every["file"] == web.services.settings_file
    assert all(
        one.key.startswith(f"{section}.") or one.key == section for section, rows in every["sections"].items() for one, _ in rows
    )
    found = web.get("/settings?q=Web.Listen+&changed=x")
    assert (next(one.key for rows in found["sections"].values() for one, _ in rows), found["changed"]) == ("web.listen", "x")
    assert web.get("/settings?q=web.listen+nothing-such")["sections"] == {}
    chinese = web.get("/settings?q=web.listen", headers={"accept-language": "zh"})
    assert chinese["sections"]["web"][0][1] != found["sections"]["web"][0][1]
    web.post("/settings", 422, key="web.listen", value="nowhere")
    values = web.pages.values
    assert (values["wrong"], values["typed"], values["q"], "web.listen" in values["error"]) == (
        "web.listen",
        "nowhere",
        "web.listen",
        True,
    )
    web.post("/settings", 303, "/settings?q=web.session_hours&changed=web.session_hours", key="web.session_hours", value="5")
    assert (web.told(), web.services.reloaded().settings.web.session_hours) == (("setting.changed", "web.session_hours", ""), 5)


def test_backups_are_sent_and_restored(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def made(*_: Any, **named: Any) -> Any:
        asked.append(named)
        report = SimpleNamespace(size_bytes=3, with_ca=bool(named["passphrase"]))
        return SimpleNamespace(report=report, blocks=lambda: iter([b"ab", b"c"]))

    changes = [KindChanges("a", 1), KindChanges("b"), KindChanges("c", 0, 1), KindChanges("d", 0, 0, 1)]
    monkeypatch.setattr(backup, "made_backup", made)
    monkeypatch.setattr(backup, "shown_changes", lambda *_: changes)
    monkeypatch.setattr(backup, "restored", lambda *_: SimpleNamespace(changes=changes[1:]))
    shown = web.get("/backup")
    assert shown == {"active": "backup", "changes": None, "report": None, "name": "", "error": ""}
    answer = web.post("/backup/download", 200)
    assert (answer.content, answer.headers["content-length"], asked[-1]) == (b"abc", "3", {"with_log": False, "passphrase": ""})
    assert re.fullmatch(r'attachment; filename="gatewayfilter-\d{8}-\d{4}\.gfbackup"', answer.headers["content-disposition"])
    assert web.told() == ("backup.downloaded", "3 bytes", "")
    web.post("/backup/download", 200, log="true", passphrase="p")
    assert (asked[-1], web.told()[2]) == ({"with_log": True, "passphrase": "p"}, "with the authority")
    before = web.changes
    file = {"file": (f"{'x' * 200}.gfbackup", io.BytesIO(b"x"))}
    assert web.client.post("/backup/restore", files=file).status_code == 200
    values = web.pages.values
    assert ([one.kind for one in values["changes"]], values["report"], values["name"], web.changes) == (
        ["a", "c", "d"], None, f"{'x' * 200}.gfbackup", before,
    )  # fmt: skip
    assert web.client.post("/backup/restore", files=file, data={"step": "restore"}).status_code == 200
    values = web.pages.values
    assert ([one.kind for one in values["changes"]], values["report"] is not None) == (["c", "d"], True)
    assert web.told() == ("backup.restored", "x" * 100, "")

    def refuse(*_: Any) -> Any:
        raise BackupError("damaged")

    monkeypatch.setattr(backup, "shown_changes", refuse)
    assert web.client.post("/backup/restore", files=file).status_code == 422
    assert (web.pages.values["error"], web.pages.values["changes"]) == ("damaged", None)


def test_the_wizard_plans_and_carries_out(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = web.get("/setup/purpose")
    assert (shown["active"], [one.name for one in shown["bundles"]]) == ("system", [*web.services.subscriptions.bundles])
    assert web.led("/setup/lists") == "/setup/purpose"
    purpose = next(iter(web.services.subscriptions.bundles))
    shown = web.get(f"/setup/lists?for={purpose}")
    names = [item.name for item in shown["plan"].lists]
    assert (shown["zone"], shown["active"], shown["size"]) == ("UTC", "system", sum(item.size_mb for item in shown["plan"].lists))
    plans: list[Any] = []

    def begin(_loaded: Any, _store: Any, plan: Any) -> list[str]:
        plans.append(plan)
        return [item.name for item in plan.lists]

    monkeypatch.setattr(setup, "begin_setup", begin)
    form = {"for": purpose, "lists": names[:2], "timezone": "Asia/Shanghai", "safe_search": "on"}
    web.post("/setup/lists", 303, "/setup/devices", **form)
    assert [item.name for item in plans[-1].lists] == names[:2]
    assert web.worker.begun == [("update", ", ".join(names[:2]), (names[:2],), {})]
    assert web.told() == ("setup.done", purpose, ", ".join(names[:2]))
    web.post("/setup/lists", 303, "/setup/devices", **{"for": purpose})
    assert (list(plans[-1].lists), len(web.worker.begun)) == ([], 1)
    monkeypatch.setattr(setup, "begin_setup", lambda *_: ["x" * 150, "y" * 150])
    web.post("/setup/lists", 303, "/setup/devices", **form)
    assert web.worker.begun[-1][1] == f"{'x' * 150}, {'y' * 48}"
    web.worker.state = JobState(1, "update", "", 2.0)
    before = web.changes
    web.post("/setup/lists", 409, **form)
    assert (web.pages.values["detail"], web.changes) == ("the lists are being worked on; try again when that is done", before)
    web.worker.state = JobState(1, "update", "", 2.0, 3.0, ({"error": "away"}, {"error": ""}, {}))
    shown = web.get("/setup/devices")
    assert (shown["failed"], shown["state"], shown["listen"], shown["active"]) == (
        [{"error": "away"}], web.worker.state, "127.0.0.1:8080", "system",
    )  # fmt: skip


def test_the_state_of_the_installation(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(web.services), "status", lambda _: "state")
    monkeypatch.setattr(system, "process_states", lambda settings, now: (settings.data_dir, now))
    folder = web.services.settings.data_dir
    assert web.get("/system") == {
        "state": "state", "processes": (folder, NOW), "data_dir": folder, "settings_file": web.services.settings_file,
        "active": "system",
    }  # fmt: skip
    serving = [2]
    monkeypatch.setattr(probes, "serving_workers", lambda _: serving[-1])
    ready = web.client.get("/readyz")
    assert (ready.status_code, ready.text, web.client.get("/healthz").text) == (200, "ok\n", "ok\n")
    serving.append(0)
    ready = web.client.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "no proxy worker serves\n")
    monkeypatch.setattr(type(web.services), "exposition", lambda _: b"counter 1\n")
    web.who.identity = APPROVER
    metrics = web.client.get("/metrics")
    assert (metrics.text, metrics.headers["content-type"].startswith("text/plain")) == ("counter 1\n", True)


def test_the_reference_of_the_api(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"paths": {"/a": {"get": {"operationId": "read", "responses": {}}}}}
    monkeypatch.setattr(type(web.services), "openapi_document", lambda _: zlib.compress(json.dumps(document).encode()))
    shown = web.get("/api")
    assert ([one.key for one in shown["subjects"]["other"]], shown["active"]) == (["read"], "system")


def test_devices_reach_the_proxy_by_an_address_of_the_lan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for listen, lan, shown in (
        ("0.0.0.0:8080", "10.0.0.5", "10.0.0.5:8080"),
        ("0.0.0.0:8080", None, "127.0.0.1:8080"),
        ("[::]:8080", "2001:db8::5", "[2001:db8::5]:8080"),
        ("[2001:db8::1]:8080", "10.0.0.5", "[2001:db8::1]:8080"),
        ("192.0.2.1:8080", "10.0.0.5", "192.0.2.1:8080"),
    ):
        monkeypatch.setattr(https, "read_lan_address", lambda lan=lan: lan)
        assert https.proxy_address(loaded_for(tmp_path, proxy__listen=listen).settings) == shown
