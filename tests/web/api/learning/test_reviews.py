"""The API of reviews."""

from pathlib import Path

from tests.web.learning_fakes import add_task
from tests.web.web_fakes import APPROVER, VIEWER, dashboard

ROOT = "/api/v1/reviews"


def test_tasks_are_listed_page_by_page(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        numbers = [add_task(board.services.store, f"http://a{index}.example/") for index in range(3)]
        first = board.client.get(ROOT, params={"limit": 2}).json()
        assert [item["id"] for item in first["items"]] == numbers[:2]
        last = board.client.get(ROOT, params={"limit": 2, "after": first["next"]}).json()
        assert ([item["id"] for item in last["items"]], last["next"]) == (numbers[2:], None)
        assert board.client.get(ROOT, params={"after": "x"}).status_code == 422


def test_a_task_is_read_and_decided(tmp_path: Path) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        number = add_task(board.services.store)
        other = add_task(board.services.store, "http://b.example/", group_id=number)
        assert board.client.get(f"{ROOT}/groups").json() == {"items": [{"group": number, "tasks": 2}]}
        found = board.client.get(f"{ROOT}/{number}").json()
        assert found["terms"][0] == {
            "word": "casino bonus",
            "zone": "title",
            "weight": 36.0,
            "base": 12.0,
            "factor": 3.0,
            "position": 0,
        }
        assert found["alike"] == [other]
        done = board.client.post(f"{ROOT}/{number}/decide", json={"move": "reject", "note": "n"}).json()
        assert [(item["id"], item["state"]) for item in done["tasks"]] == [(number, "rejected")]
        assert board.client.post(f"{ROOT}/{number}/decide", json={"move": "reject"}).status_code == 422
        many = board.client.post(f"{ROOT}/decide", json={"move": "approve", "tasks": [other, 999]}).json()
        assert [item["id"] for item in many["tasks"]] == [other]
        assert len(many["refused"]) == 1
        assert board.client.get(f"{ROOT}/{number}").json()["steps"][0]["note"] == "n"


def test_roles_and_errors(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        number = add_task(board.services.store)
        assert board.client.post(f"{ROOT}/{number}/decide", json={"move": "approve"}).status_code == 403
        assert board.client.post(f"{ROOT}/decide", json={"move": "approve", "tasks": [number]}).status_code == 403
        board.who.identity = APPROVER
        assert board.client.get(f"{ROOT}/99").status_code == 404
        assert board.client.post(f"{ROOT}/99/decide", json={"move": "approve"}).status_code == 404
        assert board.client.post(f"{ROOT}/{number}/decide", json={"move": "maybe"}).status_code == 422
        assert board.client.post(f"{ROOT}/{number}/decide", json={"move": "change", "category": "x"}).status_code in {404, 422}
        assert board.client.post(f"{ROOT}/decide", json={"move": "approve", "tasks": []}).status_code == 422
