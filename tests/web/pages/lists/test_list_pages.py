"""Pages of own rules and of the check: what people type is hostile, and two of them may edit one rule."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.wiring import publish_now
from tests.web.template_preview import HOSTILE
from tests.web.web_fakes import CSRF, VIEWER, Dashboard, dashboard

HTMX = {"hx-request": "true"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path) as opened:
        yield opened


def version(page: str) -> str:
    found = re.search(r'name="version" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


def test_rules_are_added_with_and_without_scripts(web: Dashboard) -> None:
    plain = web.client.post("/rules", data={"csrf": CSRF, "rules": "a.example\r\n@@b.example", "lasts": "1d", "comment": "why"})
    assert (plain.status_code, plain.headers["location"]) == (303, "/rules")
    actions = [(rule.pattern, rule.action, rule.comment) for rule in web.services.store.lists.rules()]
    assert actions == [(".a.example", ListAction.BLOCK, "why"), (".b.example", ListAction.ALLOW, "why")]
    fragment = web.client.post("/rules", data={"rules": "c.example"}, headers=HTMX)
    assert fragment.status_code == 200
    assert "<html" not in fragment.text
    assert "1 rule added." in fragment.text
    assert "/undo" in fragment.text


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"rules": ""}, "write a rule"),
        ({"rules": "com"}, "top-level domain"),
        ({"rules": "a.example", "lasts": "day", "until": "1999-01-01"}, "has passed"),
        ({"rules": "a.example", "lasts": "day", "until": "soon"}, "is no day"),
        ({"rules": "a.example\n" * 51}, "at most 50"),
        ({"rules": "a.example", "scope": "everybody"}, "is no client:NAME"),
    ],
)
def test_what_cannot_be_added_stays_in_the_form(web: Dashboard, form: dict[str, str], why: str) -> None:
    page = web.client.post("/rules", data=form)
    assert page.status_code == 422
    assert why in page.text
    assert form["rules"][:9] in page.text
    assert web.services.store.lists.rules() == []


def test_a_broad_rule_is_offered_to_be_added_on_purpose(web: Dashboard) -> None:
    assert 'name="force"' in web.client.post("/rules", data={"rules": "com"}, headers=HTMX).text
    assert web.client.post("/rules", data={"rules": "com", "force": "on"}).status_code == 303


def test_two_admins_see_each_others_rule(web: Dashboard) -> None:
    rule = web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
    path = f"/rules/{rule.rule_id}"
    mine = theirs = version(web.client.get(path).text)
    first = web.client.post(path, data={"rules": "a.example", "comment": "theirs", "enabled": "on", "version": theirs})
    assert first.status_code == 303
    second = web.client.post(path, data={"rules": "a.example", "comment": "mine", "enabled": "on", "version": mine})
    assert second.status_code == 412
    assert "Somebody has changed this rule" in second.text
    assert "theirs" in second.text
    assert "mine" in second.text
    again = web.client.post(
        path, data={"rules": "a.example", "comment": "mine", "enabled": "on", "version": version(second.text)}
    )
    assert again.status_code == 303
    assert web.services.store.lists.rules()[0].comment == "mine"


def test_rows_are_switched_and_removed(web: Dashboard) -> None:
    rule = web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
    row = web.client.post(f"/rules/{rule.rule_id}/switch", headers=HTMX)
    assert 'aria-checked="false"' in row.text
    removed = web.client.post(f"/rules/{rule.rule_id}/remove", headers=HTMX)
    assert "a.example was removed." in removed.text
    assert web.client.post(f"/rules/{rule.rule_id}/remove", headers=HTMX).status_code == 404


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(web: Dashboard, text: str) -> None:
    web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.REGEX, text[:2000], comment=text, group=text[:100])
    pages = [
        web.client.get("/rules", params={"q": text[:300]}),
        web.client.get("/rules"),
        web.client.get("/rules/1"),
        web.client.post("/rules/explain", data={"rules": text, "addresses": text}),
        web.client.post("/rules/explain", data={"rules": text}, headers=HTMX),
        web.client.post("/rules/import", data={"text": f"a.example # {text}\n{text}"}),
        web.client.get("/rules/files"),
        web.client.get("/check", params={"url": text, "client": text[:200], "source": text}),
    ]
    for page in pages:
        assert page.status_code in {200, 422}
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text


def test_faults_of_rules_are_in_the_language_of_the_page(web: Dashboard) -> None:
    chinese = {"accept-language": "zh-CN"}
    page = web.client.post("/rules/explain", data={"rules": "/(/", "addresses": ""}, headers=chinese)
    assert "正则表达式" in page.text
    assert "&lt;Macro" not in page.text
    for rules in ("", "a.example\n" * 3_000):
        assert "Macro" not in web.client.post("/rules/explain", data={"rules": rules}).text


def test_a_file_is_previewed_before_it_is_stored(web: Dashboard) -> None:
    file = {"file": ("my.txt", b"a.example\n@@||b.example^\n((\n")}
    preview = web.client.post("/rules/import", data={"group": "mine"}, files=file)
    assert preview.status_code == 200
    assert "Import 2 rules" in preview.text
    assert web.services.store.lists.rules() == []
    assert web.client.post("/rules/import", data={"text": "a.example", "store": "yes"}).status_code == 303
    assert len(web.services.store.lists.rules()) == 1
    huge = web.client.post("/rules/import", files={"file": ("my.txt", b"x" * 4_000_001)})
    assert (huge.status_code, "larger than 4,000,000 bytes" in huge.text) == (422, True)
    assert web.client.get("/rules/export", params={"file_format": "csv"}).text.startswith("action,kind,pattern")


def test_the_filter_is_in_the_address(web: Dashboard) -> None:
    for number in range(55):
        web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, f"h{number}.example", group="kids" * (number % 2))
    first = web.client.get("/rules", params={"group": "kids"}).text
    assert "27 rules" in first
    older = re.search(r'rel="next" href="([^"]+)"', web.client.get("/rules").text)
    assert older is not None
    assert "h0.example" in web.client.get(older[1].replace("&amp;", "&")).text


def test_an_address_is_checked(web: Dashboard) -> None:
    publish_now(web.services.settings, web.services.store)
    web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
    page = web.client.get("/check", params={"url": "https://www.a.example/x"})
    assert page.status_code == 200
    assert "Blocked" in page.text
    assert "step--wins" in page.text
    assert web.client.get("/check", params={"url": "a.example", "client": "nobody"}).status_code == 422
    assert web.client.get("/check", params={"url": "a.example", "at": "2030-01-31T18:00"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers", "shown"),
    [
        ("/lists", {}, "<bdi>Starter list: Advertising</bdi>"),
        ("/lists/starter-ads", {}, "<h1>Starter list: Advertising</h1>"),
        ("/lists/starter-ads", HTMX, '<h2><bdi class="break">Starter list: Advertising</bdi></h2>'),
    ],
)
def test_a_list_of_the_program_has_one_title(web: Dashboard, path: str, headers: dict[str, str], shown: str) -> None:
    assert shown in web.client.get(path, headers=headers).text


def test_viewers_read_only(web: Dashboard) -> None:
    web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".a.example")
    web.who.identity = VIEWER
    page = web.client.get("/rules").text
    assert "a.example" in page
    assert '<form class="inline" method="post" action="/rules' not in page
    assert web.client.get("/check").status_code == 200
    for path in ("/rules", "/rules/1", "/rules/1/remove", "/rules/1/switch", "/rules/import"):
        assert web.client.post(path, data={"rules": "b.example"}).status_code == 403
