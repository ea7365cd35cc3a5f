"""Lists over the API and as pages: the work on them goes on in a child process."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter import wiring
from gatewayfilter.config import Settings
from gatewayfilter.use_cases.lists.source_changes import SourceOptions, add_source, changeable_sources, find_source
from gatewayfilter.use_cases.lists.source_undo import put_back
from gatewayfilter.web.source_worker import JobState, SourceWorker
from tests.web.template_preview import HOSTILE
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard


class Started:
    """Stands in for the worker: notes what is begun, and does nothing."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Any, ...]] = []
        self.state = JobState()

    def start(self, kind: str, subject: str, *values: Any, **named: Any) -> JobState:
        self.jobs.append((kind, *values, *named.values()))
        return JobState(len(self.jobs), kind, subject, 1.0)


class AtOnce(Started):
    """Stands in for the worker: does the work at once, and publishes nothing."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def start(self, kind: str, subject: str, *values: Any, **named: Any) -> JobState:
        known = changeable_sources(self._settings)
        match kind:
            case "switch":
                (known.enable if named["enabled"] else known.disable)(values[0])
            case "remove":
                known.remove(values[0])
            case "put_back":
                put_back(self._settings, values[0])
        return super().start(kind, subject, *values, **named)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        opened.services.__dict__["source_worker"] = Started()
        yield opened


def jobs(web: Dashboard) -> list[tuple[Any, ...]]:
    worker: Any = web.services.source_worker
    return list(worker.jobs)


def test_lists_and_catalogue_are_read(web: Dashboard) -> None:
    names = [item["name"] for item in web.client.get("/api/v1/lists").json()["items"]]
    assert names == sorted(names)
    first = web.client.get("/api/v1/lists", params={"limit": 2}).json()
    assert first["next"] == names[1]
    assert web.client.get("/api/v1/lists", params={"after": names[1]}).json()["items"][0]["name"] == names[2]
    catalogue = web.client.get("/api/v1/lists/catalogue").json()
    assert {bundle["name"] for bundle in catalogue["bundles"]} == {"home", "school", "office"}
    assert web.client.get("/api/v1/lists/no-such-list").status_code == 404


def test_changes_begin_work_and_are_refused_when_based_on_an_old_state(web: Dashboard) -> None:
    tag = web.client.get("/api/v1/lists/starter-ads").headers["etag"]
    changed = web.client.patch("/api/v1/lists/starter-ads", json={"enabled": False}, headers={"if-match": tag})
    assert (changed.status_code, changed.json()["running"]) == (202, True)
    assert (
        web.client.patch("/api/v1/lists/starter-ads", json={"enabled": False}, headers={"if-match": '"old"'}).status_code == 412
    )
    assert web.client.delete("/api/v1/lists/starter-ads").status_code == 422
    assert web.client.post("/api/v1/lists/update", json={"names": ["starter-ads"]}).status_code == 202
    assert web.client.post("/api/v1/lists", json={"addresses": ["easylist"]}).status_code == 202
    assert [job[0] for job in jobs(web)] == ["switch", "update", "subscribe"]


def test_changes_are_taken_back_and_made_again(web: Dashboard, tmp_path: Path) -> None:
    settings = web.services.settings
    web.services.__dict__["source_worker"] = AtOnce(settings)
    (tmp_path / "mine.txt").write_text("a.example\nb.example\n")
    options = SourceOptions("mine", category="ads", interval_h=7.0)
    add_source(changeable_sources(settings), str(tmp_path / "mine.txt"), options)
    before = find_source(settings, "mine")

    def states() -> dict[str, bool]:
        return {item.definition.name: item.definition.enabled for item in changeable_sources(settings).all()}

    def undone() -> Any:
        entry = web.client.get("/api/v1/audit").json()["items"][0]["id"]
        return web.client.post(f"/api/v1/audit/{entry}/undo")

    for method, url, body in (
        ("PATCH", "/api/v1/lists/starter-ads", {"enabled": False}),
        ("POST", "/lists/mine/switch", None),
        ("DELETE", "/api/v1/lists/mine", None),
    ):
        first = states()
        assert web.client.request(method, url, json=body).status_code < 400
        changed = states()
        assert changed != first
        assert undone().status_code == 200
        assert states() == first
        assert undone().status_code == 200  # the undo
        assert states() == changed
        assert undone().status_code == 200
    after = find_source(settings, "mine")
    assert replace(after.definition, added_at=0.0) == replace(before.definition, added_at=0.0)
    assert web.client.delete("/api/v1/lists/mine").status_code == 202
    options = SourceOptions("mine", category="malware")
    add_source(changeable_sources(settings), str(tmp_path / "mine.txt"), options)
    assert "changed since" in undone().json()["detail"]


@pytest.mark.parametrize("address", ["/etc/passwd", "file:///etc/passwd", "../x", "ftp://a.example/x", "http://", *HOSTILE])
def test_no_file_of_this_machine_is_a_list(web: Dashboard, address: str) -> None:
    assert web.client.post("/api/v1/lists", json={"addresses": [address]}).status_code == 422
    page = web.client.post("/lists/add", data={"address": address})
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert web.client.post("/lists/catalogue", data={"names": [address]}).status_code == 422
    assert jobs(web) == []


def test_only_admins_change_lists(web: Dashboard) -> None:
    for identity in (VIEWER, APPROVER):
        web.who.identity = identity
        for path in ("/api/v1/lists", "/api/v1/lists/update"):
            assert web.client.post(path, json={"addresses": ["easylist"]}).status_code == 403
        assert web.client.delete("/api/v1/lists/starter-ads").status_code == 403
        page = web.client.get("/lists")
        assert (page.status_code, "/switch" in page.text) == (200, False)
        assert web.client.post("/lists/starter-ads/switch").status_code == 403
        assert 'action="/lists/catalogue"' not in web.client.get("/lists/catalogue").text


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "path", ["/lists", "/lists/catalogue", "/lists/add", "/lists/starter-ads", "/lists/catalogue?category=ads"]
)
def test_pages_are_shown(web: Dashboard, path: str, language: str) -> None:
    assert web.client.get(path, headers={"accept-language": language}).status_code == 200


@pytest.mark.slow
def test_work_is_done_once_at_a_time_and_its_failure_is_a_sentence(tmp_path: Path) -> None:
    with dashboard(tmp_path) as opened:
        wiring.prepare_data_dir(opened.services.settings)
        worker = SourceWorker(opened.services.settings, time.time)
        with worker._child._one:  # the work does not begin, let alone end, before the next is refused
            worker.start("remove", "no-such-list", "no-such-list")
            with pytest.raises(Exception, match="the lists are being worked on"):
                worker.start("publish", "")
        while worker.state.running:
            time.sleep(0.05)
        worker.close()
        assert "no-such-list" in worker.state.error
