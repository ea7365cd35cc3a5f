"""The pages of words and of reviews: what they show, and what their buttons begin."""

from collections.abc import Iterator

import pytest

from gatewayfilter.errors import ClassifyError
from gatewayfilter.model import ReviewState
from gatewayfilter.use_cases.learning.word_work import KINDS
from gatewayfilter.web.pages.learning.review import Queue
from gatewayfilter.web.pages.learning.words import View as WordView
from tests.web.learning_fakes import add_task, ask
from tests.web.pages.test_page_values import HTMX, Kept, kept
from tests.web.web_fakes import ADMIN, VIEWER

JOBS = "gatewayfilter.use_cases.learning."


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("learning")) as web:
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    opened.child.jobs.clear()
    opened.child.results.clear()
    opened.who.identity = ADMIN
    opened.services.store.frontier.clear()
    opened.services.store.frontier.resume()


WORDS = {"total": 201, "rows": [{"phrase": "x"}], "limit": 20.0, "own": 3, "category": "gambling"}


def test_words_are_shown_in_pages(web: Kept) -> None:
    web.child.results = {"find_words": WORDS}
    shown = web.get("/words/gambling?q=a&kind=word&language=zh&own=true&after=100")
    job, values, query = web.child.jobs[-1]
    assert (job, values[1:]) == (f"{JOBS}word_jobs:find_words", ("gambling",))
    assert query == {"text": "a", "kind": "word", "language": "zh", "own": True, "after": 100, "limit": 100}
    rest = "q=a&kind=word&language=zh&own=1"
    assert (shown["older"], shown["newer"]) == (f"/words/gambling?{rest}&after=200", f"/words/gambling?{rest}")
    assert (shown["first"], shown["last"], shown["total"], shown["kinds"]) == (101, 200, 201, KINDS)
    assert (shown["active"], shown["category_code"], shown["problem"], shown["imported"], shown["written"]) == (
        "words", "gambling", "", None, "",
    )  # fmt: skip
    last = web.get("/words/gambling?after=150")
    assert (last["older"], last["newer"], last["last"]) == ("", "/words/gambling?after=50", 201)
    web.child.results = {"find_words": WORDS | {"total": 100}}
    first = web.get("/words/gambling")
    assert (first["older"], first["newer"], first["first"], first["last"]) == ("", "", 1, 100)
    assert web.get("/words/unknown")["total"] == 100
    assert WordView(after=50).url("a", after=0) == "/words/a"
    web.child.results = {"categories": [{"category": "a"}]}
    assert web.get("/words") == {"categories": [{"category": "a"}], "active": "words"}


def test_words_are_added_removed_and_imported(web: Kept) -> None:
    web.child.results = {"find_words": WORDS, "add": 2, "remove": {"removed": 1, "missing": []}}
    web.post("/words/gambling/add", 303, "/words/gambling?own=1", phrases=" a \n\nb", weight="7", kind="context")
    assert web.child.jobs[-1][2] == {
        "category": "gambling",
        "phrases": ("a", "b"),
        "weight": 7.0,
        "context": True,
        "exception": False,
    }
    assert web.told() == ("words.added", "gambling", "a, b")
    web.post("/words/gambling/add", 303, "/words/gambling?own=1", phrases="x" * 200, kind="exception")
    assert web.child.jobs[-1][2] | {"phrases": ()} == {
        "category": "gambling", "phrases": (), "weight": 5.0, "context": False, "exception": True,
    }  # fmt: skip
    for phrases in (" \n", "x" * 201):
        web.post("/words/gambling/add", 422, phrases=phrases)
        values = web.pages.values
        assert (values["problem"], values["written"], values["view"]) == (
            "write a phrase a line, of at most 200 characters", phrases, WordView(),
        )  # fmt: skip
    web.post("/words/gambling/remove", 303, "/words/gambling", phrase="a")
    assert (web.child.jobs[-1][1][1:], web.told()) == (("gambling", ["a"]), ("words.removed", "gambling", "a"))
    web.post("/words/gambling/remove", 200, headers=HTMX, phrase="a")
    assert (web.pages.template, web.pages.values) == ("learning/_word_removed.html", {"phrase": "a"})
    web.child.results |= {"import_file": {"changed": 1, "read": 2}}
    name = f"{'x' * 210}.toml"
    answer = web.client.post("/words/gambling/import", files={"file": (name, b"a\nb")})
    assert (answer.status_code, web.pages.values["imported"], web.pages.values["view"]) == (
        200,
        {"changed": 1, "read": 2},
        WordView(own=True),
    )
    given = next(values for job, values, _ in web.child.jobs if job.endswith("import_file"))
    assert given[1:] == (b"a\nb", name[-200:], "gambling", 5.0)
    web.child.results["import_file"] = ClassifyError("bad")
    answer = web.client.post("/words/gambling/import", files={"file": ("a", b"a")})
    assert (answer.status_code, web.pages.values["problem"], web.pages.values["view"]) == (422, "bad", WordView())


def test_a_page_is_judged_as_text_or_html(web: Kept) -> None:
    shown = web.get("/words/test")
    assert (shown["judged"], shown["problem"], shown["active"], shown["form"].html) == (None, "", "words", "auto")
    web.child.results = {"judge": {"score": 1}}
    web.post("/words/test", 200, content=" \n")
    assert (web.pages.values["judged"], web.child.jobs) == (None, [])
    for content, html, is_html in (
        (" <p>a", "auto", True), ("a<p>", "auto", False), ("<p>", "text", False), ("a", "html", True),
    ):  # fmt: skip
        web.post("/words/test", 200, content=content, html=html, url="http://a/")
        assert web.child.jobs[-1][2] == {"html": is_html, "url": "http://a/"}
        assert (web.pages.values["judged"], web.pages.values["form"].content) == ({"score": 1}, content)
    web.child.results = {"judge": ClassifyError("slow")}
    web.post("/words/test", 422, content="a")
    assert (web.pages.values["problem"], web.pages.values["judged"]) == ("slow", None)


