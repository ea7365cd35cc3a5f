"""Parsing and formatting of manual rules' patterns; `engine.manual_rules.classify_pattern` decides what a pattern means."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from gatewayfilter.engine.adblock.syntax.option_table import is_option_name
from gatewayfilter.engine.state.manual_rules import classify_pattern
from gatewayfilter.errors import RuleError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.urls import parse_loose_url

_NETWORK = re.compile(r"\d{1,3}(\.\d{1,3}){3}/\d{1,2}", re.ASCII)
_QUAD = re.compile(r"\d{1,4}(\.\d{1,4}){3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as entries keep it (`ManualRule.pattern`)."""

    kind: EntryKind
    text: str

    def describe(self, action: ListAction | None = None) -> str:
        """Returns what it stands for, in words; in an entry with this action, which may make it stand for more."""
        text = self.text
        match self.kind:
            case EntryKind.DOMAIN:
                return f"{text.removeprefix('.')} and its subdomains"
            case EntryKind.HOST:
                return f"the host {text}"
            case EntryKind.PREFIX:
                return f"{text.removesuffix('*')} and everything below it"
            case EntryKind.URL:
                any_query = action is ListAction.BLOCK and "?" not in text  # as engine.manual_rules.blocks_any_query
                return f"the page {text} with any query" if any_query else f"the page {text}"
            case EntryKind.WILDCARD:
                return f"every URL that fits {text}"
            case EntryKind.REGEX:
                return f"every URL in which /{text}/ is found"

    def written(self) -> str:
        """Returns it as a user would write it; `read_pattern` reads it back."""
        match self.kind:
            case EntryKind.DOMAIN:
                return self.text.removeprefix(".")
            case EntryKind.HOST:
                return f"|{self.text}"
            case EntryKind.REGEX:
                return f"/{self.text}/"
            case _:
                return self.text

    @property
    def whole_site(self) -> str:
        """The host where only its start page is meant, which is rarely intended; `""` otherwise."""
        host, slash, rest = self.text.partition("/")
        return host if self.kind is EntryKind.URL and slash and not rest else ""


def written(rule: ManualRule) -> str:
    """Returns an entry's pattern as a user would write it."""
    return Pattern(rule.kind, rule.pattern).written()


def read_pattern(text: str, *, force: bool = False) -> Pattern:
    """Reads a pattern.

    Args:
        text: as typed by the user.
        force: also accepts patterns that are usually too broad, and those that end like an Adblock rule with options.

    Raises:
        RuleError: it is none, or one that `force` would accept.
    """
    if not force and has_adblock_options(text):
        raise RuleError(_with_options(repr(text.strip()[:200])))
    try:
        return Pattern(*classify_pattern(text, force=force))
    except RuleError as error:
        hint = _hint(text.strip())
        if not hint:
            raise
        raise RuleError(hint) from error


def _hint(text: str) -> str:
    """Returns what is wrong with text that is no pattern, where its form shows what was meant; `""` otherwise."""
    shown = repr(text[:200])
    if "," in text:
        return f"{shown} is no pattern: part several by spaces, not commas"
    if _QUAD.fullmatch(text):
        return f"{shown} is no valid IP address"
    if text.startswith("||") and "$" in text:
        return _with_options(shown)
    return ""


def _with_options(shown: str) -> str:
    return f"{shown} is an Adblock rule with options: write it to a file and add that with `gatewayfilter source add FILE`"


def has_adblock_options(text: str) -> bool:
    """Returns whether a line ends like an Adblock rule with options (`*ads*$script`): as a pattern it fits next to nothing."""
    pattern, _, options = text.strip().rpartition("$")
    return bool(pattern) and is_option_name(options) and not (text.startswith("/") and text.endswith("/"))


def refuse_network(text: str) -> None:
    """Refuses a network as it is typed: as a pattern it would be a page named `8` of the host 10.0.0.0.

    Raises:
        RuleError: it is one.
    """
    if _NETWORK.fullmatch(text.strip()):
        raise RuleError(f"{text.strip()!r} is a network, and a rule names hosts: write each address, or the page with http://")


def mixed_scripts(pattern: Pattern) -> str:
    """Returns the host of a pattern as it reads, if letters of several scripts stand in one of its labels; `""` otherwise.

    Such a name is rarely what was meant: a Cyrillic letter that looks like a Latin one makes another host.
    """
    if "xn--" not in pattern.text:
        return ""
    host = host_of_key(pattern.text.rstrip("*"))
    try:
        shown = ".".join(
            label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label for label in host.split(".")
        )
    except UnicodeError:
        return ""
    return shown if any(len({_script(letter) for letter in label if letter.isalpha()}) > 1 for label in shown.split(".")) else ""


def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "HAN" if name in {"CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO"} else name


def pattern_of_key(key: str) -> Pattern:
    """Returns a list key (urls.py) as a pattern; a URL whose path ends in `/*` reads as the prefix."""
    if key.startswith("."):
        return Pattern(EntryKind.DOMAIN, key)
    if "/" not in key:
        return Pattern(EntryKind.HOST, key)
    return Pattern(EntryKind.PREFIX if key.endswith("/*") else EntryKind.URL, key)


def host_of_key(key: str) -> str:
    """Returns the host that a list key is about, without port."""
    netloc = key.removeprefix(".").partition("/")[0]
    return netloc if netloc.endswith("]") else re.sub(r":\d+$", "", netloc)


def read_url(text: str) -> Pattern:
    """Reads text as exactly this page, even where a `*` would make it a wildcard.

    Raises:
        UrlError: it is no URL.
    """
    return Pattern(EntryKind.URL, parse_loose_url(text).key)


_VERBS = {ListAction.BLOCK: "blocks", ListAction.ALLOW: "allows", ListAction.SPLICE: "passes unread the connections to"}


def verb_of(action: ListAction) -> str:
    """Returns what an entry does, as it stands before `Pattern.describe`."""
    return _VERBS[action]


def refuse_unspliceable(action: ListAction, kind: EntryKind) -> None:
    """Sees that an entry that lets connections pass unread names a host: nothing else is known of them.

    Raises:
        RuleError: it does not.
    """
    if action is ListAction.SPLICE and kind not in {EntryKind.DOMAIN, EntryKind.HOST}:
        raise RuleError(f"only the connections of whole hosts can pass unread, not a {kind}")
