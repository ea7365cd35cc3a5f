"""Visit, judge, review, reject, allowed again, not blocked a second time: with the processes that users run."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trustme

from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint, LearnedEntry, ListAction
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from tests.e2e.conftest import CASINO
from tests.e2e.e2e_gateway import Answer, GatewayProcess, Origin, until

pytestmark = pytest.mark.slow

HTML = "text/html; charset=utf-8"
MORE_HOSTS = 6


@pytest.fixture(params=["http", "https"])
def site(request: pytest.FixtureRequest, authority: trustme.CA) -> Iterator[tuple[dict[str, tuple[str, bytes]], Origin]]:
    """A site of the test's own, whose pages it may change, and the server."""
    own = CASINO.replace("Golden", f"Golden {request.node.name}")  # what a person says of content is true in other tests too
    pages = {f"/casino/{number}": (HTML, own.encode()) for number in range(3)}
    origin = Origin(pages, authority if request.param == "https" else None)
    yield pages, origin
    origin.close()


def blocked(gateway: GatewayProcess, url: str) -> Answer:
    """Visits until the filter answers itself."""

    def visit() -> Answer | None:
        answer = gateway.get(url)
        return answer if answer.reason else None

    return until("block page", visit, 5.0)


def task_of(gateway: GatewayProcess, wanted: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    """Waits for a task, of which there is one: the learner opens it after the page was put on the list."""
    tasks = until("task", lambda: [task for task in gateway.json("review", "list") if wanted(task)])
    assert len(tasks) == 1
    found: dict[str, object] = gateway.json("review", "show", str(tasks[0]["task"]))
    return found


def decide(gateway: GatewayProcess, step: str, task: dict[str, object], *options: str) -> None:
    done = gateway.cli("review", step, str(task["task"]), *options)
    assert done.returncode == 0, done.stderr


def test_a_person_has_the_last_word(gateway: GatewayProcess, site: tuple[dict[str, tuple[str, bytes]], Origin]) -> None:
    pages, origin = site
    url = f"{origin.base}/casino/0"
    assert gateway.get(url).status == 200
    assert blocked(gateway, url).reason == "learned"

    task = task_of(gateway, lambda task: task["url"] == url)
    assert (task["state"], task["blocked"], task["category"]) == ("open", True, "gambling")
    assert "golden test" in str(task["text"])
    number = str(task["task"])
    until("archived page", lambda: gateway.json("review", "show", number)["archived"], 5.0)
    decide(gateway, "reject", task, "--note", "a museum")
    until("page again", lambda: gateway.get(url).status == 200, 1.0)
    assert gateway.json("check", url)["verdict"]["reason"] == "manual-allow"

    # The same content under another address is fetched, known, and not blocked; so is the same text in other markup.
    pages["/casino/2"] = (
        HTML,
        pages["/casino/0"][1].replace(b"<h1>", b"<div class=hero><h1 id=top>").replace(b"</h1>", b"</h1></div>"),
    )
    for again in (f"{origin.base}/casino/1", f"{origin.base}/casino/2"):
        assert gateway.get(again).status == 200
        until("verdict", lambda again=again: gateway.json("check", again)["verdict"]["reason"] == "whitelist")  # type: ignore[misc]
        assert gateway.get(again).status == 200
    assert [item["url"] for item in gateway.json("review", "list") if str(item["url"]).startswith(origin.base)] == []

    decide(gateway, "undo", task)
    assert blocked(gateway, url).reason == "learned"
    decide(gateway, "redo", task)
    until("page again", lambda: gateway.get(url).status == 200, 1.0)


@pytest.mark.slow
def test_it_stands_after_a_restart_and_when_the_page_has_changed(
    state: Path, trusting: dict[str, str], site: tuple[dict[str, tuple[str, bytes]], Origin]
) -> None:
    pages, origin = site
    url = f"{origin.base}/casino/0"
    with GatewayProcess(state, **trusting) as gateway:
        gateway.get(url)
        blocked(gateway, url)
        decide(gateway, "reject", task_of(gateway, lambda task: task["url"] == url))
        assert gateway.stop() == 0
        body = pages["/casino/0"][1]
        pages["/casino/0"] = HTML, body.replace(b"<body>", b"<body><nav>Home</nav>")
        pages["/casino/1"] = HTML, body.replace(b"<p>", b"<p class=wide>")
        gateway.start()
        assert gateway.get(url).status == 200
        assert gateway.json("crawl", url) is not None  # judged by hand, in other words: a person's rule stands before it
        assert gateway.get(url).status == 200
        assert gateway.json("check", url)["verdict"]["reason"] == "manual-allow"
        mirror = f"{origin.base}/casino/1"
        assert gateway.get(mirror).status == 200
        until("verdict", lambda: gateway.json("check", mirror)["verdict"]["reason"] == "whitelist")
        assert gateway.get(mirror).status == 200


@pytest.mark.slow
def test_a_redirect_to_a_rejected_page_is_open_at_both_ends(gateway: GatewayProcess) -> None:
    origin = Origin({"/landing": (HTML, CASINO.replace("Golden", "Silver").encode())}, redirects={"/go": "/landing"})
    try:
        asked, landing = f"{origin.base}/go", f"{origin.base}/landing"
        done = gateway.cli("crawl", asked)
        assert done.returncode == 1, done.stderr
        assert blocked(gateway, asked).reason == "learned"
        assert blocked(gateway, landing).reason == "learned"
        task = task_of(gateway, lambda task: task["url"] == asked)
        assert task["final_url"] == landing
        assert f"leads to {landing}" in gateway.cli("review", "show", str(task["task"])).stdout
        decide(gateway, "reject", task)
        until("pages again", lambda: [gateway.get(url).status for url in (asked, landing)] == [200, 200], 1.0)
    finally:
        origin.close()


@pytest.mark.slow
def test_a_host_that_a_person_cleared_is_not_listed_again(state: Path) -> None:
    pages = {f"/{number}": (HTML, CASINO.replace("300%", f"{number}00%").encode()) for number in range(MORE_HOSTS + 1)}
    origin = Origin(pages)
    base = origin.base.replace("127.0.0.1", "localhost")
    try:
        settings = {"crawl__allow_networks": "127.0.0.0/8,::1/128", "learn__domain_pages": "3", "learn__domains": "block"}
        with GatewayProcess(state, **settings) as gateway:
            done = gateway.cli("crawl", *(f"{base}/{number}" for number in range(MORE_HOSTS)))
            assert done.returncode == 1, done.stderr
            other = f"{base}/never-seen"
            assert blocked(gateway, other).reason == "learned"
            host = task_of(gateway, lambda task: task["kind"] == "domain")
            decide(gateway, "reject", host)
            until("host again", lambda: gateway.get(other).reason == "", 2.0)
            assert gateway.cli("crawl", f"{base}/{MORE_HOSTS}").returncode == 1
            assert blocked(gateway, f"{base}/{MORE_HOSTS}").reason == "learned", "its pages are judged one by one"
            assert gateway.get(other).reason == ""
            assert gateway.stop() == 0
            gateway.start()
            assert gateway.get(other).reason == ""
    finally:
        origin.close()


@pytest.mark.slow
def test_what_has_expired_leaves_by_itself_and_is_judged_anew(state: Path, http_site: Origin) -> None:
    """A garden that was a casino a month ago: entry and fingerprint run out while nobody looks."""
    url = f"{http_site.base}/garden/3"
    gateway = GatewayProcess(state)
    assert gateway.cli("db", "upgrade").returncode == 0
    said = Classification("gambling", 42.0, 20.0)
    entry = LearnedEntry(parse_url(url).key, ListAction.BLOCK, "gambling", url, "score 42", 1.0, 2.0)
    old = Fingerprint(ContentId(ContentKind.PAGE, b"d" * 16, b"p" * 16), said, "", "words", url, 1.0, 2.0)
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        store.lists.put_learned([entry])
        store.fingerprints.put(old)
        store.verdicts.record(url, said, time.time() - 86_400.0)
    with gateway:
        until("new verdict", lambda: gateway.json("check", url)["verdict"]["reason"] == "whitelist", 20.0)
        until("empty shelf", lambda: gateway.json("fingerprints", "stats")["harmful"] == 0)
        assert gateway.get(url).status == 200
