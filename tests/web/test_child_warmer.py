"""Children that are started ahead: by a person's page alone, in the background, and never twice."""

import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic
import pytest
from fastapi import Request

import gatewayfilter
from gatewayfilter.errors import ClassifyError
from gatewayfilter.model import WebSession
from gatewayfilter.web.child_process import ChildProcess
from gatewayfilter.web.child_warmer import ChildWarmer, WakingAuthenticator
from gatewayfilter.web.page_warmer import FIRST, warm_pages
from gatewayfilter.web.rendering.pages import TEMPLATES
from gatewayfilter.web.services import WebServices
from tests.e2e.e2e_gateway import until
from tests.web.web_fakes import ADMIN, Always, Dashboard, dashboard


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders into which templates were to be compiled; none is."""
    folders: list[Path] = []

    def run(_self: ChildProcess, _job: str, folder: Path) -> list[object]:
        folders.append(folder)
        return []

    monkeypatch.setattr("gatewayfilter.web.child_warmer.ChildProcess.run", run)
    return folders


PERSON = replace(ADMIN, session=WebSession(b"d", 1, "c", 0.0, 0.0, 1e12, "127.0.0.1", ""))


class Recorder:
    """A child process that records its work."""

    def __init__(self, *, fails: bool = False) -> None:
        self.jobs: list[str] = []
        self.running = False
        self._fails = fails

    def run(self, job: str, *_: Any) -> Any:
        self.jobs.append(job.partition(":")[2])
        if self._fails:
            raise ClassifyError("away")
        self.running = True
        return [] if job.endswith(":categories") else b"document"


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
    monkeypatch.setattr(ChildWarmer, "wake", lambda _: woken_times.append(1))
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b"", "server": ("a", 1)}
    assert WakingAuthenticator(Always(identity), warmer).identify(Request(scope)) == identity
    assert len(woken_times) == count


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The languages in which the first pages were asked for; none is."""
    found: list[str] = []
    monkeypatch.setattr("gatewayfilter.web.child_warmer.warm_pages", lambda _, language: found.append(language))
    return found


def idle() -> bool:
    return not [one for one in threading.enumerate() if one.name in {"page-warmer", "child-warmer"}]


