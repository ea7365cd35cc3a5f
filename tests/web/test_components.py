"""Every macro of the components renders, and shows hostile text as text."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from jinja2.meta import find_undeclared_variables

from gatewayfilter.model import Classification, Evidence, Reason
from gatewayfilter.web.rendering.assets import Assets
from tests.web.template_preview import HOSTILE, TEMPLATES, environment, page_context

AT = 1_799_999_000
HOURS = [["on" if hour > 20 else "part" if hour == 20 else "" for hour in range(24)] for _ in range(7)]
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "rect", "use", "path", "circle"}

CALLS = {
    "icons.html": ("icon(text)", "icon('log', text, text)", "initial(text)", "initial(text, text)"),
    "words.html": (
        "outcome_kind(text, text)",
        "outcome_word(text)",
        "outcome(text, text)",
        "reason_words(text)",
        "reason_words('blacklist', text, text, text)",
        "reason_words('schedule', text, text)",
        "reason_words('service', text, text)",
        "reason_words('learned', '', '', text)",
        f"when({AT})",
        f"when({AT}, '/log?id=1')",
        "stat(3)",
        "stat(3, '/log', text)",
        "device(text)",
        "device(text, text, '/clients/1', text)",
        "device('')",
        "badge(text, text, text)",
        "share(0.4)",
        "share(7, true)",
    ),
    "feedback.html": (
        "fault(text, 'small')",
        "judged_words(judged)",
        "csrf_field()",
        "toast_item(text, '/undo/1')",
        "toast(text)",
        "act('/do', text, text, {text: text}, 'danger', true, '#x', '', true, text)",
        "act('/do', text)",
        "remove('/delete', text)",
        "empty(text, text)",
        "skeleton()",
        "notice(text, 'bad')",
        "notice(text)",
    ),
    "tables.html": (
        "table_head([(text, 'number'), (text, '', '/log')])",
        "row_actions(text, '/why', '/allow', '/block', {'url': text})",
        "row_actions(text)",
        "pagination('/a', '/b', text)",
        "pagination()",
        "bars([{'name': text, 'value': 3, 'href': '/log', 'note': text}])",
        "bars([])",
    ),
    "filters.html": (
        "chip(text, [{'label': text, 'href': '/log', 'current': true, 'note': text}], true)",
        "chip_set(text, '/log')",
        "tabs([{'label': text, 'href': '/', 'current': true}], text)",
        "joined([{'label': text, 'href': '/', 'current': false}], text)",
        "search('/log', text, text, 'q', {'since': text})",
    ),
    "forms.html": (
        "field('a', text, text, 'text', text, text, true, {'maxlength': 3})",
        "field('p', text, text, 'password')",
        "text_area('a', text, text, text, text)",
        "select('a', text, [(text, text)], text, text, text)",
        "check('a', text, true, text, text, true)",
        "radio('a', text, text, false, text)",
        "tile('a', text, text, true, '', text, text)",
        "tile('a', text, '')",
        "week_grid(days, hours, text, 'hours')",
        "week_grid(days, hours, text)",
        "described('a', text, text, true)",
        "problem('a', text)",
    ),
}


class Elements(HTMLParser):
    """Elements and attributes; what is opened has to be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    found.close()
    return found


def shown(file: str, call: str, text: str) -> str:
    name = call.partition("(")[0]
    template = environment().from_string(f'{{% from "components/{file}" import {name} with context %}}{{{{ {call} }}}}')
    hit = Evidence(text, text, 1.0, "main", 0)
    judged = Classification("gambling", 36.0, 20.0, {}, (hit,), text, certainty=0.97)
    return template.render(page_context(text=text, days=DAYS, hours=HOURS, judged=judged))


CASES = [(file, call) for file, calls in CALLS.items() for call in calls]


