"""The formats of lists, and the counts of a parsed list."""

from dataclasses import dataclass, field
from enum import StrEnum

SAMPLE_LIMIT = 10
"""Rejected lines that a report quotes."""

SAMPLE_LENGTH = 200


class ListFormat(StrEnum):
    """How a list is written. docs/sources.md describes each with an example."""

    HOSTS = "hosts"
    DOMAINS = "domains"
    ADBLOCK = "adblock"
    DNSMASQ = "dnsmasq"
    URLS = "urls"
    UT1 = "ut1"
    DIGESTS = "digests"
    RPZ = "rpz"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class ParseReport:
    """What became of the lines of a list.

    Attributes:
        list_format: as which format it was read.
        accepted: entries or rules in force, repeated ones left out.
        duplicates: entries that stood in the list already (of an Adblock list: lines with network rules).
        comments: comments, blank lines, and names that hosts files hold for the machine itself.
        cosmetic: Adblock rules that make no request and stop none.
        unsupported: Adblock rules that were understood but cannot be honoured, by modifier.
        rejected: lines, or names on a line, that are no valid entry.
        refused: those of them that are valid Adblock rules, but match the web as a whole or cost too much.
        samples: (line number, text, why) of the first of them, those refused before all others, at most `SAMPLE_LIMIT`.
        taken: the first entries as list keys, at most `SAMPLE_LIMIT`; none of an Adblock list.
    """

    list_format: ListFormat
    accepted: int = 0
    duplicates: int = 0
    comments: int = 0
    cosmetic: int = 0
    unsupported: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    refused: int = 0
    samples: tuple[tuple[int, str, str], ...] = ()
    taken: tuple[str, ...] = ()

    @property
    def entries(self) -> int:
        """Number of effective entries, cosmetic rules included."""
        return self.accepted + self.cosmetic
