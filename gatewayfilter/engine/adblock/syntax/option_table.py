"""The table of rule options: every option behind a rule's `$`, under each of its names, with its meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Meaning(Enum):
    """The meaning of an option for its rule."""

    TYPE = "type"
    PARTY = "party"
    STRICT = "strict"
    FLAG = "flag"
    SOURCES = "sources"
    TARGETS = "targets"
    DENY_ALLOW = "denyallow"
    METHOD = "method"
    CLIENTS = "clients"
    IGNORED = "ignored"
    MODIFIER = "modifier"
    PAGE_SWITCH = "page switch"
    INLINE = "inline"
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

# Types that a proxy never sees as a request: a rule with no other type is dropped; beside a real type they are
# ignored.
_ABSENT_TYPES = "popup popunder webrtc jsinject content urlblock extension stealth"

# Page switches: parts of filtering that an exception switches off on a page.
_PAGE_SWITCHES = {
    "elemhide": "elemhide ehide",
    "generichide": "generichide ghide",
    "specifichide": "specifichide shide",
    "genericblock": "genericblock",
}

# Modifiers: the effect of a rule in place of blocking (modifier_values.py).
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

INLINE_POLICIES: Mapping[str, str] = MappingProxyType(
    {"inline-script": "script-src 'unsafe-eval' * blob: data:", "inline-font": "font-src *"}
)
"""Options for what stands in a page itself, with the content security policy that keeps it out, as in uBlock Origin."""

STUB_OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"empty": ("redirect", "nooptext"), "mp4": ("redirect", "noopmp4-1s")}
)
"""AdGuard's names for two redirects, with the option and the value that each stands for."""

# Conditions on the response.
_RESPONSE = {"header": "header responseheader", "address": "ipaddress"}

# Options that a proxy cannot honour: the rule is counted under this name and dropped.
_UNSUPPORTED = (
    "requestheader cname sitekey app network dnstype dnsrewrite cookie hls jsonprune xmlprune "
    "referrerpolicy addheader rewrite-rule bypass-csp"
)


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table: the canonical name, the meaning, and whether it takes a value."""

    name: str
    meaning: Meaning
    value: bool = False


def _table() -> dict[str, Option]:
    rows: dict[str, Option] = {"all": Option("all", Meaning.TYPE)}
    for name, spellings in _TYPES.items():
        rows |= {spelling: Option(name, Meaning.TYPE) for spelling in spellings.split()}
    rows |= {name: Option(name, Meaning.ABSENT_TYPE) for name in _ABSENT_TYPES.split()}
    rows |= {name: Option(name, Meaning.UNSUPPORTED, value=True) for name in _UNSUPPORTED.split()}
    rows |= {name: Option(name, Meaning.INLINE) for name in INLINE_POLICIES}
    for group, meaning, value in (
        (_PAGE_SWITCHES, Meaning.PAGE_SWITCH, False),
        (_MODIFIERS, Meaning.MODIFIER, True),
        (_RESPONSE, Meaning.RESPONSE, True),
    ):
        for name, spellings in group.items():
            rows |= {spelling: Option(name, meaning, value) for spelling in spellings.split()}
    rows |= {name: Option("3p", Meaning.PARTY) for name in ("third-party", "3p", "thirdparty")}
    rows |= {name: Option("1p", Meaning.PARTY) for name in ("first-party", "1p", "firstparty")}
    rows |= {name: Option(name, Meaning.STRICT) for name in ("strict1p", "strict3p")}
    rows |= {"strict-first-party": rows["strict1p"], "strict-third-party": rows["strict3p"]}
    rows |= {name: Option(name, Meaning.FLAG) for name in ("important", "badfilter", "match-case")}
    rows |= {name: Option("domain", Meaning.SOURCES, value=True) for name in ("domain", "from")}
    rows["to"] = Option("to", Meaning.TARGETS, value=True)
    rows["denyallow"] = Option("denyallow", Meaning.DENY_ALLOW, value=True)
    rows["method"] = Option("method", Meaning.METHOD, value=True)
    rows |= {name: Option(name, Meaning.CLIENTS, value=True) for name in ("client", "ctag")}
    rows["reason"] = Option("reason", Meaning.IGNORED, value=True)
    rows["collapse"] = Option("collapse", Meaning.IGNORED)
    rows |= {name: Option(name, Meaning.MODIFIER) for name in ("empty", "mp4")}
    rows["stealth"] = Option("stealth", Meaning.ABSENT_TYPE, value=True)
    return rows


OPTIONS: Mapping[str, Option] = MappingProxyType(_table())
"""Every known option, by each of its names. A name of underscores alone is a placeholder (AdGuard, uBO)."""

_NAME = re.compile(r"~?([a-z0-9_][a-z0-9_-]*)(?=\s*(?:[=,]|$))", re.ASCII | re.IGNORECASE)


def is_option_name(text: str) -> bool:
    """Returns whether a text begins with the name of a known option (negated or not), followed by its end, `=` or a comma."""
    match = _NAME.match(text)
    return match is not None and (match[1].lower() in OPTIONS or not match[1].strip("_"))


def looks_like_options(text: str) -> bool:
    """Returns whether a text has the form of options, known or not."""
    return _NAME.match(text) is not None
