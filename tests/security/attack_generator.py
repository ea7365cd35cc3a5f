"""What a hostile client may try, drawn at random: each draw of a seed gives the same case."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.security import attack_http2, attack_words
from tests.security.attack_case import Case, Flight, Handshake
from tests.security.lenient_origin import MODES, VICTIM

_CRLF = b"\r\n"
OPEN = b"ok.test"
BAD = b"blocked.test"


@dataclass(frozen=True, slots=True)
class Site:
    """Where the co-operating site is, and how a client gets to it.

    Attributes:
        address: its IP address.
        plain, tls: its ports.
        transparent: whether connections are redirected instead of sent to the proxy.
    """

    address: str
    plain: int
    tls: int
    transparent: bool = False


class Generator:
    """Draws cases.

    Args:
        seed: names the run.
        site: the co-operating site.
    """

    def __init__(self, seed: int, site: Site) -> None:
        self._seed = seed
        self._site = site
        self._random = random.Random(seed)
        self._families: tuple[Callable[[], Case], ...] = (
            self._split_plain, self._split_plain, self._split_hello, self._odd_protocols, self._names, self._names, self._upgrade,
            self._smuggle, self._smuggle, self._pipeline, self._forms, self._paths, self._paths, self._http2, self._http2,
            self._tunnel, self._forged, self._long, self._garbage, self._answers, self._tls_in_tls,
        )  # fmt: skip

    def case(self, number: int) -> Case:
        """Returns a case; the same for the same number."""
        self._random = random.Random(f"{self._seed}/{number}")
        return self._random.choice(self._families)()

    # What a case is made of.

    def _mark(self) -> bytes:
        return b"t%012xz" % self._random.getrandbits(48)

    def _request(
        self,
        host: bytes | None = OPEN,
        path: bytes = b"/ok/%s",
        *,
        method: bytes = b"GET",
        version: bytes = b"HTTP/1.1",
        fields: tuple[bytes, ...] = (),
        body: bytes = b"",
        absolute: bytes = b"",
    ) -> bytes:
        target = path % self._mark() if b"%s" in path else path
        if absolute:
            target = absolute + target
        elif not self._site.transparent and not self._inside:
            target = b"http://%b:%d" % (OPEN if host is None else host.strip(), self._site.plain) + target
        lines = [b"%b %b %b" % (method, target, version), *([] if host is None else [b"Host: " + host]), *fields]
        return _CRLF.join(lines) + _CRLF * 2 + body

    _inside = False
    """Whether requests go through a CONNECT or a redirect: their targets are paths."""

    def _way(
        self, *, tls: bool | None = None, target: bytes = b"", sni: str | None = None
    ) -> tuple[Flight, tuple[Handshake, ...], bool]:
        """Draws how the client gets to the site: by CONNECT to name or address, by a redirect, or through the proxy plainly."""
        pick = self._random
        secure = pick.random() < 0.5 if tls is None else tls
        shakes: tuple[Handshake, ...] = ()
        if secure:
            shakes = (Handshake("ok.test" if sni is None else sni, pick.choice([("http/1.1",), (), ("foo/9",)])),)
        self._inside = True
        if self._site.transparent:
            return Flight(b""), shakes, secure
        if not target and not secure and pick.random() < 0.4:
            self._inside = False
            return Flight(b""), (), False
        port = self._site.tls if secure else self._site.plain
        host = target or pick.choice([OPEN, self._site.address.encode(), b"front.test"])
        return Flight(b"CONNECT %b:%d HTTP/1.1\r\nHost: %b:%d\r\n\r\n" % (host, port, host, port)), shakes, secure

    def _bad_request(self, **more: object) -> bytes:
        """A request that must never be answered by the site: blocked by its host, or by its path."""
        if self._random.random() < 0.5:
            return self._request(BAD, **more)  # type: ignore[arg-type]
        return self._request(OPEN, b"/secret/%s", **more)  # type: ignore[arg-type]

    def _cuts(self, data: bytes) -> tuple[int, ...]:
        pick = self._random
        most = min(len(data), pick.choice([4, 8, 24, 64]))
        return tuple(sorted({pick.randrange(1, most + 1) for _ in range(pick.choice([1, 1, 1, 2, 3]))}))

    def _line_ends(self) -> bytes:
        return self._random.choice([b"", b"\r\n", b"\n", b"\r\n\r\n", b"\r\n\r\n\r\n", b"\n\n", b"\r"])

    # The families.

    def _split_plain(self) -> Case:
        connect, shakes, secure = self._way()
        data = self._line_ends() + self._bad_request()
        return Case("split-request", (Flight(data, self._cuts(data)),), connect, shakes, secure)

    def _split_hello(self) -> Case:
        pick = self._random
        connect, _, secure = self._way(tls=True, target=pick.choice([OPEN, self._site.address.encode()]))
        shake = Handshake(
            "blocked.test",
            pick.choice([("http/1.1",), (), ("h2", "http/1.1")]),
            pick.choice([0, 0, 1, 4, 50]),
            self._cuts(b"x" * 300),
        )
        return Case("split-hello", (Flight(self._request(BAD)),), connect, (shake,), secure)

    def _odd_protocols(self) -> Case:
        connect, shakes, secure = self._way()
        pick = self._random
        fields = (pick.choice([b"X: y", b"Connection: close", b"Transfer-Encoding: chunked", b"Expect: 100-continue"]),)
        data = self._bad_request(
            method=pick.choice(attack_words.METHODS), version=pick.choice(attack_words.VERSIONS), fields=fields
        )
        if pick.random() < 0.3:
            data = data.replace(b"\r\n", pick.choice([b"\n", b"\r", b"\n\r", b"\r\n "]))
        if pick.random() < 0.2:
            data = data.replace(b" ", pick.choice([b"\t", b"  ", b"\x0b", b"\xa0"]), 2)
        return Case("odd-protocol", (Flight(self._line_ends() + data),), connect, shakes, secure)

    def _names(self) -> Case:
        pick = self._random
        bad = pick.choice(attack_words.SPELLINGS)
        place = pick.choice(["connect", "sni", "host", "absolute", "all", "two-hosts", "no-host"])
        target = bad if place in {"connect", "all"} else b""
        sni = "blocked.test" if place in {"sni", "all"} else pick.choice(["ok.test", "", "front.test"])
        connect, shakes, secure = self._way(target=target.strip(), sni=sni, tls=True if place == "sni" else None)
        host = bad if place in {"host", "all"} else OPEN
        if place == "absolute":
            data = self._request(OPEN, absolute=b"http://" + bad)
        elif place == "two-hosts":
            data = self._request(OPEN, fields=(b"Host: " + bad,))
        elif place == "no-host":
            data = self._request(
                None, version=pick.choice([b"HTTP/1.0", b"HTTP/1.1"]), fields=(pick.choice([b"hOST: ", b"Host:"]) + bad,)
            )
        else:
            data = self._request(host)
        return Case(f"names-{place}", (Flight(data),), connect, shakes, secure)

    def _upgrade(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way()
        token = pick.choice(attack_words.UPGRADES)
        fields: tuple[bytes, ...] = (b"Connection: Upgrade", b"Upgrade: " + token) if token else ()
        if token.lower().startswith(b"websocket"):
            fields += (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        first = self._request(OPEN, b"/ok/switch/%s", fields=fields, method=pick.choice([b"GET", b"GET", b"POST", b"OPTIONS"]))
        second = pick.choice([self._bad_request(), b"\x00raw blocked.test /secret/x", self._line_ends() + self._bad_request()])
        flights = (Flight(first + second),) if pick.random() < 0.3 else (Flight(first), Flight(second))
        return Case("upgrade", flights, connect, shakes, secure)

    def _smuggle(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way()
        hidden = self._bad_request()
        body = (
            pick.choice([b"0\r\n\r\n", b"", b"4\r\nabcd\r\n0\r\n\r\n", b"0;x=\n\r\n\r\n", b"0\n\n", b"00\r\nX: y\r\n\r\n"])
            + hidden
        )
        fields = tuple(field % len(body) if b"%d" in field else field for field in pick.choice(attack_words.FRAMINGS))
        version = pick.choice([b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0"])
        data = self._request(
            OPEN, method=pick.choice([b"POST", b"GET", b"PUT", b"HEAD"]), version=version, fields=fields, body=body
        )
        flights = (Flight(data),) if pick.random() < 0.5 else (Flight(data), Flight(self._request(OPEN)))
        return Case("smuggle", flights, connect, shakes, secure)

    def _pipeline(self) -> Case:
        connect, shakes, secure = self._way()
        requests = [self._request(OPEN) for _ in range(self._random.randrange(1, 4))] + [self._bad_request(), self._request(OPEN)]
        if self._random.random() < 0.3:
            self._random.shuffle(requests)
        data = self._random.choice([b"", b"\r\n"]).join(requests)
        return Case("pipeline", (Flight(data, self._cuts(data)),), connect, shakes, secure)

    def _forms(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way()
        port = self._site.plain
        kind = pick.choice(["absolute", "authority", "asterisk", "connect", "scheme", "empty"])
        if kind == "absolute":
            data = self._request(
                pick.choice([OPEN, BAD]), absolute=pick.choice([b"http://", b"https://", b"HTTP://", b"//"]) + BAD
            )
        elif kind == "connect":  # CONNECT in a CONNECT
            data = b"CONNECT %b:%d HTTP/1.1\r\nHost: %b:%d\r\n\r\n" % (BAD, port, pick.choice([BAD, OPEN]), port) + self._request(
                BAD
            )
        else:
            form = {"authority": b"blocked.test:%d" % port, "asterisk": b"*", "scheme": b"http:/secret/%s", "empty": b""}[kind]
            mark = self._mark()
            target = form % mark if b"%s" in form else form
            data = b"%b %b HTTP/1.1\r\nHost: %b\r\nX: %b\r\n\r\n" % (
                pick.choice([b"GET", b"OPTIONS", b"CONNECT"]), target, pick.choice([BAD, OPEN]), mark,
            )  # fmt: skip
        return Case(f"form-{kind}", (Flight(data),), connect, shakes, secure)

    def _paths(self) -> Case:
        connect, shakes, secure = self._way()
        return Case("path", (Flight(self._request(OPEN, self._random.choice(attack_words.PATHS))),), connect, shakes, secure)

    def _http2(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way(tls=True, sni=pick.choice(["ok.test", "ok.test", "blocked.test", "", "front.test"]))
        shakes = tuple(Handshake(shake.sni, pick.choice([("h2",), ("h2", "http/1.1"), ("h2",), ()])) for shake in shakes)
        hosts = tuple(name.strip() for name in attack_words.SPELLINGS)
        data = attack_http2.connection(pick, self._mark(), hosts, attack_words.PATHS)
        cuts = self._cuts(data) if pick.random() < 0.3 else ()
        return Case("http2", (Flight(data, cuts),), connect, shakes, secure)

    def _tunnel(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way(
            target=pick.choice([OPEN, b"front.test", b"unheard.test", self._site.address.encode()])
        )
        mark = self._mark()
        noise = bytes(pick.randrange(256) for _ in range(40))
        first = pick.choice([*attack_words.OTHER_LANGUAGES, noise])
        return Case("tunnel", (Flight(first), Flight(b"blocked.test /secret/" + mark)), connect, shakes, secure)

    def _forged(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way(target=pick.choice([OPEN, self._site.address.encode(), b"front.test"]))
        path = b"/ok/casino/%s"
        if secure and pick.random() < 0.4:
            data = attack_http2.request(VICTIM, path % self._mark())
            shakes = (Handshake(pick.choice(["ok.test", "front.test", "victim.test", ""]), ("h2",)),)
        else:
            fields = (b"User-Agent: Mozilla/5.0", b"Accept: text/html")
            data = b"".join(self._request(VICTIM, path, fields=fields) for _ in range(3))
        return Case("forged-name", (Flight(data),), connect, shakes, secure)

    def _long(self) -> Case:
        pick = self._random
        connect, shakes, secure = self._way()
        filler = b"a" * pick.choice([30_000, 65_400, 65_530, 66_000, 70_000, 140_000])
        where = pick.choice(["path", "query", "field"])
        if where == "field":
            data = self._bad_request(fields=(b"X: " + filler,))
        else:
            data = self._request(OPEN, b"/secret/%s/" + filler if where == "path" else b"/secret/%s?" + filler)
        return Case("long", (Flight(data, self._cuts(data) if pick.random() < 0.3 else ()),), connect, shakes, secure)

    def _garbage(self) -> Case:
        """Takes a case of another family, and changes a few bytes of it."""
        pick = self._random
        found = pick.choice([self._names, self._smuggle, self._forms, self._http2, self._upgrade])()
        data = bytearray(found.flights[0].data)
        for _ in range(pick.randrange(1, 4)):
            place = pick.randrange(len(data))
            change = pick.choice([b"\0", b"\r", b"\n", b" ", b"\t", b":", b"\xff", b"", bytes([pick.randrange(256)])])
            data[place : place + 1] = change
        return Case("garbage", (Flight(bytes(data)), *found.flights[1:]), found.connect, found.handshakes, found.secure)

    def _answers(self) -> Case:
        """An allowed request whose answer is odd, then another one on the same connection."""
        connect, shakes, secure = self._way()
        first = self._request(OPEN, b"/ok/%b/" % self._random.choice(MODES).encode() + b"%s")
        rest = (Flight(self._request(OPEN)), Flight(self._bad_request()))
        return Case("odd-answer", (Flight(first), *rest), connect, shakes, secure)

    def _tls_in_tls(self) -> Case:
        connect, shakes, secure = self._way(tls=True)
        inner = Handshake("blocked.test", ("http/1.1",), 0, self._cuts(b"x" * 100) if self._random.random() < 0.5 else ())
        return Case("tls-in-tls", (Flight(self._request(BAD)),), connect, (*shakes, inner), secure)
