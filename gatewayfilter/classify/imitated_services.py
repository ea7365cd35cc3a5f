"""Services that phishing pages often imitate, with their names and their own domains (`lists/imitated-services.txt`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gatewayfilter.characters import HOMOGLYPHS
from gatewayfilter.classify.normalize.plain_views import normal_view
from gatewayfilter.urls import is_registry_suffix, registrable_domain

SERVICES_FILE = "imitated-services.txt"
MAX_TITLE = 300
"""Characters of a title in which names are looked for."""
_PARTS = re.compile(r"\s[-:/]+\s|[|\u00b7\u2022:,\u2013\u2014\u00ab\u00bb_()]|\s/")
_SIGNS = re.compile("[\u00ae\u2122\u00a9!?\u2026\"'\u2019]+")
_GENERIC_WORDS = (
    "sign signin in log login logon into to your my the a on of for account accounts id manage welcome please enter page "
    "official site website home homepage web app online secure security verification verify verifying confirm center centre "
    "billing summary update password reset recovery register signup up or and new user users customer personal banking bank "
    "india uk us usa canada australia step 2 code authorization authentication authenticate continue payment payments wallet "
    "checkout unlock "
    "登录 登陆 注册 官网 官方网站 首页 账号 帐号 用户登录 中心 安全中心 网上银行 个人网上银行 邮箱 "
    "anmelden anmeldung connexion se connecter iniciar sesión sesion accedi entrar вход войти ログイン"
)
_GENERIC = frozenset(_GENERIC_WORDS.split())
"""Words that stand beside a service's name in the titles of its login pages."""
_ALIKE = {code: letter for code, letter in HOMOGLYPHS.items() if code > 0x24F}
"""Without accented letters, which make other words of it."""
_HAN_GENERIC = re.compile(
    "(?:用户|会员|账号|帐号|统一|安全)?(?:登录|登陆|注册|验证)|官方网站|官网|首页|个人网上银行|网上银行|ログイン"
)


@dataclass(frozen=True, slots=True)
class Service:
    """A service.

    Attributes:
        name: for people.
        domains: registrable domains of its own; the first is its main one.
        labels: first labels of registrable domains that are its own below any country's suffix.
        suffixes: public suffixes of its own (`aws`, `gov.uk`).
    """

    name: str
    domains: tuple[str, ...]
    labels: frozenset[str]
    suffixes: tuple[str, ...]

    def owns(self, host: str) -> bool:
        """Returns whether a canonical host is one of the service's own."""
        domain = registrable_domain(host)
        if domain in self.domains or any(host.endswith(f".{suffix}") for suffix in self.suffixes):
            return True
        label, _, suffix = domain.partition(".")
        return label in self.labels and len(suffix.rpartition(".")[2]) == 2


@dataclass(frozen=True, slots=True)
class Claim:
    """A service that a title or a site name is of; `plain` for a name that is an ordinary word, or common elsewhere."""

    service: Service
    plain: bool


class ImitatedServices:
    """The services, found by name or by domain. Immutable.

    Args:
        lines: a line a service, as in `lists/imitated-services.txt`; a line without names or domains is left out.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._by_name: dict[str, Claim] = {}
        self._by_domain: dict[str, Service] = {}
        self._by_label: dict[str, Service] = {}
        self._count = 0
        self._by_suffix: dict[str, Service] = {}
        for line in lines:
            self._add(line.partition("#")[0].strip())

    @classmethod
    def load(cls, path: Path) -> "ImitatedServices":
        """Reads a file; one that cannot be read holds no services."""
        try:
            return cls(path.read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError):
            return cls(())

    def __len__(self) -> int:
        return self._count

    def _add(self, line: str) -> None:
        left, _, right = line.partition(" = ")
        names = [name.strip() for name in left.split("|") if name.strip()]
        hosts = right.split()
        if not names or not hosts:
            return
        labels = frozenset(host[:-2] for host in hosts if host.endswith(".*"))
        suffixes = tuple(host for host in hosts if not host.endswith(".*") and is_registry_suffix(host))
        domains = tuple(registrable_domain(host) for host in hosts if not host.endswith(".*") and host not in suffixes)
        shown = names[0].rstrip("?")
        service = Service(shown if shown != shown.lower() else shown.title(), domains, labels, suffixes)
        self._count += 1
        for name in names:
            key = folded(name.rstrip("?"))
            self._by_name.setdefault(key, Claim(service, name.endswith("?")))
        for domain in domains[1:]:
            self._by_domain.setdefault(domain, service)
        for domain in domains[:1]:  # services of one company share domains: each main one is its own
            self._by_domain[domain] = service
        for label in labels:
            self._by_label.setdefault(label, service)
        for suffix in suffixes:
            self._by_suffix.setdefault(suffix, service)

    def of_host(self, host: str) -> Service | None:
        """Returns the service that owns a canonical host."""
        domain = registrable_domain(host)
        if found := self._by_domain.get(domain):
            return found
        found = self._by_label.get(domain.partition(".")[0])
        if found is not None and found.owns(host):
            return found
        return next((service for suffix, service in self._by_suffix.items() if host.endswith(f".{suffix}")), None)

    def of_title(self, title: str) -> Claim | None:
        """Returns the service whose name is the first or last part of a title, words such as "sign in" aside.

        "Sign in to GitHub · GitHub" is of GitHub, "Sign in with GitHub" and "Agency: our Facebook pages" are of none.
        """
        parts = [folded(part) for part in _PARTS.split(title[:MAX_TITLE]) if part.strip()]
        for part in (*parts[:2], *parts[-1:]):
            if claim := self._claim(part):
                return claim
        return None

    def _claim(self, part: str) -> Claim | None:
        words = part.split()
        bare = [word for word in words if not is_generic(word)]
        tries = (" ".join(words), " ".join(bare), _HAN_GENERIC.sub("", part).strip())
        return next((claim for name in tries if name and (claim := self._by_name.get(name))), None)


def is_generic(word: str) -> bool:
    """Returns whether a word stands in the titles of any site's login pages."""
    return word in _GENERIC


def folded(text: str) -> str:
    """Returns text in the normal view, letters that look like Latin ones as those where any of its letters is Latin."""
    view = normal_view(text).replace("\n", " ")
    if not view.isascii() and re.search("[a-z]", view):
        view = view.translate(_ALIKE)
    return " ".join(_SIGNS.sub("", view).split())
