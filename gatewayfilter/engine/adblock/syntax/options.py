"""The options behind a rule's `$`: one table of every name, and the reading of their values."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, DEFAULT_TYPES, NO_HOSTS, TYPE_BITS, Conditions, HostSet
from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.safe_regex.cost_guard import guard_regex
from gatewayfilter.urls import canonical_host


class Meaning(Enum):
    """What an option does to its rule."""

    TYPE = "type"
    PARTY = "party"
    STRICT = "strict"
    FLAG = "flag"
    SOURCES = "sources"
    TARGETS = "targets"
    DENY_ALLOW = "denyallow"
    METHOD = "method"
    IGNORED = "ignored"
    MODIFIER = "modifier"
    PAGE_SWITCH = "page switch"
    RESPONSE = "response"
    ABSENT_TYPE = "absent type"
    UNSUPPORTED = "unsupported"


_TYPES = {
    "document": "document doc",
    "subdocument": "subdocument frame",
    "stylesheet": "stylesheet css",
    "script": "script",
    "image": "image background",
    "font": "font",
    "media": "media",
    "object": "object object-subrequest",
    "xmlhttprequest": "xmlhttprequest xhr",
    "ping": "ping beacon",
    "websocket": "websocket",
    "other": "other xbl dtd",
}

# Types of things that a proxy never sees as a request: a rule that speaks of nothing else is dropped, beside a real type
# they are passed over.
_ABSENT_TYPES = "popup popunder inline-script inline-font webrtc jsinject content urlblock extension stealth"

# What an exception switches off on a page.
_PAGE_SWITCHES = {
    "elemhide": "elemhide ehide",
    "generichide": "generichide ghide",
    "specifichide": "specifichide shide",
    "genericblock": "genericblock",
}

# What a rule does in place of blocking (modifier_values.py).
_MODIFIERS = {
    "csp": "csp",
    "permissions": "permissions",
    "removeparam": "removeparam queryprune",
    "redirect": "redirect rewrite",
    "redirect-rule": "redirect-rule",
    "replace": "replace",
    "uritransform": "uritransform urltransform",
    "urlskip": "urlskip",
    "removeheader": "removeheader",
}

# AdGuard's names for two redirects.
_STUB_OPTIONS = {"empty": ("redirect", "nooptext"), "mp4": ("redirect", "noopmp4-1s")}

# Conditions that hold or not once the response is there.
_RESPONSE = {"header": "header responseheader", "address": "ipaddress"}

# Rules that do or ask what a proxy cannot: the rule is counted under this name and dropped.
_UNSUPPORTED = (
    "requestheader cname sitekey app network client ctag dnstype dnsrewrite cookie hls jsonprune xmlprune "
    "referrerpolicy addheader rewrite-rule bypass-csp"
)


@dataclass(frozen=True, slots=True)
class _Option:
    """A row of the table: the canonical name, the meaning, and whether it takes a value."""

    name: str
    meaning: Meaning
    value: bool = False


def _table() -> dict[str, _Option]:
    rows: dict[str, _Option] = {"all": _Option("all", Meaning.TYPE)}
    for name, spellings in _TYPES.items():
        rows |= {spelling: _Option(name, Meaning.TYPE) for spelling in spellings.split()}
    rows |= {name: _Option(name, Meaning.ABSENT_TYPE) for name in _ABSENT_TYPES.split()}
    rows |= {name: _Option(name, Meaning.UNSUPPORTED, value=True) for name in _UNSUPPORTED.split()}
    for group, meaning, value in (
        (_PAGE_SWITCHES, Meaning.PAGE_SWITCH, False),
        (_MODIFIERS, Meaning.MODIFIER, True),
        (_RESPONSE, Meaning.RESPONSE, True),
    ):
        for name, spellings in group.items():
            rows |= {spelling: _Option(name, meaning, value) for spelling in spellings.split()}
    rows |= {name: _Option("3p", Meaning.PARTY) for name in ("third-party", "3p", "thirdparty")}
    rows |= {name: _Option("1p", Meaning.PARTY) for name in ("first-party", "1p", "firstparty")}
    rows |= {name: _Option(name, Meaning.STRICT) for name in ("strict1p", "strict3p")}
    rows |= {"strict-first-party": rows["strict1p"], "strict-third-party": rows["strict3p"]}
    rows |= {name: _Option(name, Meaning.FLAG) for name in ("important", "badfilter", "match-case")}
    rows |= {name: _Option("domain", Meaning.SOURCES, value=True) for name in ("domain", "from")}
    rows["to"] = _Option("to", Meaning.TARGETS, value=True)
    rows["denyallow"] = _Option("denyallow", Meaning.DENY_ALLOW, value=True)
    rows["method"] = _Option("method", Meaning.METHOD, value=True)
    rows["reason"] = _Option("reason", Meaning.IGNORED, value=True)
    rows["collapse"] = _Option("collapse", Meaning.IGNORED)
    rows |= {name: _Option(name, Meaning.MODIFIER) for name in ("empty", "mp4")}
    rows["stealth"] = _Option("stealth", Meaning.ABSENT_TYPE, value=True)
    return rows


OPTIONS: Mapping[str, _Option] = MappingProxyType(_table())
"""Every option that is known, by each of its spellings. A name of underscores alone is a place holder (AdGuard, uBO)."""

_NAME = re.compile(r"~?([a-z0-9_][a-z0-9_-]*)(?=\s*(?:[=,]|$))", re.ASCII | re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*(?:\.\*)?", re.ASCII)
_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})


def is_option_name(text: str) -> bool:
    """Tells whether a text begins with the name of a known option (negated or not) that ends there, at `=` or at a comma."""
    match = _NAME.match(text)
    return match is not None and (match[1].lower() in OPTIONS or not match[1].strip("_"))


def looks_like_options(text: str) -> bool:
    """Tells whether a text has the form of options, known or not."""
    return _NAME.match(text) is not None


@dataclass(slots=True)
class RuleOptions:
    """What a rule's options say.

    Attributes:
        types: bits of the types that are named, 0 when there are none; `not_types` of those that are excluded.
        party: 1 first party only, 3 third party only, 0 both.
        unsupported: name of the option for which the rule must be dropped, "" when it can be honoured.
        modifier: what it does in place of blocking, with its `value`, "" for nothing.
        switches: what an exception switches off on a page (`generichide` …).
        absent_type: something it names that a proxy never sees as a request (`popup` …).
        conditions: field of `Conditions` → value.
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
    absent_type: str = ""
    conditions: dict[str, object] = field(default_factory=dict)

    @property
    def names_types(self) -> bool:
        """Whether any type is named or excluded."""
        return bool(self.types or self.not_types)

    @property
    def effective_types(self) -> int:
        """Bits of the types that the rule speaks of, 0 when it speaks of none that a proxy sees."""
        return self.types_or(DEFAULT_TYPES)

    def types_or(self, types: int) -> int:
        """Returns the bits of the types that are named, of `types` when there are none, without those that are excluded."""
        return (self.types or types) & ~self.not_types

    @property
    def effective_conditions(self) -> Conditions:
        """The conditions beyond type and party."""
        return Conditions(**self.conditions)  # type: ignore[arg-type]  # filled by _CONDITIONS, one field for each key


