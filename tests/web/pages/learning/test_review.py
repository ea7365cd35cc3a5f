"""The review pages: queue, text with evidence, arithmetic, decisions and their undo, roles, hostile texts."""

from pathlib import Path

import pytest

from gatewayfilter.model import ReviewState
from gatewayfilter.web.access.identity import Identity, Role
from tests.web.learning_fakes import HOSTILE, add_task, ask
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard


def _state(board: Dashboard, number: int) -> ReviewState:
    task = board.services.store.reviews.get(number)
    assert task is not None
    return task.state


def test_an_empty_queue(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        assert "Nothing waits for a review" in board.client.get("/review").text
        assert "没有待审核的网页" in board.client.get("/review", headers={"accept-language": "zh"}).text
        assert board.client.get("/review/9").status_code == 404
        assert board.client.get("/review?state=none").status_code == 422
        assert board.client.get("/review?after=x").status_code == 422


def test_a_task_shows_its_text_with_evidence_and_arithmetic(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        number = add_task(board.services.store)
        page = board.client.get(f"/review/{number}").text
        assert ">casino bonus</mark>" in page
        assert "hit--against" in add_museum(board)
        assert "12 \u00d7 title 3 = <b>36</b>" in page
        assert "certainty: likely (97%)" in page
        assert "casino.example" in board.client.get("/review").text
        chinese = board.client.get(f"/review/{number}", headers={"accept-language": "zh"}).text
        assert "12 \u00d7 标题 3 = <b>36</b>" in chinese
        assert "很可能" in chinese


def add_museum(board: Dashboard) -> str:
    number = add_task(board.services.store, "http://m.example/", text="a museum of gambling")
    return board.client.get(f"/review/{number}").text


def test_similar_pages_are_grouped_and_decided_together(tmp_path: Path) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        first = add_task(board.services.store)
        others = [add_task(board.services.store, f"http://s{index}.example/", group_id=first) for index in range(2)]
        page = board.client.get("/review").text
        assert "3 alike" in page
        assert "Decide the 2 similar pages with it" in page
        answer = board.client.post(f"/review/{first}/decide", data={"move": "reject", "alike": "true", "note": "a school"})
        assert answer.headers["location"] == f"/review?decided={first}%2C{others[0]}%2C{others[1]}"
        after = board.client.get(answer.headers["location"]).text
        assert "Allowed, with 2 more: casino.example/play" in after
        assert {_state(board, number) for number in (first, *others)} == {ReviewState.REJECTED}
        (entry,) = board.services.store.audit.page(limit=5)
        assert (entry.action, entry.actor.name) == ("review.rejected", "Pat")
        undone = board.client.post(f"/review/undo?tasks={first},{others[0]},{others[1]}", headers={"hx-request": "true"})
        assert undone.headers["hx-redirect"] == f"/review/{first}"
        assert {_state(board, number) for number in (first, *others)} == {ReviewState.OPEN}


def test_decisions_lead_to_the_next_task_of_the_same_queue(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        numbers = [add_task(board.services.store, f"http://s{index}.example/") for index in range(3)]
        answer = board.client.post(f"/review/{numbers[0]}/decide?category=gambling", data={"move": "approve"})
        assert answer.headers["location"] == f"/review/{numbers[1]}?category=gambling&decided={numbers[0]}"
        answer = board.client.post(f"/review/{numbers[1]}/decide", data={"move": "change", "category": "fraud"})
        assert answer.headers["location"].startswith(f"/review/{numbers[2]}")
        task = board.services.store.reviews.get(numbers[1])
        assert task is not None
        assert (task.category, task.state) == ("fraud", ReviewState.APPROVED)
        answer = board.client.post(f"/review/{numbers[1]}/decide", data={"move": "undo"})
        assert answer.headers["location"] == f"/review/{numbers[1]}"
        assert _state(board, numbers[1]) is ReviewState.OPEN
        assert board.client.post(f"/review/{numbers[1]}/decide", data={"move": "change", "category": "none"}).status_code >= 400


def test_the_second_of_two_reviewers_is_told(tmp_path: Path) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        number = add_task(board.services.store)
        board.client.post(f"/review/{number}/decide", data={"move": "approve"})
        board.who.identity = Identity("Kim", Role.APPROVER, APPROVER.csrf)
        late = board.client.post(f"/review/{number}/decide", data={"move": "reject"})
        assert late.status_code == 409
        assert "was approved by Pat already" in late.text
        assert board.client.post(f"/review/{number}/decide", data={"move": "reject", "overturn": "true"}).status_code == 303


def test_a_viewer_reads(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        number = add_task(board.services.store)
        page = board.client.get(f"/review/{number}").text
        assert "casino bonus" in page
        assert "/decide" not in page
        assert board.client.post(f"/review/{number}/decide", data={"move": "approve"}).status_code == 403
        assert board.client.post(f"/review/undo?tasks={number}").status_code == 403
        assert "/review/undo" not in board.client.get(f"/review?decided={number}").text


def test_requests_about_the_page_stand_beside_it(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        number = add_task(board.services.store)
        ask(board.services.store, "http://casino.example/play", comment="a school project")
        assert "a school project" in board.client.get(f"/review/{number}").text
        assert "casino.example" in board.client.get("/review?which=asked").text
        assert "Nothing waits" in board.client.get("/review?which=doubtful").text


@pytest.mark.parametrize("text", [HOSTILE, "x" * 5000, "</div></mark><script>alert(2)</script>", "(((*** a + b", ""])
def test_hostile_texts_stay_texts(tmp_path: Path, text: str) -> None:
    with dashboard(tmp_path) as board:
        words = ((text[:80] or "w", 9.0, "main"), ("*" + HOSTILE, -1.0, "host"), ("( + [", 2.0, "title"))
        number = add_task(board.services.store, "http://a.example/'\"><script>x</script>", text=text, title=HOSTILE, words=words)
        board.client.post(f"/review/{number}/decide", data={"move": "approve", "note": HOSTILE})
        for path in ("/review?state=all", f"/review/{number}", f"/review?decided={number}"):
            page = board.client.get(path)
            assert page.status_code == 200
            assert "<img src=x" not in page.text
            assert "<script>alert" not in page.text
            assert "<script>x" not in page.text


def test_a_flash_names_only_what_is_in_the_database(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        add_task(board.services.store)
        page = board.client.get("/review?decided=99,<b>,7777777777777777777777").text
        assert "were decided" not in page
        assert "<b>," not in page
