"""The catalogue of services (`lists/services.toml`), and the operator's own one that adds to it or replaces entries."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gatewayfilter.errors import ListError, UrlError
from gatewayfilter.model import Service
from gatewayfilter.urls import canonical_host, is_ip_literal, is_public_suffix

OWN_NAME: Final = "services.toml"
"""Name of the operator's own catalogue in the state folder."""

_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_PATTERN: Final = re.compile(r"[a-z0-9*.-]{4,253}", re.ASCII)
_MOST_BYTES: Final = 1_000_000
_MOST_SERVICES: Final = 2_000
_MOST_HOSTS: Final = 500
_MOST_PATTERNS: Final = 20
_MOST_STARS: Final = 2
_MOST_CHARACTERS: Final = 100
_MOST_PORT: Final = 65_535
_KEYS: Final = frozenset({"name", "name_zh", "group", "hosts", "media", "except", "patterns", "ports", "part_of", "source"})


def load_services(bundled: Path, own: Path | None = None) -> dict[str, Service]:
    """Returns the catalogue by id: the bundled one, then what the operator's own adds or replaces.

    Args:
        bundled: the catalogue that comes with the program.
        own: the operator's own; a missing file adds nothing.

    Raises:
        ListError: a file cannot be read, is too large, or an entry of it is wrong; the sentence names file and service.
    """
    found = dict(_read(bundled))
    if own is not None and own.exists():
        found |= {name: replace(service, own=True) for name, service in _read(own).items()}
        if len(found) > _MOST_SERVICES:
            raise ListError(f"{own}: more than {_MOST_SERVICES:,} services")
    for service in found.values():
        if service.part_of and service.part_of not in found:
            raise ListError(f"{own or bundled}: {service.service_id} is part of {service.part_of!r}, which is no service")
    return found


def _read(path: Path) -> Mapping[str, Service]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise ListError(f"{path} is larger than {_MOST_BYTES:,} bytes")
    return _parse(data, path)


@lru_cache(maxsize=2)
def _parse(data: bytes, path: Path) -> Mapping[str, Service]:
    """Returns the services of a file's content. It is needed often, and parsing takes some 20 ms."""
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ListError(f"{path} is not TOML: {error}") from error
    if len(document) > _MOST_SERVICES:
        raise ListError(f"{path}: more than {_MOST_SERVICES:,} services")
    found: dict[str, Service] = {}
    for name, table in document.items():
        try:
            found[name] = _service(name, table)
        except (ValueError, UrlError) as error:
            raise ListError(f"{path}: service {name[:_MOST_CHARACTERS]!r}: {error}") from error
    return MappingProxyType(found)


def _service(name: str, table: Any) -> Service:
    if not _ID.fullmatch(name):
        raise ValueError("its name has 1 to 40 of a-z, 0-9 and -")
    if not isinstance(table, Mapping):
        raise ValueError("not a table")  # noqa: TRY004  one kind of error for all that is wrong in a file
    if unknown := table.keys() - _KEYS:
        raise ValueError(f"unknown key {min(unknown)!r}; there are {', '.join(sorted(_KEYS))}")
    hosts = tuple(map(_host, _texts(table, "hosts", _MOST_HOSTS)))
    patterns = tuple(map(_pattern, _texts(table, "patterns", _MOST_PATTERNS)))
    ports = _ports(table)
    if not hosts and not patterns and not ports:
        raise ValueError("it has no hosts")
    media = tuple(map(_host, _texts(table, "media", _MOST_HOSTS)))
    excepted = tuple(map(_host, _texts(table, "except", _MOST_HOSTS)))
    for key, named in (("media", media), ("except", excepted)):
        for host in named:
            if not any((host == known and key == "media") or host.endswith(f".{known}") for known in hosts):
                raise ValueError(f"{key}: {host} is not among its hosts")
    title = _text(table, "name") or name
    part_of = _text(table, "part_of")
    group = _text(table, "group") or "other"
    if not _ID.fullmatch(group):
        raise ValueError(f"group {group!r} has other characters than a-z, 0-9 and -")
    chinese = _text(table, "name_zh") or title
    return Service(name, title, chinese, group, hosts, media, patterns, ports, part_of, _text(table, "source"), excepted=excepted)


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or len(value) > 2 * _MOST_CHARACTERS or (value and not value.isprintable()):
        raise ValueError(f"{key} is a text of at most {2 * _MOST_CHARACTERS} visible characters")
    return value.strip()


def _texts(table: Mapping[str, Any], key: str, most: int) -> list[str]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{key} is a list of texts")
    if len(values) > most:
        raise ValueError(f"{key} has more than {most} entries")
    return list(dict.fromkeys(values))


def _host(text: str) -> str:
    host = canonical_host(text)
    if is_ip_literal(host):
        raise ValueError(f"{text!r} is an address, not a host name")
    if is_public_suffix(host):
        raise ValueError(f"{text!r} is a public suffix: it would block the sites of strangers")
    return host


def _pattern(text: str) -> str:
    stars = text.count("*")
    if not _PATTERN.fullmatch(text) or not 0 < stars <= _MOST_STARS:
        raise ValueError(f"pattern {text[:_MOST_CHARACTERS]!r} is a host name in lower case with one or two *")
    fixed = text.rpartition("*")[2].partition(".")[2]
    if "." not in fixed:
        raise ValueError(f"pattern {text!r} ends with a domain without *, such as *-video.cdn.example")
    return text


def _ports(table: Mapping[str, Any]) -> tuple[int, ...]:
    ports = table.get("ports", [])
    if not isinstance(ports, list) or len(ports) > _MOST_PATTERNS:
        raise ValueError(f"ports is a list of at most {_MOST_PATTERNS} numbers")
    for port in ports:
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= _MOST_PORT or port in {80, 443}:
            raise ValueError(f"port {port!r} is not from 1 to {_MOST_PORT}, or is one of the web")
    return tuple(ports)