def read_options(text: str) -> RuleOptions:
    """Reads the options behind the `$`.

    Raises:
        RuleError: one is unknown, contradicts another, or has a value that cannot be read.
    """
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
    if options.absent_type and not (options.types or options.modifier or options.switches):
        options.unsupported = options.unsupported or options.absent_type
    return options


def _split(text: str) -> Iterator[tuple[str, bool, str | None]]:
    """Yields (name, negated, value). A comma before anything but a known option belongs to the value before it."""
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


def _apply(options: RuleOptions, option: _Option, value: str | None, *, negated: bool) -> None:
    meaning = option.meaning
    if meaning in _NEGATABLE:
        _NEGATABLE[meaning](options, option.name, negated)
    elif meaning in _CONDITIONS:
        if negated:
            raise RuleError(f"the option {option.name!r} cannot be negated")
        _CONDITIONS[meaning](options.conditions, option.name, value or "")
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


def _apply_modifier(options: RuleOptions, name: str, value: str) -> None:
    name, value = _STUB_OPTIONS.get(name, (name, value))
    if options.modifier and (options.modifier, options.value) != (name, value):
        raise RuleError(f"the options {options.modifier!r} and {name!r} exclude each other")
    if name == "redirect" and value == _STUB_OPTIONS["mp4"][1]:
        options.types = options.types or TYPE_BITS["media"]
    options.modifier, options.value = name, value


