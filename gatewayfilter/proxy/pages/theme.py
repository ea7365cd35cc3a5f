"""The theme of block and error pages: the built-in template, or an operator's own, and the brand name."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, TemplateError

from gatewayfilter.errors import StartupError
from gatewayfilter.settings import ProxySettings

NAME: Final = "GatewayFilter"
_FOLDER: Final = Path(__file__).parent / "templates"
_STYLE: Final = (_FOLDER / "block.css").read_text(encoding="utf-8")
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
_MOST_TEMPLATE_BYTES: Final = 1_000_000
_SAMPLE: Final[Mapping[str, object]] = {
    "text": {"language": "en", "title": "", "why": "", "how": ""},
    "host": "",
    "facts": (("", "", False),),
    "command": "",
    "ask": {"action": "", "url": "", "button": "", "hint": ""},
    "reason": "",
    "state": "",
    "links": (("", ""),),
}
"""The variables of a template; one that uses others is refused when the filter starts, not when a page is blocked."""


@dataclass(frozen=True, slots=True)
class PageTheme:
    """The theme of all pages of a process.

    Attributes:
        template: takes `text`, `style`, `brand`, `host`, `facts`, `command`, `ask`, `state`, `links` and `reason`.
        policy: the pages' content security policy, but for where forms may go.
    """

    brand: str
    template: Template
    policy: str

    @classmethod
    def built_in(cls, brand: str = "") -> Self:
        """Returns the template that comes with the program."""
        policy = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors *"
        return cls(brand or NAME, _built_in_template(), policy)

    @classmethod
    def of(cls, settings: ProxySettings) -> Self:
        """Returns the theme of the settings.

        Raises:
            StartupError: `proxy.block_template` cannot be read, or is no template of these pages.
        """
        path = settings.block_template
        if path is None:
            return cls.built_in(settings.brand_name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise StartupError(f"cannot read proxy.block_template {path}: {getattr(error, 'strerror', error)}") from error
        if len(text) > _MOST_TEMPLATE_BYTES:
            raise StartupError(f"proxy.block_template {path} is larger than {_MOST_TEMPLATE_BYTES} characters")
        # Styles and pictures of its own, but no script and nothing from elsewhere: the page has the origin of the blocked site.
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'"
        try:
            theme = cls(settings.brand_name or NAME, _environment(path.parent).from_string(text), policy)
            theme.render(**_SAMPLE)
        except (TemplateError, TypeError, ValueError) as error:
            raise StartupError(f"proxy.block_template {path} is no template of these pages: {error}") from error
        return theme

    def render(self, **values: object) -> bytes:
        """Returns a page."""
        return self.template.render(style=_STYLE, brand=self.brand, **values).encode(errors="replace")


@cache
def _built_in_template() -> Template:
    """Compiled once in a process, in 7 ms."""
    return _environment(_FOLDER).get_template("block.html")


def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
