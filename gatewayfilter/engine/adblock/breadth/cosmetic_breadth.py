"""Breadth check of cosmetic rules: generic rules for elements that every page is made of would hide whole pages."""

import re
from functools import lru_cache

from gatewayfilter.engine.adblock.breadth.probe_sites import MANY, SUFFIXES, Sites
from gatewayfilter.engine.adblock.index.compiled_rule import is_in
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import CosmeticRule, Effect
from gatewayfilter.engine.adblock.syntax.rule import HostSet
from gatewayfilter.urls import is_registry_suffix, registry_suffixes

_ELEMENTS_TEXT = """
a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption center cite code col colgroup
data datalist dd del details dfn dialog div dl dt em fieldset figcaption figure font footer form g h1 h2 h3 h4 h5 h6 head
header hgroup hr html i iframe img input ins kbd label legend li link main map mark menu meta meter nav noscript object ol
optgroup option output p param path picture pre progress q rect rp rt ruby s samp script search section select slot small source
span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul use var
video wbr
"""
_ELEMENTS = frozenset(_ELEMENTS_TEXT.split())
"""Elements that every page is made of."""

_LAYOUT_TEXT = """
__next __nuxt ___gatsby app article body col container container-fluid content home js layout main main-content no-js page
page-content page-template page-wrapper post root row section site site-content text title wp-site-blocks wrapper
"""
_LAYOUT = frozenset(_LAYOUT_TEXT.split())
"""Class names and ids in use on very many sites."""

_ATTRIBUTES_TEXT = """
accept action align alt aria-expanded aria-hidden aria-label async autocomplete bgcolor border cellpadding cellspacing charset
checked class color colspan content controls crossorigin data data-src datetime defer dir disabled draggable enctype fetchpriority
for frameborder height href hreflang http-equiv id integrity itemprop itemscope itemtype label lang loading max maxlength media
method min name nonce onclick onload pattern placeholder prefix property readonly referrerpolicy rel required role rowspan scope
selected size sizes span src srcset start step style tabindex target title translate type valign value viewbox width xmlns
"""
_ATTRIBUTES = frozenset(_ATTRIBUTES_TEXT.split())
"""Attributes in use on most pages: their value may be specific, their presence is not."""

_VALUES_TEXT = """
0 1 100% _blank alternate application/json application/ld+json auto banner block button canonical center checkbox color de
description display en en-us es false fr get height hidden http https icon image/png inline ja ko lazy ltr margin module
navigation nofollow none noopener padding password position post pt ru search shortcut stylesheet submit text text/css text/html
text/javascript true utf-8 viewport width zh zh-cn
"""
_VALUES = frozenset(_VALUES_TEXT.split())

_BEGINNINGS = "https://www. http://www. .com/ .html .jpg .png"
"""Common beginnings and ends of addresses; parts of them are not specific either."""

_HARMLESS_STYLES = re.compile(r"\s*(?:(?:overflow|padding|cursor|user-select)[\w-]*\s*:[^;]*(?:;\s*|\Z))*", re.IGNORECASE)
"""Declarations that leave a page as readable as it was."""

_PAGE = re.compile(r"(?:.*[\s>+~])?(?:html|body|\*)?(?::[a-z-]+)*", re.IGNORECASE | re.DOTALL)
"""Selectors for the page itself, or for any element: their arguments only choose pages, which would be hidden whole."""

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
"""Characters from which on a part of an attribute's value is specific."""


def cosmetic_refusal(rule: CosmeticRule) -> str:
    """Returns why a rule is refused, "" when it is accepted. About a microsecond."""
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
    """Returns the letter or digit that an escape stands for; other characters stay escaped."""
    letter = chr(min(int(match[1], 16), 0x10FFFF)) if match[1] else match[2]
    return letter if letter.isalnum() else match[0]


def _is_telling(selector: str) -> bool:
    """Returns whether every part between commas names something that few sites have."""
    return all(map(_part_is_telling, _parts(selector)))


def _part_is_telling(text: str) -> bool:
    rest: list[str] = []
    inner: list[tuple[str, str]] = []
    position = 0
    while call := _CALL.search(text, position):
        rest.append(text[position : call.start()])
        position = _closing(text, call.end())
        inner.append((call[1].lower(), text[call.end() : position - 1]))
    rest.append(text[position:])
    if any(map(_tells, _TOKEN.finditer(" ".join(rest)))):
        return True
    telling = _ALTERNATIVES - {"has"} if _PAGE.fullmatch("".join(rest).strip()) else _ALTERNATIVES
    return any(name in telling and _is_telling(argument) for name, argument in inner)


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
    """Returns the position behind the parenthesis that closes the one opened before `position`."""
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
    """Splits a selector at commas outside of brackets and strings."""
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
