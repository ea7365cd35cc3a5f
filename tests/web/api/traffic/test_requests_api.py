"""The API of requests to unblock pages and of bypass links."""

from pathlib import Path

from tests.web.learning_fakes import ask, with_tablet
from tests.web.web_fakes import APPROVER, VIEWER, dashboard

ROOT = "/api/v1/requests"


def test_requests_are_listed_page_by_page(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        for index in range(3):
            ask(board.services.store, f"http://a{index}.example/")
        first = board.client.get(ROOT, params={"limit": 2}).json()
        assert [item["id"] for item in first["items"]] == [3, 2]
        last = board.client.get(ROOT, params={"limit": 2, "after": first["next"]}).json()
        assert ([item["id"] for item in last["items"]], last["next"]) == ([1], None)
        assert board.client.get(ROOT, params={"state": "decided"}).json() == {"items": [], "next": None}


def test_a_request_is_answered_once(tmp_path: Path) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        read = board.client.get(f"{ROOT}/{number}")
        tag = {"if-match": read.headers["etag"]}
        approved = board.client.post(f"{ROOT}/{number}/approve", json={"seconds": 60, "word": "yes"}, headers=tag)
        assert (approved.json()["state"], approved.json()["scope"]) == ("approved", "client:tablet")
        late = board.client.post(f"{ROOT}/{number}/deny", json={"word": "no"}, headers=tag)
        assert late.status_code == 412
        assert late.headers["content-type"] == "application/problem+json"
        assert board.client.post(f"{ROOT}/{number}/reopen").json()["state"] == "open"
        assert board.client.post(f"{ROOT}/{number}/deny", json={}).json()["state"] == "denied"
        assert board.client.get(ROOT, params={"state": "decided"}).json()["items"][0]["id"] == number


def test_links(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        made = board.client.post(f"{ROOT}/{number}/link", json={"seconds": 600, "once": True})
        assert made.status_code == 201
        assert "?link=" in made.json()["address"]
        free = board.client.post("/api/v1/bypass-links", json={"url": "a.example", "group": "kids", "site": True}).json()
        assert (free["pattern"], free["scope"]) == (".a.example", "group:kids")
        listed = board.client.get("/api/v1/bypass-links", params={"limit": 1}).json()
        assert (listed["items"][0]["address"], listed["next"]) == ("", free["id"])
        assert board.client.delete(f"/api/v1/bypass-links/{free['id']}").json()["state"] == "revoked"
        assert board.client.delete("/api/v1/bypass-links/99").status_code == 404


def test_roles_and_errors(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        number = ask(board.services.store)
        for path in ("approve", "deny", "link", "reopen"):
            assert board.client.post(f"{ROOT}/{number}/{path}", json={}).status_code == 403
        board.who.identity = APPROVER
        assert board.client.post("/api/v1/bypass-links", json={"url": "a.example", "everybody": True}).status_code == 403
        assert board.client.get(f"{ROOT}/77").status_code == 404
        assert board.client.post(f"{ROOT}/{number}/approve", json={"seconds": -1}).status_code == 422
        assert board.client.post(f"{ROOT}/{number}/approve", json={"group": "none"}).status_code == 404
        assert board.client.post(f"{ROOT}/{number}/approve", content=b"{").status_code == 422
        assert board.client.post(f"{ROOT}/{number}/reopen").status_code == 422
