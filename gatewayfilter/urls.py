"""Canonical URLs and the keys under which lists know them.

A URL is parsed once, by the WHATWG rules (can_ada), at the edge; from then on everybody holds a `Url`. Lists know four
kinds of keys, each an ASCII string whose MD5 is the digest that the Bloom gate and the tables hold:

========  =======================  ==========================================================
kind      key                      stands for
========  =======================  ==========================================================
url       ``host[:port]/path?q``   exactly this URL, by http or https
prefix    ``host[:port]/path/*``   this path and everything below it, with any query
host      ``host``                 exactly this host
domain    ``.host``                this host and all its subdomains
========  =======================  ==========================================================

Keys carry no scheme: a page that is harmful over http is harmful over https (docs/decisions/0001-list-keys.md).
Source: [url-filter, URL filter step 1] for MD5 as the key.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import md5
from ipaddress import ip_address
from unicodedata import normalize
from urllib.parse import unquote_to_bytes

import can_ada
from publicsuffixlist import PSLFILE

from gatewayfilter.compiled import load
from gatewayfilter.errors import UrlError

_compiled = load("gatewayfilter._urls")

MAX_URL_LENGTH = 65_536
MAX_HOST_LENGTH = 1_024
"""Characters of a host as it is written; a name in canonical form has 253."""
MAX_PREFIXES = 16
SCHEMES = frozenset({"http", "https", "ws", "wss"})
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*", re.ASCII)
_LONGEST_NAME = 253
_PROTOCOLS = {f"{scheme}:": scheme for scheme in SCHEMES}
# Escapes of unreserved characters, then those with lower-case digits; all others stay as they are.
_ESCAPE = re.compile(r"%(2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f])")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def digest_of(key: str) -> bytes:
    """Returns the MD5 of a list key: 16 bytes.

    Source: [url-filter, URL filter step 1]. MD5 is a key here, not a safeguard.
    """
    return md5(key.encode(), usedforsecurity=False).digest()


def _normalise_escape(match: re.Match[str]) -> str:
    octet = int(match[1], 16)
    return chr(octet) if octet in _UNRESERVED else match[0].upper()


class Url:
    """A canonical http(s) or ws(s) URL: immutable by convention, with its list key and digest computed once, on first use.

    Attributes:
        text: the whole canonical URL, without fragment and credentials.
        scheme: ``http``, ``https``, ``ws`` or ``wss``.
        host: lower case, IDNA, no trailing dot; IPv6 in brackets.
        port: the port when it is not the scheme's default, else ``""``.
        netloc: host, and port when it is not the default.
        path: begins with ``/``.
        query: begins with ``?``, or is ``""``. A lone ``?`` is kept, as browsers send it; list keys do not have it.
    """

    __slots__ = ("_digest", "_key", "host", "netloc", "path", "port", "query", "scheme", "text")

    def __init__(self, scheme: str, host: str, port: str, path: str, query: str) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
        self.query = query
        self.netloc = netloc = f"{host}:{port}" if port else host
        self.text = f"{scheme}://{netloc}{path}{query}"
        self._key: str | None = None
        self._digest: bytes | None = None

    @property
    def key(self) -> str:
        """The url key: no scheme, unreserved characters unescaped (RFC 3986 §6.2.2) so that ``%61`` does not evade ``a``."""
        if self._key is None:
            key = f"{self.netloc}{self.path}{self.query}" if self.query != "?" else self.netloc + self.path
            self._key = _ESCAPE.sub(_normalise_escape, key) if "%" in key else key
        return self._key

    @property
    def digest(self) -> bytes:
        """MD5 of the url key, 16 bytes."""
        if self._digest is None:
            text = self.text  # the key is computed here where it is a part of the text: each request needs the digest alone
            key = self.key if "%" in text or self.query == "?" else text[len(self.scheme) + 3 :]
            self._digest = md5(key.encode(), usedforsecurity=False).digest()
        return self._digest

    def prefix_keys(self, host: str | None = None) -> tuple[str, ...]:
        """Returns the prefix keys that cover this URL, the longest path first, at most `MAX_PREFIXES` (the shortest are kept).

        Args:
            host: stands in for the URL's own host (list look-up also tries it without ``www.``).
        """
        netloc = self.netloc if host is None else (f"{host}:{self.port}" if self.port else host)
        segments = self.key[len(self.netloc) :].partition("?")[0].split("/")[1:]
        if segments and not segments[-1]:
            segments.pop()
        keys = [f"{netloc}/*"]
        grown = netloc
        for segment in segments[: MAX_PREFIXES - 1]:
            grown = f"{grown}/{segment}"
            keys.append(f"{grown}/*")
        keys.reverse()
        return tuple(keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Url({self.text!r})"

    def __str__(self) -> str:
        return self.text


def _no_plain_url(_kind: type[Url], _text: str) -> Url | None:
    return None


_plain_url: Callable[[type[Url], str], Url | None] = _no_plain_url if _compiled is None else _compiled.plain_url


def parse_url(text: str) -> Url:
    """Parses and canonicalises an absolute URL; a missing scheme is not guessed.

    Raises:
        UrlError: not an absolute http, https, ws or wss URL, or longer than `MAX_URL_LENGTH` characters.
    """
    url = _plain_url(Url, text)  # nineteen of twenty are canonical as they are written: read in a third of the time
    return parse_any_url(text) if url is None else url


def parse_any_url(text: str) -> Url:
    """Returns what `parse_url` does, by the WHATWG rules alone."""
    if len(text) > MAX_URL_LENGTH:
        raise UrlError(f"the URL is longer than {MAX_URL_LENGTH} characters")
    try:
        parsed = can_ada.parse(text)
    except (ValueError, TypeError) as error:  # TypeError: lone surrogates, which UTF-8 cannot encode
        raise UrlError(f"not a URL: {text[:200]!r}") from error
    scheme = _PROTOCOLS.get(parsed.protocol)
    if scheme is None:
        raise UrlError(f"not an http(s) URL: {text[:200]!r}")
    host = parsed.hostname.removesuffix(".")
    if not host or len(host) > _LONGEST_NAME or ".." in parsed.hostname:
        raise UrlError(f"not a valid host in {text[:200]!r}")
    query = parsed.search
    if not query and "?" in text and parsed.href.partition("#")[0].endswith("?"):
        query = "?"
    return Url(scheme, host, parsed.port, parsed.pathname, query)


def parse_loose_url(text: str) -> Url:
    """Like `parse_url`, but a person may leave the scheme away (``example.com/x`` means http).

    Raises:
        UrlError: as `parse_url`.
    """
    text = text.strip()
    return parse_url(text if "://" in text else f"http://{text}")


@lru_cache(maxsize=4096)
def canonical_host(text: str) -> str:
    """Returns a host name or IP literal in canonical form: lower case, IDNA, no trailing dot, IPv6 in brackets.

    Raises:
        UrlError: not a host, or longer than `MAX_HOST_LENGTH` characters. What raises is not kept, so that the cache, whose
            keys clients choose, stays small.
    """
    if len(text) > MAX_HOST_LENGTH:
        raise UrlError(f"a host of {len(text)} characters")
    host = text.strip().removesuffix(".").lower()
    if _HOST.fullmatch(host) and not host[-1].isdigit() and "xn--" not in host:
        if len(host) > 253:
            raise UrlError(f"not a host: {text[:100]!r}")
        return host
    if any(mark in host for mark in "/?#@\\ \t"):
        raise UrlError(f"not a host: {text[:100]!r}")
    bracketed = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
    if ":" in bracketed and not bracketed.startswith("["):
        raise UrlError(f"not a host: {text[:100]!r}")
    found = parse_url(f"http://{bracketed}/").host
    if not found.startswith("[") and not _HOST.fullmatch(found):
        raise UrlError(f"not a host: {text[:100]!r}")
    return found


def is_ip_literal(host: str) -> bool:
    """Returns whether a canonical host is an IPv4 or IPv6 literal."""
    if host.startswith("["):
        return True
    if not host[-1:].isdigit():
        return False
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=2_048)  # a host of many labels takes kilobytes
def host_suffixes(host: str) -> tuple[str, ...]:
    """Returns the host and its parent domains, the longest first: ``a.b.c``, ``b.c``, ``c``. An IP literal has only itself."""
    if is_ip_literal(host):
        return (host,)
    return _suffixes(host)


def _suffixes_of(host: str) -> tuple[str, ...]:
    suffixes = [host]
    position = host.find(".") + 1
    while position:
        suffixes.append(host[position:])
        position = host.find(".", position) + 1
    return tuple(suffixes)


_suffixes = _suffixes_of if _compiled is None else _compiled.suffixes


def url_key(url: Url) -> str:
    """Returns the key for exactly this URL."""
    return url.key


def prefix_key(url: Url) -> str:
    """Returns the key for this URL's path and everything below it; the query does not count."""
    path = url.key[len(url.netloc) :].partition("?")[0].rstrip("/")
    return f"{url.netloc}{path}/*"


