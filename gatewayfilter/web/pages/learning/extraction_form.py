"""The form of the editor of extraction rules: its rows, what its buttons do, and the picked element."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayfilter.use_cases.learning.extraction_work import LONGEST_SOURCE, MOST_HTML, MOST_ROWS
from gatewayfilter.web.access.forms import Fields

WAYS: Final = ("css", "xpath", "regex", "function")
ZONES: Final = ("title", "description", "keywords", "main")
_LONGEST: Final = 1_000
_LONGEST_URL: Final = 8_000
_DEFAULT_LINKS: Final = 20
_MOST_LINKS: Final = 200
_LARGEST_NUMBER: Final = 1_000_000

type Row = dict[str, Any]


@dataclass(slots=True)
class EditorForm:
    """What the editor holds.

    Attributes:
        name: of the rule.
        version: that is edited, 0 for a new rule.
        urls, comment: of the rule.
        fields, links: its rows.
        address: of the page that is tried.
        html: of a page that was pasted with this request.
        page: key of the page on the shelf, `""` for none.
        picked: number of the picked element, -1 for none.
        source: text of the rule, where it is edited as text.
    """

    name: str = ""
    version: int = 0
    urls: str = ""
    comment: str = ""
    fields: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    address: str = ""
    html: str = ""
    page: str = ""
    picked: int = -1
    source: str = ""

    def rule(self) -> dict[str, Any]:
        """Returns the rule as plain values of a `RuleForm`."""
        return {"urls": self.urls, "comment": self.comment, "fields": self.fields, "links": self.links}

    def take(self, rule: Mapping[str, Any]) -> None:
        """Takes over the rows of a rule."""
        self.urls, self.comment = rule["urls"], rule["comment"]
        self.fields, self.links = list(rule["fields"]), list(rule["links"])

    def change(self, action: str, picked: Mapping[str, Any] | None) -> None:
        """Adds a row for the picked element or an empty one, or removes one.

        Args:
            action: value of the button: `field:N` and `links:N` add by a proposal, `add-field` and `add-links` an empty row,
                `drop-field:N` and `drop-links:N` remove one; anything else changes nothing.
            picked: the picked element with its proposals.
        """
        verb, _, number = action.partition(":")
        at = int(number) if number.isascii() and number.isdecimal() and len(number) < 4 else -1
        room = len(self.fields) + len(self.links) < MOST_ROWS
        if verb == "drop-field":
            self.fields = [row for index, row in enumerate(self.fields) if index != at]
        elif verb == "drop-links":
            self.links = [row for index, row in enumerate(self.links) if index != at]
        elif verb == "add-field" and room:
            self.fields.append(_field(_free("text", self.fields)))
        elif verb == "add-links" and room:
            self.links.append(_links())
        elif picked is not None and room and verb == "field" and 0 <= at < len(picked["fields"]):
            self.fields.append(self._of_proposal(picked, picked["fields"][at]))
        elif picked is not None and room and verb == "links" and 0 <= at < len(picked["links"]):
            self.links.append(_links(picked["links"][at]["expression"]))

    def _of_proposal(self, picked: Mapping[str, Any], proposal: Mapping[str, Any]) -> Row:
        name = _free(picked["name"], self.fields)
        css = proposal["way"] == "css"
        return _field(
            name, proposal["way"], proposal["expression"], picked["attribute"] if css else "", many=proposal["count"] > 1
        )


def read_editor(form: Fields) -> EditorForm:
    """Returns what the editor sent, bounded."""
    return EditorForm(
        name=form.text("name")[:_LONGEST],
        version=_number(form.text("version"), 0),
        urls=form.text("urls")[:_LONGEST],
        comment=form.text("comment")[:_LONGEST],
        fields=[_read_field(form, f"f{at}-") for at in _rows(form, "f")],
        links=[_read_links(form, f"l{at}-") for at in _rows(form, "l")],
        address=form.text("address")[:_LONGEST_URL],
        html=form.text("html")[:MOST_HTML],
        page=form.text("page")[:40],
        picked=_number(form.text("picked"), -1),
        source=form.text("source")[:LONGEST_SOURCE],
    )


def _rows(form: Fields, kind: str) -> list[int]:
    return [at for at in range(MOST_ROWS) if form.text(f"{kind}{at}-way") in WAYS]


def _read_field(form: Fields, row: str) -> Row:
    zone = form.text(f"{row}zone")
    return _field(
        form.text(f"{row}name")[:_LONGEST],
        form.text(f"{row}way"),
        form.text(f"{row}expression")[:_LONGEST],
        form.text(f"{row}attribute")[:_LONGEST],
        text=bool(form.text(f"{row}text")),
        many=bool(form.text(f"{row}many")),
        zone=zone if zone in ZONES else "",
    )


def _read_links(form: Fields, row: str) -> Row:
    return _links(
        form.text(f"{row}expression")[:_LONGEST],
        form.text(f"{row}way"),
        form.text(f"{row}attribute")[:_LONGEST],
        text=bool(form.text(f"{row}text")),
        urls=form.text(f"{row}urls")[:_LONGEST],
        limit=min(max(_number(form.text(f"{row}limit"), _DEFAULT_LINKS), 1), _MOST_LINKS),
    )


def _field(name: str, way: str = "css", expression: str = "", attribute: str = "", **flags: Any) -> Row:
    empty = {"text": False, "many": False, "zone": ""}
    return {"name": name, "way": way, "expression": expression, "attribute": attribute, **empty, **flags}


def _links(expression: str = "", way: str = "css", attribute: str = "", **more: Any) -> Row:
    empty = {"text": False, "urls": "", "limit": _DEFAULT_LINKS}
    return {"way": way, "expression": expression, "attribute": attribute, **empty, **more}


def _free(name: str, rows: Sequence[Row]) -> str:
    taken = {row["name"] for row in rows}
    return next(found for number in range(1, MOST_ROWS + 2) if (found := f"{name}{number if number > 1 else ''}") not in taken)


def _number(text: str, default: int) -> int:
    plain = text.isascii() and text.isdecimal() and len(text) < 8
    return min(int(text), _LARGEST_NUMBER) if plain else default
