"""Synthetic requests of unrelated sites. A rule that matches many of these sites matches the whole web.

Host names are random letters from a seed that is derived from the rule. A rule cannot exclude the names of its own trial,
as every change of the rule changes them. Schemes, suffixes, paths, parameters and types are those of ordinary sites.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random
from typing import NamedTuple

from gatewayfilter.engine.adblock.syntax.rule import PARTY_SHIFT, TYPE_BITS
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url

SITES = 10
"""Sites of one trial."""

MANY = 4
"""A rule that matches this many of them is too broad. `www` occurs on six of them, `.com` on five."""

SUFFIXES = ("com", "cn", "com", "org", "com", "xn--fiqs8s", "com", "com.cn", "com", "co.uk")
"""Public suffixes of the sites, roughly by their real frequency."""

_COMMON_SUFFIXES_TEXT = "cn com.cn org net de co.uk ru co.jp com.br fr ca io edu gov gov.uk gov.cn edu.cn ac.uk org.uk net.cn"
COMMON_SUFFIXES = tuple(_COMMON_SUFFIXES_TEXT.split())
"""Suffixes with so many sites that a rule is also tried on each of them alone, beside `com`."""

_VOWELS = "aeiou"
_CONSONANTS = "bcdfghjklmnprstvwz"
_SUBDOMAINS = ("www.", "", "www.", "m.", "www.")


class Probe(NamedTuple):
    """A request, with the values that the index computes before it tests a rule.

    Attributes:
        bits: its type and party as bits of a rule's mask.
        lowered: its URL in lower case.
        source: host of its source.
    """

    request: Request
    bits: int
    lowered: str
    source: str


type Site = tuple[Probe, ...]
"""The requests of one site."""


class Sites:
    """Sites with random names, each created at its first use; can be iterated over repeatedly.

    Args:
        seed: of the names.
        suffixes: public suffixes of the requested hosts, in turn.
        page_suffixes: those of the requesting pages, where they differ.
    """

    __slots__ = ("_dice", "_made", "_page_suffixes", "_suffixes")

    def __init__(self, seed: int, suffixes: tuple[str, ...], page_suffixes: tuple[str, ...] = ()) -> None:
        self._dice = Random(seed)  # noqa: S311  the names need not be secret
        self._suffixes = suffixes
        self._page_suffixes = page_suffixes or suffixes
        self._made: list[Site] = []

    def __iter__(self) -> Iterator[Site]:
        """Yields the requests of each site."""
        for number in range(SITES):
            if number == len(self._made):
                suffix = self._suffixes[number % len(self._suffixes)]
                page_suffix = self._page_suffixes[number % len(self._page_suffixes)]
                host = f"{_SUBDOMAINS[number % len(_SUBDOMAINS)]}{_label(self._dice)}.{page_suffix}"
                self._made.append(_requests_of(host, f"{_label(self._dice)}.{suffix}", self._dice))
            yield self._made[number]


@lru_cache(maxsize=32)
def fixed_sites(suffix: str) -> Sites:
    """Returns sites below a suffix, with the same names at every call."""
    return Sites(len(suffix), (suffix,))


@lru_cache(maxsize=1)
def address_sites() -> tuple[Site, ...]:
    """Returns the requests of sites that are addressed by IP."""
    dice = Random(4)  # noqa: S311
    hosts = (
        f"{dice.randrange(1, 224)}.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(1, 255)}" for _ in range(SITES)
    )
    return tuple(_requests_of(host, host, dice) for host in hosts)


def _label(dice: Random) -> str:
    size = dice.randrange(2, 6)
    label = "".join(dice.choice(_CONSONANTS) + dice.choice(_VOWELS) for _ in range(size))
    if dice.random() < 0.2:
        label += f"-{dice.choice(_CONSONANTS)}{dice.choice(_VOWELS)}{dice.choice(_CONSONANTS)}"
    return label + (str(dice.randrange(10, 1000)) if dice.random() < 0.15 else "")


def common_text() -> str:
    """Returns the parts of the probes' URLs that are the same on every site, in one text."""
    dice = Random(1)  # noqa: S311
    return "\n".join(probe.lowered for probe in _requests_of("www.com", "com", dice))