def host_key(host: str) -> str:
    """Returns the key for exactly this (canonical) host."""
    return host


def domain_key(host: str) -> str:
    """Returns the key for this (canonical) host and its subdomains."""
    return f".{host}"


_IS_SUFFIX, _IS_WILDCARD, _IS_EXCEPTION = 1, 2, 4


@lru_cache(maxsize=1)
def suffix_rules() -> tuple[dict[str, int], int]:
    """Returns the rules of the public suffix list, by their names in IDNA, and the most labels that one has.

    Read here and not by the package, which takes eight times as long, at the first decision of every process.
    """
    rules: dict[str, int] = {}
    deepest = 0
    with open(PSLFILE, encoding="utf-8") as lines:  # noqa: PTH123  # a text of the package, opened as it does
        for line in lines:
            rule = line.partition(" ")[0].strip().lower()
            if rule and not rule.startswith("//"):
                rule = rule if rule.isascii() else _ascii_rule(rule)
                kind = _IS_EXCEPTION if rule.startswith("!") else _IS_WILDCARD if rule.startswith("*.") else _IS_SUFFIX
                name = rule.removeprefix("!").removeprefix("*.")
                rules[name] = rules.get(name, 0) | kind
                deepest = max(deepest, rule.count(".") + 1)
    return rules, deepest