def test_macros_of_several_pages_use_what_every_page_has() -> None:
    """What they use beside their arguments is taken when they are imported: before the content of a page is read."""
    sources = {path.relative_to(TEMPLATES).as_posix(): path.read_text() for path in TEMPLATES.rglob("*.html")}
    templates = environment()
    shared = templates.globals.keys() | page_context().keys()
    used = {
        name: find_undeclared_variables(templates.parse(sources[name])) - shared
        for name in {name for source in sources.values() for name in re.findall(r'from "([^"]+)" import', source)}
    }
    assert len(used) > 8
    assert {name: names for name, names in used.items() if names} == {"learning/_review.html": {"queue", "refused"}}


def test_every_macro_is_called() -> None:
    defined = {
        (path.name, name)
        for path in (TEMPLATES / "components").glob("*.html")
        for name in re.findall(r"{% macro (\w+)", path.read_text(encoding="utf-8"))
    }
    assert {(file, call.partition("(")[0]) for file, call in CASES} == defined


@pytest.mark.parametrize(("file", "call"), CASES, ids=[f"{file}:{call}" for file, call in CASES])
def test_hostile_text_stays_text(file: str, call: str) -> None:
    plain = [(tag, sorted(attributes)) for tag, attributes in elements(shown(file, call, "plain")).seen]
    for text in HOSTILE:
        found = elements(shown(file, call, text))
        if call.startswith("act("):  # the names of hidden fields are ours
            continue
        assert [(tag, sorted(attributes)) for tag, attributes in found.seen] == plain, text[:40]
        assert not any(name.startswith("on") or name == "style" for _, attributes in found.seen for name in attributes)
        if call.startswith("described"):
            continue
        assert found.open == []


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_words(reason: Reason) -> None:
    words = shown("words.html", f"reason_words('{reason}')", "")
    assert words.strip()
    assert words.strip() != reason or reason in {Reason.LEARNED, Reason.POLICY, Reason.SERVICE, Reason.SCHEDULE}


@pytest.mark.parametrize(
    ("action", "reason", "kind"),
    [
        ("allow", "whitelist", "allowed"),
        ("allow", "unknown", "unknown"),
        ("block", "blacklist", "blocked"),
        ("block", "learned", "learned"),
        ("block", "unknown", "blocked"),
        ("block", "failure", "failed"),
        ("waiting", "", "waiting"),
    ],
)
def test_outcome_has_icon_and_word(action: str, reason: str, kind: str) -> None:
    html = shown("words.html", f"outcome('{action}', '{reason}')", "")
    assert f"outcome--{kind}" in html
    assert Assets().shapes[kind] in html
    assert re.search(r"</svg>\w+", html)


def page(body: str = "", **more: Any) -> str:
    template = environment().from_string(
        '{% extends "base.html" %}{% block title %}{{ text }}{% endblock %}{% block main %}' + body + "{% endblock %}"
    )
    return template.render(page_context(**more))


@pytest.mark.parametrize("text", HOSTILE)
def test_page_around_hostile_text(text: str) -> None:
    plain = elements(
        page(
            "{{ text }}",
            text="plain",
            identity={"name": "plain", "role": "admin"},
            flashes=[{"text": "plain", "undo": "/undo/1"}],
        )
    )
    found = elements(
        page("{{ text }}", text=text, identity={"name": text, "role": "admin"}, flashes=[{"text": text, "undo": "/undo/1"}])
    )
    assert [tag for tag, _ in found.seen] == [tag for tag, _ in plain.seen]


def test_page_has_landmarks_and_one_current_entry() -> None:
    found = elements(page(text="Overview"))
    tags = [tag for tag, _ in found.seen]
    assert tags.count("main") == 1
    assert tags.count("h1") == 1
    assert tags.index("a") < tags.index("nav"), "the link that skips comes first"
    current = [attributes["href"] for _, attributes in found.seen if attributes.get("aria-current") == "page"]
    assert current == ["/", "/"]  # rail and bar
    assert all("aria-label" in attributes for tag, attributes in found.seen if tag == "nav")


def test_public_page_has_no_navigation() -> None:
    html = page(text="Sign in", identity=None, nav=[], csrf="")
    assert "<nav" not in html
    assert 'name="csrf"' not in html
