"""The pages of requests: cards, answers by forms and by htmx, roles, two people at once, hostile texts."""

import re
from pathlib import Path

import pytest

from gatewayfilter.interfaces import RequestState
from tests.web.learning_fakes import HOSTILE, add_task, ask, with_tablet
from tests.web.web_fakes import APPROVER, VIEWER, Dashboard, dashboard

HTMX = {"hx-request": "true"}


def _seen(page: str) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def _answer(board: Dashboard, number: int, answer: str, **more: str) -> str:
    seen = _seen(board.client.get(f"/requests/{number}").text)
    form = {"answer": answer, "seen": seen} | more
    response = board.client.post(f"/requests/{number}/answer", data=form, headers=HTMX)
    assert response.status_code == 200, response.text
    return response.text


def test_an_empty_page_tells_what_will_appear(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        for path in ("/requests", "/requests/answered", "/requests/links"):
            assert board.client.get(path).status_code == 200
        assert "Nothing waits for you" in board.client.get("/requests").text
        assert "没有待处理的申请" in board.client.get("/requests", headers={"accept-language": "zh"}).text
        assert board.client.get("/requests/7").status_code == 404


@pytest.mark.parametrize(("answer", "ends"), [("1h", 3600), ("1d", 86_400), ("1w", 604_800), ("ever", None)])
def test_one_tap_allows_the_page_for_the_device_that_asked(tmp_path: Path, answer: str, ends: float | None) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        assert "homework" in board.client.get("/requests").text
        assert "Take it back" in _answer(board, number, answer)
        (rule,) = board.services.store.lists.rules()
        assert (rule.scope, rule.pattern) == ("client:tablet", ".games.example")
        lasts = None if rule.expires_at is None else round((rule.expires_at - board.services.clock()) / 60) * 60
        assert lasts == ends
        (entry,) = board.services.store.audit.page(limit=5)
        assert (entry.action, entry.actor.name) == ("request.approved", "Pat")


def test_other_terms(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        store = board.services.store
        with_tablet(store)
        _answer(board, ask(store), "1h", whom="group:kids", part="page", word="one hour")
        _answer(board, ask(store, "http://b.example/"), "1h", whom="everybody")
        _answer(board, ask(store, "http://c.example/"), "once")
        assert "?link=" in _answer(board, ask(store, "http://d.example/"), "link")
        assert {rule.scope for rule in store.lists.rules()} == {"group:kids", ""}
        assert "http" in board.client.get("/requests/links").text
        page = board.client.get("/requests/answered").text
        assert "one hour" in page
        assert page.count("Take it back") == 4


def test_what_waits_stands_beside_its_entries_on_every_page(tmp_path: Path) -> None:
    with dashboard(tmp_path, APPROVER) as board:
        store = board.services.store
        assert _waiting(board.client.get("/log").text) == {("requests", "0", True), ("review", "0", True)}
        first = ask(store)
        ask(store, "http://b.example/")
        add_task(store)
        for path in ("/", "/log", "/rules", "/requests"):
            assert _waiting(board.client.get(path).text) == {("requests", "2", False), ("review", "1", False)}, path
        form = {"answer": "no", "seen": _seen(board.client.get(f"/requests/{first}").text)}
        answered = board.client.post(f"/requests/{first}/answer", data=form, headers=HTMX)
        assert answered.headers["gatewayfilter-waiting"] == '{"requests": 1, "review": 1}'
        assert _waiting(board.client.get("/log").text) == {("requests", "1", False), ("review", "1", False)}


def _waiting(page: str) -> set[tuple[str, str, bool]]:
    """Returns key, number, and whether it is hidden, of the numbers beside entries of rail and bar."""
    found = re.findall(r'<span class="count" data-count="(\w+)"( hidden)?>([^<]*)</span>', page)
    return {(key, number, bool(hidden)) for key, hidden, number in found}


def test_no_with_a_word_and_back_again(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        store = board.services.store
        number = ask(store)
        assert "after dinner" in _answer(board, number, "no", word="after dinner")
        seen = _seen(board.client.get(f"/requests/{number}").text)
        assert "It waits again" in board.client.post(f"/requests/{number}/reopen", data={"seen": seen}, headers=HTMX).text
        assert store.unblock.open_requests()[0].state is RequestState.OPEN


def test_without_scripts_a_form_leads_back_to_the_page(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        response = board.client.post(f"/requests/{number}/answer", data={"answer": "1h"})
        assert (response.status_code, response.headers["location"]) == (303, f"/requests/{number}")
        assert board.client.post(f"/requests/{number}/reopen").status_code == 303
        link = board.client.post(f"/requests/{number}/answer", data={"answer": "link"})
        assert "?link=" in link.text


def test_the_second_of_two_people_sees_the_answer_of_the_first(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        form = {"answer": "ever", "seen": _seen(board.client.get("/requests").text)}
        _answer(board, number, "no")
        late = board.client.post(f"/requests/{number}/answer", data=form, headers=HTMX)
        assert "Somebody else has answered" in late.text
        assert "Refused" in late.text
        assert board.client.post(f"/requests/{number}/answer", data=form).status_code == 409
        assert board.services.store.lists.rules() == []


def test_a_viewer_reads(tmp_path: Path) -> None:
    with dashboard(tmp_path, VIEWER) as board:
        number = ask(board.services.store)
        page = board.client.get("/requests").text
        assert "homework" in page
        assert f"/requests/{number}/answer" not in page
        for path, form in (
            (f"/requests/{number}/answer", {"answer": "1h"}),
            (f"/requests/{number}/reopen", {}),
            ("/requests/links", {"url": "http://a.example/", "whom": "everybody"}),
            ("/requests/links/1/revoke", {}),
        ):
            assert board.client.post(path, data=form).status_code == 403
        board.who.identity = APPROVER
        assert "Make a link</summary>" not in board.client.get("/requests/links").text
        assert board.client.post("/requests/links", data={"url": "http://a.example/", "whom": "everybody"}).status_code == 403


def test_links_are_made_shown_once_and_revoked(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        with_tablet(board.services.store)
        form = {"url": "games.example/x", "whom": "client:tablet", "lasts": "1d", "once": "true"}
        made = board.client.post("/requests/links", data=form)
        assert "?link=" in made.text
        assert "?link=" not in board.client.get("/requests/links").text
        assert board.client.post("/requests/links/1/revoke").status_code == 303
        assert "Taken back" in board.client.get("/requests/links").text
        assert board.client.post("/requests/links/9/revoke").status_code == 404
        for bad in ({"url": "http://", "whom": "everybody"}, {"url": "http://a.example/", "whom": ""}, {"url": "x"}):
            assert board.client.post("/requests/links", data=bad).status_code == 422


def test_evidence_stands_beside_a_request(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        task = add_task(board.services.store)
        ask(board.services.store, "http://casino.example/play", reason="learned", rule="casino.example/play", category="gambling")
        page = board.client.get("/requests").text
        assert "casino bonus" in page
        assert "museum" not in page
        assert f'href="/review/{task}"' in page
        assert "This page, which was judged by itself" in page


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    with dashboard(tmp_path) as board:
        store = board.services.store
        url = "http://a.example/%3Cscript%3E?\"'><script>x</script>" + "y" * 1500
        add_task(store, url, title=HOSTILE, words=((HOSTILE, 9.0, "title"),))
        number = ask(store, url, comment=HOSTILE, name=HOSTILE, source_list=HOSTILE, rule=HOSTILE, category=HOSTILE)
        for path in ("/requests", f"/requests/{number}"):
            page = board.client.get(path).text
            assert "<img src=x" not in page
            assert "<script>alert" not in page
            assert "<script>x" not in page
            assert " 49" not in page
        assert "javascript:" not in board.client.get("/requests").text


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"answer": "maybe"},
        {"answer": "1h", "part": "x"},
        {"answer": "1h", "whom": "group:nobody"},
        {"answer": "no", "word": "x" * 400},
    ],
)
def test_bad_answers_are_refused(tmp_path: Path, form: dict[str, str]) -> None:
    with dashboard(tmp_path) as board:
        with_tablet(board.services.store)
        number = ask(board.services.store)
        assert board.client.post(f"/requests/{number}/answer", data=form).status_code == (404 if "whom" in form else 422)
        assert board.client.post("/requests/99999999999999999999/answer", data={"answer": "no"}).status_code == 422
        assert len(board.services.store.unblock.open_requests()) == 1
