"""What people write to name pages and sites, read as a list entry.

==============================  ========  =======================================================
written                         kind      stands for
==============================  ========  =======================================================
``example.com``, ``.example.…`` domain    the host and all its subdomains; also ``*.example.com``
``example.com`` with --exact    host      exactly this host
``||example.com^``              domain    the same, as Adblock lists write it
``https://example.com/a?b``     url       exactly this page, by http or https
``example.com/a/*``             prefix    this path and all below it, with any query
``*.cdn.*/banner*``             wildcard  any URL that fits; ``*`` stands for any text
``/ads?[0-9]+/``                regex     any URL that the expression is found in
==============================  ========  =======================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import EntryKind
from gatewayfilter.urls import (
    canonical_host,
    domain_key,
    host_key,
    is_ip_literal,
    is_public_suffix,
    parse_loose_url,
    prefix_key,
)

MAX_PATTERN_LENGTH = 4096
_LEAST_LITERALS = 3
"""Letters and digits that a wildcard needs to be meant: `*.c*` hits half of the web."""
_HOST_AND_PORT = re.compile(r"^[^:]*:[0-9]+$|\]:[0-9]+$", re.ASCII)
_PROBES = ("https://www.example.org/", "http://192.0.2.7/x?y=1", "https://news.test/2024/05/story.html", "http://a-b.invalid/Z")
"""Addresses with nothing in common: what fits them all fits everything."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as entries keep it (`PersonRule.pattern`)."""

    kind: EntryKind
    text: str

    def describe(self) -> str:
        """Returns what it stands for, in words."""
        text = self.text
        match self.kind:
            case EntryKind.DOMAIN:
                return f"{text.removeprefix('.')} and its subdomains"
            case EntryKind.HOST:
                return f"the host {text}"
            case EntryKind.PREFIX:
                return f"{text.removesuffix('*')} and everything below it"
            case EntryKind.URL:
                return f"the page {text}"
            case EntryKind.WILDCARD:
                return f"every URL that fits {text}"
            case EntryKind.REGEX:
                return f"every URL in which /{text}/ is found"

    def written(self) -> str:
        """Returns it as a person would write it; `read_pattern` reads it back (a host needs `exact`)."""
        match self.kind:
            case EntryKind.DOMAIN:
                return self.text.removeprefix(".")
            case EntryKind.REGEX:
                return f"/{self.text}/"
            case _:
                return self.text


def read_pattern(text: str, *, exact: bool = False) -> Pattern:
    """Reads a pattern; the table above says how.

    Args:
        text: as a person writes it.
        exact: a bare host means this host alone, without its subdomains.

    Raises:
        RuleError: it is none.
    """
    text = text.strip()
    if not text or len(text) > MAX_PATTERN_LENGTH or not text.isprintable():
        raise RuleError(f"a pattern needs 1 to {MAX_PATTERN_LENGTH} printable characters, not {text[:60]!r}")
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return _regex(text[1:-1])
    if text.startswith("/"):
        raise RuleError(f"{text[:200]!r} begins like a regular expression but does not end with a slash")
    try:
        return _address(text, exact=exact)
    except UrlError as error:
        raise RuleError(f"{text[:200]!r} is no URL, host, wildcard or /regex/: {error}") from error


def _regex(text: str) -> Pattern:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(f"the regular expression /{text}/ cannot be read: {error}") from error
    return Pattern(EntryKind.REGEX, text)


def _address(text: str, *, exact: bool) -> Pattern:
    if text.startswith("||"):
        return _site(text[2:].removesuffix("^"), exact=False)
    bare = text.removeprefix("*.")
    if "*" in bare:
        stem = text.removesuffix("*")
        if text.endswith("/*") and not any(mark in stem for mark in "*?#"):
            return Pattern(EntryKind.PREFIX, prefix_key(parse_loose_url(stem)))
        return Pattern(EntryKind.WILDCARD, text)
    if any(mark in bare for mark in "/?#"):
        return Pattern(EntryKind.WILDCARD, text) if bare != text else Pattern(EntryKind.URL, parse_loose_url(text).key)
    if _HOST_AND_PORT.search(bare):
        return Pattern(EntryKind.WILDCARD, text) if bare != text else Pattern(EntryKind.PREFIX, prefix_key(parse_loose_url(text)))
    return _site(bare.removeprefix("."), exact=exact)


def _site(text: str, *, exact: bool) -> Pattern:
    host = canonical_host(text)
    if exact or is_ip_literal(host):
        return Pattern(EntryKind.HOST, host_key(host))
    return Pattern(EntryKind.DOMAIN, domain_key(host))


def too_broad(pattern: Pattern) -> str:
    """Returns why a pattern is probably not meant, `""` for one that is fine."""
    match pattern.kind:
        case EntryKind.DOMAIN:
            host = pattern.text.removeprefix(".")
            if is_public_suffix(host):
                return f"{host!r} is a whole top-level domain or public suffix"
        case EntryKind.WILDCARD:
            body = pattern.text.partition("://")[2] or pattern.text
            if sum(mark.isalnum() for mark in body) < _LEAST_LITERALS:
                return f"{pattern.text!r} fits nearly every URL"
        case EntryKind.REGEX:
            expression = re.compile(pattern.text, re.IGNORECASE)
            if all(expression.search(probe) for probe in _PROBES):
                return f"/{pattern.text}/ fits every URL"
        case _:
            pass
    return ""
