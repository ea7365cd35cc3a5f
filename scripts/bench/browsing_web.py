"""A web on loopback for the browsing benchmark: hosts with addresses and certificates of their own, pages with their requests.

Pages come from a file of real requests (`requests.jsonl` with `url`, `source` and `type`), read when the benchmark runs, or from
a generated graph of the same shape. Hosts are folded onto `HOSTS` names below `.test`: those that most requests go to keep one
each. Every URL differs; bodies come from a few hundred files whose sizes follow the medians of the HTTP Archive. nginx serves
them, seven of ten hosts by HTTP/2 and HTTP/1.1, the others by HTTP/1.1 alone.
"""

import contextlib
import gzip
import html
import json
import random
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

import trustme
from proxy_load import PLACES

HOSTS: Final = 120
PAGES: Final = 200
_LEAST_REQUESTS: Final = 20
_MOST_REQUESTS: Final = 120
_SIZES: Final = 16
"""Files of each type."""
_LONGEST_PATH: Final = 400
_WITH_HTTP2: Final = 7
"""Of ten hosts."""
_ENDS: Final = re.compile(r"[^A-Za-z0-9/._~!$&'()*+,;=:@%?-]+")
_WORDS: Final = (
    "the of and to in is for that page with on as are this by from at or an be which section value return function var"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type of resource: its media type, the median of its size, the spread of the size's logarithm, whether it is text."""

    media: str
    median: int
    spread: float
    text: bool
    caching: str = "public, max-age=31536000, immutable"


_KINDS: Final[Mapping[str, _Kind]] = {
    "script": _Kind("application/javascript", 22_000, 1.2, text=True),
    "stylesheet": _Kind("text/css", 9_000, 1.1, text=True),
    "image": _Kind("image/gif", 9_000, 1.5, text=False),
    "font": _Kind("font/woff2", 25_000, 0.5, text=False),
    "media": _Kind("video/mp4", 150_000, 0.5, text=False),
    "xmlhttprequest": _Kind("application/json", 1_500, 1.2, text=True, caching="private, no-cache"),
    "subdocument": _Kind("text/html", 5_000, 1.0, text=True, caching="private, no-cache"),
    "other": _Kind("text/plain", 1_000, 1.0, text=True, caching="private, no-cache"),
}
_DOCUMENT: Final = _Kind("text/html", 30_000, 0.0, text=True, caching="private, no-cache")
_TYPES: Final = (
    ("image",) * 47 + ("script",) * 28 + ("xmlhttprequest",) * 9 + ("subdocument",) * 6 + ("stylesheet",) * 6 + ("font",) * 4
)

type Graph = list[list[tuple[str, str]]]
"""Of each page its requests, as URL and type."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        url: its address.
        requests: how many it sends, itself among them.
        hosts: how many hosts they go to.
    """

    url: str
    requests: int
    hosts: int


def read_graph(path: Path) -> Graph:
    """Returns the pages of a file of requests that have at least `_LEAST_REQUESTS`."""
    pages: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            pages[one["source"]].append((one["url"], one["type"]))
    return [found[:_MOST_REQUESTS] for found in pages.values() if len(found) >= _LEAST_REQUESTS]


def make_graph(seed: int = 1) -> Graph:
    """Returns pages of about the same shape: some 40 requests to some 15 hosts, of which a few are on most pages."""
    chance = random.Random(seed)
    graph: Graph = []
    for number in range(PAGES):
        own = [f"site{number}.example", f"static.site{number}.example"]
        others = [f"party{int(chance.paretovariate(0.6)) % 400}.example" for _ in range(15)]
        count = min(_MOST_REQUESTS, max(_LEAST_REQUESTS, int(chance.lognormvariate(3.6, 0.5))))
        page: list[tuple[str, str]] = []
        for _ in range(count):
            host = chance.choice(own if chance.random() < 0.4 else others)
            path = "/".join(f"{chance.getrandbits(24):x}" for _ in range(chance.randint(1, 5)))
            query = f"?id={chance.getrandbits(64):x}&v={chance.getrandbits(200):x}" if chance.random() < 0.4 else ""
            page.append((f"https://{host}/{path}{query}", chance.choice(_TYPES)))
        graph.append(page)
    return graph


class Web:
    """A local web, its files below a folder.

    Args:
        folder: for its files; to be made.
        graph: pages with their requests.
    """

    def __init__(self, folder: Path, graph: Graph) -> None:
        self._folder = folder
        folder.mkdir(mode=0o755)
        self._chance = random.Random(7)
        self.hosts = [f"www.site-{number}.test" for number in range(HOSTS)]
        used = Counter(urlsplit(url).hostname for page in graph for url, _ in page)
        self._own = {host: number for number, (host, _) in enumerate(used.most_common(HOSTS // 3))}
        self._bodies()
        self.pages = [self._page(number, page) for number, page in enumerate(graph[:PAGES])]
        self._certificates()

    def addresses(self) -> str:
        """Returns the lines of a hosts file."""
        return "127.0.0.1 localhost\n" + "".join(f"127.0.1.{number + 1} {host}\n" for number, host in enumerate(self.hosts))

    @property
    def http2_hosts(self) -> list[str]:
        """The hosts that speak HTTP/2, and HTTP/1.1 too."""
        return [host for number, host in enumerate(self.hosts) if _speaks_http2(number)]

    @property
    def authority(self) -> Path:
        """The certificate of the authority that issued those of the hosts."""
        return self._folder / "ca.pem"

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serves it, on ports 80 and 443 of each host's address.

        Raises:
            SystemExit: there is no nginx.
        """
        nginx = shutil.which("nginx", path=PLACES)
        if nginx is None:
            raise SystemExit("the browsing benchmark needs nginx: apt-get install nginx-light")
        command = [nginx, "-p", str(self._folder), "-c", str(self._configuration()), "-e", str(self._folder / "error.log")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(10)

    def add(self, kind: str, number: int, size: int) -> tuple[bytes, ...]:
        """Adds a file, `/KIND/NUMBER/…` of each host. Returns its body as it is sent where gzip is accepted, and unpacked."""
        return self._write(f"{kind}-{number}", self._body(kind, size), packed=_KINDS[kind].text)

    def _host(self, real: str) -> int:
        number = self._own.get(real)
        rest = HOSTS - len(self._own)
        return number if number is not None else len(self._own) + crc32(real.encode()) % rest

    def _text(self, size: int) -> str:
        words = _WORDS.split()
        return " ".join(
            self._chance.choice(words) + (f"{self._chance.getrandbits(12):x}" * (n % 3 == 0)) for n in range(size // 6)
        )[:size]

    def _bodies(self) -> None:
        for name, kind in _KINDS.items():
            for number in range(_SIZES):
                size = int(min(300_000, max(43, kind.median * self._chance.lognormvariate(0, kind.spread))))
                self._write(f"{name}-{number}", self._body(name, size), packed=kind.text)

    def _body(self, name: str, size: int) -> bytes:
        match name:
            case "script":
                return f"/* {self._text(size)} */\nwindow.count = (window.count || 0) + 1;\n".encode()
            case "stylesheet":
                return f"/* {self._text(size)} */\np {{ margin: 1px }}\n".encode()
            case "xmlhttprequest":
                return json.dumps({"text": self._text(size)}).encode()
            case "subdocument":
                return f"<!doctype html><title>frame</title><p>{self._text(size)}</p>".encode()
            case "other":
                return self._text(size).encode()
            case _:
                pixel = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
                return pixel + self._chance.randbytes(size - len(pixel))

    def _write(self, name: str, body: bytes, *, packed: bool) -> tuple[bytes, ...]:
        (self._folder / "files").mkdir(exist_ok=True)
        (self._folder / "files" / name).write_bytes(body)
        if not packed:
            return (body,)
        small = gzip.compress(body, 6, mtime=0)
        (self._folder / "files" / f"{name}.gz").write_bytes(small)
        return small, body

    def _page(self, number: int, requests: Sequence[tuple[str, str]]) -> Page:
        head: list[str] = []
        body: list[str] = []
        fetched: list[str] = []
        hosts: set[int] = set()
        sent = 1
        for place, (real, kind) in enumerate(requests):
            if place == 0 and kind == "subdocument":
                continue  # the page itself
            parts = urlsplit(real)
            at = self._host(parts.hostname or "")
            hosts.add(at)
            sent += 1
            name = kind if kind in _KINDS else "other"
            rest = _ENDS.sub("", f"{parts.path.lstrip('/')}?{parts.query}&n={number}.{place}")[:_LONGEST_PATH]
            url = f"https://{self.hosts[at]}/{name}/{self._chance.randrange(_SIZES)}/{rest}"
            quoted = html.escape(url)
            match name:
                case "stylesheet":
                    head.append(f'<link rel="stylesheet" href="{quoted}">')
                case "script":
                    head.append(f'<script src="{quoted}" {"async" if place % 2 else "defer"}></script>')
                case "image":
                    body.append(f'<img src="{quoted}" width="1" height="1">')
                case "subdocument":
                    body.append(f'<iframe src="{quoted}" width="9" height="9"></iframe>')
                case _:
                    fetched.append(url)
        urls = json.dumps(fetched).replace("<", "\\u003c")
        collect = f"window.fetched = Promise.allSettled({urls}.map(url => fetch(url).then(got => got.arrayBuffer())))"
        text = self._text(_DOCUMENT.median)
        page = f"<!doctype html><title>{number}</title>{''.join(head)}<script>{collect}</script>{''.join(body)}<p>{text}</p>"
        self._write(f"page-{number}", page.encode(), packed=True)
        at = self._host(urlsplit(requests[0][0]).hostname or "")
        return Page(f"https://{self.hosts[at]}/page/{number}/index.html", sent, len(hosts | {at}))

    def _certificates(self) -> None:
        authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        authority.cert_pem.write_to_path(str(self.authority))
        for number, host in enumerate(self.hosts):
            issued = authority.issue_cert(host, key_type=trustme.KeyType.ECDSA)
            issued.private_key_and_cert_chain_pem.write_to_path(str(self._folder / f"{number}.pem"))

    def _configuration(self) -> Path:
        places = "".join(_place(self._folder, name, kind) for name, kind in {**_KINDS, "page": _DOCUMENT}.items())
        (self._folder / "places.conf").write_text(places)
        servers = "".join(
            f" server {{ listen 127.0.1.{number + 1}:80;"
            f" listen 127.0.1.{number + 1}:443 ssl{' http2' if _speaks_http2(number) else ''};"
            f" server_name {host}; ssl_certificate {number}.pem; ssl_certificate_key {number}.pem; include places.conf; }}\n"
            for number, host in enumerate(self.hosts)
        )
        path = self._folder / "nginx.conf"
        path.write_text(
            f"user root; daemon off; worker_processes 1; pid {self._folder}/pid; error_log {self._folder}/error.log;\n"
            "events { worker_connections 4096; }\n"
            "http { access_log off; keepalive_requests 1000; keepalive_timeout 60s; ssl_protocols TLSv1.2 TLSv1.3;\n"
            " large_client_header_buffers 8 16k; http2_max_concurrent_streams 128; ssl_session_cache shared:SSL:10m;\n"
            f" client_body_temp_path {self._folder}/a; proxy_temp_path {self._folder}/b; fastcgi_temp_path {self._folder}/c;\n"
            f" uwsgi_temp_path {self._folder}/d; scgi_temp_path {self._folder}/e; sendfile on; tcp_nopush on;\n{servers}}}\n"
        )
        return path


def _speaks_http2(number: int) -> bool:
    return number % 10 < _WITH_HTTP2


def _place(folder: Path, name: str, kind: _Kind) -> str:
    cookie = (
        'add_header Set-Cookie "id=$request_id; Path=/; Secure; HttpOnly; SameSite=None";' if "private" in kind.caching else ""
    )
    return (
        f"location /{name}/ {{ root {folder}/files; rewrite ^/{name}/([0-9]+)/ /{name}-$1 break; default_type {kind.media};\n"
        f' gzip_static on; gzip_vary on; add_header Cache-Control "{kind.caching}"; add_header Access-Control-Allow-Origin "*";\n'
        f" add_header X-Content-Type-Options nosniff; add_header X-Request-Id $request_id; {cookie}\n"
        ' add_header Server-Timing "cdn-cache;desc=HIT, edge;dur=1"; add_header Timing-Allow-Origin "*"; }\n'
    )
