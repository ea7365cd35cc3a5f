"""Own rules over the API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.template_preview import HOSTILE
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        yield opened


def added(web: Dashboard, pattern: str, **more: object) -> int:
    answer = web.client.post("/api/v1/rules", json={"patterns": [pattern], **more})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["items"][0]["rule"]["id"])


def test_rules_are_added_read_changed_and_removed(web: Dashboard) -> None:
    number = added(web, "ads.example", comment="why", group="kids")
    read = web.client.get(f"/api/v1/rules/{number}")
    assert read.json() == {
        "id": number,
        "action": "block",
        "kind": "domain",
        "pattern": "ads.example",
        "comment": "why",
        "group": "kids",
        "expires_at": None,
        "enabled": True,
        "scope": "",
    }
    changed = web.client.patch(
        f"/api/v1/rules/{number}",
        json={"action": "allow", "expires_at": 4e9, "pattern": "https://ads.example/x"},
        headers={"if-match": read.headers["etag"]},
    )
    assert changed.status_code == 200
    assert (changed.json()["action"], changed.json()["kind"], changed.json()["comment"]) == ("allow", "url", "why")
    assert changed.headers["etag"] != read.headers["etag"]
    assert web.client.delete(f"/api/v1/rules/{number}").status_code == 204
    assert web.client.get(f"/api/v1/rules/{number}").status_code == 404


def test_of_two_admins_the_second_is_told(web: Dashboard) -> None:
    number = added(web, "ads.example")
    tag = web.client.get(f"/api/v1/rules/{number}").headers["etag"]
    path = f"/api/v1/rules/{number}"
    assert web.client.patch(path, json={"comment": "first"}, headers={"if-match": tag}).status_code == 200
    second = web.client.patch(path, json={"comment": "second"}, headers={"if-match": tag})
    assert (second.status_code, second.headers["content-type"]) == (412, "application/problem+json")
    assert web.client.delete(path, headers={"if-match": tag}).status_code == 412
    assert web.client.get(path).json()["comment"] == "first"


def test_rules_come_in_pages(web: Dashboard) -> None:
    numbers = [added(web, f"h{number}.example", group="kids" * (number % 2)) for number in range(5)][::-1]
    first = web.client.get("/api/v1/rules", params={"limit": 3}).json()
    assert ([item["id"] for item in first["items"]], first["next"], first["total"]) == (numbers[:3], numbers[2], 5)
    last = web.client.get("/api/v1/rules", params={"limit": 3, "after": first["next"]}).json()
    assert ([item["id"] for item in last["items"]], last["next"]) == (numbers[3:], None)
    assert web.client.get("/api/v1/rules", params={"group": "kids"}).json()["total"] == 2
    assert web.client.get("/api/v1/rules", params={"group": ""}).json()["total"] == 3
    assert web.client.get("/api/v1/rules", params={"q": "H3"}).json()["total"] == 1
    assert web.client.get("/api/v1/rules/groups").json() == {"items": [{"group": "kids", "rules": 2, "enabled": 2}]}


def test_rules_are_switched(web: Dashboard) -> None:
    number = added(web, "a.example", group="kids")
    other = added(web, "b.example")
    assert web.client.post("/api/v1/rules/switch", json={"group": "kids", "enabled": False}).json() == {"rules": 1, "changed": 1}
    assert web.client.get(f"/api/v1/rules/{number}").json()["enabled"] is False
    answer = web.client.post("/api/v1/rules/switch", json={"ids": [number, other], "enabled": True}).json()
    assert answer == {"rules": 2, "changed": 1}
    assert web.client.post("/api/v1/rules/switch", json={"enabled": True}).json() == {"rules": 0, "changed": 0}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"patterns": ["com"]}, "top-level domain"),
        ({"patterns": []}, "at least 1"),
        ({"patterns": ["a.example"], "scope": "everybody"}, "is no client:NAME"),
        ({"patterns": ["a.example/x"], "action": "splice"}, "whole hosts"),
        ({"patterns": ["a.example"], "colour": "red"}, "Extra inputs"),
        ({"patterns": ["a.example"], "expires_at": 1e18}, "less than"),
        ({"patterns": ["a.example"], "comment": "x" * 1001}, "at most 1000"),
        ({"patterns": ["x" * 2049]}, "at most 2048"),
        ({"patterns": ["a.example"] * 1001}, "at most 1000"),
        ({"patterns": ["10.0.0.0/8"]}, "is a network"),
    ],
)
def test_what_cannot_be_added_is_one_problem(web: Dashboard, body: dict[str, object], why: str) -> None:
    answer = web.client.post("/api/v1/rules", json=body)
    assert answer.status_code == 422
    assert why in answer.json()["detail"]
    assert web.client.get("/api/v1/rules").json()["total"] == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_or_refused_but_never_a_fault(web: Dashboard, text: str) -> None:
    answers = [
        web.client.post("/api/v1/rules", json={"patterns": [text], "force": True}),
        web.client.post("/api/v1/rules", json={"patterns": ["a.example"], "comment": text[:1000], "group": text[:100]}),
        web.client.post("/api/v1/rules/test", json={"rules": text, "urls": text}),
        web.client.post("/api/v1/rules/test", json={"rules": text}),
        web.client.post("/api/v1/rules/import", json={"text": text}),
        web.client.get("/api/v1/rules", params={"q": text[:300]}),
        web.client.get("/api/v1/rules/export", params={"file_format": text[:20]}),
    ]
    assert [answer.status_code for answer in answers if answer.status_code not in {200, 201, 422}] == []


def test_a_file_is_previewed_imported_and_exported(web: Dashboard) -> None:
    text = "a.example\n@@||b.example^\n((\n"
    preview = web.client.post("/api/v1/rules/import", json={"text": text, "preview": True, "group": "mine"}).json()
    assert (preview["rules"], preview["new"], preview["stored"], preview["rejected"]) == (2, 2, False, 1)
    assert preview["samples"][0]["line"] == 3
    assert web.client.get("/api/v1/rules").json()["total"] == 0
    assert web.client.post("/api/v1/rules/import", json={"text": text, "group": "mine"}).json()["stored"] is True
    export = web.client.get("/api/v1/rules/export")
    assert export.headers["content-disposition"] == 'attachment; filename="rules.json"'
    again = web.client.post("/api/v1/rules/import", json={"text": export.text, "preview": True}).json()
    assert (again["new"], again["changed"], again["same"]) == (0, 0, 2)
    assert web.client.get("/api/v1/rules/export", params={"file_format": "adblock"}).text == "||a.example^\n@@||b.example^\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.example\n" * 20_001, "more than 20,000 lines"),
        ("#" * 4_000_001, "longer than 4,000,000 characters"),
        ("((", "no usable"),
    ],
)
def test_an_import_that_is_too_large_is_one_sentence(web: Dashboard, text: str, why: str) -> None:
    answer = web.client.post("/api/v1/rules/import", json={"text": text})
    assert (answer.status_code, why in answer.json()["detail"]) == (422, True)


def test_a_test_explains_each_line(web: Dashboard) -> None:
    body = {"rules": "a.example\n||b.example^$nonsense", "urls": "https://www.a.example/x\nb.example"}
    found = web.client.post("/api/v1/rules/test", json=body).json()
    assert found["lines"][0]["meaning"] == "a.example and its subdomains"
    assert [tried["applies"] for tried in found["lines"][0]["tried"]] == [True, False]
    assert (found["lines"][1]["kind"], found["lines"][1]["column"]) == ("wrong", 14)
    assert [one["action"] for one in found["urls"]] == ["block", None]


def test_only_admins_change_rules(web: Dashboard) -> None:
    number = added(web, "a.example")
    for identity in (VIEWER, APPROVER, None):
        web.who.identity = identity
        wanted = 403 if identity else 401
        assert web.client.post("/api/v1/rules", json={"patterns": ["b.example"]}).status_code == wanted
        assert web.client.patch(f"/api/v1/rules/{number}", json={}).status_code == wanted
        assert web.client.delete(f"/api/v1/rules/{number}").status_code == wanted
        assert web.client.post("/api/v1/rules/switch", json={"enabled": False, "ids": [1]}).status_code == wanted
        assert web.client.post("/api/v1/rules/import", json={"text": "b.example"}).status_code == wanted
        assert web.client.get("/api/v1/rules").status_code == (200 if identity else 401)
