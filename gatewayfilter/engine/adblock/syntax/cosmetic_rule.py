"""The parser of cosmetic rules: `##`, `#@#`, `#?#`, `#$#`, `##^`, `$$` and their variants."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from gatewayfilter.engine.adblock.css.declarations import read_declarations
from gatewayfilter.engine.adblock.css.selector import MAX_LENGTH, ProceduralError, read_selector
from gatewayfilter.engine.adblock.syntax.options import HOST, read_host
from gatewayfilter.engine.adblock.syntax.path_condition import PathCondition, split_path
from gatewayfilter.engine.adblock.syntax.rule import NO_HOSTS, HostSet
from gatewayfilter.engine.adblock.syntax.script_removal import read_script_test
from gatewayfilter.errors import RuleError, UnsupportedError
from gatewayfilter.safe_regex.cost_guard import guard_regex


class Effect(Enum):
    """The effect of a cosmetic rule."""

    HIDE = 0
    STYLE = 1
    REMOVE = 2
    SCRIPT_TEXT = 3
    HEADER = 4


type Subject = tuple[Effect, str, str, PathCondition | None]
"""What an exception shares with the rules that it disables: effect, text, style with its media condition, paths."""


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class CosmeticRule:
    """A parsed cosmetic rule.

    Attributes:
        exception: disables the rules of the same effect and text, on its hosts.
        hosts: where it applies, empty for everywhere; `not_hosts` where it does not.
        text: the selector; for SCRIPT_TEXT what the script's text must contain, for HEADER the header's name.
        style: for STYLE the declarations.
        media: the media condition under which it applies, "" for always.
        path: the paths of the pages to which it applies, `None` for all.
        shared: its selector can stand in one CSS rule with others.
    """

    effect: Effect
    exception: bool
    hosts: HostSet
    not_hosts: HostSet
    text: str
    style: str = ""
    shared: bool = True
    media: str = ""
    path: PathCondition | None = None

    @property
    def generic(self) -> bool:
        """Whether it names no host."""
        return not self.hosts

    @property
    def subject(self) -> Subject:
        """The key that an exception shares with the rules that it disables."""
        return (self.effect, self.text, f"{self.media}{{{self.style}" if self.media else self.style, self.path)

    @property
    def css(self) -> str:
        """The CSS rule of a rule that hides or styles on its own."""
        css = f"{self.text}{{{self.style or 'display:none!important'}}}"
        return f"@media {self.media}{{{css}}}" if self.media else css


MAX_BODY = 8_192
"""Maximum of characters behind the separator: parsing takes quadratic time at worst."""

_NAME = r"-?[A-Za-z_][A-Za-z0-9_-]*+"
_COMPOUND = rf'(?>(?:\*|{_NAME})?+(?:[#.]{_NAME}|\[{_NAME}(?:[~|^$*]?="[^"\\<(\n\r\f]*+")?+\])++|\*|{_NAME})'
_PLAIN_RULE = re.compile(rf"([a-z0-9.,*~_-]*+)##({_COMPOUND}(?:(?: ?[>+~] ?| ){_COMPOUND})*+)", re.ASCII)
"""Rules that hide elements by names, classes, ids and attributes, nearly all of them: their selectors are taken as written, but
for blanks around combinators. No group gives back what it matched, so the time is linear."""

_SPACED_COMBINATOR = re.compile(r'("[^"]*")| ?([>+~]) ?')
_PLAIN_HOSTS = re.compile(rf"{HOST.pattern}(?:,{HOST.pattern})*+", re.ASCII)

_MARK = re.compile(r"#(@?)(\$\?|\$|\?|%)?(@?)#")
_HTML_MARK = re.compile(r"\$(@?)\$")
_CSS_RULE = re.compile(r"(?P<selector>.*\S)\s*\{(?P<style>[^{}]*)\}\s*", re.DOTALL)
_STYLE_CALL = re.compile(r"(?P<selector>.*?):style\((?P<style>.*)\)", re.DOTALL)
_MEDIA_CALL = re.compile(r"(?P<selector>.+):matches-media\((?P<media>\([a-z0-9 ():.,/-]+\))\)", re.ASCII)
_REMOVE_CALL = re.compile(r"(?P<selector>.+):remove\(\)", re.DOTALL)
_ENDS_OF_FORMS = (")", "}")
"""How a rule of one of these forms ends: most rules do not, and need no search for them."""

_REMOVE_STYLE = re.compile(r"\s*remove\s*:\s*true\s*;?\s*", re.IGNORECASE)
_OLD_HAS = re.compile(r":(?:-abp-has|if)\(")
"""Older names of `:has()`, from before browsers supported it."""

_TEXT_CALL = re.compile(
    r"(?P<selector>[^:]+(?::(?!has-text|contains|-abp-)[^:]+)*):(?:has-text|contains|-abp-contains)\((?P<text>.+)\)"
)
_ANOTHER_CALL = re.compile(r"\)[\s>+~]*:")
_RESPONSE_HEADER = re.compile(r"responseheader\(([^()]*)\)", re.IGNORECASE)
_ADGUARD_TEXT = re.compile(r"(?P<tag>[a-z*]*)(?P<rest>.*?)\[tag-content=\"(?P<text>[^\"]+)\"\](?P<more>.*)", re.IGNORECASE)
_ADGUARD_SPECIAL = re.compile(
    r"\[(?:tag-content|wildcard|max-length|min-length|parent-elements|parent-search-level)=", re.IGNORECASE
)

REMOVABLE_HEADERS = frozenset({"location", "refresh", "report-to", "set-cookie"})
"""Response headers that `##^responseheader()` may remove, as in uBlock Origin."""


def read_cosmetic(line: str) -> CosmeticRule:
    """Parses a line that is a cosmetic rule by its separator.

    Raises:
        UnsupportedError: it is valid, but a proxy cannot apply it.
        RuleError: it is not valid.
    """
    plain = _PLAIN_RULE.fullmatch(line) if len(line) <= MAX_LENGTH else None
    if plain:
        hosts, selector = plain.groups()
        if " " in selector:
            selector = _SPACED_COMBINATOR.sub(r"\1\2", selector)
        return CosmeticRule(Effect.HIDE, False, *_read_hosts(hosts), selector)  # `exception`
    return read_any_cosmetic(line)


def read_any_cosmetic(line: str) -> CosmeticRule:
    """Returns what `read_cosmetic` does, without the short way for plain selectors."""
    if line.startswith("[$"):
        raise UnsupportedError("[$…]")
    match = _MARK.search(line)
    html = _HTML_MARK.search(line)
    if html and len(line) - html.end() > MAX_BODY:
        raise RuleError(f"what follows the mark is longer than {MAX_BODY} characters")
    if html and (match is None or html.start() < match.start()):
        return _read_html(line[: html.start()], line[html.end() :], exception=bool(html[1]), adguard=True)
    if match is None:
        raise RuleError("not a cosmetic rule")
    if len(line) - match.end() > MAX_BODY:
        raise RuleError(f"what follows the mark is longer than {MAX_BODY} characters")
    hosts, body = line[: match.start()], line[match.end() :].strip()
    exception = bool(match[1] or match[3])
    kind = match[2] or ""
    if kind == "%":
        raise UnsupportedError("#%#")
    if body.startswith(("+js(", "script:inject(")):
        raise UnsupportedError("##+js")
    if ">>" in hosts:  # uBlock Origin: pages in frames of these hosts; a page's ancestors are not in its request
        raise UnsupportedError(">>")
    if body.startswith("^"):
        return _read_html(hosts, body[1:], exception=exception, adguard=False)
    return _read_css(hosts, body, exception=exception, kind=kind)


def _read_css(hosts: str, body: str, *, exception: bool, kind: str) -> CosmeticRule:
    effect, style = Effect.HIDE, ""
    for form in (_CSS_RULE, _STYLE_CALL, _REMOVE_CALL) if body.endswith(_ENDS_OF_FORMS) else ():
        found = form.fullmatch(body)
        if found is None:
            continue
        body = found["selector"]
        if form is _REMOVE_CALL or (form is _CSS_RULE and _REMOVE_STYLE.fullmatch(found["style"])):
            effect = Effect.REMOVE
        else:
            effect, style = Effect.STYLE, found["style"]
        break
    else:
        if kind.startswith("$"):
            raise RuleError("a style rule has the form selector { declarations }")
    body, media = _split_media(body)
    body, path = split_path(body)
    try:
        selector = read_selector(_OLD_HAS.sub(":has(", body))
    except ProceduralError as error:
        raise UnsupportedError(f":{error.operator}()") from error
    if effect is Effect.STYLE:
        style = read_declarations(style)
    included, excluded = _read_hosts(hosts)
    if effect is not Effect.HIDE and not included and not exception:
        raise UnsupportedError("a style for every site" if effect is Effect.STYLE else "a removal on every site")
    if media and (effect is Effect.REMOVE or not included):
        raise UnsupportedError(":matches-media()")
    if path is not None and not included:
        raise UnsupportedError(":matches-path()")
    return CosmeticRule(effect, exception, included, excluded, selector.text, style, selector.shared and not media, media, path)


def _split_media(body: str) -> tuple[str, str]:
    """Returns a selector without `:matches-media()` at its end, and the media condition, "" for none."""
    found = _MEDIA_CALL.fullmatch(body) if body.endswith("))") else None
    if found is None or not _is_balanced(found["media"]):
        return body, ""
    return found["selector"], found["media"]


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _read_html(hosts: str, body: str, *, exception: bool, adguard: bool) -> CosmeticRule:
    included, excluded = _read_hosts(hosts)
    if not included and not exception:
        raise UnsupportedError("a removal on every site")
    header = _RESPONSE_HEADER.fullmatch(body)
    if header and not adguard:
        name = header[1].strip().lower()
        if name not in REMOVABLE_HEADERS:
            raise UnsupportedError("##^responseheader()")
        return CosmeticRule(Effect.HEADER, exception, included, excluded, name)
    if adguard and _ADGUARD_SPECIAL.search(body):
        text = _adguard_text(body)
        return CosmeticRule(Effect.SCRIPT_TEXT, exception, included, excluded, text)
    script = _script_text(body)
    if script is not None:
        read_script_test(script)
        return CosmeticRule(Effect.SCRIPT_TEXT, exception, included, excluded, script)
    call = _TEXT_CALL.fullmatch(body)
    if call is not None and not _ANOTHER_CALL.search(call["text"]):
        read_script_test(call["text"])
        selector = read_selector(call["selector"])
        return CosmeticRule(Effect.REMOVE, exception, included, excluded, f"{selector.text}:has-text({call['text']})")
    try:
        selector = read_selector(body)
    except ProceduralError as error:
        raise UnsupportedError(f"##^:{error.operator}()") from error
    return CosmeticRule(Effect.REMOVE, exception, included, excluded, selector.text)


def _script_text(body: str) -> str | None:
    """Returns the arguments of `script:has-text(…)` (one or several in a row), `None` for any other text."""
    for name in ("has-text", "contains", "-abp-contains"):
        start = f"script:{name}("
        if body.startswith(start) and body.endswith(")"):
            inside = body[len(start) : -1]
            return inside.replace(f"):{name}(", "\n")
    return None


def _adguard_text(body: str) -> str:
    match = _ADGUARD_TEXT.fullmatch(body)
    if match is None or match["tag"].lower() != "script" or match["rest"] or match["more"]:
        raise UnsupportedError("$$ with special attributes")
    read_script_test(match["text"])
    return match["text"]


@lru_cache(maxsize=4_096)
def _read_hosts(text: str) -> tuple[HostSet, HostSet]:
    """Parses the hosts before the separator; excluded ones (`~`) come second."""
    if not text:
        return NO_HOSTS, NO_HOSTS
    if _PLAIN_HOSTS.fullmatch(text):
        return HostSet(frozenset(text.split(","))), NO_HOSTS
    sides: list[tuple[set[str], list[str]]] = [(set(), []), (set(), [])]
    for item in _split_hosts(text):
        negated = item.startswith("~")
        name = item[negated:]
        names, patterns = sides[negated]
        if name == "*" and not negated:
            continue
        if len(name) > 2 and name[0] == "/" and name[-1] == "/":
            guard_regex(name[1:-1])
            patterns.append(name[1:-1])
        else:
            names.add(read_host(name))
    included, excluded = (
        HostSet(frozenset(names), tuple(patterns)) if names or patterns else NO_HOSTS for names, patterns in sides
    )
    return included, excluded


def _split_hosts(text: str) -> list[str]:
    items: list[str] = []
    for piece in text.split(","):
        if items and items[-1].lstrip("~").startswith("/") and not items[-1].endswith("/"):
            items[-1] += "," + piece
        elif piece.strip():
            items.append(piece.strip())
    return items
