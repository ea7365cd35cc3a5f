"""How the most lenient server could read a request: which hosts and paths it may take it for, and where its body may end."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

BLOCKED_HOSTS = ("blocked.test",)
BLOCKED_PATH = "/secret/"
"""Blocked below `PATH_HOST`."""
PATH_HOST = "ok.test"

_NEEDLESS = re.compile(r"%(2[b-fB-F1246-9aA]|3[0-9abdABD]|[46][0-9a-fA-F]|5[0-9a-fA-F]|7[0-9a-eA-E])")
_DOTS = re.compile(r"/\.(?=/|$)")
_UP = re.compile(r"/(?!\.\.(?:/|$))[^/]*/\.\.(?=/|$)")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\u00a0\u202e \t\r\n\0"))
_TOKEN = re.compile(rb"t[0-9a-f]{12}z")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNKED = re.compile(rb"(?:(?:x-)?gzip *, *|deflate *, *)*chunked", re.IGNORECASE)


def tokens(data: bytes) -> list[str]:
    """Returns the marks of cases in some bytes."""
    return [found.decode() for found in _TOKEN.findall(data)]


def host_forms(raw: bytes) -> set[str]:
    """Returns the names that a server could take a Host header, an authority or an SNI for."""
    found = set()
    for encoding in ("latin-1", "utf-8"):
        text = raw.decode(encoding, errors="replace")
        text = text.rpartition("@")[2].partition("/")[0]
        name = unicodedata.normalize("NFKC", unquote_to_bytes(text).decode(encoding, errors="replace"))
        name = unicodedata.normalize("NFKC", name.translate(_INVISIBLE)).lower()
        name = re.sub(r":[0-9]*$", "", name).rstrip(".")
        found.add(name)
    return found


def is_blocked_host(raw: bytes) -> bool:
    """Returns whether any reading of a name is a blocked host, or below one."""
    return any(name == host or name.endswith(f".{host}") for name in host_forms(raw) for host in BLOCKED_HOSTS)


def path_forms(raw: bytes) -> set[str]:
    """Returns what servers make of a path: dot segments, backslashes, doubled slashes, parameters, needless escapes.

    Escapes of escapes, and other letters' case, are no forms: the filter does not promise to know them (docs/security.md).
    """
    first = re.split(r"[?#]", raw.decode("latin-1"), maxsplit=1)[0]
    found, waiting = {first}, [first]
    while waiting:
        path = waiting.pop()
        further = {
            _NEEDLESS.sub(lambda match: chr(int(match[1], 16)), path),
            path.replace("\\", "/"),
            re.sub(r"//+", "/", path),
            re.sub(r";[^/]*", "", path),
            _DOTS.sub("", path) or "/",
            _UP.sub("", path, count=1) or "/",
            re.sub(r"^/\.\.(?=/|$)", "", path) or "/",
        }
        for form in further - found:
            found.add(form)
            waiting.append(form)
    return found


def is_blocked_path(raw: bytes) -> bool:
    """Returns whether any reading of a path lies below the blocked one."""
    return any(form.startswith(BLOCKED_PATH) for form in path_forms(raw))


@dataclass(frozen=True, slots=True)
class LenientHead:
    """A request head as it came.

    Attributes:
        method, target: of the request line, `b""` where it has none.
        fields: lower-case name and value of each line with a colon.
        size: bytes of the head.
    """

    method: bytes
    target: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    size: int

    def values(self, name: bytes) -> list[bytes]:
        """Returns the values of a field, by any spelling of its name."""
        return [value for found, value in self.fields if found == name]

    def hosts(self) -> Iterator[bytes]:
        """Yields each name that could choose the site."""
        yield from self.values(b"host")
        yield from self.values(b":authority")
        if b"://" in self.target:
            yield self.target.partition(b"://")[2]
        elif not self.target.startswith(b"/"):
            yield self.target

    def path(self) -> bytes:
        """Returns the path of the target."""
        if b"://" in self.target:
            return b"/" + self.target.partition(b"://")[2].partition(b"/")[2]
        return self.target

    def body_size(self, rest: bytes) -> int | None:
        """Returns how many of the bytes behind the head are its body, `None` while that is not clear.

        Of a message that two servers could read differently nothing is a body: all of it may be further requests.
        """
        lengths, codings = self.values(b"content-length"), self.values(b"transfer-encoding")
        if not lengths and not codings:
            return 0
        if codings and not lengths and len(codings) == 1 and _CHUNKED.fullmatch(codings[0]):
            return _chunked_size(rest)
        if lengths and not codings and len(lengths) == 1 and re.fullmatch(rb"[0-9]+", lengths[0]):
            size = int(lengths[0])
            return size if len(rest) >= size else None
        return 0


def _chunked_size(rest: bytes) -> int | None:
    at = 0
    while True:
        end = rest.find(b"\r\n", at)
        if end < 0:
            return None
        head = rest[at:end]
        if not re.fullmatch(rb"[0-9a-fA-F]+", head):
            return 0  # extensions and odd sizes: another server might see the end elsewhere
        size = int(head, 16)
        if size == 0:
            last = rest.find(b"\r\n\r\n", end - 0)
            return None if last < 0 else last + 4
        at = end + 2 + size + 2
        if at > len(rest):
            return None


def read_head(data: bytes) -> LenientHead | None:
    """Reads the first head of some bytes, with any line ends; `None` while it has no end."""
    match = _HEAD_END.search(data)
    if match is None:
        return None
    lines = re.split(rb"\r?\n|\r", data[: match.start()])
    words = lines[0].split(None, 2)
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            fields.append((name.strip().lower(), value.strip()))
    method, target = (words[0], words[1]) if len(words) > 1 else (b"", words[0] if words else b"")
    return LenientHead(method, target, tuple(fields), match.end())


def is_blocked(head: LenientHead, sni: bytes = b"") -> bool:
    """Returns whether a lenient server could serve blocked content for a request."""
    hosts = [*head.hosts(), *([sni] if sni else [])]
    if any(is_blocked_host(host) for host in hosts):
        return True
    below = any(PATH_HOST in host_forms(host) for host in hosts)
    return below and is_blocked_path(head.path())


def names_blocked(raw: bytes) -> bool:
    """Returns whether bytes that are no request name something blocked anywhere."""
    lower = raw.lower()
    return any(host.encode() in lower for host in BLOCKED_HOSTS) or BLOCKED_PATH.encode() in lower
