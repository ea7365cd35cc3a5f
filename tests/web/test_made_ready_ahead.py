"""What is made ready ahead of a person, and the parts of which the server is made."""

import pickle
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request

from gatewayfilter import wiring
from gatewayfilter.errors import ClassifyError
from gatewayfilter.web import child_warmer, page_warmer, server
from gatewayfilter.web import services as module
from gatewayfilter.web.child_warmer import ChildWarmer, WakingAuthenticator
from gatewayfilter.web.services import WebServices
from tests.web.pages.test_page_values import NotedChild
from tests.web.web_fakes import ADMIN, Always, loaded_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("services") / "state"


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Any]:
    with closing(wiring.open_store(loaded_for(folder).settings)) as store:
        yield store


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


class Threads:
    """Threads and timers that are noted in place of being started."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, Any, tuple[Any, ...]]] = []
        self.timers: list[Any] = []

    def Thread(self, target: Any, args: tuple[Any, ...], name: str, daemon: bool) -> Any:  # noqa: FBT001, N802  as in `threading`
        assert daemon
        return SimpleNamespace(
            start=lambda: self.begun.append((name, target, args)), join=lambda: self.begun.append(("joined", None, ()))
        )

    def Timer(self, seconds: float, run: Any) -> Any:  # noqa: N802  as in `threading`
        timer = SimpleNamespace(seconds=seconds, run=run, daemon=False, alive=False)
        timer.is_alive = lambda: timer.alive
        timer.start = lambda: setattr(timer, "alive", timer.daemon)
        self.timers.append(timer)
        return timer


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    noted = Threads()
    monkeypatch.setattr(
        child_warmer, "threading", SimpleNamespace(Lock=threading.Lock, Thread=noted.Thread, Timer=noted.Timer)
    )  # fmt: skip
    return noted


def test_what_is_made_ready_ahead(made: Any, threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(child_warmer, "time", SimpleNamespace(monotonic=lambda: now[-1]))
    warmer = ChildWarmer(made, after_s=3.0)
    warmer.greet("en")
    assert threads.begun == []  # there is no application yet
    app: Any = "application"
    warmer.begin(app)
    prepare = (made.checker, "gatewayfilter.web.access.check_job:prepare", pickle.dumps(made.settings))
    assert [(name, args) for name, _, args in threads.begun] == [("child-warmer", prepare), ("page-warmer", (app, "en"))]
    threads.begun.clear()
    warmer.greet("en")
    assert [(name, args) for name, _, args in threads.begun] == [("child-warmer", (made,))]
    threads.begun.clear()
    for at, language, count in (
        (64.9, "en", 0),
        (65.0, "en", 1),
        (65.0, "zh", 1),
        (65.0, "zh", 0),
        (124.9, "en", 0),
        (125.0, "en", 1),
    ):
        now.append(at)
        warmer.greet(language)
        assert [args for _, _, args in threads.begun] == [(app, language)] * count
        threads.begun.clear()
    made.checker.running = made.child.running = made.editing.running = True
    warmer.wake()
    assert threads.timers == []
    for name in ("checker", "child", "editing"):
        getattr(made, name).running = False
        warmer.wake()
        assert [(timer.seconds, timer.daemon) for timer in threads.timers] == [(3.0, True)]
        warmer.wake()
        assert len(threads.timers) == 1
        threads.timers.clear()
        getattr(made, name).running = True
        warmer._timer.alive = False  # type: ignore[union-attr]
    made.checker.running = False
    warmer.wake()
    documents: list[int] = []
    made.openapi_document = lambda: documents.append(1)
    threads.timers[-1].run()
    jobs = [args for name, _, args in threads.begun if name == "child-warmer"]
    assert [(child, job.rpartition(":")[2], value) for child, job, value in jobs] == [
        (made.checker, "prepare", pickle.dumps(made.settings)),
        (made.child, "categories", made.settings),
        (made.editing, "list_rules", made.settings),
    ]
    assert ([name for name, _, _ in threads.begun].count("joined"), documents) == (3, [1])
    begin = threads.begun[0][1]
    made.checker.results = {"prepare": None}
    begin(*prepare)
    made.checker.running = True
    begin(*prepare)
    assert made.checker.jobs == [("gatewayfilter.web.access.check_job:prepare", (prepare[2],), {})]
    made.checker.running = False
    made.checker.results = {"prepare": ClassifyError("away")}
    begin(*prepare)
    made.openapi_document = lambda: (_ for _ in ()).throw(ClassifyError("away"))
    threads.timers[-1].run()


def test_the_server_is_made_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    pages = SimpleNamespace(keep_small=lambda path: done.append(("small", path)))

    def app(services: Any, authenticator: Any, *, tls: bool) -> str:
        done.append(("app", type(services).__name__, type(authenticator).__name__, tls))
        return "app"

    class Server:
        def __init__(self, config: Any) -> None:
            self.config = SimpleNamespace(load=lambda: done.append("loaded"), ssl=None)
            done.append(config)

    def run(made: Any, listener: Any, status: Any, store: Any, *, tls: bool) -> str:
        done.append(("run", made.config.ssl, listener.getsockname()[0], tls))
        assert (type(status).__name__, store) == ("StatusFile", stores[-1])
        return "running"

    stores: list[Any] = []
    real = wiring.open_store

    def opened(settings: Any) -> Any:
        stores.append(real(settings))
        monkeypatch.setattr(stores[-1], "limit_memory", lambda size: done.append(("bytes", size)), raising=False)
        return stores[-1]

    monkeypatch.setattr(wiring, "open_store", opened)
    monkeypatch.setattr(server, "limit_heaps", lambda: done.append("limited"))
    monkeypatch.setattr(server, "pages_of_process", lambda: pages)
    monkeypatch.setattr(server, "keep_imported", lambda: done.append("kept"))
    monkeypatch.setattr(server, "create_app", app)
    monkeypatch.setattr(server, "bounded_config", lambda one, **options: (one, options))
    monkeypatch.setattr(server, "_Server", Server)
    monkeypatch.setattr(server, "_run", run)
    monkeypatch.setattr(ChildWarmer, "begin", lambda _, one: done.append(("begun", one)))
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(run=done.append))
    folder = tmp_path / "state"
    server.serve(loaded_for(folder, web__listen="127.0.0.1:0"))
    assert done == [
        "limited",
        ("bytes", 3_000_000),
        ("app", "WebServices", "WakingAuthenticator", False),
        ("small", folder / "cache" / "templates"),
        ("app", {"head_bytes": 32_768, "connections": 256, "drain_s": 2}),
        "loaded",
        "kept",
        ("begun", "app"),
        ("run", None, "127.0.0.1", False),
        "running",
    ]
    assert (folder / "cache").stat().st_mode & 0o777 == 0o700


def test_templates_are_compiled_into_their_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[Any] = []
    pages = SimpleNamespace(keep_small=done.append, compile_all=lambda: done.append("compiled"))
    monkeypatch.setattr(page_warmer, "pages_of_process", lambda: pages)
    assert page_warmer.compile_templates(tmp_path) == []
    assert done == [tmp_path, "compiled"]


def test_words_and_templates_are_made_ready_once(made: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in (folder / "cache").glob("answer-*.json"):
        kept.unlink()
    compiling: list[Any] = []

    class Compiler(NotedChild):
        def __init__(self, seconds: float) -> None:
            super().__init__()
            self.results = {"compile_templates": ClassifyError("away") if not compiling else []}
            compiling.append((seconds, self))

        def close(self) -> None:
            compiling.append("closed")

    monkeypatch.setattr(child_warmer, "ChildProcess", Compiler)
    made.child.results = {"categories": ClassifyError("away")}
    monkeypatch.setattr(threading, "Thread", lambda target, args, **_: SimpleNamespace(start=lambda: target(*args)))
    monkeypatch.setattr(child_warmer, "warm_pages", lambda *_: None)
    made.checker.running = True
    for _ in range(3):
        warmer = ChildWarmer(made)
        warmer.begin("application")  # type: ignore[arg-type]
        warmer.greet("en")
        made.child.results = {"categories": []}
    assert [job.rpartition(":")[2] for job, _, _ in made.child.jobs] == ["categories", "categories"]
    children = [one for one in compiling if one != "closed"]
    assert ([seconds for seconds, _ in children], compiling.count("closed")) == ([60.0] * 3, 3)
    assert [[values for _, values, _ in child.jobs] for _, child in children] == [[(folder / "cache" / "templates",)]] * 2 + [[]]


@pytest.mark.parametrize(
    ("method", "path", "known", "greeted"),
    [("GET", "/login", False, 1), ("POST", "/login", False, 0), ("GET", "/login", True, 0), ("GET", "/rules", False, 0)],
)
def test_who_opens_the_page_to_log_in_is_greeted(made: Any, method: str, path: str, greeted: int, *, known: bool) -> None:
    heard: list[str] = []
    warmer: Any = SimpleNamespace(greet=heard.append, wake=lambda: heard.append("woken"))
    scope = {"type": "http", "method": method, "path": path, "headers": [(b"accept-language", b"zh")], "query_string": b""}
    identity = ADMIN if known else None
    assert WakingAuthenticator(Always(identity), warmer).identify(Request(scope)) is identity
    assert heard == ["zh"] * greeted
    assert made.children
