"""The options `client=` and `ctag=`: clients by name, address or network, and groups of clients.

Source: AdGuard DNS filtering syntax, "client" and "ctag". Deviation: a tag is the name of a group of clients here.
"""

import re
from ipaddress import ip_network

from gatewayfilter.engine.adblock.syntax.rule import ClientSet
from gatewayfilter.errors import RuleError
from gatewayfilter.model import canonical_address

_ITEM = re.compile(
    r"(?P<negated>~?)\s*(?:(?P<quote>['\"])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)|(?P<plain>(?!['\"])(?:\\.|[^|\\])*))\s*"
)
_ESCAPED = re.compile(r"\\(.)")
_MOST = 1_000


def read_clients(value: str) -> tuple[ClientSet, ClientSet]:
    """Parses clients separated by `|`; excluded ones (`~`) come second.

    Raises:
        RuleError: there is none, or the text cannot be read.
    """
    names: tuple[set[str], set[str]] = (set(), set())
    addresses: tuple[set[str], set[str]] = (set(), set())
    networks: tuple[set[str], set[str]] = (set(), set())
    for negated, name in _items(value):
        kind = _kind_of(name)
        (names, addresses, networks)[kind][negated].add(canonical_address(name) if kind == 1 else name)
    included, excluded = (
        ClientSet(
            frozenset(names[side]),
            frozenset(addresses[side]),
            tuple(ip_network(text, strict=False) for text in sorted(networks[side])),
        )
        for side in (0, 1)
    )
    return included, excluded


def read_tags(value: str) -> tuple[frozenset[str], frozenset[str]]:
    """Parses groups separated by `|`; excluded ones (`~`) come second.

    Raises:
        RuleError: there is none, or the text cannot be read.
    """
    found: tuple[set[str], set[str]] = (set(), set())
    for negated, name in _items(value):
        found[negated].add(name)
    return frozenset(found[0]), frozenset(found[1])


def _kind_of(name: str) -> int:
    """Returns 0 for a name, 1 for an address, 2 for a network."""
    try:
        if "/" in name:
            ip_network(name, strict=False)
            return 2
        canonical_address(name)
    except ValueError:
        return 0
    return 1


def _items(value: str) -> list[tuple[bool, str]]:
    found: list[tuple[bool, str]] = []
    position = 0
    while len(found) < _MOST:
        match = _ITEM.match(value, position)
        end = match.end() if match is not None else position
        if match is None or value[end : end + 1] not in {"", "|"}:
            raise RuleError("the clients of a rule are names, addresses or networks with | between them")
        text = match["quoted"] if match["quote"] else match["plain"].strip()
        name = _ESCAPED.sub(r"\1", text)
        if not name:
            raise RuleError("a rule names an empty client")
        found.append((bool(match["negated"]), name))
        position = end + 1
        if end == len(value):
            return found
    raise RuleError("a rule names too many clients")