def _apply_strict(conditions: dict[str, object], name: str, _value: str) -> None:
    strict = int(name[6])
    if conditions.setdefault("strict", strict) != strict:
        raise RuleError("the options for first and third party contradict each other")


def _apply_sources(conditions: dict[str, object], _name: str, value: str) -> None:
    conditions["sources"], conditions["not_sources"] = read_hosts(value)


def _apply_targets(conditions: dict[str, object], _name: str, value: str) -> None:
    conditions["targets"], negative = read_hosts(value)
    conditions["not_targets"] = _union(conditions.get("not_targets"), negative)


def _apply_deny_allow(conditions: dict[str, object], _name: str, value: str) -> None:
    hosts, negative = read_hosts(value)
    if negative:
        raise RuleError("the hosts of 'denyallow' cannot be negated")
    conditions["not_targets"] = _union(conditions.get("not_targets"), hosts)


def _apply_response(conditions: dict[str, object], name: str, value: str) -> None:
    if not value:
        raise RuleError("a condition on the response needs a value")
    conditions[name] = value


def _apply_methods(conditions: dict[str, object], _name: str, value: str) -> None:
    conditions["methods"], conditions["not_methods"] = _read_methods(value)


_NEGATABLE: Mapping[Meaning, Callable[[RuleOptions, str, bool], None]] = MappingProxyType(
    {
        Meaning.TYPE: _apply_type,
        Meaning.ABSENT_TYPE: _apply_absent_type,
        Meaning.PARTY: _apply_party,
        Meaning.FLAG: _apply_flag,
        Meaning.UNSUPPORTED: _apply_unsupported,
        Meaning.PAGE_SWITCH: _apply_switch,
    }
)

_CONDITIONS: Mapping[Meaning, Callable[[dict[str, object], str, str], None]] = MappingProxyType(
    {
        Meaning.STRICT: _apply_strict,
        Meaning.SOURCES: _apply_sources,
        Meaning.TARGETS: _apply_targets,
        Meaning.DENY_ALLOW: _apply_deny_allow,
        Meaning.METHOD: _apply_methods,
        Meaning.RESPONSE: _apply_response,
    }
)


def _union(hosts: object, more: HostSet) -> HostSet:
    if not isinstance(hosts, HostSet):
        return more
    return HostSet(hosts.names | more.names, hosts.patterns + more.patterns)


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
    """Reads hosts separated by `|`; those behind `~` come second.

    Raises:
        RuleError: there is none, or one is no host, entity or regular expression.
    """
    names: tuple[set[str], set[str]] = (set(), set())
    patterns: tuple[list[str], list[str]] = ([], [])
    for item in _host_items(value):
        negated = item.startswith("~")
        name = item[negated:]
        if len(name) > 2 and name[0] == "/" and name[-1] == "/":
            expression = name[1:-1].replace("\\|", "|")  # AdGuard's spelling; no host has a bar in it
            guard_regex(expression)
            patterns[negated].append(expression)
        else:
            names[negated].add(read_host(name))
    included, excluded = (
        HostSet(frozenset(found), tuple(expressions)) if found or expressions else NO_HOSTS
        for found, expressions in zip(names, patterns, strict=True)
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
    if _HOST.fullmatch(host):
        return host
    try:
        if host.endswith(".*"):
            return canonical_host(host[:-2]) + ".*"
        return canonical_host(host)
    except UrlError as error:
        raise RuleError(f"not a host: {text[:100]!r}") from error
