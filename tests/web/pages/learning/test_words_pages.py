"""The pages of words: lists, search, own words, import and export, the sandbox, roles, hostile texts."""

from collections.abc import Iterator

import pytest

from tests.web.learning_fakes import HOSTILE
from tests.web.web_fakes import ADMIN, APPROVER, VIEWER, Dashboard, dashboard

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(tmp_path_factory.mktemp("words")) as board:
        yield board
        board.services.child.close()


@pytest.fixture
def board(shared: Dashboard) -> Dashboard:
    shared.who.identity = ADMIN
    return shared


def test_categories_and_their_words(board: Dashboard) -> None:
    assert 'href="/words/gambling"' in board.client.get("/words").text
    page = board.client.get("/words/gambling").text
    assert "1 to 100 of" in page
    assert "casino" in board.client.get("/words/gambling?q=casino").text
    assert "No such words" in board.client.get("/words/gambling?q=zzzzzz").text
    assert "网上赌场" in board.client.get("/words/gambling?language=zh&q=赌场").text
    assert "词语\uff1a赌博" in board.client.get("/words/gambling", headers={"accept-language": "zh"}).text
    assert board.client.get("/words/gambling?after=100").status_code == 200
    assert board.client.get("/words/none-such").status_code == 422
    assert board.client.get("/words/..%2fetc").status_code in {404, 422}


def test_own_words_are_added_and_removed(board: Dashboard) -> None:
    added = board.client.post("/words/gambling/add", data={"phrases": "lucky barrel\nlucky + barrel", "weight": "7"})
    assert (added.status_code, added.headers["location"]) == (303, "/words/gambling?own=1")
    page = board.client.get("/words/gambling?own=1").text
    assert "lucky barrel" in page
    assert "lucky + barrel" in page
    exported = board.client.get("/api/v1/words/gambling/export?own=1")
    assert "lucky barrel" in exported.text
    file = {"file": ("own.toml", exported.content)}
    assert "phrases were read" in board.client.post("/words/gambling/import", files=file).text
    removed = board.client.post("/words/gambling/remove", data={"phrase": "lucky barrel"}, headers={"hx-request": "true"})
    assert "Removed: lucky barrel" in removed.text
    bad = board.client.post("/words/gambling/add", data={"phrases": "x" * 300})
    assert bad.status_code == 422
    assert "at most 200 characters" in bad.text
    for content in (b"", b"\x00\xff" * 100, b"words = [", b"# nothing"):
        assert board.client.post("/words/gambling/import", files={"file": ("a.toml", content)}).status_code == 422


def test_a_page_is_judged_with_its_hits_marked(board: Dashboard) -> None:
    text = "online casino with free spins and a casino bonus. play slots and poker for real money, bet now. " * 4
    page = board.client.post("/words/test", data={"content": text}).text
    assert "Harmful: Gambling" in page
    assert "<mark" in page
    html = f"<html><head><title>Online casino bonus</title></head><body><p>{text}</p><script>alert(1)</script></body></html>"
    page = board.client.post("/words/test", data={"content": html}).text
    assert '<h3 id="zone-1">title</h3>' in page
    assert "<script>alert(1)" not in page
    assert "Harmless" in board.client.post("/words/test", data={"content": "a garden"}).text
    assert board.client.post("/words/test", data={"content": "x" * 400_001}).status_code == 422


@pytest.mark.parametrize(
    "content", [HOSTILE, "<" * 50_000, "\ud800".encode("utf-8", "replace").decode() + "\x00", "casino " * 40_000]
)
def test_hostile_pages(board: Dashboard, content: str) -> None:
    answer = board.client.post("/words/test", data={"content": content, "url": HOSTILE})
    assert answer.status_code in {200, 422}
    assert "<img src=x" not in answer.text
    assert "<script>alert" not in answer.text


def test_hostile_words_stay_words(board: Dashboard) -> None:
    board.client.post("/words/gambling/add", data={"phrases": HOSTILE})
    page = board.client.get("/words/gambling", params={"own": 1, "q": "<img"}).text
    assert "<img src=x" not in page
    assert "<script>alert" not in page


def test_roles(board: Dashboard) -> None:
    for who in (VIEWER, APPROVER):
        board.who.identity = who
        page = board.client.get("/words/gambling").text
        assert "/words/gambling/add" not in page
        assert "/words/gambling/remove" not in page
        for path, form in (("add", {"phrases": "a"}), ("remove", {"phrase": "casino"})):
            assert board.client.post(f"/words/gambling/{path}", data=form).status_code == 403
            assert board.client.post(f"/api/v1/words/gambling/{path}", json={"phrases": ["a"]}).status_code == 403
        assert board.client.post("/words/gambling/import", files={"file": ("a", b"b")}).status_code == 403


def test_the_api(board: Dashboard) -> None:
    root = "/api/v1/words"
    assert "gambling" in [item["category"] for item in board.client.get(root).json()]
    found = board.client.get(f"{root}/gambling", params={"limit": 2}).json()
    assert (len(found["items"]), found["next"]) == (2, 2)
    added = board.client.post(f"{root}/gambling/add", json={"phrases": ["barrel of luck"], "context": True})
    assert added.json() == {"changed": 1}
    assert board.client.get(f"{root}/gambling", params={"own": 1, "q": "barrel of"}).json()["items"][0]["kind"] == "context"
    removed = board.client.post(f"{root}/gambling/remove", json={"phrases": ["barrel of luck", "no such"]}).json()
    assert removed == {"removed": 1, "missing": ["no such"]}
    imported = board.client.post(f"{root}/gambling/import", json={"text": "one phrase\nanother phrase\n"}).json()
    assert (imported["read"], imported["rejected"]) == (2, 0)
    judged = board.client.post(f"{root}/test", json={"content": "casino bonus"}).json()
    assert judged["evidence"][0]["zone"] == "main"
    assert board.client.post(f"{root}/gambling/add", json={"phrases": [], "weight": 0}).status_code == 422
    assert board.client.get(f"{root}/none-such").status_code in {404, 422}
    actions = {entry.action for entry in board.services.store.audit.page(limit=50)}
    assert {"words.added", "words.removed", "words.imported"} <= actions
