"""Parsing and formatting of manual rules' patterns; `engine.manual_rules.classify_pattern` decides what a pattern means."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from gatewayfilter.engine.state.manual_rules import classify_pattern
from gatewayfilter.errors import RuleError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.urls import parse_loose_url


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
        force: also accepts patterns that are usually too broad.

    Raises:
        RuleError: it is none, or too broad.
    """
    return Pattern(*classify_pattern(text, force=force))


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


def meaning_option(text: str) -> Callable[[Any], Any]:
    """Returns the options --block, --allow and --splice for one parameter, `meaning`."""

    def add(command: Any) -> Any:
        for action, said in reversed(
            (
                (ListAction.BLOCK, text),
                (ListAction.ALLOW, "They allow, and outrank every list."),
                (
                    ListAction.SPLICE,
                    "TLS to these hosts passes unread: for banks, and apps that trust no CA but their own.",
                ),
            )
        ):
            command = click.option(f"--{action}", "meaning", flag_value=action.value, default=ListAction.BLOCK.value, help=said)(
                command
            )
        return command

    return add
