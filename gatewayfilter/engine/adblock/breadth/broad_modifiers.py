"""Breadth check of modifier rules that match every site: some modifiers are harmless everywhere, others break most sites."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.modifier_values import PAGE_SWITCHES
from gatewayfilter.engine.adblock.syntax.removeparam import read_param
from gatewayfilter.engine.adblock.syntax.rule import NetworkRule

_PARAMS = MappingProxyType(
    {
        "q": "weather",
        "query": "weather",
        "search": "weather",
        "s": "weather",
        "keyword": "weather",
        "wd": "weather",
        "id": "12345",
        "p": "42",
        "page": "2",
        "v": "dQw4w9WgXcQ",
        "url": "https%3A%2F%2Fexample.com%2F",
        "lang": "en",
        "code": "4b1f9c",
        "state": "a81",
        "token": "e9c1",
        "redirect_uri": "https%3A%2F%2Fexample.com%2Fback",
        "client_id": "web",
        "access_token": "9b7d",
        "callback": "done",
        "code_challenge": "x1",
        "expires": "1790000000",
        "file": "a.pdf",
        "key": "k1",
        "list": "PL1",
        "name": "weather",
        "nonce": "n1",
        "offset": "20",
        "response_type": "code",
        "samlrequest": "f1",
        "scope": "openid",
        "sid": "5e1",
        "sig": "a0",
        "signature": "a0",
        "t": "12",
        "type": "web",
        "u": "weather",
        "x-amz-signature": "a0",
    }
)
"""Query parameters that sites need for routing, search and login."""

_FORGERY = ("x-csrf-token", "x-csrftoken", "x-requested-with", "x-xsrf-token")
"""Request headers of CSRF checks: without them logins fail."""

_HEADERS = frozenset({"set-cookie", "location", "cookie", "authorization", "content-disposition", "user-agent", *_FORGERY})
"""Response headers that carry logins, redirects and downloads; others may be missing."""

_FEATURES = frozenset(
    {
        "camera",
        "encrypted-media",
        "fullscreen",
        "microphone",
        "payment",
        "publickey-credentials-get",
        "storage-access",
        "sync-xhr",
    }
)
"""Browser features (permissions policy) that users rely on."""


def _breaks_queries(value: str) -> bool:
    found = read_param(value)
    return any(found.removes(name, f"{name}={text}") for name, text in _PARAMS.items())


def _takes_header(value: str) -> bool:
    return value.lower().rpartition(":")[2].strip() in _HEADERS


def _forbids_feature(value: str) -> bool:
    return any(part.partition("=")[0].strip() in _FEATURES for part in value.lower().replace("|", ",").split(","))


def _never(_value: str) -> bool:
    return False


_HARMS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "removeparam": _breaks_queries,
        "removeheader": _takes_header,
        "permissions": _forbids_feature,
        "redirect-rule": _never,  # it only replaces responses that other rules block
    }
)


def does_harm(rule: NetworkRule) -> bool:
    """Returns whether a rule does harm if it matches every site."""
    if rule.exception and rule.modifier and rule.modifier not in PAGE_SWITCHES:
        return not rule.value  # with a value it disables one rule, without a value all rules of this modifier
    harm = _HARMS.get(rule.modifier)
    return harm is None or harm(rule.value)
