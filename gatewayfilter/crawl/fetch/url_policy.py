"""The URL policy: which URLs may be fetched. A second GET of what a user opened must not change anything for that user.

Links that log out, confirm, delete or work only once look like any other; so what looks like one of them is not fetched. It is
refused whole and rests: the site's root page is no evidence about this page, and a page that passes the proxy again can be
judged from its own response. A `Url` never carries credentials, and the crawler sends neither cookies nor a Referer.
"""

import re
from functools import lru_cache
from ipaddress import ip_address
from itertools import pairwise
from urllib.parse import parse_qsl

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.net.address_guard import AddressGuard
from gatewayfilter.urls import Url, is_ip_literal, unescaped

MAX_LENGTH = 4096
_DEFAULT_PORTS = {"http": 80, "https": 443}

_ACTIONS = frozenset({
    "accept", "activate", "activation", "approve", "cancel", "checkout", "confirm", "confirmation", "deactivate", "decline",
    "delete", "destroy", "invitation", "invite", "logoff", "logout", "optout", "passwordreset", "purchase", "reject", "remove",
    "reset", "resetpassword", "revoke", "signoff", "signout", "unlock", "unsubscribe", "verification", "verify", "vote",
})  # fmt: skip
"""Words of a path, a query key or a short query value that name something done, not something read."""

_PATH_SECRETS = frozenset({
    "auth", "jsessionid", "jwt", "magic", "oauth", "oauth2", "otp", "phpsessid", "saml", "session", "sessionid", "sid", "sso",
    "token",
})  # fmt: skip
"""Words of a path that name a credential. `key` and `code` are not among them: `/code/` and `/key-facts` are ordinary paths."""

_QUERY_SECRETS = _PATH_SECRETS | {
    "apikey", "code", "credential", "credentials", "csrf", "hash", "hmac", "key", "nonce", "pass", "passwd", "password", "pin",
    "pwd", "secret", "sig", "signature", "ticket", "xsrf",
}  # fmt: skip

_TITLE_WORDS = 3
"""A path segment or query value of more words is a title or a sentence; in a title only the first words are checked."""
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])[0-9]*")
_RUN = re.compile(r"[A-Za-z0-9_+=-]{20,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SEPARATORS = str.maketrans("", "", "_+=-")


@lru_cache(maxsize=4)
def _guard(networks: tuple[str, ...], ports: tuple[int, ...]) -> AddressGuard:
    return AddressGuard(CrawlSettings(allow_networks=networks, allow_ports=ports))


def may_crawl(url: Url, settings: CrawlSettings) -> str:
    """Returns `""` when the URL may be fetched, else the reason why not, in words.

    The address is the guard's matter; only what is plain from the URL itself is refused here. A port that is not for public
    addresses is left to the guard when `allow_networks` could admit the address that the name turns out to have.
    """
    if url.scheme not in _DEFAULT_PORTS:
        return f"{url.scheme} is not fetched"
    if len(url.text) > MAX_LENGTH:
        return f"the URL is longer than {MAX_LENGTH} characters"
    return _address_refusal(url, settings) or _path_refusal(url) or _query_refusal(url)


def _address_refusal(url: Url, settings: CrawlSettings) -> str:
    port = int(url.port) if url.port else _DEFAULT_PORTS[url.scheme]
    if is_ip_literal(url.host):
        return _guard(settings.allow_networks, settings.allow_ports).refusal(str(ip_address(url.host.strip("[]"))), port)
    if not settings.allow_networks and port not in settings.allow_ports:
        return f"port {port} may not be crawled"
    return ""


def _path_refusal(url: Url) -> str:
    path = unescaped(url.path)
    for segment in path.split("/"):
        words = _words(segment)
        found = _first_of(words if len(words) <= _TITLE_WORDS else words[:2], _ACTIONS | _PATH_SECRETS)
        if found:
            return f"the path has {found!r}: the link may work only once or change something"
    return "the path has a value that looks like a secret" if _has_secret(path) else ""


def _query_refusal(url: Url) -> str:
    if not url.query:
        return ""
    for key, value in parse_qsl(url.query[1:], keep_blank_values=True, max_num_fields=None):
        found = _first_of(_words(key), _ACTIONS | _QUERY_SECRETS)
        if found:
            return f"the query key {key[:40]!r} has {found!r}: the link may work only once or change something"
        words = _words(value)
        found = _first_of(words, _ACTIONS) if len(words) < _TITLE_WORDS else ""
        if found:
            return f"the query has {found!r}: the link may change something"
        if _has_secret(value):
            return f"the value of the query key {key[:40]!r} looks like a secret"
    return ""


def _words(text: str) -> list[str]:
    """Returns the words of a path, key or value, lower case: `/user/signOut-now` → user, sign, out, now."""
    return [match[0].lower() for match in _WORD.finditer(text)]


def _first_of(words: list[str], wanted: frozenset[str]) -> str:
    """Returns the first word, or pair of neighbours written as one (`log-out`), that is wanted."""
    for position, word in enumerate(words):
        if word in wanted:
            return word
        pair = word + words[position + 1] if position + 1 < len(words) else ""
        if pair in wanted:
            return pair
    return ""


def _has_secret(text: str) -> bool:
    return _UUID.search(text) is not None or any(_is_random(match[0]) for match in _RUN.finditer(text))


def _is_random(run: str) -> bool:
    """Returns whether 20 characters or more look drawn rather than written.

    Drawn ones step between letters and digits, or from lower to upper case, at nearly every second character (hexadecimal
    0.47, base64 0.44, base32 0.40 of the places); written ones at a few, and slugs have a separator every few characters.
    """
    dense = run.translate(_SEPARATORS)
    if len(dense) < 20 or (len(run) - len(dense)) * 8 > len(run):
        return False
    steps = sum(left.isdigit() != right.isdigit() or (left.islower() and right.isupper()) for left, right in pairwise(dense))
    return dense.isdigit() or steps * 11 >= len(dense) * 3
