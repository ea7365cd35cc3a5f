"""The reader of response policy zones: DNS zone files in which the target of a name is its action.

Source: draft-vixie-dnsop-dns-rpz-00 §4 (policy actions), §3.1 (QNAME triggers); RFC 1035 §5 for the file.
"""

import re
from collections.abc import Callable

from gatewayfilter.errors import RuleError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.formats.host_names import HOST_PATTERN, SINKS, all_ordinary, exact_host_key, whole_domain_key

_TTL = re.compile(r"\d+[smhdwSMHDW]?(?:\d+[smhdwSMHDW])*", re.ASCII)
_CLASSES = frozenset({"IN", "CH", "HS", "CS", "ANY"})
_ADDRESSES = frozenset({"A", "AAAA"})
_BLOCKING = frozenset({".", "*.", "rpz-drop."})
_PASSING = "rpz-passthru."
_OF_THE_ZONE = frozenset({"SOA", "NS", "TXT", "RRSIG", "DNSKEY", "NSEC", "NSEC3", "NSEC3PARAM", "DS", "MX", "CAA"})
"""Types of records that describe the zone or a walled garden, not a name."""

_TYPES = frozenset({"CNAME", "DNAME"}) | _ADDRESSES | _OF_THE_ZONE
_OTHER_TRIGGERS = (".rpz-ip", ".rpz-client-ip", ".rpz-nsdname", ".rpz-nsip")
_ORDINARY = re.compile(rf"(\*\.)?{HOST_PATTERN}[ \t]+(?:IN[ \t]+)?CNAME[ \t]+\.", re.ASCII)
"""A line that is complete in itself, as nearly every line of a large zone does."""

_COMMENT = re.compile(r'("[^"]*")|;.*')


class RpzReader:
    """Reads the lines of one zone, in order: owner names may be left away, and `$ORIGIN` counts for what follows.

    Args:
        action: what the list means; records of the other kind (`rpz-passthru.` in a list that blocks) are refused.
    """

    def __init__(self, action: ListAction = ListAction.BLOCK) -> None:
        self._action = action
        self._blocks = action is ListAction.BLOCK
        self._origin = ""
        self._zone = ""
        self._owner = ""
        self._depth = 0

    def read(self, text: str, _reject: Callable[[str], None]) -> list[str]:
        """Returns the key that a line stands for, none for one that is about the zone itself.

        Raises:
            RuleError: it is no policy for a name.
        """
        plain = self._blocks and not self._depth and (self._origin == self._zone or not self._origin or not self._zone)
        if plain and (found := _ORDINARY.fullmatch(text)) and all_ordinary([found[2]]):
            self._owner = (found[1] or "") + found[2]
            return [f".{found[2]}" if found[1] else found[2]]
        text = _COMMENT.sub(r"\1", text).strip()
        inside, self._depth = self._depth > 0, max(0, self._depth + text.count("(") - text.count(")"))
        if inside or not text:
            return []
        if text.startswith("$"):
            self._follow(text)
            return []
        owner, kind, target = self._record(text)
        if kind == "SOA":
            self._zone = self._absolute(owner)
        if kind in _OF_THE_ZONE:
            return []
        self._check(kind, target)
        return [self._key(owner)]

    def _follow(self, text: str) -> None:
        word, _, value = text.partition(" ")
        if word.upper() == "$ORIGIN":
            self._origin = value.strip().lower()
        elif word.upper() != "$TTL":
            raise RuleError(f"{word} is not followed")

    def _record(self, text: str) -> tuple[str, str, str]:
        words = text.split()
        if words[0].upper() not in _TYPES | _CLASSES and not (_TTL.fullmatch(words[0]) and len(words) > 2):
            self._owner = words.pop(0).lower()
        while words and (_TTL.fullmatch(words[0]) or words[0].upper() in _CLASSES):
            words.pop(0)
        if len(words) < 2 or words[0].upper() not in _TYPES:
            raise RuleError("no record of a zone")
        return self._owner, words[0].upper(), words[1].lower()

    def _check(self, kind: str, target: str) -> None:
        if kind == "CNAME" and target == _PASSING:
            if self._action is ListAction.BLOCK:
                raise RuleError("lets the name pass, in a list that blocks")
            return
        if not ((kind == "CNAME" and target in _BLOCKING) or (kind in _ADDRESSES and target in SINKS)):
            raise RuleError("sends the name somewhere else")
        if self._action is not ListAction.BLOCK:
            raise RuleError("blocks the name, in a list that allows")

    def _absolute(self, name: str) -> str:
        if name == "@":
            return self._origin
        return name if name.endswith(".") or not self._origin else f"{name}.{self._origin.lstrip('.')}"

    def _key(self, owner: str) -> str:
        name, zone = self._absolute(owner), self._zone or self._origin
        if not name or name in {"@", zone}:
            raise RuleError("the zone's own name")
        if zone and name.endswith("."):
            if not name.endswith(f".{zone}"):
                raise RuleError("a name outside of the zone")
            name = name[: -len(zone) - 1]
        name = name.removesuffix(".")
        if name.endswith(_OTHER_TRIGGERS):
            raise RuleError("a trigger that is no name of a host")
        return whole_domain_key(name[2:]) if name.startswith("*.") else exact_host_key(name)
