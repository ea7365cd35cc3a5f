"""Breadth check of network rules: a rule that matches requests of many unrelated sites is refused.

Most rules are bound by their text: to a host, to a literal that ordinary URLs lack, to the pages that they apply to, or to
the server's address. Only the rest is tried (probe_sites.py), some hundred of a hundred thousand rules.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from gatewayfilter.engine.adblock.breadth.broad_modifiers import does_harm
from gatewayfilter.engine.adblock.breadth.broad_responses import is_bound_by_response
from gatewayfilter.engine.adblock.breadth.probe_sites import (
    COMMON_SUFFIXES,
    MANY,
    SITES,
    SUFFIXES,
    Site,
    Sites,
    address_sites,
    common_text,
    fixed_sites,
)
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.pattern import PatternShape
from gatewayfilter.engine.adblock.syntax.rule import HostSet, NetworkRule
from gatewayfilter.urls import is_registry_suffix, registry_suffixes

MAX_TRIED = 5_000
"""Rules of one list that are tried, about a second; those that would have to be after them are refused."""

_FEW_LETTERS = 3
"""A literal of at most this length may occur in any host name."""

_MAX_SUFFIXES = 24
"""Public suffixes named by a rule that are tried one by one."""

_PATIENCE = 4
"""Sites without a match after which the trial ends."""

_SCREENED = 3
"""For a suffix that the rule does not name, every third request of one site is tried first."""

_COMMON = common_text()
_NAME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*", re.ASCII)
_MARKS = "./:|^*?-"

_BLOCKS = frozenset({"", "response", "redirect"})


class BreadthGuard:
    """Checks the network rules of one list together: the host names of the trial are derived from all of them."""

    __slots__ = ("_sites",)

    def __init__(self) -> None:
        self._sites: dict[tuple[tuple[str, ...], tuple[str, ...]], Sites] = {}

    def refusals(self, rules: Iterable[tuple[NetworkRule, PatternShape]]) -> dict[int, str]:
        """Returns why rules are refused, by their position.

        Most are bound by their text, which takes 0.1 µs to find; a rule that must be tried takes 0.3 ms.
        """
        suffixes, wildcards, _ = registry_suffixes()
        near = [
            (position, rule, shape)
            for position, (rule, shape) in enumerate(rules)
            if not (host := shape.host) or host in suffixes or host.partition(".")[2] in wildcards
        ]
        doubtful = [(position, rule, shape) for position, rule, shape in near if does_harm(rule) and not _is_bound(rule, shape)]
        state = blake2b(digest_size=8)
        for _, rule, _ in doubtful[:MAX_TRIED]:
            state.update(repr(rule.identity).encode(errors="replace"))
        seed = int.from_bytes(state.digest())
        found = {
            position: _sentence(rule, where)
            for position, rule, shape in doubtful[:MAX_TRIED]
            if (where := self._covered(rule, shape, seed))
        }
        too_many = f"the list has more than {MAX_TRIED:,} rules that may speak of any site"
        return found | {position: too_many for position, _, _ in doubtful[MAX_TRIED:]}

    def _covered(self, rule: NetworkRule, shape: PatternShape, seed: int) -> str:
        """Returns a description of what a rule matches; "" when it is bound to something."""
        test = CompiledRule(rule).matches
        mask = rule.mask

        def speaks_of(site: Site) -> bool:
            for request, bits, lowered, source in site:  # noqa: SIM110  a generator for each site takes twice as long
                if mask & bits and test(request, lowered, source):
                    return True
            return False

        if _many(map(speaks_of, self._random(seed, SUFFIXES, ()))):
            return "most of the web"
        own, pages = _suffixes_in(rule, shape), _suffixes_of(rule.conditions.sources)
        for suffix in dict.fromkeys((*own, *pages)):
            wanted = (suffix,) if suffix in own else SUFFIXES
            asking = (suffix,) if suffix in pages else SUFFIXES if pages else ()
            if _many(map(speaks_of, self._random(seed, wanted, asking))):
                return f"everything below {suffix!r}"
        for suffix in COMMON_SUFFIXES:
            sites = fixed_sites(suffix)
            if speaks_of(next(iter(sites))[::_SCREENED]) and _many(map(speaks_of, sites)):
                return f"everything below {suffix!r}"
        return "everything that is known by its address" if _many(map(speaks_of, address_sites())) else ""

    def _random(self, seed: int, suffixes: tuple[str, ...], pages: tuple[str, ...]) -> Sites:
        found = self._sites.get((suffixes, pages))
        if found is None:
            found = self._sites[suffixes, pages] = Sites(seed, suffixes, pages)
        return found


def _sentence(rule: NetworkRule, where: str) -> str:
    if rule.exception:
        return f"it would switch off blocking on {where}"
    return f"it {'would block' if rule.modifier in _BLOCKS else f'would change, by {rule.modifier!r},'} {where}"


def _is_bound(rule: NetworkRule, shape: PatternShape) -> bool:
    conditions = rule.conditions
    return (
        _is_telling(shape.literals)
        or _names_sites(conditions.sources)
        or _names_sites(conditions.targets)
        or ((conditions.header or conditions.address) != "" and is_bound_by_response(conditions))
    )


def _is_telling(literals: tuple[str, ...]) -> bool:
    """Returns whether URLs of most sites lack one of these literals."""
    return not all(map(_may_be_anywhere, "/".join(literals).split("/")))


def _may_be_anywhere(text: str) -> bool:
    return len(text) <= _FEW_LETTERS or text in _COMMON or is_registry_suffix(text.strip(_MARKS))


def _names_sites(hosts: HostSet) -> bool:
    """Returns whether a condition holds for single sites only."""
    return bool(hosts.names) and not hosts.patterns and not any(map(is_registry_suffix, hosts.names))


def _many(answers: Iterator[bool]) -> bool:
    """Returns whether enough answers are yes to call a rule too broad; stops as soon as that is decided."""
    hits = misses = 0
    for answer in answers:
        hits += answer
        misses += not answer
        if hits >= MANY or misses > SITES - MANY or (not hits and misses >= _PATIENCE):
            break
    return hits >= MANY


def _suffixes_of(hosts: HostSet) -> tuple[str, ...]:
    return tuple(sorted(filter(is_registry_suffix, hosts.names)))[:_MAX_SUFFIXES]


def _suffixes_in(rule: NetworkRule, shape: PatternShape) -> tuple[str, ...]:
    """Returns the public suffixes that a rule names for requested hosts: in its pattern or in `to=`."""
    found = dict.fromkeys(_suffixes_of(rule.conditions.targets))
    names, _, _ = registry_suffixes()
    text = shape.host or rule.pattern.lower().replace("\\", "")
    for match in _NAME.finditer(text):
        name = match[0].strip("-")
        while name:
            if name in names or is_registry_suffix(name):
                found[name] = None
            name = name.partition(".")[2]
    return tuple(found)[:_MAX_SUFFIXES]
