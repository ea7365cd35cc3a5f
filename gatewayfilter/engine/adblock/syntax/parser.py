"""The parser of lines of Adblock lists (Adblock Plus, uBlock Origin, AdGuard; hosts files too).

`parse_line` raises for no text: a line is a rule, or is counted as something else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from urllib.parse import quote

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import CosmeticRule, read_cosmetic
from gatewayfilter.engine.adblock.syntax.modifier_values import REDIRECTS, RESPONSE_MODIFIERS, default_types, prepare
from gatewayfilter.engine.adblock.syntax.option_table import INLINE_POLICIES, is_option_name, looks_like_options
from gatewayfilter.engine.adblock.syntax.options import RuleOptions, read_options
from gatewayfilter.engine.adblock.syntax.response_conditions import address_test, header_test
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, DOCUMENT, NO_CONDITIONS, NetworkRule
from gatewayfilter.engine.adblock.syntax.stub_names import is_stub
from gatewayfilter.errors import RuleError, UnsupportedError, UrlError
from gatewayfilter.safe_regex.cost_guard import guard_regex
from gatewayfilter.urls import canonical_host

MAX_LINE_LENGTH = 65_536
_LONGEST_NAME = 253
BLANKS = "\ufeff \t\r\n"
"""Characters that are stripped from both ends of a line."""


class LineKind(Enum):
    """The kind of a line."""

    NETWORK = "network"
    COSMETIC = "cosmetic"
    COMMENT = "comment"
    UNSUPPORTED = "unsupported"
    REJECTED = "rejected"


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class ParsedLine:
    """A parsed line.

    Attributes:
        rules: the network rules; a hosts line may hold several.
        note: for UNSUPPORTED the name of the modifier, for REJECTED the reason.
        cosmetic: the cosmetic rule.
    """

    kind: LineKind
    rules: tuple[NetworkRule, ...] = ()
    note: str = ""
    cosmetic: CosmeticRule | None = None


_COMMENT = ParsedLine(LineKind.COMMENT)

_HOST_RULE = re.compile(r"\|\|([a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)+)\^\r?\n?", re.ASCII)
_FORBIDDEN = re.compile(r"[\s\x00-\x1f\x7f]")
_ROOT_OF_HOST = re.compile(r"(\|\|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?\|", re.ASCII)
_DOT_BEHIND_HOST = re.compile(r"\|\|[a-z0-9_.-]*[a-z0-9_-](\.)[/^:?]", re.ASCII)
_LABEL_BEGINNING = re.compile(r"\|\|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\*", re.ASCII)
_HOST_ANCHORED = re.compile(r"\|\|([^/^*?|:]+)")
_HOST_PATTERN = re.compile(r"\|\|[^/^*?|:]+\^")
_COSMETIC_MARK = re.compile(r"#@?(?:\$\??|\?|%)?#(?=#?[^\s#]|$)|#@\?#|#\?@#")
_HTML_MARK = re.compile(r"(?:[a-z0-9*~][a-z0-9.,*|~_-]*)?\$@?\$[a-z*\[#.]", re.ASCII | re.IGNORECASE)
_SCRIPT_RULE = re.compile(r"\[\$[a-z]+=|[^/|]*#@?%#", re.ASCII)
_HOSTS_LINE = re.compile(
    r"(?:0\.0\.0\.0|ff0[0-9]::[0-9]|127\.0\.0\.1|255\.255\.255\.255|::1?|::0|fe80::1%lo0|0)[ \t]+([^#]+)(?:#.*)?"
)
_PLAIN_HOSTS_LINE = re.compile(
    r"(?:0\.0\.0\.0|127\.0\.0\.1) ((?!xn--)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
    r"(?:\.(?!xn--)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.[a-z][a-z]{0,20})\r?\n?",
    re.ASCII,
)
"""A hosts line with one name that is canonical as it is written: nearly all of them."""
_OWN_NAMES = re.compile(r"local|localhost|localhost\.localdomain|broadcasthost|0\.0\.0\.0|ip6-[a-z]+", re.IGNORECASE)


def find_plain_host(line: str) -> str:
    """Returns the host of a line that blocks all requests to one host, as `||host^` or `0.0.0.0 host`; "" for any other line.

    Nine of ten rules are written so, and need no more of the parser. The line may have its line end. This search has a compiled
    twin, `_plain_lines.pyx`.
    """
    if line[:2] == "||":
        rule = _HOST_RULE.fullmatch(line)
        return rule[1] if rule and len(line) <= MAX_LINE_LENGTH else ""
    plain = _PLAIN_HOSTS_LINE.fullmatch(line) if line[:1] in {"0", "1"} and len(line) < _LONGEST_NAME else None
    return plain[1] if plain and plain[1] != "localhost.localdomain" else ""


_compiled = load("gatewayfilter.engine.adblock.syntax._plain_lines")
plain_host = find_plain_host if _compiled is None else _compiled.plain_host
"""`find_plain_host`, compiled where that is possible."""


def parse_line(line: str) -> ParsedLine:
    """Parses a line; directives (`!#if`, `!#include`) are handled by preprocessor.py and are comments here."""
    text = line.strip(BLANKS)
    if not text or text[0] == "!" or text.startswith(("[Adblock", "[uBlock", "[AdGuard")):
        return _COMMENT
    if len(text) > MAX_LINE_LENGTH:
        return ParsedLine(LineKind.REJECTED, note=f"the line is longer than {MAX_LINE_LENGTH} characters")
    host = plain_host(text)
    if host:
        return ParsedLine(LineKind.NETWORK, (NetworkRule(f"||{host}^", types=ALL_TYPES),))
    if text[0] == "#" and (len(text) == 1 or (text[1] in " \t#!=-*" and not _COSMETIC_MARK.match(text))):
        return _COMMENT
    if _is_cosmetic(text):
        return _parse_cosmetic(text)
    if text[0] == "#":
        return _COMMENT
    try:
        hosts = _HOSTS_LINE.fullmatch(text)
        if hosts:
            return _parse_hosts(hosts[1].split())
        return _parse_network(text)
    except UnsupportedError as error:
        return ParsedLine(LineKind.UNSUPPORTED, note=error.name)
    except RuleError as error:
        return ParsedLine(LineKind.REJECTED, note=str(error))


def _parse_cosmetic(text: str) -> ParsedLine:
    try:
        return ParsedLine(LineKind.COSMETIC, cosmetic=read_cosmetic(text))
    except UnsupportedError as error:
        return ParsedLine(LineKind.UNSUPPORTED, note=error.name)
    except RuleError as error:
        return ParsedLine(LineKind.REJECTED, note=str(error))


def _is_cosmetic(text: str) -> bool:
    if text.startswith(("@@", "|")):
        return False
    if "#" in text and (_COSMETIC_MARK.search(text) or _SCRIPT_RULE.match(text)):
        return not (text[0] == "/" and _is_regex(split_options(text)[0]))
    return "$$" in text or "$@$" in text if _HTML_MARK.match(text) else False


def _is_regex(pattern: str) -> bool:
    return len(pattern) > 2 and pattern[0] == "/" and pattern[-1] == "/"


def _parse_hosts(names: list[str]) -> ParsedLine:
    rules = []
    for name in names:
        if _OWN_NAMES.fullmatch(name):
            continue
        try:
            rules.append(NetworkRule(f"||{canonical_host(name)}^", types=ALL_TYPES))
        except UrlError as error:
            raise RuleError(f"not a host: {name[:100]!r}") from error
    return ParsedLine(LineKind.NETWORK, tuple(rules)) if rules else _COMMENT


def split_options(text: str) -> tuple[str, str]:
    """Splits a rule (without `@@`) into pattern and options, `""` without any.

    The first `$` counts that is followed by the name of a known option and then `=`, a comma or the end: neither patterns
    nor regular expressions contain that. A last `$` before text in the form of options counts too, so that an unknown option
    rejects the rule rather than becoming part of its pattern.
    """
    position = text.find("$")
    while position >= 0:
        if is_option_name(text[position + 1 :].lstrip()) and text[position - 1 : position] != "\\":
            return text[:position], text[position + 1 :]
        position = text.find("$", position + 1)
    last = text.rfind("$")
    is_regex = text.startswith("/") and text.endswith("/")
    if last >= 0 and not is_regex and text[last - 1 : last] != "\\" and looks_like_options(text[last + 1 :]):
        return text[:last], text[last + 1 :]
    return text, ""


def _parse_network(text: str) -> ParsedLine:
    exception = text.startswith("@@")
    pattern, option_text = split_options(text[2:] if exception else text)
    options = read_options(option_text) if option_text else RuleOptions()
    unsupported = options.unsupported or _not_honoured(options, exception=exception)
    if unsupported:
        return ParsedLine(LineKind.UNSUPPORTED, note=unsupported)
    types = options.effective_types
    if not types:
        raise RuleError("the options exclude every type")
    pattern = pattern.strip()
    if not (pattern.startswith("||") and plain_host(pattern)):
        pattern = read_pattern(pattern, match_case=options.match_case)
    if not options.names_types and _speaks_of_pages(pattern, options, exception=exception):
        types |= DOCUMENT
    rule = NetworkRule(
        pattern=pattern,
        exception=exception,
        important=options.important,
        match_case=options.match_case,
        badfilter=options.badfilter,
        types=types,
        party=options.party,
        conditions=options.conditions,
    )
    limited = (
        options.names_types or options.party or options.conditions is not NO_CONDITIONS or options.switches or options.inline
    )
    if options.modifier in {"", "redirect"} and not limited and (len(pattern) == 1 or not pattern.strip("*|^")):
        # One character is a typing error for other engines, too. All drop it.
        raise RuleError("the rule would match every request" if not pattern.strip("*|^") else "the pattern is one character")
    rules = tuple(_rules_of(rule, options)) if option_text else (rule,)
    if pattern.startswith("|ws://"):  # for both schemes, as the authors of such rules expect (docs/adblock.md, "Policies")
        rules += tuple(replace(each, pattern=f"|wss{pattern[3:]}") for each in rules)
    return ParsedLine(LineKind.NETWORK, rules)


def _not_honoured(options: RuleOptions, *, exception: bool) -> str:
    """Returns the name of an option that cannot be honoured, "" for none."""
    if options.switches and not exception:
        return options.switches[0]
    if options.conditions.names_clients and (options.modifier or options.switches or options.conditions.header):
        return "client"  # honoured for blocks and exceptions alone
    if options.modifier == "redirect-rule" and not exception and not is_stub(options.value):
        return "redirect-rule"
    return ""


def _rules_of(rule: NetworkRule, options: RuleOptions) -> Iterator[NetworkRule]:
    """Yields the rules of one line: a block or an exception, a modifier rule, page switches."""
    if options.modifier:
        yield from _modifier_rules(rule, options)
    elif asks_response(rule):
        yield _with(rule, modifier="response")
    elif options.types or not (options.switches or options.inline):
        yield rule
    if not options.modifier:
        for name in options.inline:
            yield _with(rule, types=default_types("csp"), modifier="csp", value=INLINE_POLICIES[name])
    switches = options.switches
    if rule.conditions.names_clients:
        return
    if rule.exception and not options.modifier and options.types & DOCUMENT and "elemhide" not in switches:
        switches += ("elemhide",)  # an exception for whole pages disables cosmetic rules too
    for name in switches:
        yield _with(rule, types=default_types(name), modifier=name)


def _with(rule: NetworkRule, *, modifier: str, value: str = "", types: int = 0) -> NetworkRule:
    """Returns a rule with a modifier, and with other types where some are given; `replace` takes six times as long."""
    return NetworkRule(
        rule.pattern,
        rule.exception,
        rule.important,
        rule.match_case,
        rule.badfilter,
        types or rule.types,
        rule.party,
        rule.conditions,
        modifier,
        value,
    )


def asks_response(rule: NetworkRule) -> bool:
    """Returns whether a rule has conditions on the response.

    Raises:
        RuleError: a condition cannot be parsed.
    """
    conditions = rule.conditions
    if conditions.header:
        header_test(conditions.header)
    if conditions.address:
        address_test(conditions.address)
    return bool(conditions.header or conditions.address)


def _modifier_rules(rule: NetworkRule, options: RuleOptions) -> Iterator[NetworkRule]:
    name, value = options.modifier, options.value
    late = asks_response(rule)
    of_request = name == "removeheader" and value.lower().startswith("request:")
    if late and (of_request or name not in RESPONSE_MODIFIERS):
        if name not in REDIRECTS or rule.exception:
            raise RuleError(f"{name!r} is decided before the response is there")
        yield _with(rule, modifier="response", value=value if prepare(name, value) else "")
        return
    if value or not (rule.exception or name == "removeparam"):
        try:
            prepare(name, value, rule.pattern)
        except UnsupportedError:
            raise
        except RuleError:
            if name != "redirect" or rule.exception or not value:
                raise
            name = ""  # an unknown stub: a plain block remains
    if not rule.exception and options.modifier == "redirect":
        yield rule
    if name:
        types = rule.types if name in REDIRECTS else options.types_or(default_types(name))
        if not types:
            raise RuleError("the options exclude every type")
        yield _with(rule, types=types, modifier=name, value=value)


def is_generic(text: str) -> bool:
    """Returns whether a line is a rule that names no page to apply to."""
    return any(not rule.conditions.sources for rule in parse_line(text).rules)


def _speaks_of_pages(pattern: str, options: RuleOptions, *, exception: bool) -> bool:
    """Returns whether a rule without type options covers top-level pages too (docs/adblock.md, "Policies")."""
    if exception:
        return True
    return options.party != 3 and is_host_pattern(pattern)


def is_host_pattern(pattern: str) -> bool:
    """Returns whether a pattern is exactly `||host^`."""
    return _HOST_PATTERN.fullmatch(pattern) is not None


def read_pattern(text: str, *, match_case: bool) -> str:
    """Returns a pattern in canonical form: lower case unless `match_case`, ASCII, no redundant wildcards.

    Raises:
        RuleError: it cannot be a pattern.
    """
    if _is_regex(text):
        guard_regex(text[1:-1], match_case=match_case)
        return text
    if _FORBIDDEN.search(text):
        raise RuleError("the pattern has a space or a control character in it")
    if not text.isascii():
        text = _to_ascii(text)
    if not match_case:
        text = text.lower()
    elif text.startswith("||"):
        host = _HOST_ANCHORED.match(text)
        text = host[0].lower() + text[host.end() :] if host else text
    if "**" in text:
        text = re.sub(r"\*+", "*", text)
    if text.startswith("*") and not text.startswith(("*/", "*|")):
        text = text[1:]
    if text.startswith("||"):
        return _read_anchored(text)
    if text.endswith("*") and not (text[0] == "/" and text[-2] == "/"):
        text = text[:-1]
    return text or "*"


def _read_anchored(text: str) -> str:
    """Returns a pattern that begins with `||` in canonical form.

    As in other engines, `||host|` is `||host^`, and the dot of the root behind a host is left out, as it is in canonical URLs.
    `||ads*` keeps its `*`: without it only whole labels match.

    Raises:
        RuleError: it begins with a third `|`.
    """
    if text.startswith("|||"):
        raise RuleError("the pattern begins with '|||'")
    root = _ROOT_OF_HOST.fullmatch(text)
    if root:
        return f"{root[1]}^"
    dot = _DOT_BEHIND_HOST.match(text)
    if dot:
        text = text[: dot.start(1)] + text[dot.end(1) :]
    if text.endswith("*") and len(text) > 3 and not _LABEL_BEGINNING.fullmatch(text):
        text = text[:-1]
    return text


def _to_ascii(text: str) -> str:
    """Returns the pattern in the encoding of canonical URLs: IDNA in the host behind `||`, percent-encoded UTF-8 elsewhere."""
    host = _HOST_ANCHORED.match(text)
    if host and not host[1].isascii():
        try:
            text = f"||{canonical_host(host[1])}{text[host.end() :]}"
        except UrlError as error:
            raise RuleError(f"not a host: {host[1][:100]!r}") from error
    return quote(text, safe="".join(chr(code) for code in range(33, 127)), errors="replace")
