"""A rule as the rows of a form: made from its TOML, and written as TOML again."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.rules import DEFAULT_LINKS, ExtractionRule

WAYS: Final = ("css", "xpath", "regex", "function")
_HOST: Final = re.compile(
    r"(?:\^?https?\??://)((?:[\w-]|\\\.|\\-|\[\^/\][*+]|\(\?:\[\^/\][*+]\\\.\)\?)+)(?::\d{1,5})?(?=/|$)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a rule.

    Attributes:
        way: one of `WAYS`.
        attribute: what css takes of an element, `""` for its text.
        text: the regular expression is for the visible text.
        many: all values are taken.
        zone: the zone of the page whose place it takes, `""` for none.
    """

    name: str
    way: str = "css"
    expression: str = ""
    attribute: str = ""
    text: bool = False
    many: bool = False
    zone: str = ""


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A table of links of a rule.

    Attributes:
        urls: which absolute URLs, `""` for all.
        limit: how many.
    """

    way: str = "css"
    expression: str = ""
    attribute: str = ""
    text: bool = False
    urls: str = ""
    limit: int = DEFAULT_LINKS


@dataclass(frozen=True, slots=True)
class RuleForm:
    """A rule as a form shows it."""

    urls: str = ""
    comment: str = ""
    fields: tuple[FieldRow, ...] = ()
    links: tuple[LinkRow, ...] = ()

    def source(self) -> str:
        """Returns the rule as TOML. Whether it can be used is found out by `parse_rule`.

        Raises:
            ClassifyError: two fields have one name.
        """
        names = [row.name for row in self.fields]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ClassifyError(f"two fields are called {twice!r}")
        lines = [f"urls = {_toml(self.urls)}"]
        if self.comment:
            lines.append(f"comment = {_toml(self.comment)}")
        for row in self.fields:
            lines += ["", f"[fields.{_toml(row.name)}]", *_selector(row)]
            lines += ["many = true"] if row.many else []
            lines += [f"zone = {_toml(row.zone)}"] if row.zone else []
        for table in self.links:
            lines += ["", "[[links]]", *_selector(table)]
            lines += [f"urls = {_toml(table.urls)}"] if table.urls else []
            lines += [f"limit = {table.limit}"] if table.limit != DEFAULT_LINKS else []
        return "\n".join(lines) + "\n"


def form_of(rule: ExtractionRule) -> RuleForm:
    """Returns a rule that was checked as a form."""
    table = tomllib.loads(rule.source)
    return RuleForm(
        rule.urls,
        str(table.get("comment", "")),
        tuple(FieldRow(name, **_row(given)) for name, given in table.get("fields", {}).items()),
        tuple(LinkRow(**_row(given)) for given in table.get("links", [])),
    )


def host_of(urls: str) -> str:
    """Returns the host that an expression for URLs is for, `*` in it for any name; `""` where it cannot be told."""
    found = _HOST.match(urls)
    if found is None:
        return ""
    return re.sub(r"\(\?:\[\^/\][*+]\\\.\)\?|\[\^/\][*+](?:\\\.)?", "*.", found[1]).replace("\\", "").rstrip(".") or "*"


def url_expressions(url: str) -> tuple[str, ...]:
    """Returns expressions for a page's site, its folder and the page itself, each once."""
    parts = urlsplit(url)
    host = re.escape(parts.netloc.rpartition("@")[2]).replace(r"\-", "-")
    folder = _escaped(parts.path.rpartition("/")[0])
    page = _escaped(parts.path + (f"?{parts.query}" if parts.query else "")) or "/"
    return tuple(dict.fromkeys(f"https?://{host}{path}" for path in ("/.*", f"{folder}/.*", page)))


def _escaped(text: str) -> str:
    return re.escape(text).replace(r"\-", "-").replace(r"\/", "/")


def _selector(row: FieldRow | LinkRow) -> list[str]:
    lines = [f"{row.way if row.way in WAYS else 'css'} = {_toml(row.expression)}"]
    if row.attribute and row.way == "css":
        lines.append(f"attribute = {_toml(row.attribute)}")
    if row.text and row.way == "regex":
        lines.append("text = true")
    return lines


def _row(table: Mapping[str, Any]) -> dict[str, Any]:
    way = next((way for way in WAYS if way in table), "css")
    kept = {key: table[key] for key in ("attribute", "text", "many", "zone", "urls", "limit") if key in table}
    return {"way": way, "expression": table.get(way, ""), **kept}


def _toml(text: str) -> str:
    """Returns a text as a basic string of TOML: JSON escapes the same characters, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
