"""Children that are started ahead: by a person's page alone, in the background, and never twice."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request

from gatewayfilter.errors import ClassifyError
from gatewayfilter.model import WebSession
from gatewayfilter.web.child_warmer import ChildWarmer, WakingAuthenticator
from gatewayfilter.web.page_warmer import warm_pages
from gatewayfilter.web.rendering.pages import pages_of_process
from tests.e2e.e2e_gateway import until
from tests.web.web_fakes import ADMIN, Always, Dashboard, dashboard

PERSON = replace(ADMIN, session=WebSession(b"d", 1, "c", 0.0, 0.0, 1e12, "127.0.0.1", ""))


class Recorder:
    """A child process that records its work."""

    def __init__(self, *, fails: bool = False) -> None:
        self.jobs: list[str] = []
        self.running = False
        self._fails = fails

    def run(self, job: str, *_: Any) -> bytes:
        self.jobs.append(job.partition(":")[2])
        if self._fails:
            raise ClassifyError("away")
        self.running = True
        return b"document"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("warmer") / "state"
    with dashboard(folder) as opened:
        yield opened


def woken(web: Dashboard, monkeypatch: pytest.MonkeyPatch, checker: Recorder, times: int = 1) -> list[str]:
    child, editing = Recorder(), Recorder()
    monkeypatch.setattr(web.services, "child", child)
    monkeypatch.setattr(web.services, "editing", editing)
    monkeypatch.setattr(web.services, "checker", checker)
    documents: list[int] = []
    monkeypatch.setattr(web.services, "openapi_document", lambda: documents.append(1))
    warmer = ChildWarmer(web.services, after_s=0.0)
    for _ in range(times):
        warmer.wake()
        until("all children", lambda: documents and all(one.jobs for one in (checker, child, editing)))
    return checker.jobs + child.jobs + editing.jobs


def test_children_are_started_once(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert woken(web, monkeypatch, Recorder(), times=3) == ["prepare", "categories", "list_rules"]


def test_a_child_that_fails_holds_up_no_other(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert woken(web, monkeypatch, Recorder(fails=True)) == ["prepare", "categories", "list_rules"]


@pytest.mark.parametrize(
    ("path", "headers", "identity", "count"),
    [
        ("/log", [], PERSON, 1),
        ("/log", [(b"hx-request", b"true")], PERSON, 0),
        ("/api/v1/log", [], PERSON, 0),
        ("/log", [], ADMIN, 0),
        ("/log", [], None, 0),
        ("/login", [], None, 0),  # anybody may open it
    ],
)
def test_a_page_of_a_person_wakes_them(
    path: str, headers: list[tuple[bytes, bytes]], identity: Any, count: int, web: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken_times: list[int] = []
    warmer = ChildWarmer(web.services)
    monkeypatch.setattr("gatewayfilter.web.child_warmer.warm_pages", lambda *_: None)
    monkeypatch.setattr(ChildWarmer, "wake", lambda _: woken_times.append(1))
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b"", "server": ("a", 1)}
    assert WakingAuthenticator(Always(identity), warmer).identify(Request(scope)) == identity
    assert len(woken_times) == count


def test_who_is_about_to_log_in_finds_pages_ready(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChildWarmer, "wake", lambda _: None)
    warmer, loaded = ChildWarmer(web.services), list[str]()
    made = pages_of_process()
    monkeypatch.setattr(made, "load", lambda language, _: loaded.append(language))
    warmer.greet("zh")
    warmer.greet("zh")  # once a minute, whoever asks
    until("the counts", lambda: loaded and not [one for one in threading.enumerate() if one.name == "page-warmer"])
    assert loaded == ["zh"]


def test_pages_that_are_made_ready_exist(web: Dashboard) -> None:
    warm_pages(web.services, pages_of_process(), "en")  # raises for a template that is gone


def test_the_start_makes_pages_ready_and_starts_the_checks_alone(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    children = {name: Recorder() for name in ("checker", "child", "editing")}
    for name, child in children.items():
        monkeypatch.setattr(web.services, name, child)
    loaded = list[str]()
    monkeypatch.setattr(pages_of_process(), "load", lambda language, _: loaded.append(language))
    ChildWarmer(web.services).begin()
    assert loaded == ["en"]  # when it returns
    until("the child", lambda: children["checker"].jobs)
    assert [child.jobs for child in children.values()] == [["prepare"], [], []]


def test_the_dashboard_starts_whatever_fails_ahead_of_it(
    web: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a template")

    monkeypatch.setattr(pages_of_process(), "load", fail)
    ChildWarmer(web.services).begin()
    assert "the first pages were not made ready" in caplog.text
    assert "a template" in caplog.text
