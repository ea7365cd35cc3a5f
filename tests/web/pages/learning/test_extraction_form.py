"""The form of the editor of extraction rules: what is read of it, and what its buttons do to its rows."""

from typing import Any, cast

import pytest

from gatewayfilter.use_cases.learning.extraction_work import LONGEST_SOURCE, MOST_HTML, MOST_ROWS
from gatewayfilter.web.access.forms import Fields
from gatewayfilter.web.pages.learning.extraction_form import EditorForm, read_editor


class Sent:
    """A form as a browser sends it."""

    def __init__(self, **fields: str) -> None:
        self.fields = {name.replace("_", "-"): value for name, value in fields.items()}

    def text(self, name: str) -> str:
        return self.fields.get(name, "")


def read(**fields: str) -> EditorForm:
    return read_editor(cast("Fields", Sent(**fields)))


def field(name: str, **more: Any) -> dict[str, Any]:
    empty = {"name": name, "way": "css", "expression": "", "attribute": "", "text": False, "many": False, "zone": ""}
    return empty | more


def links(**more: Any) -> dict[str, Any]:
    return {"way": "css", "expression": "", "attribute": "", "text": False, "urls": "", "limit": 20} | more


def test_an_empty_form_is_that_of_a_new_rule() -> None:
    found = read()
    assert found == EditorForm()
    assert (found.version, found.picked) == (0, -1)
    assert found.rule() == {"urls": "", "comment": "", "fields": [], "links": []}


def test_rows_are_read_in_their_order() -> None:
    found = read(
        name="shop", version="7", urls="*://a/*", comment="c", address="http://a/", html="<p>", page="key", picked="3",
        source="s",
        f2_way="regex", f2_name="second", f2_text="on", f2_zone="main", f2_expression="x+", f2_attribute="href", f2_many="1",
        f0_way="css", f0_name="first", f0_zone="elsewhere", f1_way="wrong", f1_name="none",
        l1_way="xpath", l1_expression="//a", l1_attribute="src", l1_text="on", l1_urls="*", l1_limit="7", l0_way="",
    )  # fmt: skip
    assert (found.name, found.version, found.urls, found.comment, found.address) == ("shop", 7, "*://a/*", "c", "http://a/")
    assert (found.html, found.page, found.picked, found.source) == ("<p>", "key", 3, "s")
    assert found.fields == [
        field("first"),
        field("second", way="regex", expression="x+", attribute="href", text=True, many=True, zone="main"),
    ]
    assert found.links == [links(way="xpath", expression="//a", attribute="src", text=True, urls="*", limit=7)]
    rule = found.rule()
    other = EditorForm()
    other.take(rule)
    assert (other.rule(), other.fields is found.fields) == (rule, False)


def test_what_is_sent_is_bounded() -> None:
    last = MOST_ROWS - 1
    long = "x" * 9_000_000
    found = read(
        name=long, urls=long, comment=long, address=long, html=long, page=long, source=long, f0_way="css", f0_name=long,
        f0_expression=long, f0_attribute=long, l0_way="css", l0_expression=long, l0_attribute=long, l0_urls=long,
        **{f"f{last}-way": "css", f"f{MOST_ROWS}-way": "css", f"l{MOST_ROWS}-way": "css"},
    )  # fmt: skip
    lengths = [len(text) for text in (found.name, found.urls, found.comment, found.address, found.page)]
    assert lengths == [1_000, 1_000, 1_000, 8_000, 40]
    assert (len(found.html), len(found.source)) == (min(MOST_HTML, len(long)), LONGEST_SOURCE)
    assert [len(found.fields[0][key]) for key in ("name", "expression", "attribute")] == [1_000] * 3
    assert [len(found.links[0][key]) for key in ("expression", "attribute", "urls")] == [1_000] * 3
    assert (len(found.fields), len(found.links)) == (2, 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("7", 7),
        ("1000000", 1_000_000),
        ("9999999", 1_000_000),
        ("12345678", 0),
        ("-1", 0),
        ("1.5", 0),
        ("٣", 0),
        ("x", 0),
    ],
)
def test_numbers(text: str, number: int) -> None:
    assert read(version=text).version == number
    found = read(l0_way="css", l0_limit=text)
    assert found.links[0]["limit"] == (20 if not text or (text != "7" and number == 0) else min(max(number, 1), 200))


def test_limits_of_links_stay_within_theirs() -> None:
    for text, limit in (("0", 1), ("1", 1), ("200", 200), ("201", 200)):
        assert read(l0_way="css", l0_limit=text).links[0]["limit"] == limit


PICKED = {
    "name": "price",
    "attribute": "href",
    "fields": [{"way": "css", "expression": ".p", "count": 1}, {"way": "xpath", "expression": "//p", "count": 2}],
    "links": [{"expression": "a.next"}],
}


@pytest.mark.parametrize(
    ("action", "fields", "rows"),
    [
        ("field:0", [field("text"), field("price", expression=".p", attribute="href")], [links()]),
        ("field:1", [field("text"), field("price", way="xpath", expression="//p", many=True)], [links()]),
        ("field:2", [field("text")], [links()]),
        ("links:0", [field("text")], [links(), links(expression="a.next")]),
        ("links:1", [field("text")], [links()]),
        ("add-field", [field("text"), field("text2")], [links()]),
        ("add-links", [field("text")], [links(), links()]),
        ("drop-field:0", [], [links()]),
        ("drop-field:1", [field("text")], [links()]),
        ("drop-links:0", [field("text")], []),
        ("drop-links:x", [field("text")], [links()]),
        ("drop-field:0000", [field("text")], [links()]),
        ("drop-field:\u0660", [field("text")], [links()]),  # a digit, but none of ASCII
        ("field:-1", [field("text")], [links()]),
        ("save", [field("text")], [links()]),
    ],
)
def test_buttons(action: str, fields: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    form = EditorForm(fields=[field("text")], links=[links()])
    form.change(action, PICKED)
    assert (form.fields, form.links) == (fields, rows)
    without = EditorForm(fields=[field("text")], links=[links()])
    without.change(action, None)
    kept = action.partition(":")[0] in {"field", "links"}
    assert (without.fields, without.links) == (([field("text")], [links()]) if kept else (fields, rows))


def test_a_full_form_takes_no_more_rows_and_names_stay_apart() -> None:
    form = EditorForm(links=[links()])
    for _ in range(MOST_ROWS + 3):
        form.change("add-field", None)
    assert len(form.fields) == MOST_ROWS - 1
    assert [row["name"] for row in form.fields] == ["text", *(f"text{number}" for number in range(2, MOST_ROWS))]
    for action in ("add-field", "add-links", "field:0", "links:0"):
        form.change(action, PICKED)
    assert (len(form.fields), len(form.links)) == (MOST_ROWS - 1, 1)
    form.change("drop-field:0", None)
    form.change("field:0", PICKED)
    assert form.fields[-1]["name"] == "price"