def test_reviews_are_shown_and_decided(web: Kept) -> None:
    store = web.services.store
    assert web.get("/review")["task"] is None
    first = add_task(store)
    similar = add_task(store, "http://s.example/", group_id=first, text="another page", title="B")
    other = add_task(store, "http://o.example/", text="a third page", title="C")
    asked = ask(store, "http://o.example/", category="gambling")
    shown = web.get("/review")
    assert (shown["task"].task_id, shown["alone"], shown["refused"], shown["active"]) == (first, False, "", "review")
    assert [[task.task_id for task in group] for group in shown["groups"]] == [[first, similar], [other]]
    assert (shown["asked"], shown["waiting"], shown["doubtful"], shown["older"]) == ({first: 0, similar: 0, other: 1}, 3, 0, "")
    assert shown["categories"] == [entry.category_id for entry in web.services.categories]
    assert (shown["decided"], shown["undo_url"], shown["queue"]) == ([], "", Queue())
    one = web.get(f"/review/{other}?category=gambling")
    assert (one["task"].task_id, one["alone"], [request.request_id for request in one["facts"].requests]) == (
        other,
        True,
        [asked],
    )
    assert (one["level"], [task.task_id for task in one["also"].alike], one["terms"][0].hit.word) == (
        web.get(f"/review/{other}")["level"], [], "casino bonus",
    )  # fmt: skip
    assert one["host_facts"] is not None
    assert "".join(piece.text for piece in one["pieces"]) == "a third page"
    assert (one["host"].devices, web.pages.template) == (0, "learning/review.html")
    answer = web.client.post(f"/review/{similar}/decide?category=gambling", data={"move": "reject", "note": "n"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/review/{other}?category=gambling&decided={similar}")
    assert (web.told()[0], store.reviews.get(similar).state) == ("review.rejected", ReviewState.REJECTED)
    assert store.reviews.steps(similar)[0].detail["note"] == "n"
    answer = web.client.post(f"/review/{similar}/decide", data={"move": "undo"})
    assert answer.headers["location"] == f"/review/{similar}"
    answer = web.client.post(f"/review/{other}/decide", data={"move": "approve"})
    assert answer.headers["location"] == f"/review/{first}?decided={other}"
    shown = web.get(f"/review?decided={other},x,{10**16},99")
    assert ([task.task_id for task in shown["decided"]], shown["undo_url"]) == ([other], f"/review/undo?tasks={other}")
    answer = web.client.post(f"/review/{other}/decide", data={"move": "redo"})
    assert (answer.status_code, web.pages.values["alone"], web.pages.values["task"].task_id) == (409, True, other)
    assert web.pages.values["refused"]
    answer = web.client.post(f"/review/undo?tasks={other},{first}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/review/{other}")
    assert store.reviews.get(other).state is ReviewState.OPEN
    refused = web.client.post(f"/review/undo?tasks={first}")
    assert (refused.status_code, "detail" in web.pages.values) == (422, True)
    web.client.post(f"/review/{other}/decide", data={"move": "approve"})
    part = web.client.post(f"/review/undo?tasks={other}&which=asked", headers=HTMX)
    assert (part.status_code, part.headers["hx-redirect"]) == (204, f"/review/{other}?which=asked")
    answer = web.client.post(f"/review/{first}/decide", data={"move": "reject", "alike": "true"})
    assert answer.headers["location"] == f"/review/{other}?decided={first}%2C{similar}"
    answer = web.client.post(f"/review/{other}/decide", data={"move": "change", "category": "games"})
    assert answer.headers["location"] == f"/review?decided={other}"
    assert store.reviews.get(other).category == "games"
    web.who.identity = VIEWER
    assert web.client.post(f"/review/{other}/decide", data={"move": "undo"}).status_code == 403


def test_the_queue_of_reviews_is_in_its_address(web: Kept) -> None:
    store = web.services.store
    numbers = [add_task(store, f"http://q{n}.example/", text=f"page {n}", title=f"T{n}") for n in range(41)]
    shown = web.get("/review")
    assert sum(map(len, shown["groups"])) == 40
    assert shown["older"] == f"/review?after={numbers[-2]}"
    last = web.get(shown["older"])
    assert ([[task.task_id for task in group] for group in last["groups"]], last["older"]) == ([[numbers[-1]]], "")
    queue = Queue(state="all", category="c", which="doubtful", group=3, after="5d", decided="1")
    assert queue.url() == "/review?state=all&category=c&which=doubtful&group=3&after=5d"
    assert (queue.url("/x", after="", state="open"), Queue().url()) == ("/x?category=c&which=doubtful&group=3", "/review")
    found = queue.query()
    assert (found.state, found.category, found.group_of, found.asked, found.doubtful) == (None, "c", 3, False, True)
    found = Queue(which="blocked").query()
    assert (found.state, found.asked, found.doubtful) == (ReviewState.OPEN, False, False)
    found = Queue(which="asked", state="approved").query()
    assert (found.state, found.asked, found.doubtful) == (ReviewState.APPROVED, True, None)
    done = web.client.post("/api/v1/reviews/decide", json={"tasks": [*numbers, 0, 2**53 + 1], "move": "reject"}).json()
    assert ([task["id"] for task in done["tasks"]], done["refused"]) == (numbers, [])
