"""The network rule after parsing, and the match and report values of the Adblock engine.

A rule's types and party are one bit mask, so that most rules are decided by a single AND with the request's bits:
bit t is "type t, first party", bit t + `PARTY_SHIFT` is "type t, third party".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType

from gatewayfilter.model import ResourceType

TYPE_BITS: Mapping[str, int] = MappingProxyType({kind.value: 1 << position for position, kind in enumerate(ResourceType)})
"""Resource type → its bit. A `ResourceType` is a string and can be the key as well."""

ALL_TYPES = (1 << len(TYPE_BITS)) - 1
DOCUMENT = TYPE_BITS[ResourceType.DOCUMENT]
DEFAULT_TYPES = ALL_TYPES & ~DOCUMENT
"""Types of a rule without type options; docs/adblock.md, "Policies", has the cases in which a page itself is added."""

PARTY_SHIFT = 12
"""Bits of the mask for one party; as many as there are resource types."""

SAMPLE_LIMIT = 20
"""Maximum of unused lines that a report shows."""


@dataclass(frozen=True, slots=True)
class AdblockMatch:
    """A rule that matched a request.

    Attributes:
        rule: the line as written in its list.
        source: index of its list.
        line: line number in that list, from 1.
        exception: it allows (`@@`) rather than blocks.
        important: it carries `$important`.
    """

    rule: str
    source: int
    line: int
    exception: bool
    important: bool


@dataclass(frozen=True, slots=True)
class AdblockReport:
    """The report of compiling one list. Every line is counted once.

    Attributes:
        accepted: network rules in force (a hosts line counts once for each host), `$badfilter` rules included.
        duplicates: lines with network rules that occurred earlier in the list.
        cosmetic: element hiding, scriptlet and HTML filter rules.
        comments: comments, blank lines, headers, directives, and lines switched off by `!#if`.
        unsupported: name of the modifier or directive → valid rules that cannot be honoured and were dropped.
        rejected: lines that are not a valid rule, and refused ones.
        refused: valid rules that match most of the web or cost too much (breadth/).
        samples: (line, text, reason) of rejected lines, refused ones first, and of the first for each name in
            `unsupported`, at most `SAMPLE_LIMIT`.
    """

    accepted: int = 0
    duplicates: int = 0
    cosmetic: int = 0
    comments: int = 0
    unsupported: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    refused: int = 0
    samples: tuple[tuple[int, str, str], ...] = ()


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class HostSet:
    """Hosts that an option names. A name covers its subdomains; `google.*` covers google under any public suffix.

    Attributes:
        names: host names and entities (`google.*`).
        patterns: regular expressions as written, without the slashes.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it names any host."""
        return bool(self.names or self.patterns)


NO_HOSTS = HostSet()


@dataclass(frozen=True, slots=True)
class ClientSet:
    """Clients of a `client=` option.

    Attributes:
        names: of clients, as policies name them.
        addresses: canonical.
        networks: with their prefix.
    """

    names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def __bool__(self) -> bool:
        """Whether it names any client."""
        return bool(self.names or self.addresses or self.networks)


NO_CLIENTS = ClientSet()


@dataclass(slots=True, unsafe_hash=True)  # as `HostSet`
class Conditions:
    """Conditions of a rule beyond type, party and pattern.

    Attributes:
        sources: hosts of which one must be the source (`domain=`, `from=`); `not_sources` those that must not.
        targets: hosts of which one must be the request's (`to=`); `not_targets` those that must not (`~`, `denyallow`).
        methods: HTTP methods in upper case; `not_methods` the excluded ones.
        strict: 1 the source must be the request's host (`strict1p`), 3 another host (`strict3p`), 0 any.
        clients: one of which the client must be (`client=`); `not_clients` those that it must not be.
        tags: groups of which one must be the client's (`ctag=`); `not_tags` those that must not.
        header: condition on a header of the response (`header=`), `address` on the server's address (`ipaddress=`); tested with
            the response (response_conditions.py).
    """

    sources: HostSet = NO_HOSTS
    not_sources: HostSet = NO_HOSTS
    targets: HostSet = NO_HOSTS
    not_targets: HostSet = NO_HOSTS
    methods: frozenset[str] = frozenset()
    not_methods: frozenset[str] = frozenset()
    strict: int = 0
    clients: ClientSet = NO_CLIENTS
    not_clients: ClientSet = NO_CLIENTS
    tags: frozenset[str] = frozenset()
    not_tags: frozenset[str] = frozenset()
    header: str = ""
    address: str = ""

    @property
    def names_clients(self) -> bool:
        """Whether the rule holds for some clients alone."""
        return bool(self.clients or self.not_clients or self.tags or self.not_tags)


NO_CONDITIONS = Conditions()


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class NetworkRule:
    """A parsed network rule.

    Attributes:
        pattern: of the URL, anchors included; a regular expression is enclosed in slashes.
        types: bits of the resource types.
        party: 1 first party only, 3 third party only, 0 both.
        badfilter: cancels the rule that is equal except for this option.
        modifier: its effect in place of blocking (`csp`, `removeparam` …, modifier_values.py), "" for a block or exception.
        value: the modifier's value as written, "" for none.
    """

    pattern: str
    exception: bool = False
    important: bool = False
    match_case: bool = False
    badfilter: bool = False
    types: int = DEFAULT_TYPES
    party: int = 0
    conditions: Conditions = NO_CONDITIONS
    modifier: str = ""
    value: str = ""

    @property
    def mask(self) -> int:
        """The bits of types and party."""
        first = 0 if self.party == 3 else self.types
        third = 0 if self.party == 1 else self.types
        return first | third << PARTY_SHIFT

    @property
    def identity(self) -> tuple[object, ...]:
        """Identity of a rule, independent of the order of its options and of `$badfilter`."""
        means = (self.exception, self.important, self.match_case, self.types, self.party, self.modifier, self.value)
        return (self.pattern, self.conditions, *means)

    @property
    def is_regex(self) -> bool:
        """Whether the pattern is a regular expression."""
        return len(self.pattern) > 2 and self.pattern[0] == "/" and self.pattern[-1] == "/"
