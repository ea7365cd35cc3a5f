"""Login clones: pages that take credentials in the name of a site that is not theirs.

The text of a clone is that of the page that it imitates. What tells them apart is the URL, where the form is sent, and which
site the page declares to be. Each sign has points: those of identity and of the request together decide, neither alone.

    points = title or site name (2, 1 for an ordinary word) + declared address (3) + mark of a saved page (1)
           + its account links and files (1 to 3) + its name in the request (1)
           + field (1, 2 for all of a card) + where the form leads (0 to 4) - longer text (1)

Deviation: clones that are pictures, and forms that a script builds, are not found: that takes a rendered page.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import ip_address

from gatewayfilter.addresses.kinds import Kind, kind_of
from gatewayfilter.classify.imitated_services import ImitatedServices, Service, folded, is_generic
from gatewayfilter.documents.html.forms import Credential, PageForms, likely_credentials, read_forms
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Evidence
from gatewayfilter.urls import Url, is_ip_literal, parse_url, registrable_domain

CATEGORY = "fraud"
MAX_LENGTH = 6_000
"""Bytes of visible text above which a page is about something else than its form."""
LITTLE_LENGTH = 2_500
"""Bytes above which a point is taken away."""
LIMIT = 5
"""Points that make a clone."""
LEAST_IDENTITY = 2
"""Points of identity that it needs; one more where the name is an ordinary word."""
MAX_READ = 300
"""References that are parsed."""
LEAST_LABEL = 4
"""Letters of a site's name below which it may stand in any title."""
MANY_LINKS = 3
"""Account links and files of one site; honest pages have a button or two."""
LOGIN_LINKS = 2
"""Among them, those of its login host, where nothing else names it."""
_SAVING = "savepage-"
"""How a widespread program marks the pages that it saves."""
_NEAR = 200
_HOST = re.compile(r"//([a-zA-Z0-9.-]{3,100})")
_MAX_PHRASED = 4_000
_RELAYS = re.compile(
    r"(?:^|\.)(?:archive\.(?:org|ph|is|today|md|li|vn|fo)|translate\.goog|oclc\.org)$|\b(?:ez|lib|web)?-?proxy\d*\.|webvpn|\bvpn\d*\."
)
"""Hosts that show other sites' pages: archives, translators, gateways of libraries and companies."""
_LOCAL = frozenset({"localhost", "local", "intranet", "internal", "private", "corp", "home", "lan", "arpa", "onion", "i2p"})
_SCRIPT = re.compile(r"(?:\./)?(?:[\w%.-]+/){0,4}[\w%.-]+\.(?:php\d?|asp|cgi|pl|py)(?:[?#].*)?", re.IGNORECASE)
_COLLECTOR_NAMES = (
    "formspree.io formsubmit.co formsubmit.io getform.io formcarry.com formbackend.com web3forms.com basin.io usebasin.com "
    "forms.gle formkeep.com submit-form.com herotofu.com staticforms.xyz forminit.com fabform.io"
)
_COLLECTORS = frozenset(_COLLECTOR_NAMES.split())
"""Services that mail what a form sends."""
_BOTS = (("api.telegram.org", "/bot"), ("discord.com", "/api/webhooks"), ("discordapp.com", "/api/webhooks"))
_ACCOUNT = re.compile(
    r"forg[eo]t|reset|recover|sign_?-?up|regist|join\b|privacy|terms|legal|help|support|polic|log_?-?in|sign_?-?in|passport|account|session"
    r"|\.(?:css|js|png|svg|ico|jpe?g|gif|webp)(?:[?#]|$)",
    re.IGNORECASE,
)
_LOGIN_HOST = re.compile(r"(?:sign-?in|log-?in|accounts?|passport|auth\d?|id|idmsa|sso)\.")
_EMBEDDED = re.compile(
    r"oauth|authorize|/dialog/|share|intent/|recaptcha|gsi/|/sdk|/tr\?|/tr$|plugins|widget|badge|btn_|button|/maps|/embed|gtag|analytics"
    r"|policies\.google|fonts\.|ajax\.|apis\.google|platform\.|connect\.|badges|apps\.apple|itunes\.apple|play\.google|js\.stripe"
    r"|appleid\.|/gp/product|tagmanager|doubleclick|/s2/favicons|login/sso|saml|openid",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?:(?:sign|log) ?in ?to(?: continue to)?|continue to|access) (?:your |the )?([\w.+& ]{2,24})"
    r"|\byour ([\w.+&]{2,14}(?: [\w.+&]{2,14})?) (?:account|id|password|wallet)\b|登录(?:到)?(?:您的)?([\w\u4e00-\u9fff]{2,8})"
)
_KEPT_IN_WORDS = (
    Credential.SEED,
    Credential.PIN,
    Credential.CARD,
    Credential.CARD_CHECK,
    Credential.PASSWORD,
    Credential.CODE,
    Credential.IDENTITY,
    Credential.LOGIN,
)


