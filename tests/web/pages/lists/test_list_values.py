"""The pages of own rules and of lists: what is shown, what is begun, and what is recorded of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.model import Client, EntryKind, Group, ListAction, parse_matcher
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.pages.lists.rule_forms import EditForm, RuleFilter, RuleForm
from gatewayfilter.web.pages.lists.rules import address
from gatewayfilter.web.source_worker import JobState
from tests.web.pages.test_page_values import HTMX, NOW, Kept, kept


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("lists")) as web:
        editor = PolicyEditor(web.services.store.policies)
        editor.add_group(Group("kids"))
        editor.add_group(Group("adults"))
        editor.add_client(Client("tablet", (parse_matcher("10.0.0.7"),), "kids"))
        editor.add_client(Client("car", (parse_matcher("10.0.0.8"),), "kids"))
        yield web


@pytest.fixture
def web(opened: Kept) -> Iterator[Kept]:
    yield opened
    for rule in opened.services.store.lists.rules():
        opened.services.store.lists.remove_rule(rule.rule_id)
    opened.worker.begun.clear()
    opened.worker.state = JobState()


def add(web: Kept, pattern: str, **more: Any) -> Any:
    return web.services.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, pattern, **more)


def test_the_page_of_rules_has_its_choices_and_the_ways_to_other_pages(web: Kept) -> None:
    rules = [add(web, f".h{number}.example", group="b" if number % 2 else "a") for number in range(51)]
    shown = web.get("/rules")
    assert [rule.rule_id for rule in shown["rules"]] == [rule.rule_id for rule in rules[:0:-1]]
    assert (shown["total"], shown["newer"], shown["older"]) == (51, "", f"/rules?after={rules[1].rule_id}")
    assert shown["choices"] == {
        "scopes": [("group:adults", "adults"), ("group:kids", "kids"), ("client:car", "car"), ("client:tablet", "tablet")],
        "groups": ["a", "b"],
    }
    assert (shown["active"], shown["error"], shown["broad"], shown["test"]) == ("rules", "", False, None)
    assert shown["form"] == RuleForm()
    last = web.get(f"/rules?after={rules[1].rule_id}&group=a")
    assert ([rule.rule_id for rule in last["rules"]], last["total"]) == ([rules[0].rule_id], 26)
    assert (last["older"], last["newer"]) == ("", "/rules?group=a")
    assert last["address"](state="on") == "/rules?group=a&state=on"
    assert last["address"](group="") == "/rules"
    part = web.get("/rules?q=h50", headers=HTMX)
    assert (web.pages.template, [rule.pattern for rule in part["rules"]]) == ("lists/_rule_table.html", [".h50.example"])
    assert (part["error"], part["broad"], part["form"], part["shown"].q) == ("", False, RuleForm(), "h50")
    assert address(RuleFilter(q="x", after=3), action="block") == "/rules?q=x&action=block&after=3"
    assert web.get("/rules/files")["groups"] == ["a", "b"]


def test_added_rules_are_recorded_and_the_form_keeps_what_the_next_one_needs(web: Kept) -> None:
    form = {"rules": " a.example \n\n@@b.example", "action": "splice", "lasts": "1h", "group": "g", "comment": "c"}
    web.post("/rules", 303, "/rules", **form)
    assert web.told() == ("rule.added", "a.example, @@b.example", "")
    assert [(rule.action, rule.expires_at) for rule in web.services.store.lists.rules()] == [
        (ListAction.SPLICE, NOW + 3_600),
        (ListAction.ALLOW, NOW + 3_600),
    ]
    given = {"scope": "group:kids", "lasts": "day", "until": "2030-01-31", "group": "g", "action": "allow"}
    web.post("/rules", 200, headers=HTMX, rules="c.example", comment="why", **given)
    values = web.pages.values
    assert web.pages.template == "lists/_rules.html"
    assert values["form"] == RuleForm(action=ListAction.ALLOW, scope="group:kids", lasts="day", until="2030-01-31", group="g")
    assert (values["added"], values["undo"]) == (1, f"/audit/{web.last_change.entry_id}/undo")
    assert (values["error"], values["broad"], values["total"]) == ("", False, 3)
    before = web.changes
    web.post("/rules", 200, headers=HTMX, rules="com", comment="kept")
    values = web.pages.values
    assert (values["broad"], values["added"], values["undo"], values["form"].comment) == (True, 0, "", "kept")
    assert "top-level domain" in values["error"]
    web.post("/rules", 422, rules="((")
    assert (web.pages.template, web.pages.values["broad"], web.pages.values["form"].rules) == ("lists/rules.html", False, "((")
    assert web.pages.values["error"]
    web.post("/rules", 422, rules="com")
    assert web.pages.values["broad"] is True
    fifty = "\n".join(f"x{number}.example" for number in range(50))
    assert web.changes == before
    web.post("/rules", 303, "/rules", rules=fifty)
    assert len(web.told()[1]) == 300
    web.post("/rules", 422, rules=f"{fifty}\nz.example")
    assert "at most 50" in web.pages.values["error"]


def test_explained_rules_are_shown_alone_or_with_the_page(web: Kept) -> None:
    web.post("/rules/explain", 200, headers=HTMX, rules="a.example", addresses="http://a.example/")
    values = web.pages.values
    assert (web.pages.template, values["detail"], len(values["test"].lines)) == ("lists/_rule_explained.html", "", 1)
    web.post("/rules/explain", 200, rules="a.example\n" * 51)
    values = web.pages.values
    assert (web.pages.template, values["broad"], values["test"]) == ("lists/rules.html", False, None)
    assert values["error"]
    web.post("/rules/explain", 200, rules="a.example", action="allow")
    assert (web.pages.values["error"], web.pages.values["test"].lines[0].action) == ("", ListAction.ALLOW)


def test_a_rule_is_changed_on_what_was_read(web: Kept) -> None:
    rule = add(web, ".a.example", comment="c", group="g", expires_at=NOW + 5_000)
    path = f"/rules/{rule.rule_id}"
    shown = web.get(path)
    assert (web.pages.template, shown["rule"], shown["form"], shown["fresh"]) == (
        "lists/rule.html", rule, EditForm.of(rule), EditForm.of(rule),
    )  # fmt: skip
    assert (shown["active"], shown["error"], shown["broad"]) == ("rules", "", False)
    assert (shown["day"], shown["choices"]["groups"]) == ("2027-01-15", ["g"])
    assert web.get(path, headers=HTMX)["choices"]["groups"] == ["g"]
    assert web.pages.template == "lists/_rule_form.html"
    form = {"rules": " a.example ", "lasts": "keep", "comment": "new", "enabled": "on", "version": EditForm.of(rule).version}
    web.post(path, 303, "/rules", **form)
    changed = web.services.store.lists.rules()[0]
    assert (changed.comment, changed.pattern, changed.expires_at) == ("new", ".a.example", NOW + 5_000)
    assert web.told() == ("rule.changed", " a.example ", "")
    web.post(path, 412, **form)
    values = web.pages.values
    assert (values["error"], values["broad"], values["form"].comment, values["fresh"].comment) == (
        "conflict",
        False,
        "new",
        "new",
    )
    assert (values["rule"], web.pages.template) == (changed, "lists/rule.html")
    form["version"] = EditForm.of(changed).version
    web.post(path, 422, **form | {"rules": "com"})
    assert web.pages.values["broad"]
    web.post(path, 422, **form | {"rules": "(("})
    assert web.pages.values == web.pages.values | {"broad": False}
    web.post(path, 200, headers=HTMX, **form | {"rules": "com"})
    assert (web.pages.template, web.pages.values["broad"]) == ("lists/_rule_form.html", True)
    answer = web.post(path, 204, headers=HTMX, **form | {"rules": "com", "force": "on"})
    assert answer.headers["hx-redirect"] == "/rules"
    assert web.services.store.lists.rules()[0].pattern == ".com"


def test_rules_are_switched_and_removed_by_their_rows(web: Kept) -> None:
    rule = add(web, ".a.example")
    web.post(f"/rules/{rule.rule_id}/switch", 303, "/rules")
    assert web.told() == ("rule.switched", "a.example", "off")
    web.post(f"/rules/{rule.rule_id}/switch", 200, headers=HTMX)
    assert web.told() == ("rule.switched", "a.example", "on")
    assert (web.pages.template, web.pages.values["rule"].enabled) == ("lists/_rule_row.html", True)
    web.post(f"/rules/{rule.rule_id}/remove", 200, headers=HTMX)
    assert web.told() == ("rule.removed", "a.example", "")
    assert web.pages.values == {"rule": rule, "undo": f"/audit/{web.last_change.entry_id}/undo"}
    web.post(f"/rules/{add(web, '.b.example').rule_id}/remove", 303, "/rules")
    assert web.services.store.lists.rules() == []


def test_an_import_is_shown_before_it_is_stored(web: Kept) -> None:
    add(web, ".a.example", group="g")
    lines = "\n".join(["a.example", *(f"n{number}.example" for number in range(20)), *["(("] * 21])
    web.post("/rules/import", 200, text=lines, action="allow", group=" new ", force="on")
    values = web.pages.values
    assert (values["text"], values["action"], values["group"], values["force"]) == (lines, ListAction.ALLOW, " new ", True)
    assert (len(values["found"].rules), len(values["sample"]["shown"]), len(values["sample"]["rejected"])) == (21, 20, 20)
    assert (values["preview"].new, values["error"], values["groups"], values["active"]) == (21, "", ["g"], "rules")
    assert {rule.group for rule in values["found"].rules} == {"new"}
    before = web.changes
    web.post("/rules/import", 422, text=" \n", store="yes")
    assert (web.pages.values["error"], web.pages.values["found"], web.pages.values["force"]) == (
        "choose a file, or paste its text", None, False,
    )  # fmt: skip
    assert web.changes == before
    web.post("/rules/import", 303, "/rules", text=lines, store="yes")
    assert web.told() == ("rule.imported", "21", "")
    part = '--b\r\ncontent-disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    body = part.format("file", '; filename=""', "") + part.format("text", "", "c.example") + "--b--\r\n"
    unnamed = web.client.post("/rules/import", content=body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert unnamed.status_code == 200, unnamed.text  # as browsers send a form without a file
    assert [rule.pattern for rule in web.pages.values["found"].rules] == [".c.example"]
    csv = web.client.get("/rules/export?file_format=csv&action=allow&group=none")
    assert csv.headers["content-disposition"].startswith('attachment; filename="')
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.text.count("\n") == 1
    assert web.client.get("/rules/export?file_format=csv&action=x").text.count("\n") == 23


def test_lists_are_shown_with_their_problems_first(web: Kept) -> None:
    every = {item.definition.name: item for item in web.services.subscriptions.all()}
    shown = web.get("/lists")
    enabled = [item for item in every.values() if item.definition.enabled]
    entries = sum(item.report.accepted for item in enabled if item.report is not None)
    assert shown["summary"] == {"enabled": len(enabled), "entries": entries, "problems": 0}
    assert (shown["active"], shown["work"]) == ("lists", web.worker.state)
    rows = [(not row.enabled, row.title) for row in shown["rows"]]
    assert rows == sorted(rows)
    assert len(rows) == len(every)
    name = next(iter(every))
    one = web.get(f"/lists/{name}")
    assert (web.pages.template, one["row"].item.definition.name, one["chinese"]) == ("lists/list.html", name, False)
    assert one["entry"] == web.services.subscriptions.catalog.get(name)
    assert one["row"].title == (one["entry"].title if one["entry"] else name)
    web.get(f"/lists/{name}", headers={**HTMX, "accept-language": "zh"})
    assert (web.pages.template, web.pages.values["chinese"]) == ("lists/_list.html", True)


def test_lists_that_are_broken_stand_before_others(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    item = next(item for item in web.services.subscriptions.all() if item.report is not None)
    titles = sorted(web.services.subscriptions.catalog.values(), key=lambda entry: entry.title)

    def listed(name: str, *, enabled: bool, error: str = "") -> Any:
        state = replace(item.state, error=error)
        return replace(item, definition=replace(item.definition, name=name, enabled=enabled), state=state)

    class Subscriptions:
        catalog = web.services.subscriptions.catalog

        def all(self) -> list[Any]:
            return [
                listed("zz", enabled=True),
                listed("off and broken", enabled=False, error="away"),
                listed("broken", enabled=True, error="away"),
                listed(titles[0].name, enabled=True),
                listed("aa", enabled=False),
            ]

    monkeypatch.setattr(type(web.services), "subscriptions", Subscriptions())
    shown = web.get("/lists")
    names = [row.item.definition.name for row in shown["rows"]]
    assert names[0] == "broken"
    assert sorted(names[1:3]) == sorted([titles[0].name, "zz"])
    assert names[3:] == ["aa", "off and broken"]
    assert shown["summary"] == {"enabled": 3, "entries": 3 * item.report.accepted, "problems": 1}
    assert {row.item.definition.name: row.problem for row in shown["rows"]}["off and broken"] == "away"
    assert next(row for row in shown["rows"] if row.item.definition.name == titles[0].name).title == titles[0].title


def test_the_catalogue_is_shown_by_category(web: Kept) -> None:
    every = web.get("/lists/catalogue")
    catalog = web.services.subscriptions.catalog
    assert [row.entry.name for row in every["rows"]] == list(catalog)
    assert every["titles"] == {name: entry.title for name, entry in catalog.items()}
    assert every["categories"] == sorted({entry.category for entry in catalog.values()})
    assert (every["category"], every["chinese"], every["active"], every["work"]) == ("", False, "lists", web.worker.state)
    assert [row.bundle.name for row in every["bundles"]] == [one.name for one in web.services.subscriptions.bundles.values()]
    wanted = every["categories"][0]
    some = web.get(f"/lists/catalogue?category={wanted}", headers={"accept-language": "zh"})
    assert {row.entry.category for row in some["rows"]} == {wanted}
    assert (some["category"], some["chinese"], some["categories"]) == (wanted, True, every["categories"])


def test_lists_are_subscribed_to_by_name_and_by_address(web: Kept) -> None:
    names = list(web.services.subscriptions.catalog)[:2]
    web.post("/lists/catalogue", 303, "/lists", names=names)
    assert web.worker.begun == [("subscribe", ", ".join(names), (names, {}), {})]
    assert web.told() == ("list.added", ", ".join(names), "")
    assert web.last_change.undo == {"kind": "sources", "items": [[None, {"name": name}] for name in names]}
    before = web.changes
    web.post("/lists/catalogue", 422, names=["none"])
    assert web.pages.values["detail"] == "there is no list 'none' in the catalogue"
    web.post("/lists/add", 422, address=" file:///etc/passwd ", category="ads")
    values = web.pages.values
    assert (values["error"][:19], values["form"].category, values["active"]) == ("'file:///etc/passwd", "ads", "lists")
    assert web.changes == before
    web.post("/lists/add", 303, "/lists", address=f" {names[0]} ", action="nonsense", category="ads")
    assert web.worker.begun[-1] == ("subscribe", names[0], ([names[0]], {"category": "ads", "action": ""}), {})
    assert (web.told(), web.last_change.undo) == (
        ("list.added", names[0], ""), {"kind": "sources", "items": [[None, {"name": names[0]}]]},
    )  # fmt: skip
    before = web.changes
    url = f"https://lists.example/{'x' * 300}"
    form = {"address": url, "category": "", "action": "allow"}
    web.post(
        "/lists/add?preview=1",
        303,
        f"/lists/add?address=https%3A%2F%2Flists.example%2F{'x' * 300}&category=&action=allow",
        **form,
    )
    begun: Any = web.worker.begun.pop()
    assert begun == ("preview", url[:300], (url, {"category": "", "action": "allow"}), {})
    assert web.changes == before
    web.post("/lists/add", 303, "/lists", **form)
    begun, undo = web.worker.begun.pop(), web.last_change.undo
    assert (begun[1], web.told()[1], undo is None) == (url[:300], url[:300], True)
    web.worker.state = JobState(1, "preview", url[:300], 1.0)
    shown = web.get("/lists/add", params=form)
    assert (shown["previewed"], shown["work"], shown["error"], shown["form"].address) == (
        web.worker.state,
        web.worker.state,
        "",
        url,
    )
    assert shown["categories"] == sorted(entry.category_id for entry in web.services.categories)
    assert web.get("/lists/add?address=other")["previewed"] is None
    web.worker.state = JobState(1, "subscribe", url[:300], 1.0)
    assert web.get("/lists/add", params=form)["previewed"] is None


def test_work_that_is_done_has_the_page_loaded_again(web: Kept) -> None:
    web.worker.state = JobState(1, "update", "", 2.0)
    running = web.client.get("/lists/work")
    assert ("hx-refresh" in running.headers, web.pages.values) == (
        False, {"work": web.worker.state, "rows": (), "watched": True},
    )  # fmt: skip
    web.worker.state = JobState(1, "update", "", 2.0, 3.0)
    assert web.client.get("/lists/work").headers["hx-refresh"] == "true"


def test_lists_are_updated_switched_and_removed(web: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    on = next(item for item in web.services.subscriptions.all() if item.definition.enabled)
    name = on.definition.name
    web.post("/lists/update", 303, "/lists")
    assert (web.worker.begun[-1], web.told()) == (("update", "", ([],), {}), ("list.updated", "", ""))
    web.post("/lists/update", 303, "/lists", name=name)
    assert (web.worker.begun[-1], web.told()) == (("update", name, ([name],), {}), ("list.updated", name, ""))
    web.post(f"/lists/{name}/switch", 303, "/lists")
    assert (web.worker.begun[-1], web.told()) == (("switch", name, (name,), {"enabled": False}), ("list.switched", name, "off"))
    undo = web.last_change.undo
    assert undo is not None
    ((before, after),) = undo["items"]
    assert (before["enabled"], after["enabled"]) == (True, False)
    web.post(f"/lists/{name}/remove", 422)
    assert web.pages.values["detail"] == f"{name} comes with the program: switch it off"
    definition = replace(on.definition, bundled=False, enabled=False)
    monkeypatch.setattr("gatewayfilter.web.pages.lists.sources.find_source", lambda *_: replace(on, definition=definition))
    web.post(f"/lists/{name}/switch", 303, "/lists")
    assert (web.worker.begun[-1][3], web.told()[2]) == ({"enabled": True}, "on")
    web.post(f"/lists/{name}/remove", 303, "/lists")
    assert (web.worker.begun[-1], web.told()) == (("remove", name, (name,), {}), ("list.removed", name, ""))
    undo = web.last_change.undo
    assert undo is not None
    assert (undo["items"][0][0]["name"], undo["items"][0][1]) == (name, None)
