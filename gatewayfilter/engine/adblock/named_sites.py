"""The sites that a blocking rule names, by its text: for decisions on connections, when no URL is known yet.

A rule that names a host may block some of its URLs, whatever its path, types and conditions are. A rule that names none
(`/ads/*`) may match on every site and counts for none. In doubt a rule counts for too many hosts: their connections are
intercepted, which does no harm.
"""

import re
from collections.abc import Iterator
from typing import Final

from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.syntax.rule import NO_CONDITIONS, PARTY_SHIFT, TYPE_BITS, NetworkRule
from gatewayfilter.model import ResourceType
from gatewayfilter.urls import is_public_suffix

PROBED: Final = (ResourceType.DOCUMENT, ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.OTHER)
"""Resource types of the probe: a host's first page, requested by another site. A rule for a whole host matches one of them."""

_PROBED_BITS: Final = sum(TYPE_BITS[kind] for kind in PROBED) << PARTY_SHIFT
_BLOCKS: Final = frozenset({"", "response"})
_SCHEME: Final = re.compile(r"\|?(?:[a-z*]+:|:)?//", re.ASCII)
_HEAD: Final = re.compile(r"\[[0-9a-f:.]*\]|[a-z0-9_.*-]*", re.ASCII)
_THIRD, _STRICT_THIRD = 3, 3


def sites_of(rule: NetworkRule) -> frozenset[str]:
    """Returns the names of sites that a rule covers, subdomains included; entities (`google.*`) as written.

    For a rule without a host in its pattern these are the hosts of `to=`, or else the hosts of the pages in `domain=`.
    Empty for an exception, for a rule that only changes traffic, and for one of a whole host that a probe of that host finds
    (`PROBED`).
    """
    if rule.exception or rule.badfilter or rule.modifier not in _BLOCKS or _is_found_by_probe(rule):
        return frozenset()
    conditions = rule.conditions
    named = frozenset(_hosts_of_regex(rule) if rule.is_regex else hosts_in_pattern(rule.pattern))
    if named:
        return named
    if conditions.targets:
        return conditions.targets.names
    elsewhere = rule.party == _THIRD or conditions.strict == _STRICT_THIRD
    return frozenset() if elsewhere else conditions.sources.names


def _is_found_by_probe(rule: NetworkRule) -> bool:
    whole = not rule.modifier and rule.conditions is NO_CONDITIONS and bool(rule.mask & _PROBED_BITS)
    return whole and shape_of(rule).is_host


def _hosts_of_regex(rule: NetworkRule) -> Iterator[str]:
    for literal in shape_of(rule).literals:
        yield from hosts_in_text(literal)


def hosts_in_text(literal: str) -> Iterator[str]:
    """Yields the host at the beginning of a literal, if it must be a host because a slash follows it."""
    if "/" in literal.partition("://")[2] or ("://" not in literal and literal.find("/") > 0):
        yield from hosts_in_pattern(literal)


def hosts_in_pattern(pattern: str) -> Iterator[str]:
    """Yields the host names that a pattern requires in a URL's host, none when any host would do."""
    text = pattern.lower()
    scheme = _SCHEME.match(text)
    whole_label = text.startswith("||") or scheme is not None
    body = text[2:] if text.startswith("||") else text[scheme.end() :] if scheme else text.removeprefix("|")
    match = _HEAD.match(body)
    head = match[0] if match else ""
    ends_open = len(head) == len(body)
    if head.startswith("*"):
        head, whole_label = head.lstrip("*"), False
    stem = head.rstrip("*")
    if stem.endswith(".") and head != stem:
        yield from _entity(stem[:-1], whole_label=whole_label)
        return
    if "*" in stem:
        stem, whole_label = stem.rpartition("*")[2], False
    name = _whole_labels(stem, whole_label=whole_label)
    if _is_site(name):
        yield name
    if ends_open and whole_label and stem[-1:].isalnum() and not stem.startswith("."):  # `||name` matches `name.example`, too
        yield from _entity(stem, whole_label=True)


def _entity(stem: str, *, whole_label: bool) -> Iterator[str]:
    name = _whole_labels(stem.rpartition("*")[2], whole_label=whole_label and "*" not in stem)
    if name and not name.startswith("."):
        yield f"{name}.*"


def _whole_labels(text: str, *, whole_label: bool) -> str:
    """Returns the whole labels of a name. If it may begin within a label, that label is dropped where possible."""
    if text.startswith("."):
        return text[1:]
    rest = text.partition(".")[2]
    return text if whole_label or not _is_site(rest) else rest


def _is_site(name: str) -> bool:
    bare = name.strip("[]")
    if name.startswith("["):
        return ":" in bare
    return "." in bare and not bare.startswith(".") and not bare.endswith(".") and not is_public_suffix(name)