class Destination(IntEnum):
    """Where a form leads; the value is its points."""

    OWNER = -1
    """To the site that the page is in the name of."""
    SITE = 0
    """To a path of its own host, or where a script sends it."""
    OTHER = 1
    SCRIPT = 2
    """To a server script beside the page."""
    COLLECTOR = 3
    """To a service that mails forms, an address, or a chat bot."""
    BOT = 4


@dataclass(frozen=True, slots=True)
class _Identity:
    """In whose name a page is: for people, its main domain, points, and whether an ordinary word alone names it."""

    name: str
    domain: str
    points: int
    is_plain: bool = False


def find_login_clone(html: str, url: str, title: str, text: str, services: ImitatedServices) -> Evidence | None:
    """Returns the evidence that a page is a login clone, as `login_clone` does; reads its forms only where it may be one.

    Never raises. A page of more than `MAX_LENGTH` bytes of text costs nothing, one without such a field one search in its markup.
    """
    if len(text) > MAX_LENGTH or not may_be_login_clone(html, title, services):
        return None
    forms = read_forms(html)
    return None if forms is None else login_clone(forms, url, title, text, services)


def may_be_login_clone(html: str, title: str, services: ImitatedServices) -> bool:
    """Returns whether a page may be a login clone at some URL: it has such a field. Costs one search in its markup."""
    likely = likely_credentials(html)
    # Subscriptions to newsletters, mostly, have a field for an address and nothing else.
    return bool(likely) and (likely != {Credential.LOGIN} or _may_be_named(html, title, services))


def _may_be_named(html: str, title: str, services: ImitatedServices) -> bool:
    """Returns whether a page seems to be in the name of a service, by its title, its mark and its declared addresses."""
    if _SAVING in html or services.of_title(title) is not None:
        return True
    for sign in ("og:url", "canonical"):
        place = html.find(sign)
        if place >= 0:
            near = html[max(0, place - _NEAR) : place + _NEAR]
            if any(services.of_host(host.lower()) for host in _HOST.findall(near)[:4]):
                return True
    return False


def login_clone(forms: PageForms, url: str, title: str, text: str, services: ImitatedServices) -> Evidence | None:
    """Returns the evidence that a page takes credentials in the name of a site that is not its own, `None` for none.

    Never raises; linear in its input, of which little is read. A page of a local name or address is none.

    Args:
        forms: of the page.
        url: its final URL.
        title: as written.
        text: what is visible, normal view; pages of more than `MAX_LENGTH` bytes are none.
        services: names and domains of services that are often imitated.
    """
    length = len(text) if text.isascii() else len(text.encode(errors="replace"))
    own = _host(url)
    if length > MAX_LENGTH or own is None or _is_local(own) or services.of_host(own):
        return None
    if words := _greedy(forms, own):
        return _evidence(words)
    asked = bool(forms.credentials - {Credential.LOGIN}) + ({Credential.CARD, Credential.CARD_CHECK} <= forms.credentials)
    hosts = [found for reference in forms.references[:MAX_READ] if (found := _parsed(reference))]
    for identity, service in _identities(forms, own, title, text, hosts, services):
        destination = _destination(forms.targets, own, identity, service)
        points = identity.points + max(destination, 0) + asked - (length > LITTLE_LENGTH)
        if identity.points < LEAST_IDENTITY + identity.is_plain or destination is Destination.OWNER or points < LIMIT:
            continue
        if destination >= Destination.SCRIPT or not _RELAYS.search(own):
            what = _named(forms.credentials)
            return _evidence(f"asks for a {what} in the name of {identity.name}, whose site is {identity.domain}")
    return None


def _greedy(forms: PageForms, own: str) -> str:
    """Returns what is asked that no honest page asks, whatever its name; `""` for nothing of the kind."""
    asked = forms.credentials
    leads = _destination(forms.targets, own, None, None)
    if {Credential.CARD, Credential.CARD_CHECK, Credential.PIN} <= asked:
        return "asks for a card's number, security code and PIN together"
    if {Credential.CARD, Credential.PIN} <= asked and leads >= Destination.SCRIPT:
        return "asks for a card's number and PIN, and sends them to a script beside the page"
    if Credential.SEED in asked and leads >= Destination.SCRIPT:
        return "asks for a wallet recovery phrase, and sends it away"
    if asked - {Credential.LOGIN} and leads is Destination.BOT:
        return f"sends a {_named(asked)} to a chat bot"
    return ""