def _requests_of(host: str, other: str, dice: Random) -> Site:
    word, slug, number = _label(dice), _label(dice), dice.randrange(1_000, 100_000)
    page = Url("https", host, "", "/", "")
    third = other if other == host else f"cdn.{other}"

    def own(kind: ResourceType, path: str, query: str = "", scheme: str = "https", method: str = "GET") -> Probe:
        url = Url(scheme, host, "", path, query)
        source = None if kind is ResourceType.DOCUMENT else page
        return Probe(Request(url, source, kind, method), TYPE_BITS[kind], url.text.lower(), host)

    def foreign(kind: ResourceType, path: str, query: str = "") -> Probe:
        url = Url("https", third, "", path, query)
        bits = TYPE_BITS[kind] << PARTY_SHIFT * (other != host)
        return Probe(Request(url, page, kind), bits, url.text.lower(), host)

    return (
        own(ResourceType.DOCUMENT, "/"),
        own(ResourceType.DOCUMENT, "/", scheme="http"),
        own(ResourceType.DOCUMENT, "/index.html"),
        own(ResourceType.DOCUMENT, f"/{word}/2024/05/{slug}.html"),
        own(ResourceType.DOCUMENT, "/index.php", f"?id={number}&page=2"),
        own(ResourceType.DOCUMENT, f"/{word}/{slug}-{number}/"),
        own(ResourceType.DOCUMENT, "/login", method="POST"),
        own(ResourceType.SCRIPT, "/static/js/main.min.js", f"?v={number}"),
        foreign(ResourceType.SCRIPT, f"/{word}/{slug}.js"),
        own(ResourceType.STYLESHEET, "/assets/css/style.css"),
        foreign(ResourceType.STYLESHEET, f"/{slug}.css"),
        own(ResourceType.IMAGE, "/images/logo.png"),
        foreign(ResourceType.IMAGE, f"/uploads/{word}/{slug}_{number}.jpg"),
        own(ResourceType.IMAGE, f"/images/{slug}.gif", scheme="http"),
        foreign(ResourceType.SUBDOCUMENT, f"/embed/{word}{number}"),
        foreign(ResourceType.SUBDOCUMENT, f"/{slug}/index.html"),
        own(ResourceType.SUBDOCUMENT, f"/{word}/{slug}/"),
        own(ResourceType.XMLHTTPREQUEST, "/index.php", f"?route={slug}"),
        foreign(ResourceType.XMLHTTPREQUEST, "/"),
        own(ResourceType.XMLHTTPREQUEST, "/api/v1/items", f"?limit=20&q={word}"),
        own(ResourceType.XMLHTTPREQUEST, "/api/login", method="POST"),
        foreign(ResourceType.XMLHTTPREQUEST, f"/v2/{word}.json"),
        foreign(ResourceType.MEDIA, f"/video/{word}/{number}.mp4"),
        own(ResourceType.WEBSOCKET, "/socket", scheme="wss"),
        own(ResourceType.OTHER, "/favicon.ico"),
        *_long_ones(own, foreign, dice),
    )


def _long_ones(own: Callable[..., Probe], foreign: Callable[..., Probe], dice: Random) -> Iterator[Probe]:
    """Yields requests with the long, deep and escaped URLs of larger sites, which a pattern of mere shape would match."""
    word, slug, number = _label(dice), _label(dice), dice.randrange(1_000_000, 100_000_000)
    digest, title = f"{dice.getrandbits(128):032x}", f"{slug}-{word}-the-{slug}-and-{word}-again"
    other_title = f"{word.title()}_{slug.title()}"
    yield own(ResourceType.DOCUMENT, f"/{word}/{slug}/{word}/2026/05/17/{title}/{number}.html")
    yield own(ResourceType.DOCUMENT, "/search", f"?q={word}+{slug}%20%C3%A9&sort=new&page=2")
    yield own(ResourceType.DOCUMENT, f"/en/{word.title()}/{other_title},_({slug}).aspx", f"?id={digest[:11].upper()}")
    yield own(ResourceType.DOCUMENT, "/", f"?s={slug}&p={number}")
    yield own(ResourceType.SCRIPT, f"/static/js/main.{digest[:8]}.chunk.js")
    yield foreign(ResourceType.SCRIPT, f"/ajax/libs/{slug}/3.7.1/{slug}.min.js", f"?ver={number}")
    yield own(ResourceType.STYLESHEET, f"/assets/{word}/{slug}-{digest[:20]}.css")
    yield foreign(ResourceType.IMAGE, f"/wp-content/uploads/2026/05/{other_title}-1024x768.webp")
    yield own(ResourceType.IMAGE, f"/img/{slug}~{digest[:12]}@2x.svg")
    uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))
    yield foreign(
        ResourceType.XMLHTTPREQUEST, f"/api/v1/{word}/{uuid}/items", f"?q={word}+{slug}%20a,b&b={number}&c={title}&d={digest}"
    )
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        yield own(ResourceType.XMLHTTPREQUEST, f"/api/v1/{word}/{number}", method=method)