def test_the_start_makes_pages_ready_and_starts_the_checks_alone(
    web: Dashboard, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    children = {name: Recorder() for name in ("checker", "child", "editing")}
    for name, child in children.items():
        monkeypatch.setattr(web.services, name, child)
    warmer = ChildWarmer(web.services)
    warmer.greet("en")  # there is no application yet
    warmer.begin(web.client.app)
    until("both", lambda: asked and children["checker"].jobs)
    until("no other", idle)
    assert (asked, [child.jobs for child in children.values()]) == (["en"], [["prepare"], [], []])


def test_who_is_about_to_log_in_finds_pages_ready(web: Dashboard, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("checker", "child"):
        monkeypatch.setattr(web.services, name, Recorder())
    warmer = ChildWarmer(web.services)
    warmer.begin(web.client.app)
    for language in ("zh", "zh", "en"):  # once a minute in a language, whoever asks
        warmer.greet(language)
    until("the pages", idle)
    assert sorted(asked) == ["en", "zh"]


def test_pages_that_are_made_ready_are_those_that_a_person_opens(tmp_path: Path) -> None:
    with dashboard(tmp_path, None) as board:
        shown: list[tuple[str, str]] = []
        pages = board.client.app.__dict__["_app"]  # behind the gate

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            async def noted(message: Any) -> None:
                if message["type"] == "http.response.start":
                    shown.append((scope["path"], str(message["status"])))
                elif b"<html" in message["body"]:
                    shown.append((scope["path"], re.findall(r'<html lang="(.+?)"', message["body"].decode())[0]))
                await send(message)

            await pages(scope, receive, noted)

        warm_pages(watched, "zh")
        assert shown == [(path, one) for path in FIRST for one in ("200", "zh-Hans-CN")]
        assert board.client.get("/log").status_code == 303  # nobody else became somebody


def test_the_dashboard_starts_whatever_fails_ahead_of_it(
    web: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a template")

    monkeypatch.setattr(web.services, "checker", Recorder())
    monkeypatch.setattr("gatewayfilter.web.child_warmer.warm_pages", fail)
    ChildWarmer(web.services).begin(web.client.app)
    until("the end", idle)
    assert "the first pages were not made ready" in caplog.text
    assert "a template" in caplog.text


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs of children that made the reference of the API."""
    found: list[str] = []

    def make(_: ChildProcess, job: str) -> bytes:
        found.append(job)
        return zlib.compress(b"{}")

    monkeypatch.setattr(ChildProcess, "run", make)
    return found


def test_the_reference_is_made_once_for_a_release(web: Dashboard, made: list[str]) -> None:
    loaded, store = web.services.loaded, web.services.store
    folder = web.services.settings.data_dir / "cache"
    folder.mkdir(exist_ok=True)
    (folder / "openapi-of-before.z").write_bytes(b"old")
    for _ in range(2):
        assert zlib.decompress(WebServices(loaded, store).openapi_document()) == b"{}"
    (kept,) = folder.glob("openapi-*.z")
    assert (len(made), kept.stat().st_mode & 0o777) == (1, 0o600)
    kept.write_bytes(b"damaged")
    assert zlib.decompress(WebServices(loaded, store).openapi_document()) == b"{}"
    assert len(made) == 2


def test_the_reference_is_made_again_whatever_of_the_program_changed(
    web: Dashboard, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> int:
        WebServices(web.services.loaded, web.services.store).openapi_document()
        return len(made)

    role = tmp_path / "model" / "access" / "account.py"  # a type that models of the API take from another room
    role.parent.mkdir(parents=True)
    role.write_text("one")
    monkeypatch.setattr(gatewayfilter, "__file__", str(tmp_path / "__init__.py"))
    assert [look(), look()] == [1, 1]
    role.write_text("another")
    assert [look(), look()] == [2, 2]
    role.rename(role.parents[1] / role.name)
    assert [look(), look()] == [3, 3]
    monkeypatch.setattr(pydantic, "VERSION", "0")
    assert [look(), look()] == [4, 4]


def test_the_reference_is_kept_though_an_older_one_stays(
    web: Dashboard, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pydantic, "VERSION", "1")
    stays = web.services.settings.data_dir / "cache" / "openapi-that-stays.z"
    stays.mkdir(parents=True)  # no file to unlink
    try:
        for _ in range(2):
            WebServices(web.services.loaded, web.services.store).openapi_document()
    finally:
        stays.rmdir()
    assert len(made) == 1


def test_who_opens_the_first_page_has_words_counted_and_templates_compiled_once_for_a_release(
    web: Dashboard, compiled: list[Path], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = web.services.settings.data_dir / "cache"
    for name in ("templates", "words"):
        (cache / f"answer-{name}.json").unlink(missing_ok=True)
    counting = Recorder()
    monkeypatch.setattr(web.services, "checker", Recorder())
    monkeypatch.setattr(web.services, "child", counting)
    for _ in range(2):  # two starts of the dashboard
        warmer = ChildWarmer(web.services)
        warmer.begin(web.client.app)
        for _ in range(2):
            warmer.greet("en")
        until("the work of the start", idle)
    assert (counting.jobs, compiled, set(asked)) == (["categories"], [cache / "templates"], {"en"})


@pytest.mark.slow
def test_each_template_is_compiled_for_each_language(tmp_path: Path) -> None:
    code = "import sys, pathlib, gatewayfilter.web.page_warmer as it; it.compile_templates(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    templates = len(list(TEMPLATES.rglob("*.html")))
    assert {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir()} == {"en": templates, "zh": templates}


@pytest.mark.parametrize(("path", "greeted"), [("/login", ["en"]), ("/setup", ["en"]), ("/device", [])])
def test_the_pages_to_log_in_and_to_set_up_greet(
    path: str, greeted: list[str], web: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(ChildWarmer, "greet", lambda _, language: heard.append(language))
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b"", "server": ("a", 1)}
    WakingAuthenticator(Always(None), ChildWarmer(web.services)).identify(Request(scope))
    assert heard == greeted


def test_a_kept_session_has_words_counted_too(web: Dashboard, compiled: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (web.services.settings.data_dir / "cache" / "answer-templates.json").unlink(missing_ok=True)
    for name in ("checker", "child", "editing"):
        monkeypatch.setattr(web.services, name, Recorder())
    monkeypatch.setattr("gatewayfilter.web.child_warmer.warm_pages", lambda *_: None)
    warmer = ChildWarmer(web.services, after_s=60.0)
    warmer.begin(web.client.app)
    warmer.wake()
    until("the templates", lambda: len(compiled) == 1)
