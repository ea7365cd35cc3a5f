"""The first rules of many requests, in one call: what `AdblockMatcher.first_block` finds for each.

Rules that want a certain text behind the host, four fifths of those that are tested, are tested by the compiled twin
(`engine/adblock/_rule_tests.pyx`) in the bytes of the URL; it calls the others as Python does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.rule_index import RuleIndex, RulesBetween
from gatewayfilter.model import Request

_compiled = load("gatewayfilter.engine.adblock._rule_tests")

NO_HITS: Final[tuple[tuple[int, ...], ...]] = ()


@dataclass(slots=True)
class TestedRows:
    """Requests of which the first rule is wanted.

    Attributes:
        text: URLs in lower case, ASCII as far as they are read here.
        begins, ends: where the URL of each request is in `text`.
        members: number of the class of each.
        sources: host of the source of each class, "" when there is none.
        heads: length of scheme and host of each class, with what is between them.
        requests: what is known of each request, `None` for nothing: reading more of it raises `AttributeError`.
        whole: number of a request → all of it.
        hits: of literals in the URL of each.
    """

    __test__ = False  # what pytest would take for tests

    text: bytes
    begins: list[int]
    ends: list[int]
    members: list[int]
    sources: list[str]
    heads: list[int]
    requests: list[Request | None]
    whole: Callable[[int], Request]
    hits: list[Sequence[tuple[int, ...]]] = field(default_factory=list)


def first_of_each(index: RuleIndex, between: list[RulesBetween], rows: TestedRows) -> list[int]:
    """Returns the number of the first rule of each request, -1 without one.

    Args:
        index: of the rules.
        between: the rules of each class.
        rows: the requests.
    """
    if _compiled is not None:
        found: list[int] = _compiled.first_of_each(rows, between, index.posted, index.tests, index.literals.at)
        return found
    return _first_of_each(index, between, rows)


def _first_of_each(index: RuleIndex, between: list[RulesBetween], rows: TestedRows) -> list[int]:
    text, found = rows.text.decode("latin-1"), []
    places = zip(rows.begins, rows.ends, rows.members, rows.hits, strict=True)
    for row, (begin, end, member, hits) in enumerate(places):
        low, near, source = text[begin:end], between[member], rows.sources[member]
        request = rows.requests[row]
        try:
            known = rows.whole(row) if request is None else request
            rule = index.first_of(near, known, low, source, hits)
        except AttributeError:  # a rule that needs all of the URL
            rule = index.first_of(near, rows.whole(row), low, source, hits)
        found.append(rule)
    return found
