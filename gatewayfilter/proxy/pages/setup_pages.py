"""The filter's set-up page: the certificate authority for each system, a check of whether this device is set up, PAC and WPAD.

It is served under `gateway.hosts` to every client whose traffic passes the filter, and under the proxy's own address and port.
It has no scripts: whether a device trusts the authority shows in an image that comes over HTTPS, with words in its place when it
does not.
"""

import logging
import socket
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gatewayfilter.certificates.authority import CaFormat, CertificateAuthority
from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import InternalAnswer, InternalRequest
from gatewayfilter.proxy.pages.setup_translations import GatewayFacts, SetupTexts, setup_texts
from gatewayfilter.urls import Url, is_ip_literal

_log = logging.getLogger(__name__)

_TEMPLATES = Path(__file__).parent / "templates"
_STYLE = (_TEMPLATES / "setup.css").read_text(encoding="utf-8")
_TEMPLATE = Environment(
    loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
).get_template("setup.html")
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_PAC_TYPE: Final = "application/x-ns-proxy-autoconfig"
_PAC_PATHS: Final = frozenset({"/proxy.pac", "/wpad.dat", "/wpad.da"})
"""Old Windows requests `/wpad.da`: DHCP servers sent the address without its end."""
_DOWNLOADS: Final[Mapping[str, tuple[CaFormat, str, str]]] = {
    "/ca.cer": ("der", "application/x-x509-ca-cert", "gatewayfilter-ca.cer"),
    "/ca.crt": ("pem", "application/x-x509-ca-cert", "gatewayfilter-ca.crt"),
    "/ca.pem": ("pem", "application/x-pem-file", "gatewayfilter-ca.pem"),
    "/ca.p12": ("p12", "application/x-pkcs12", "gatewayfilter-ca.p12"),
    "/ca.mobileconfig": ("mobileconfig", "application/x-apple-aspen-config", "gatewayfilter-ca.mobileconfig"),
}


class SetupPages:
    """The filter's own pages.

    Args:
        settings: `proxy` and `gateway` count here.
        authority: the certificate authority in use.
        pac: returns the PAC file for a proxy address, `""` for none.
        facts: returns what is known of the gateway; called on `refresh` only.
        coming: returns the authority that is handed out before it is in force, if there is one; called on `refresh` only.
        doh_blocked: returns how many of the well-known DNS-over-HTTPS servers the filter blocks, and how many there are.
        address_on_lan: returns the address by which devices of the LAN reach this machine, `""` for none; called on `refresh`
            only.
    """

    def __init__(
        self,
        settings: Settings,
        authority: CertificateAuthority,
        pac: Callable[[str], str],
        facts: Callable[[], GatewayFacts] = GatewayFacts,
        coming: Callable[[], CertificateAuthority | None] = lambda: None,
        doh_blocked: Callable[[], tuple[int, int]] = lambda: (0, 0),
        address_on_lan: Callable[[], str] = lambda: "",
    ) -> None:
        self._hosts = frozenset(settings.gateway.hosts)
        self._own_port_80 = settings.gateway.own_port_80
        host, self._port = split_address(settings.proxy.listen)
        self._local_only = _is_loopback(host)
        self._shown_port = "" if self._port == 80 else str(self._port)  # as `Url` has it
        self._transparent = settings.proxy.mode == "transparent"
        names = [host for host in settings.gateway.hosts if not is_ip_literal(host)]
        addresses = [host for host in settings.gateway.hosts if is_ip_literal(host)]
        usual = (addresses + names) if self._transparent else (names + addresses)
        self._usual_host = usual[0] if usual else ""
        self._authority = authority
        self._files = _files_of(authority)
        self._coming: CertificateAuthority | None = None
        self._read_coming = coming
        self._pac = pac
        self._read_facts = facts
        self._facts = GatewayFacts()
        self._doh_blocked = doh_blocked
        self._read_lan_address = address_on_lan
        self._lan_address = ""

    def refresh(self) -> None:
        """Reads the state of the gateway and of the next authority again; not while a request waits."""
        self._facts = self._read_facts()
        self._lan_address = self._read_lan_address()
        try:
            coming = self._read_coming()
        except StartupError as error:  # a damaged one is not handed out; the page stays
            _log.warning("%s", error)
            coming = None
        if coming != self._coming:
            files = _files_of(self._authority)
            if coming is not None:
                files |= {f"/next-{path[1:]}": content for path, content in _files_of(coming).items()}
            self._files, self._coming = files, coming

    def answers(self, url: Url) -> bool:
        """Returns whether this URL is one of ours: a host of ours, or this machine's address with the port of the proxy."""
        host = url.host
        if host in self._hosts:
            return True
        if url.port != self._shown_port and not (self._own_port_80 and not url.port and url.scheme == "http"):
            return False
        if is_ip_literal(host):
            return _is_this_machine(host)
        return self._own_port_80 and (host == "wpad" or host.startswith("wpad.")) and url.path in _PAC_PATHS

    def respond(self, request: InternalRequest) -> InternalAnswer:
        """Returns a page, a certificate, a PAC file or a picture."""
        texts = setup_texts(_query(request.url, "lang") or request.headers.get("accept-language", ""))
        path = request.url.path
        if request.method not in {"GET", "HEAD"}:
            return _answer(405, "text/plain; charset=utf-8", b"", {"allow": "GET, HEAD"})
        if path == "/":
            return self._page(request, texts)
        if path in self._files:
            _, content_type, name = _DOWNLOADS[path.replace("/next-", "/")]
            name = name if path in _DOWNLOADS else f"next-{name}"
            # Phones offer to install what is shown, not what is saved: the name is a hint alone.
            return _answer(200, content_type, self._files[path], {"content-disposition": f'inline; filename="{name}"'})
        if path in _PAC_PATHS:
            proxy = "" if self._transparent else _address(*self._reachable(request))
            return _answer(200, _PAC_TYPE, self._pac(proxy).encode())
        if path == "/qr.svg":
            return _answer(200, "image/svg+xml", _qr(self._address_for_others(request)), _PICTURE)
        if path == "/through.svg":
            return _answer(200, "image/svg+xml", _tick(texts.words["through_yes"]), _PICTURE)
        if path == "/trusted.svg" and request.url.scheme == "https":
            return _answer(200, "image/svg+xml", _tick(texts.words["trusted_yes"]), _PICTURE)
        return _answer(404, "text/plain; charset=utf-8", f"{texts.words['not_here']}\n".encode())

    def _page(self, request: InternalRequest, texts: SetupTexts) -> InternalAnswer:
        host = request.url.host
        through = host in self._hosts
        check_host = host if through else self._usual_host
        here = self._address_for_others(request)
        secure = request.url.scheme == "https"
        content = _TEMPLATE.render(
            text=texts.words,
            language=texts.language,
            systems=texts.systems,
            style=_STYLE,
            secure=secure,
            through=through,
            check_host=check_host,
            system=_system(request.headers.get("user-agent", "")),
            name=self._authority.name,
            fingerprint=self._authority.fingerprint,
            expires=f"{self._authority.expires_at:%Y-%m-%d}",
            coming=self._coming,
            here=here,
            elsewhere=self._elsewhere(request),
            proxy="" if self._transparent else _address(*self._reachable(request)),
            notes=texts.notes(self._facts, self._doh_blocked(), transparent=self._transparent),
        )
        sources = f"http://{check_host} https://{check_host}" if check_host else "'none'"
        policy = (
            f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src 'self'; object-src {sources}; frame-src {sources}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"content-security-policy": policy, "content-language": texts.language, "vary": "accept-language, user-agent"}
        return _answer(200, "text/html; charset=utf-8", content.encode(), headers)

    def _reachable(self, request: InternalRequest) -> tuple[str, int]:
        """Returns address and port under which this client reached the proxy."""
        host = request.local[0] or request.url.host.strip("[]")
        return host, self._port

    def _elsewhere(self, request: InternalRequest) -> str:
        """Returns the address to listen on for other devices; `""` where they reach the proxy by this page's address."""
        if self._transparent or not self._local_only or not _is_loopback(self._reachable(request)[0]):
            return ""
        return _address(self._lan_address or "ADDRESS", self._port)

    def _address_for_others(self, request: InternalRequest) -> str:
        """Returns the page's address for a device that is not set up yet."""
        if self._transparent:
            return f"http://{self._usual_host}/"
        host, port = self._reachable(request)
        if _is_loopback(host) and not self._local_only and self._lan_address:  # seen from here, on all addresses
            host = self._lan_address
        return f"http://{_address(host, port)}/"


