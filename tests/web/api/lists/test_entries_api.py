"""The search of lists over the API: which child process does it, and which texts are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.web_fakes import Dashboard, dashboard

NOTHING: dict[str, list[Any]] = {"own": [], "learned": [], "lists": [], "unreadable": []}


class Child:
    """Stands in for a child process: notes what is asked, and returns the same always."""

    def __init__(self, answer: dict[str, list[Any]] | None) -> None:
        self.answer = answer
        self.jobs: list[str] = []

    def run(self, job: str, *_: object, **named: object) -> dict[str, list[Any]] | None:
        self.jobs.append(job.partition(":")[2] + (" partial" if named.get("partial") else ""))
        return self.answer


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("entries") / "state"
    with dashboard(folder) as opened:
        yield opened


@pytest.mark.parametrize(
    ("known", "asked", "of_checker", "of_fetching"),
    [
        (NOTHING, {}, ["search_entries"], []),
        (None, {}, ["search_entries"], ["search_files"]),
        (None, {"partial": "true"}, [], ["search_files partial"]),
    ],
)
def test_large_lists_are_not_read_by_the_child_that_checks_urls(
    known: dict[str, list[Any]] | None,
    asked: dict[str, str],
    of_checker: list[str],
    of_fetching: list[str],
    web: Dashboard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checker, fetching = Child(known), Child(NOTHING)
    monkeypatch.setattr(web.services, "checker", checker)
    monkeypatch.setattr(web.services, "fetching", fetching)
    answer = web.client.get("/api/v1/entries/search", params={"text": "a.test", **asked})
    assert (answer.status_code, answer.json()) == (200, NOTHING)
    assert (checker.jobs, fetching.jobs) == (of_checker, of_fetching)


def test_a_text_with_nul_is_refused(web: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(NOTHING)
    monkeypatch.setattr(web.services, "checker", child)
    monkeypatch.setattr(web.services, "fetching", child)
    for text, status in (("a\0b", 422), ("a\nb\0", 422), ("a\nb", 200), ("\u00e9", 200)):
        assert web.client.get("/api/v1/entries/search", params={"text": text}).status_code == status, text