def _identities(
    forms: PageForms, own: str, title: str, text: str, hosts: list[Url], services: ImitatedServices
) -> Iterator[tuple[_Identity, Service | None]]:
    """Yields in whose names a page is, the most points first; none that owns the page's host."""
    points: Counter[str] = Counter()
    found: dict[str, Service] = {}
    plain: set[str] = set()
    itself = _names_itself(title, own, services)
    for claim in [claim for name in (title, *forms.names[:4]) if (claim := services.of_title(name))]:
        is_plain = claim.plain or itself
        found[claim.service.name] = claim.service
        points[claim.service.name] = max(points[claim.service.name], 1 if is_plain else 2)
        if is_plain:
            plain.add(claim.service.name)
        else:
            plain.discard(claim.service.name)
    declared = [address for reference in forms.declared[:8] if (address := _parsed(reference))]
    for name, service in {one.name: one for address in declared if (one := services.of_host(address.host))}.items():
        found[name] = service
        points[name] += 3 + bool(forms.saved_from)
    strong = _account_hosts(hosts, own, services)
    outside = sum(registrable_domain(parsed.host) != registrable_domain(own) for parsed in hosts)
    for name, (service, count, logins) in strong.items():
        is_most = 2 * count >= outside and count >= MANY_LINKS
        if name in found or (is_most and logins >= LOGIN_LINKS):
            found[name] = service
            points[name] += 3 if is_most and (count == outside or logins) else 2 if is_most else 1
    for name in _phrased(text, services):
        if name in found:
            points[name] += 1
    for name, count in points.most_common():
        yield _Identity(name, found[name].domains[0], count, name in plain), found[name]
    saved = _parsed(forms.saved_from)
    if saved is not None and _is_foreign(saved.host, own):
        domain = registrable_domain(saved.host)
        yield _Identity(domain, domain, 3), None


def _names_itself(title: str, own: str, services: ImitatedServices) -> bool:
    """Returns whether a title contains the name of its own site, as "WhatsApp | Firm" of `firm.example` does."""
    label = registrable_domain(own).partition(".")[0]
    if len(label) < LEAST_LABEL or is_generic(label) or label not in "".join(filter(str.isalnum, folded(title[:300]))):
        return False
    return not any(services.of_title(part) for part in (label, *label.split("-")))


def _account_hosts(hosts: Iterable[Url], own: str, services: ImitatedServices) -> dict[str, tuple[Service, int, int]]:
    """Returns the services to whose account pages and files a page refers, with how often, and how often to a login host."""
    found: dict[str, tuple[Service, int, int]] = {}
    for parsed in hosts:
        if parsed.host == own or not _ACCOUNT.search(f"{parsed.netloc}{parsed.path}") or _EMBEDDED.search(parsed.text):
            continue
        if service := services.of_host(parsed.host):
            _, count, logins = found.get(service.name, (service, 0, 0))
            found[service.name] = service, count + 1, logins + bool(_LOGIN_HOST.match(parsed.host))
    return found


def _phrased(text: str, services: ImitatedServices) -> set[str]:
    """Returns the services in whose name a text asks: "log in to NAME", "your NAME account"."""
    found: set[str] = set()
    for match in _PHRASE.finditer(text[:_MAX_PHRASED].lower()):
        words = folded(next(filter(None, match.groups()), "")).split()
        for count in range(1, min(len(words), 3) + 1):
            if claim := services.of_title(" ".join(words[:count])):
                found.add(claim.service.name)
    return found


def _destination(targets: tuple[str, ...], own: str, identity: _Identity | None, service: Service | None) -> Destination:
    """Returns the worst place that forms with credentials lead to; `OWNER` where all lead to the owner of the name."""
    return max((_destination_of(target, own, identity, service) for target in targets[:20]), default=Destination.SITE)


def _destination_of(target: str, own: str, identity: _Identity | None, service: Service | None) -> Destination:
    lowered = target[:10].lower()
    if lowered.startswith("mailto:"):
        return Destination.COLLECTOR
    if "//" not in target[:8]:
        return Destination.SCRIPT if _SCRIPT.fullmatch(target) else Destination.SITE
    parsed = _parsed(target)
    if parsed is None or registrable_domain(parsed.host) == registrable_domain(own):
        return Destination.SITE
    if any(parsed.host == host and parsed.path.startswith(path) for host, path in _BOTS):
        return Destination.BOT
    domain = registrable_domain(parsed.host)
    if parsed.host in _COLLECTORS or domain in _COLLECTORS:
        return Destination.COLLECTOR
    is_owner = service.owns(parsed.host) if service else identity is not None and identity.domain == domain
    return Destination.OWNER if is_owner else Destination.OTHER


def _is_foreign(host: str, own: str) -> bool:
    """Returns whether a host is of another site: neither of the same domain nor of the same name below another suffix."""
    domain = registrable_domain(host)
    label = domain.partition(".")[0]
    return not _is_local(host) and domain != registrable_domain(own) and label not in own


def _is_local(host: str) -> bool:
    if is_ip_literal(host):
        try:
            return kind_of(ip_address(host.strip("[]"))) is not Kind.PUBLIC
        except ValueError:
            return True
    return "." not in host or host.rpartition(".")[2] in _LOCAL


def _host(url: str) -> str | None:
    parsed = _parsed(url)
    return parsed.host if parsed else None


def _parsed(reference: str) -> Url | None:
    if not reference:
        return None
    try:
        return parse_url(f"http:{reference}" if reference.startswith("//") else reference)
    except UrlError:
        return None


def _named(credentials: Iterable[Credential]) -> str:
    asked = set(credentials)
    return next(one.value for one in _KEPT_IN_WORDS if one in asked)


def _evidence(words: str) -> Evidence:
    return Evidence(words, CATEGORY, 0.0, "rest", -1)
