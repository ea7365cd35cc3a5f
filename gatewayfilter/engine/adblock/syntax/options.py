"""The parser of the options behind a rule's `$`: their names by the table of options, and their values."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.client_option import read_clients, read_tags
from gatewayfilter.engine.adblock.syntax.option_table import OPTIONS, STUB_OPTIONS, Meaning, Option, is_option_name
from gatewayfilter.engine.adblock.syntax.rule import (
    ALL_TYPES,
    DEFAULT_TYPES,
    NO_CONDITIONS,
    NO_HOSTS,
    TYPE_BITS,
    Conditions,
    HostSet,
)
from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.safe_regex.cost_guard import guard_regex
from gatewayfilter.urls import canonical_host

HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*(?:\.\*)?", re.ASCII)
"""A host name or entity in canonical form."""

_PLAIN_HOSTS = re.compile(rf"~?{HOST.pattern}(?:\|~?{HOST.pattern})*+", re.ASCII)
_KEPT_LENGTH = 64
"""Options of at most this many characters are kept: most rules have one of some dozen (`third-party`)."""
_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})


@dataclass(slots=True)
class RuleOptions:
    """The parsed options of a rule.

    Attributes:
        types: bits of the named types, 0 for none; `not_types` of the excluded ones.
        party: 1 first party only, 3 third party only, 0 both.
        unsupported: name of the option for which the rule is dropped, "" for none.
        modifier: the effect in place of blocking, with its `value`; "" for none.
        switches: page switches of an exception (`generichide` …).
        inline: what pages must not contain (`inline-script`, `inline-font`).
        absent_type: a named type that a proxy never sees as a request (`popup` …).
        conditions: those beyond type, party and pattern.
    """

    types: int = 0
    not_types: int = 0
    party: int = 0
    important: bool = False
    badfilter: bool = False
    match_case: bool = False
    unsupported: str = ""
    modifier: str = ""
    value: str = ""
    switches: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    absent_type: str = ""
    conditions: Conditions = NO_CONDITIONS

    @property
    def names_types(self) -> bool:
        """Whether any type is named or excluded."""
        return bool(self.types or self.not_types)

    @property
    def effective_types(self) -> int:
        """Bits of the types that the rule applies to, 0 when a proxy sees none of them."""
        return self.types_or(DEFAULT_TYPES)

    def types_or(self, types: int) -> int:
        """Returns the bits of the named types, or `types` when none is named, without the excluded ones."""
        return (self.types or types) & ~self.not_types


def read_options(text: str) -> RuleOptions:
    """Parses the options behind the `$`. Callers share the result, and do not change it.

    Raises:
        RuleError: one is unknown, contradicts another, or has an invalid value.
    """
    return _read_short_options(text) if len(text) <= _KEPT_LENGTH else _read_options(text)


@lru_cache(maxsize=512)
def _read_short_options(text: str) -> RuleOptions:
    return _read_options(text)


def _read_options(text: str) -> RuleOptions:
    options = RuleOptions()
    for name, negated, value in _split(text):
        if not name.strip("_"):
            continue
        option = OPTIONS.get(name)
        if option is None:
            raise RuleError(f"unknown option {name!r}")
        if value is not None and not option.value:
            raise RuleError(f"the option {name!r} takes no value")
        _apply(options, option, value, negated=negated)
    if options.absent_type and not (options.types or options.modifier or options.switches or options.inline):
        options.unsupported = options.unsupported or options.absent_type
    return options


def _split(text: str) -> Iterator[tuple[str, bool, str | None]]:
    """Yields (name, negated, value). A comma that no known option follows belongs to the value before it."""
    pieces: list[str] = []
    for piece in re.split(r"(?<!\\),", text):
        stripped = piece.strip()
        if pieces and "=" in pieces[-1] and not is_option_name(stripped):
            pieces[-1] += "," + piece
        else:
            pieces.append(stripped)
    for piece in pieces:
        name, equals, value = piece.partition("=")
        negated = name.startswith("~")
        yield name[negated:].strip().lower(), negated, value.strip().replace("\\,", ",") if equals else None


def _apply(options: RuleOptions, option: Option, value: str | None, *, negated: bool) -> None:
    meaning = option.meaning
    if meaning in _NEGATABLE:
        _NEGATABLE[meaning](options, option.name, negated)
    elif meaning in _CONDITIONS:
        if negated:
            raise RuleError(f"the option {option.name!r} cannot be negated")
        options.conditions = _CONDITIONS[meaning](options.conditions, option.name, value or "")
    elif meaning is Meaning.MODIFIER:
        if negated:
            raise RuleError(f"the option {option.name!r} cannot be negated")
        _apply_modifier(options, option.name, value or "")


def _apply_type(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    bits = ALL_TYPES if name == "all" else TYPE_BITS[name]
    if negated:
        options.not_types |= bits
    else:
        options.types |= bits


def _apply_absent_type(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    if not negated:
        options.absent_type = options.absent_type or name


def _apply_party(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    party = 3 if (name == "3p") != negated else 1
    if options.party not in {0, party}:
        raise RuleError("the options for first and third party contradict each other")
    options.party = party


def _apply_flag(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    if negated and name != "match-case":
        raise RuleError(f"the option {name!r} cannot be negated")
    setattr(options, name.replace("-", "_"), not negated)


def _apply_unsupported(options: RuleOptions, name: str, _negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    options.unsupported = options.unsupported or name


def _apply_switch(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    if not negated and name not in options.switches:
        options.switches += (name,)


def _apply_inline(options: RuleOptions, name: str, negated: bool) -> None:  # noqa: FBT001  # one signature in a table
    if not negated and name not in options.inline:
        options.inline += (name,)


def _apply_modifier(options: RuleOptions, name: str, value: str) -> None:
    name, value = STUB_OPTIONS.get(name, (name, value))
    if options.modifier and (options.modifier, options.value) != (name, value):
        raise RuleError(f"the options {options.modifier!r} and {name!r} exclude each other")
    if name == "redirect" and value == STUB_OPTIONS["mp4"][1]:
        options.types = options.types or TYPE_BITS["media"]
    options.modifier, options.value = name, value


def _with_strict(conditions: Conditions, name: str, _value: str) -> Conditions:
    strict = int(name[6])
    if conditions.strict not in {0, strict}:
        raise RuleError("the options for first and third party contradict each other")
    return replace(conditions, strict=strict)


def _with_sources(conditions: Conditions, name: str, value: str) -> Conditions:
    included, excluded = read_hosts(value)
    if conditions is NO_CONDITIONS:
        return Conditions(sources=included, not_sources=excluded)
    sources = _in_both(conditions.sources, included, name)
    return replace(conditions, sources=sources, not_sources=_union(conditions.not_sources, excluded))


def _with_targets(conditions: Conditions, name: str, value: str) -> Conditions:
    included, excluded = read_hosts(value)
    targets = _in_both(conditions.targets, included, name)
    return replace(conditions, targets=targets, not_targets=_union(conditions.not_targets, excluded))


def _with_deny_allow(conditions: Conditions, _name: str, value: str) -> Conditions:
    hosts, negative = read_hosts(value)
    if negative:
        raise RuleError("the hosts of 'denyallow' cannot be negated")
    return replace(conditions, not_targets=_union(conditions.not_targets, hosts))


def _with_response(conditions: Conditions, name: str, value: str) -> Conditions:
    if not value:
        raise RuleError("a condition on the response needs a value")
    return replace(conditions, header=value) if name == "header" else replace(conditions, address=value)


def _with_methods(conditions: Conditions, _name: str, value: str) -> Conditions:
    wanted, unwanted = _read_methods(value)
    return replace(conditions, methods=wanted, not_methods=unwanted)


def _with_clients(conditions: Conditions, name: str, value: str) -> Conditions:
    if name == "client":
        clients, not_clients = read_clients(value)
        return replace(conditions, clients=clients, not_clients=not_clients)
    tags, not_tags = read_tags(value)
    return replace(conditions, tags=tags, not_tags=not_tags)


_NEGATABLE: Mapping[Meaning, Callable[[RuleOptions, str, bool], None]] = MappingProxyType(
    {
        Meaning.TYPE: _apply_type,
        Meaning.ABSENT_TYPE: _apply_absent_type,
        Meaning.PARTY: _apply_party,
        Meaning.FLAG: _apply_flag,
        Meaning.UNSUPPORTED: _apply_unsupported,
        Meaning.PAGE_SWITCH: _apply_switch,
        Meaning.INLINE: _apply_inline,
    }
)

_CONDITIONS: Mapping[Meaning, Callable[[Conditions, str, str], Conditions]] = MappingProxyType(
    {
        Meaning.STRICT: _with_strict,
        Meaning.SOURCES: _with_sources,
        Meaning.TARGETS: _with_targets,
        Meaning.DENY_ALLOW: _with_deny_allow,
        Meaning.METHOD: _with_methods,
        Meaning.CLIENTS: _with_clients,
        Meaning.RESPONSE: _with_response,
    }
)


def _in_both(hosts: HostSet, more: HostSet, name: str) -> HostSet:
    """Returns the hosts that two options of one name have in common: a second one narrows the first.

    Raises:
        RuleError: there is none, or expressions cannot be compared.
    """
    if not hosts or not more or hosts == more:
        return hosts or more
    if hosts.patterns or more.patterns:
        raise RuleError(f"two options {name!r} with regular expressions cannot be combined")
    common = {one for one in hosts.names if _covers(more.names, one)} | {one for one in more.names if _covers(hosts.names, one)}
    if not common:
        raise RuleError(f"the options {name!r} have no host in common")
    return HostSet(frozenset(common))


def _covers(names: frozenset[str], host: str) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _union(hosts: HostSet, more: HostSet) -> HostSet:
    return HostSet(hosts.names | more.names, hosts.patterns + more.patterns) if hosts else more


def _read_methods(value: str) -> tuple[frozenset[str], frozenset[str]]:
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for item in value.upper().split("|"):
        name = item.strip()
        if name.removeprefix("~") not in _METHODS:
            raise RuleError(f"unknown method {item!r}")
        (unwanted if name.startswith("~") else wanted).add(name.removeprefix("~"))
    if wanted and unwanted:
        raise RuleError("the option 'method' mixes methods with negated ones")
    return frozenset(wanted), frozenset(unwanted)


@lru_cache(maxsize=1024)
def read_hosts(value: str) -> tuple[HostSet, HostSet]:
    """Parses hosts separated by `|`; excluded ones (`~`) come second.

    Raises:
        RuleError: there is none, or one is not a host, entity or regular expression.
    """
    if _PLAIN_HOSTS.fullmatch(value):
        items = value.split("|")
        wanted = frozenset(item for item in items if item[0] != "~") if "~" in value else frozenset(items)
        unwanted = frozenset(item[1:] for item in items if item[0] == "~") if "~" in value else frozenset()
        return HostSet(wanted) if wanted else NO_HOSTS, HostSet(unwanted) if unwanted else NO_HOSTS
    sides: list[tuple[set[str], list[str]]] = [(set(), []), (set(), [])]
    for item in _host_items(value):
        negated = item.startswith("~")
        name = item[negated:]
        names, patterns = sides[negated]
        if len(name) > 2 and name[0] == "/" and name[-1] == "/":
            expression = name[1:-1].replace("\\|", "|")  # AdGuard's spelling; no host contains a bar
            guard_regex(expression)
            patterns.append(expression)
        else:
            names.add(read_host(name))
    included, excluded = (
        HostSet(frozenset(names), tuple(patterns)) if names or patterns else NO_HOSTS for names, patterns in sides
    )
    if not included and not excluded:
        raise RuleError("an option names no host")
    return included, excluded


def _host_items(value: str) -> Iterator[str]:
    """Splits at `|`, but not inside a regular expression."""
    position = 0
    while position <= len(value):
        start = position + value.startswith("~", position)
        if value.startswith("/", start):
            end = start + 1
            while end < len(value) and not (value[end] == "/" and (end + 1 == len(value) or value[end + 1] == "|")):
                end += 2 if value[end] == "\\" else 1
            end += 1
        else:
            end = value.find("|", start)
            end = len(value) if end < 0 else end
        item = value[position:end].strip()
        if item and item != "~":
            yield item
        position = end + 1


def read_host(text: str) -> str:
    """Returns a host name or entity (`google.*`) of a rule in canonical form.

    Raises:
        RuleError: it is neither.
    """
    host = text.lower().removesuffix(".")
    if HOST.fullmatch(host):
        return host
    try:
        if host.endswith(".*"):
            return canonical_host(host[:-2]) + ".*"
        return canonical_host(host)
    except UrlError as error:
        raise RuleError(f"not a host: {text[:100]!r}") from error
