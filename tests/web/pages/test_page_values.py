"""What handlers give to the templates: a dashboard that keeps what its pages have, and notes work in place of doing it."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.testclient import TestClient

from gatewayfilter import wiring
from gatewayfilter.model import AuditEntry
from gatewayfilter.web import app as web_app
from gatewayfilter.web.rendering.pages import pages_of_process
from gatewayfilter.web.services import WebServices
from gatewayfilter.web.source_worker import JobState
from tests.web.web_fakes import ADMIN, CSRF, Always, loaded_for

NOW = 1_800_000_000.0
HTMX = {"hx-request": "true"}


class KeptPages:
    """Pages that keep the template and the values of the last one; they render nothing."""

    def __init__(self) -> None:
        self.template = ""
        self.values: dict[str, Any] = {}

    def page(self, request: Request, template: str, /, status: int = 200, **context: Any) -> HTMLResponse:
        del request
        self.template, self.values = template, context
        return HTMLResponse("", status)

    def parts(self, request: Request, template: str, later: Callable[[], dict[str, Any]], /, **context: Any) -> Iterator[str]:
        del request
        self.template, self.values = template, {**context, **later()}
        yield ""

    def fragment(self, request: Request, template: str, /, **context: Any) -> str:
        del request
        self.template, self.values = template, context
        return ""

    def __getattr__(self, name: str) -> Any:
        return getattr(pages_of_process(), name)


class NotedChild:
    """A child process that notes its work and has its results ready, by the name of the function."""

    def __init__(self) -> None:
        self.running = True
        self.jobs: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.results: dict[str, Any] = {}

    def run(self, job: str, *values: Any, **named: Any) -> Any:
        self.jobs.append((job, values, named))
        result = self.results[job.rpartition(":")[2]]
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """There is nothing to end."""


class NotedWorker:
    """Work on lists that is noted."""

    def __init__(self) -> None:
        self.state = JobState()
        self.begun: list[tuple[Any, ...]] = []

    def start(self, kind: str, subject: str, *values: Any, **named: Any) -> JobState:
        self.begun.append((kind, subject, values, named))
        return JobState(7, kind, subject, 5.0)


@dataclass(slots=True)
class Kept:
    """A dashboard whose pages are kept.

    Attributes:
        client: a browser that changes pages by itself where no header asks for a part.
        services: with a clock that stands at `NOW`.
    """

    client: TestClient
    services: Any
    pages: KeptPages
    child: NotedChild
    worker: NotedWorker
    who: Always

    def get(self, path: str, **options: Any) -> dict[str, Any]:
        """Opens a page; returns its values."""
        answer = self.client.get(path, **options)
        assert answer.status_code == 200, answer.text
        return self.pages.values

    def post(self, path: str, status: Any = 303, location: Any = "", headers: Any = None, **data: Any) -> Any:
        """Sends a form; returns the answer."""
        answer = self.client.post(path, data=data, headers=headers)
        assert (answer.status_code, answer.headers.get("location", "")) == (status, location), self.pages.values
        return answer

    def led(self, path: str) -> str:
        """Opens a page that leads on; returns where to."""
        answer = self.client.get(path)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    @property
    def last_change(self) -> AuditEntry:
        """What was recorded last."""
        entry: AuditEntry = self.services.store.audit.page(limit=1)[0]
        return entry

    @property
    def changes(self) -> int:
        """How many changes were recorded."""
        return len(self.services.store.audit.page(limit=1_000))

    def told(self) -> tuple[str, str, str]:
        """Returns what was recorded last: action, subject, detail."""
        entry = self.last_change
        return entry.action, entry.subject, entry.detail


@contextmanager
def kept(folder: Path, **options: object) -> Iterator[Kept]:
    """Opens a dashboard over a state folder, without sockets."""
    loaded = loaded_for(folder, **options)
    pages, child, worker, who = KeptPages(), NotedChild(), NotedWorker(), Always(ADMIN)
    with closing(wiring.open_store(loaded.settings)) as store, pytest.MonkeyPatch.context() as patched:
        services: Any = WebServices(loaded, store, lambda: NOW)
        services.child = services.checker = services.fetching = services.editing = child
        services.source_worker = worker
        patched.setattr(web_app, "pages_of_process", lambda: pages)
        app = web_app.create_app(services, who)
        with TestClient(app, base_url="http://127.0.0.1:8081", follow_redirects=False) as client:
            client.headers["x-csrf-token"] = CSRF
            yield Kept(client, services, pages, child, worker, who)


def test_what_is_kept_is_what_the_page_has(tmp_path: Path) -> None:
    with kept(tmp_path) as web:
        assert web.get("/rules")["total"] == 0
        assert web.pages.template == "lists/rules.html"
        assert web.client.get("/rules/9").status_code == 404
        assert (web.pages.template, web.pages.values) == ("system/error.html", {"detail": "there is no rule 9"})
