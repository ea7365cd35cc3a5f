"""Templates of the dashboard rendered by Jinja alone: what rendering gives them, as plain stand-ins."""

from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.formats import Formats
from gatewayfilter.web.rendering.navigation import entries_for
from gatewayfilter.web.rendering.sentence_templates import Told

ROOM: Final = Path(__file__).parents[2] / "gatewayfilter" / "web"
TEMPLATES: Final = ROOM / "templates"
STATIC: Final = ROOM / "static"

HOSTILE: Final = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "x" * 2000,
    "</textarea></title></style>",
    "汉字\x00\x1b[31m\r\nSet-Cookie: a=b",
)


@cache
def environment(prefix: str = "/static/") -> Environment:
    """Returns an environment with the filters and functions that templates may use, in plain English. It keeps templates."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, extensions=["jinja2.ext.i18n"]
    )
    found.install_null_translations(newstyle=True)  # type: ignore[attr-defined]
    found.filters["category"] = lambda code: code.title()
    found.filters["told"] = lambda sentence: Told(sentence, is_english=True)
    found.globals["static"] = lambda path: prefix + path
    found.globals["icon_shapes"] = Assets(STATIC).shapes
    found.globals["languages"] = {"en": "English", "zh": "简体中文"}
    return found


def page_context(**more: object) -> dict[str, Any]:
    """Returns what rendering gives to every page."""
    return {
        "identity": {"name": "anna", "role": "admin"},
        "nav": entries_for(3),
        "counts": {"requests": 2, "review": 31},
        "active": "today",
        "csrf": "token",
        "language": "en",
        "locale": "en-GB",
        "theme": "",
        "fmt": Formats("en", UTC),
        "zone": "UTC",
        "now": 1_800_000_000,
        "request_path": "/",
        "here": "/",
        "flashes": [],
    } | more