def _ascii_rule(rule: str) -> str:
    mark = "!" if rule.startswith("!") else "*." if rule.startswith("*.") else ""
    return mark + can_ada.idna_encode(rule[len(mark) :]).decode()


def _suffix_length(names: Sequence[str], rules: dict[str, int], deepest: int) -> int:
    """Returns how many of a host's labels are its public suffix: by the longest rule; the last one alone by none.

    Source: https://publicsuffix.org/list/, "Algorithm". Deviation: what a wildcard stands below is a public suffix itself,
    as the list's own test data want it.

    Args:
        names: the host and its parent domains (`host_suffixes`).
        rules: of the list, by their names in IDNA.
        deepest: the most labels that one has.
    """
    labels = len(names)
    for count in range(min(labels, deepest), 0, -1):
        kind = rules.get(names[labels - count])
        if kind is None:
            continue
        if kind & _IS_EXCEPTION:
            return count - 1
        return min(count + 1, labels) if kind & _IS_WILDCARD else count
    return 1


@lru_cache(maxsize=16_384)  # some 8 MB with the longest hosts
def registrable_domain(host: str) -> str:
    """Returns the registrable domain (eTLD+1, private suffixes included) of a canonical host.

    A public suffix or an IP literal is its own registrable domain.
    """
    if is_ip_literal(host):
        return host
    return (_registrable if host.isascii() else registrable_by)(host, *suffix_rules())


def registrable_by(host: str, rules: dict[str, int], deepest: int) -> str:
    """Returns the registrable domain of a host that is no IP literal, by the rules of `suffix_rules`."""
    names = _suffixes_of(host)
    return names[max(0, len(names) - _suffix_length(names, rules, deepest) - 1)]


_registrable = registrable_by if _compiled is None else _compiled.registrable


def is_public_suffix(host: str) -> bool:
    """Returns whether a canonical host is a public suffix such as ``com`` or ``co.uk``, which no list may block as a whole."""
    if is_ip_literal(host):
        return False
    names = host_suffixes(host)
    return _suffix_length(names, *suffix_rules()) == len(names)


@lru_cache(maxsize=1)
def registry_suffixes() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Returns the suffixes under which registries give out names, by the first section of the public suffix list, in IDNA.

    Returns:
        The suffixes (``com``, ``co.uk``); the names of which every child is one (``ck``), which stand among the first as well;
        and the children that are none (``www.ck``).
    """
    names: set[str] = set()
    wildcards: set[str] = set()
    exceptions: set[str] = set()
    with open(PSLFILE, encoding="utf-8") as lines:  # noqa: PTH123  # as in suffix_rules
        for line in lines:
            if "===END ICANN DOMAINS===" in line:
                break
            rule = line.partition(" ")[0].strip().lower()
            if not rule or rule.startswith("//"):
                continue
            rule = rule if rule.isascii() else _ascii_rule(rule)
            if rule.startswith("!"):
                exceptions.add(rule[1:])
            elif rule.startswith("*."):
                wildcards.add(rule[2:])
            else:
                names.add(rule)
    return frozenset(names | wildcards), frozenset(wildcards), frozenset(exceptions)


def is_registry_suffix(host: str) -> bool:
    """Returns whether a canonical host is a suffix of a registry (``com``, ``co.uk``). About 0.1 µs.

    A company's suffix (``github.io``) is none here, nor is a single label that the public suffix list does not have.
    """
    names, wildcards, exceptions = registry_suffixes()
    return host in names or (host.partition(".")[2] in wildcards and host not in exceptions)


def parameter_name(text: str) -> str:
    """Returns the name of a query's parameter as a server may read it: unescaped, lower case, without blanks and brackets."""
    if "%" not in text and "+" not in text and "[" not in text and text.isascii():
        return text.lower()
    name = unquote_to_bytes(text.replace("+", " ").encode(errors="replace")).decode("utf-8", "replace")
    return normalize("NFKC", name).casefold().partition("[")[0].strip("\0 \t\r\n")


def redacted(text: str) -> str:
    """Returns a URL without its query, for logs at INFO and below."""
    head, mark, _ = text.partition("?")
    return f"{head}?…" if mark else head


def unescaped(text: str) -> str:
    """Returns a path or URL with its percent-escapes decoded as UTF-8, for people to read."""
    return unquote_to_bytes(text.encode(errors="replace")).decode(errors="replace")
