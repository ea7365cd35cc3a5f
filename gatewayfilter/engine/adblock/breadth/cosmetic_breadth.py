"""Which cosmetic rules hide whole pages: those that speak of every site, and of elements that every page is made of."""

import re
from functools import lru_cache

from gatewayfilter.engine.adblock.breadth.probe_sites import MANY, SUFFIXES, Sites
from gatewayfilter.engine.adblock.index.compiled_rule import is_in
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import CosmeticRule, Effect
from gatewayfilter.engine.adblock.syntax.rule import HostSet
from gatewayfilter.urls import is_registry_suffix, registry_suffixes

_ELEMENTS_TEXT = """
a article aside b blockquote body button canvas center dd div dl dt em fieldset figure font footer form h1 h2 h3 h4 h5 h6 head
header html i iframe img input label li link main meta nav ol option p picture pre script section select small source span
strong style svg table tbody td textarea tfoot th thead title tr u ul video
"""
_ELEMENTS = frozenset(_ELEMENTS_TEXT.split())
"""Elements that pages are made of."""

_LAYOUT_TEXT = """
app article body col container content layout main page post root row section site text title wrapper
"""
_LAYOUT = frozenset(_LAYOUT_TEXT.split())
"""Names that elements of very many sites have."""

_ATTRIBUTES_TEXT = """
align alt charset class colspan content data dir disabled draggable for height href hreflang id itemprop itemscope itemtype lang
loading media method name onclick rel role rowspan sizes src srcset style tabindex target title type value width
"""
_ATTRIBUTES = frozenset(_ATTRIBUTES_TEXT.split())
"""Attributes that pages are full of: their value may tell something, that they are there does not."""

_VALUES_TEXT = """
0 1 100% _blank auto button center en false http https image/png ltr text text/css text/html true zh
"""
_VALUES = frozenset(_VALUES_TEXT.split())

_BEGINNINGS = "https://www. http://www. .com/ .html .jpg .png"
"""What very many addresses begin or end with; parts of it tell nothing either."""

_HARMLESS_STYLES = re.compile(r"\s*(?:(?:overflow|padding|cursor|user-select)[\w-]*\s*:[^;]*(?:;\s*|\Z))*", re.IGNORECASE)
"""Declarations that leave a page as readable as it was."""

_SIMPLE = re.compile(r"[#.][\w-]+")
_TEXT_CALL = re.compile(r":has-text\(.*\)\Z", re.DOTALL)
_CALL = re.compile(r":([a-z-]+)\(", re.IGNORECASE)
_TOKEN = re.compile(
    r"""[#.](?P<name>(?:[\w-]|[^\x00-\x7f]|\\.)+)"""
    r"""|\[\s*(?P<attribute>[^\]=~|^$*\s]+)\s*(?:(?P<operator>[~|^$*]?=)\s*(?P<value>"[^"]*"|'[^']*'|[^\]\s]*))?[^\]]*\]"""
    r"""|::?[a-z-]+|(?P<element>(?:[\w-]|[^\x00-\x7f]|\\.)+)""",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6}) ?|(.))", re.DOTALL)
_ALTERNATIVES = frozenset({"is", "where", "has"})
_VALUE = 3
"""Characters of a part of an attribute's value that tell something."""


def cosmetic_refusal(rule: CosmeticRule) -> str:
    """Returns why a rule cannot be taken, "" when it can. About a microsecond."""
    hosts = rule.hosts
    if rule.exception or (hosts.names and not hosts.patterns and registry_suffixes()[0].isdisjoint(hosts.names)):
        return ""
    if rule.effect is Effect.HIDE and _SIMPLE.fullmatch(rule.text) and rule.text[1:].lower() not in _LAYOUT:
        return ""
    if rule.hosts and not _covers(rule.hosts):
        return ""
    if rule.effect is Effect.STYLE and _HARMLESS_STYLES.fullmatch(rule.style):
        return ""
    if rule.effect in {Effect.SCRIPT_TEXT, Effect.HEADER}:
        return "it would change pages of every site"
    if _is_telling(_ESCAPE.sub(_unescaped, _TEXT_CALL.sub("", rule.text))):
        return ""
    return "it would hide, change or remove what pages of every site are made of"


@lru_cache(maxsize=1_024)
def _covers(hosts: HostSet) -> bool:
    if any(map(is_registry_suffix, hosts.names)):
        return True
    found = sum(is_in(hosts, site[0].request.url.host) for site in Sites(len(hosts.patterns[0]), SUFFIXES))
    return found >= MANY


def _unescaped(match: re.Match[str]) -> str:
    """Returns the letter or digit that an escape stands for; other marks stay escaped."""
    letter = chr(min(int(match[1], 16), 0x10FFFF)) if match[1] else match[2]
    return letter if letter.isalnum() else match[0]


def _is_telling(selector: str) -> bool:
    """Tells whether every part between commas names something that few sites have."""
    return all(map(_part_is_telling, _parts(selector)))


def _part_is_telling(text: str) -> bool:
    rest: list[str] = []
    position = 0
    while call := _CALL.search(text, position):
        rest.append(text[position : call.start()])
        position = _closing(text, call.end())
        if call[1].lower() in _ALTERNATIVES and _is_telling(text[call.end() : position - 1]):
            return True
    rest.append(text[position:])
    return any(map(_tells, _TOKEN.finditer(" ".join(rest))))


def _tells(token: re.Match[str]) -> bool:
    if token["name"] is not None:
        return token["name"].lower() not in _LAYOUT
    if token["attribute"] is not None:
        if token["attribute"].lower() not in _ATTRIBUTES:
            return True
        value = (token["value"] or "").strip("\"'").lower()
        return (
            len(value) >= (1 if token["operator"] == "=" else _VALUE)
            and value not in _BEGINNINGS
            and value.strip("/:#") not in _VALUES | _LAYOUT | {""}
        )
    return token["element"] is not None and token["element"].lower() not in _ELEMENTS


def _closing(text: str, position: int) -> int:
    """Returns where the parenthesis that was opened before the position is closed, behind it."""
    depth, quote = 1, ""
    while position < len(text) and depth:
        character = text[position]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
        position += 2 if character == "\\" else 1
    return position


def _parts(selector: str) -> list[str]:
    """Splits a selector at the commas that stand in no brackets and no string."""
    parts: list[str] = []
    start = position = 0
    while position < len(selector):
        character = selector[position]
        if character == "(":
            position = _closing(selector, position + 1)
            continue
        if character in "\"'":
            end = selector.find(character, position + 1)
            position = len(selector) if end < 0 else end
        elif character == ",":
            parts.append(selector[start:position])
            start = position + 1
        position += 1
    parts.append(selector[start:])
    return parts
