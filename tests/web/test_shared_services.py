"""What handlers share: read once, kept for some seconds, and read again where it has changed."""

import pickle
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter import wiring
from gatewayfilter.model import Request as FilteredRequest
from gatewayfilter.model import Role
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases import filter_status
from gatewayfilter.use_cases.lists import source_undo
from gatewayfilter.use_cases.metrics import exposition
from gatewayfilter.use_cases.operation import examinations
from gatewayfilter.use_cases.sign_on import single_sign_on
from gatewayfilter.use_cases.traffic import health_facts, log_clients
from gatewayfilter.web import services as module
from gatewayfilter.web.access.checks import checked
from gatewayfilter.web.services import WebServices
from tests.web.pages.test_page_values import NotedChild, NotedWorker
from tests.web.web_fakes import ADMIN, loaded_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("services") / "state"


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Any]:
    with closing(wiring.open_store(loaded_for(folder).settings)) as store:
        yield store


def noting[T](notes: list[Any], result: T) -> Callable[..., T]:
    """Returns a function that notes what it is given, and returns a result."""

    def note(*given: Any) -> T:
        notes.append(given[0] if len(given) == 1 else given)
        return result

    return note


class Clock:
    """Monotonic seconds, as the test sets them."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic, time=time.time))
    return made


@pytest.fixture
def made(folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    children: list[Any] = []

    def child(*given: Any, **named: Any) -> Any:
        children.append(NotedChild())
        children[-1].given = (given, named)
        return children[-1]

    monkeypatch.setattr(module, "ChildProcess", child)
    made: Any = WebServices(loaded_for(folder), store, lambda: 17.0)
    made.children = children
    return made


def test_children_have_the_time_of_their_work(made: Any) -> None:
    assert [one.given for one in made.children] == [
        ((), {}), ((), {}), ((40.0,), {"idle_s": 60.0}), ((4.0,), {}), ((), {"idle_s": 60.0}),
    ]  # fmt: skip
    assert (made.child, made.checker, made.fetching, made.editing, made.verifying) == tuple(made.children)
    assert made.access is made.access
    assert made.categories is made.categories
    assert made.makers is made.makers
    assert made.source_worker is made.source_worker


def test_settings_are_those_of_the_file(made: Any) -> None:
    own = made.settings.data_dir / "config.toml"
    assert made.settings_file == own
    before = made.reloaded().settings.web.session_hours
    own.write_text("[web]\nsession_hours = 5\n")
    try:
        assert (made.reloaded().settings.web.session_hours, made.settings.web.session_hours) == (5, before)
        assert made.reloaded().settings.data_dir == made.settings.data_dir
    finally:
        own.unlink()
    other = WebServices(SimpleNamespace(file=Path("/x.toml"), settings=made.settings), made.store)  # type: ignore[arg-type]
    assert other.settings_file == Path("/x.toml")


def test_what_changes_is_read_again(made: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []

    def read(*given: Any) -> Any:
        reads.append(given)
        return len(reads)

    monkeypatch.setattr(filter_status, "filter_status", read)
    assert [made.status(), made.status()] == [1, 1]
    assert reads == [(made.settings, made.store, 17.0)]
    for now, count in ((104.9, 1), (105.0, 2), (109.0, 2), (110.0, 3)):
        clock.now = now
        assert made.status() == count
    reads.clear()
    monkeypatch.setattr(health_facts, "health_facts", read)
    clock.now = 200.0
    assert [made.health(), made.health()] == [1, 1]
    assert (reads[0][0], reads[0][1], reads[0][3]) == (made.settings, made.store, 17.0)
    made.checker.results = {"resolvers": (3, 4)}
    assert reads[0][2]() == (3, 4)
    assert made.checker.jobs == [("gatewayfilter.web.access.check_job:resolvers", (pickle.dumps(made.settings), 17.0), {})]
    for now, count in ((204.9, 1), (205.0, 2), (209.9, 2)):
        clock.now = now
        assert made.health() == count
    reads.clear()
    current = [True]

    class Names:
        def __init__(self, *given: Any) -> None:
            reads.append(given)

        @property
        def is_current(self) -> bool:
            return current[-1]

    monkeypatch.setattr(log_clients, "LogClients", Names)
    clock.now = 300.0
    first = made.clients()
    assert reads == [(made.store, made.settings)]
    current.append(False)
    clock.now = 301.9
    assert made.clients() is first
    clock.now = 302.0
    second = made.clients()
    assert second is not first
    current.append(True)
    clock.now = 304.0
    assert made.clients() is second
    current.append(False)
    clock.now = 305.0
    assert made.clients() is second


def test_services_and_authorities_are_read_as_their_files_change(
    made: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made.service_index
    assert (made.service_index is first, made.services is first.services) == (True, True)
    own = wiring.own_services(made.settings)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("")
    try:
        second = made.service_index
        assert second is not first
        assert made.service_index is second
    finally:
        own.unlink()
    assert made.service_index is not second
    made.child.results = {"authorities": "one"}
    ca = folder / "ca"
    ca.mkdir(exist_ok=True)
    (ca / "a.pem").write_text("a")
    assert [made.authorities(), made.authorities()] == ["one", "one"]
    assert made.child.jobs == [("gatewayfilter.use_cases.https:authorities", (made.settings,), {})]
    (ca / "a.pem").write_text("ab")
    made.child.results = {"authorities": "two"}
    assert [made.authorities(), made.authorities(), len(made.child.jobs)] == ["two", "two", 2]
    collectors: list[Any] = []
    monkeypatch.setattr(exposition, "StatusCollector", noting(collectors, "collector"))
    monkeypatch.setattr(exposition, "exposition", lambda one: f"of {one}".encode())
    assert [made.exposition(), made.exposition(), collectors] == [b"of collector", b"of collector", [folder / "run"]]
    assert made.waiting() == {"requests": 0, "review": 0}


def test_what_is_rarely_used_is_made_with_its_parts(made: Any, folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examinations, "ChildChecks", lambda *given: ("checks", given))
    monkeypatch.setattr(examinations, "Examinations", lambda checks, clock: (checks, clock()))
    (_, given), now = made.examinations
    assert (made.children[-1].given, given[0], given[1:], now) == (
        ((600.0,), {"idle_s": 60.0}), made.children[-1].run, (made.settings, None), 17.0,
    )  # fmt: skip
    assert made.sign_on is None
    oidc = {f"web__oidc__{name}": name for name in ("client_id", "client_secret")}
    signed: Any = WebServices(loaded_for(folder, web__oidc__issuer="https://id.example", **oidc), store)
    monkeypatch.setattr(single_sign_on, "SingleSignOn", lambda *given: given)
    settings, key, its_store, access, check, _ = signed.sign_on
    assert (settings, len(key) >= 16, its_store, access) == (signed.settings.web.oidc, True, store, signed.access)
    signed.verifying.results = {"checked_token": "good"}
    assert check("token", "keys", "expected") == "good"
    assert signed.verifying.jobs == [
        ("gatewayfilter.use_cases.sign_on.id_token:checked_token", ("token", "keys", "expected"), {})
    ]
    request = FilteredRequest(parse_url("http://a.example/"))
    made.checker.results = {"check": "found"}
    assert [str(checked(made, request, *more)) for more in (("tablet", 3.0), ())] == ["found", "found"]
    assert [values for _, values, _ in made.checker.jobs] == [
        (pickle.dumps(made.settings), request, "tablet", 17.0, 3.0),
        (pickle.dumps(made.settings), request, "", 17.0, None),
    ]


def test_changes_of_lists_are_taken_back_in_the_background(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = NotedWorker()
    made.__dict__["source_worker"] = worker
    undone: list[Any] = []

    class Undo:
        def __init__(self, settings: Any, work: Any) -> None:
            undone.append(settings)
            self.work = work

        def take_back(self, pairs: Any) -> Any:
            self.work(pairs)
            return {"kind": "back"}

    monkeypatch.setattr(source_undo, "SourceUndo", Undo)
    entry = made.access.trail.record(ADMIN.actor, "list.added", "x", undo={"kind": "sources", "items": [["a"]]})
    made.access.undo.undo(entry, ADMIN.actor, Role.ADMIN)
    assert (undone, worker.begun) == ([made.settings], [("put_back", "", ([["a"]],), {})])


def test_the_document_of_the_api_is_made_once(made: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = zlib.compress(b"{}")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    monkeypatch.setattr(NotedChild, "run", noting([], document))
    count = len(made.children)
    assert made.openapi_document() == document
    assert made.openapi_document() == document
    assert (len(made.children), made.children[-1].given) == (count + 1, ((60.0,), {}))
    assert (folder / "cache").stat().st_mode & 0o777 == 0o700
