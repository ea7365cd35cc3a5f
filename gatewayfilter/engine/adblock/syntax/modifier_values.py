"""Parsers of modifier values: one for each modifier that a proxy can apply."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.removeparam import ParamFilter, read_param
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, TYPE_BITS
from gatewayfilter.engine.adblock.syntax.stub_names import read_stub
from gatewayfilter.engine.adblock.syntax.url_transform import UriTransform, UrlSkip
from gatewayfilter.errors import RuleError, UnsupportedError
from gatewayfilter.safe_regex.re2 import Substitution, split_substitution

PAGES = TYPE_BITS["document"] | TYPE_BITS["subdocument"]

PAGE_SWITCHES = frozenset({"elemhide", "generichide", "specifichide", "genericblock"})
"""Page switches: parts of filtering that exceptions switch off on a page."""

RESPONSE_MODIFIERS = frozenset({"csp", "permissions", "replace", "removeheader"})
"""Modifiers of a response, which may have conditions on its headers (`header=`) and its server's address (`ipaddress=`)."""

REDIRECTS = frozenset({"redirect", "redirect-rule"})

MAX_POLICY = 2_048
_POLICY = re.compile(r"[\x20-\x7e]+")
_REPORTING = re.compile(r"(?:^|;)\s*report-(?:uri|to)\b", re.IGNORECASE)
_ELEMENT = re.compile(r"<\s*[a-z/!]|javascript:", re.IGNORECASE)
"""Text that no list may insert into pages: lists are untrusted, and a script of theirs would run with the site's origin."""

_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")

# Headers of a site's own security policy, or of the connection (AdGuard's list, and those of HTTP's framing).
_KEPT_HEADERS_TEXT = """
accept accept-encoding access-control-allow-credentials access-control-allow-headers access-control-allow-methods
access-control-allow-origin access-control-expose-headers access-control-max-age access-control-request-headers
access-control-request-method allow connection content-encoding content-length content-range content-security-policy
content-security-policy-report-only content-type cross-origin-embedder-policy cross-origin-opener-policy
cross-origin-resource-policy expect expect-ct feature-policy host keep-alive origin origin-isolation p3p permissions-policy
proxy-authenticate proxy-authorization public-key-pins public-key-pins-report-only range sec-websocket-accept
sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version strict-transport-security te
timing-allow-origin trailer transfer-encoding upgrade upgrade-insecure-requests vary www-authenticate
x-content-type-options x-download-options x-frame-options x-permitted-cross-domain-policies x-powered-by
x-xss-protection referrer-policy
"""
_KEPT_HEADERS = frozenset(_KEPT_HEADERS_TEXT.split())


@dataclass(frozen=True, slots=True)
class RemovedHeader:
    """`$removeheader`: a header of the request or of the response."""

    name: str
    of_request: bool


@dataclass(frozen=True, slots=True)
class Stub:
    """`$redirect`: canonical name of the stub ("" for none), and its priority: the highest wins."""

    name: str
    priority: int


type Prepared = str | ParamFilter | UrlSkip | UriTransform | Substitution | RemovedHeader | Stub


def _read_policy(value: str) -> str:
    if len(value) > MAX_POLICY or not _POLICY.fullmatch(value):
        raise RuleError("the policy is empty, too long, or has characters that no header can have")
    if _REPORTING.search(value):
        raise RuleError("a policy of a list must not report to anybody")
    return value


def _read_header(value: str) -> RemovedHeader:
    side, colon, name = value.lower().partition(":")
    of_request = bool(colon) and side.strip() == "request"
    name = (name if of_request else value.lower()).strip()
    if not _HEADER_NAME.fullmatch(name):
        raise RuleError(f"not a header name: {name[:100]!r}")
    if name in _KEPT_HEADERS or name.startswith(("sec-fetch-", "proxy-")):
        raise RuleError(f"the header {name!r} must not be removed")
    return RemovedHeader(name, of_request)


def _read_replace(value: str) -> Substitution:
    expression, replacement, flags = split_substitution(value)
    if not expression:
        raise RuleError("a replacement needs an expression")
    if _ELEMENT.search(replacement):
        raise UnsupportedError("replace that writes elements")
    return Substitution(expression, replacement, flags)


_READERS: Mapping[str, Callable[[str], Prepared]] = MappingProxyType(
    {
        "csp": _read_policy,
        "permissions": lambda value: _read_policy(value.replace("|", ", ")),
        "removeparam": read_param,
        "replace": _read_replace,
        "urlskip": UrlSkip,
        "removeheader": _read_header,
        "redirect": lambda value: Stub(*read_stub(value)),
        "redirect-rule": lambda value: Stub(*read_stub(value)),
    }
)


def prepare(modifier: str, value: str, pattern: str = "") -> Prepared:
    """Returns the compiled value of a modifier; page switches and conditions on the response have none.

    Args:
        modifier: its canonical name.
        value: as written in the list.
        pattern: of the rule, which `uritransform=//…/` refers to.

    Raises:
        UnsupportedError: it needs what a proxy cannot or must not do.
        RuleError: it cannot be parsed.
    """
    if modifier == "uritransform":
        return UriTransform(value, pattern)
    read = _READERS.get(modifier)
    return value if read is None else read(value)


def default_types(modifier: str) -> int:
    """Returns the resource types of a rule with this modifier that names none."""
    if modifier in {"csp", "permissions"} or modifier in PAGE_SWITCHES:
        return PAGES
    return PAGES | TYPE_BITS["xmlhttprequest"] if modifier == "removeparam" else ALL_TYPES
