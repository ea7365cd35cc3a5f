"""Vendored scripts are what their registry holds; all assets are small; colours have the contrast that reading needs."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.navigation import ENTRIES
from tests.web.template_preview import STATIC, TEMPLATES

MOST_BYTES = 400_000
THEMES = re.compile(r"(?P<selector>:root[^{]*)\{(?P<body>[^}]*)\}")
TOKEN = re.compile(r"--(?P<name>[\w-]+):\s*(?P<value>#[0-9a-f]{3,6})\b")
PAIRS = (
    ("ink", "page"),
    ("ink", "card"),
    ("ink", "sunken"),
    ("soft", "page"),
    ("soft", "card"),
    ("soft", "sunken"),
    ("accent", "page"),
    ("accent", "card"),
    ("accent", "accent-wash"),
    ("accent-hover", "card"),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
    ("allowed", "card"),
    ("allowed", "page"),
    ("allowed", "allowed-wash"),
    ("blocked", "card"),
    ("blocked", "page"),
    ("blocked", "blocked-wash"),
    ("learned", "card"),
    ("learned", "page"),
    ("learned", "learned-wash"),
    ("unknown", "card"),
    ("unknown", "page"),
    ("unknown", "unknown-wash"),
    ("ink", "accent-wash"),
    ("ink", "allowed-wash"),
    ("ink", "blocked-wash"),
    ("ink", "learned-wash"),
    ("card", "learned"),
    ("card", "blocked"),
    ("page", "ink"),
)
"""Text and what it stands on."""
MARKS = (
    ("strong-line", "card"),
    ("strong-line", "page"),
    ("chart-allowed", "card"),
    ("chart-blocked", "card"),
    ("chart-learned", "card"),
)
"""What is no text, but has to be seen: WCAG 1.4.11."""


def test_vendored_files_are_unchanged() -> None:
    vendored = tomllib.loads((STATIC / "vendor" / "VENDORED.toml").read_text(encoding="utf-8"))
    named = {name for package in vendored.values() for name in package["files"]} | {
        package["licence_file"] for package in vendored.values()
    }
    assert named | {"VENDORED.toml"} == {path.name for path in (STATIC / "vendor").iterdir()}
    for package in vendored.values():
        assert package["version"]
        assert package["licence"]
        for name, file in package["files"].items():
            assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == file["sha256"], name


def test_assets_are_small() -> None:
    sizes = {path.relative_to(STATIC).as_posix(): path.stat().st_size for path in STATIC.rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_nothing_external_is_loaded() -> None:
    for path in [*STATIC.rglob("*.css"), *STATIC.glob("js/*.js"), *TEMPLATES.rglob("*.html")]:
        loaded = re.findall(
            r"""(?:src=|href=|url\(|import |fetch\()["']?(?:https?:)?//[\w.-]+""", path.read_text(encoding="utf-8")
        )
        assert loaded == [], path


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.relative_to(TEMPLATES).as_posix())
def test_templates_live_with_a_strict_policy(path: Path) -> None:
    """No inline script, style or handler: the content security policy forbids them."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|\son[a-z]+=['\"]|<style|javascript:|hx-on|hx-vals=.js:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert "| safe" not in text
    assert "|safe" not in text


def test_icons_that_are_used_are_there() -> None:
    shapes = Assets().shapes
    assert len(shapes) >= 84
    assert {entry.icon for entry in ENTRIES} <= set(shapes)
    for path in TEMPLATES.rglob("*.html"):
        used = set(re.findall(r"""icon\(["']([\w-]+)["']""", path.read_text(encoding="utf-8")))
        assert used <= set(shapes), f"{path}: {used - set(shapes)}"


def test_icons_are_of_few_elements() -> None:
    """A table has hundreds of them, and a browser styles all before it shows the next page."""
    for name, shape in Assets().shapes.items():
        assert re.fullmatch(r'(<path d="[^"<>]+"( stroke-dasharray="[\d. ]+")?/>){1,2}', shape), name


def themes() -> dict[str, dict[str, str]]:
    text = (STATIC / "css" / "00-base.css").read_text(encoding="utf-8")
    found = [dict(TOKEN.findall(match["body"])) for match in THEMES.finditer(text)]
    whole = [tokens for tokens in found if "ink" in tokens and "accent-wash" in tokens]
    assert len(whole) == 3
    assert whole[1] == whole[2], "the dark theme is the same by the system and by choice"
    return {"light": whole[0], "dark": whole[0] | whole[1]}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_contrast(theme: str) -> None:
    tokens = themes()[theme]
    low = {
        pair: round(contrast(tokens[pair[0]], tokens[pair[1]]), 2)
        for pair in PAIRS
        if contrast(tokens[pair[0]], tokens[pair[1]]) < 4.5
    }
    low |= {
        pair: round(contrast(tokens[pair[0]], tokens[pair[1]]), 2)
        for pair in MARKS
        if contrast(tokens[pair[0]], tokens[pair[1]]) < 3
    }
    assert low == {}