def _files_of(authority: CertificateAuthority) -> dict[str, bytes]:
    return {path: authority.export(form) for path, (form, _, _) in _DOWNLOADS.items()}


_PICTURE: Final = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "access-control-allow-origin": "*"}


def _answer(status: int, content_type: str, content: bytes, headers: Mapping[str, str] | None = None) -> InternalAnswer:
    return InternalAnswer(
        status,
        {
            "content-type": content_type,
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-gatewayfilter": "setup",
            **(headers or {}),
        },
        content,
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (is_ip_literal(f"[{host}]" if ":" in host else host) and ip_address(host).is_loopback)


def _is_this_machine(host: str) -> bool:
    """Returns whether an address is one of this machine's: only then it can be bound. No packet leaves."""
    address = host.strip("[]")
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return address not in {"0.0.0.0", "::"}  # noqa: S104  compared


def _query(url: Url, name: str) -> str:
    for part in url.query.lstrip("?").split("&"):
        key, _, value = part.partition("=")
        if key == name:
            return value
    return ""


def _system(user_agent: str) -> str:
    """Returns which system's instructions stand open: a guess, everything else is one click away."""
    for sign, system in _SYSTEMS:
        if sign in user_agent:
            return system
    return ""


_SYSTEMS: Final = (
    ("iPhone", "ios"),
    ("iPad", "ios"),
    ("Android", "android"),
    ("Firefox/", "firefox"),
    ("Windows NT", "windows"),
    ("Mac OS X", "macos"),
    ("CrOS", "chromeos"),
    ("Linux", "linux"),
)


def _qr(address: str) -> bytes:
    out = BytesIO()
    segno.make(address, error="m", micro=False).save(
        out, kind="svg", border=2, scale=4, dark="#1c2330", light="#fff", title=address
    )
    return out.getvalue()


def _tick(words: str) -> bytes:
    return (  # without a size of its own: on a phone it has less than 400 pixels, and shrinks
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 24" preserveAspectRatio="xMinYMid" role="img">'
        f"<title>{words}</title><style>text{{font:600 16px system-ui,sans-serif;fill:#1a7f37}}path{{stroke:#1a7f37}}"
        "@media(prefers-color-scheme:dark){text{fill:#5fd37a}path{stroke:#5fd37a}}</style>"
        '<path d="m3 13 5 5L18 6" fill="none" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>'
        f'<text x="26" y="18">{words}</text></svg>'
    ).encode()
