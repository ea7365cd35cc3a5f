"""The index of services by host and port: to which services of the catalogue a URL belongs."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gatewayfilter.model import Service
from gatewayfilter.urls import Url, host_suffixes

_NONE: Final[tuple[str, ...]] = ()


class ServiceIndex:
    """Finds the services of a URL: one look-up for each suffix of its host, one for its port, and the patterns. Immutable.

    The result is a fact about the host and port, and is kept in the host cache with the others.

    Args:
        services: the catalogue, by id.

    Attributes:
        services: as given.
    """

    def __init__(self, services: Mapping[str, Service]) -> None:
        self.services = services
        self._hosts = _by_key((host, name) for name, one in services.items() for host in one.hosts)
        self._media = _by_key((host, name) for name, one in services.items() for host in one.media)
        self._excepted = _by_key((host, name) for name, one in services.items() for host in one.excepted)
        self._ports = _by_key((str(port), name) for name, one in services.items() for port in one.ports)
        self._patterns = [(_compiled(text), name) for name, one in services.items() for text in one.patterns]

    def __bool__(self) -> bool:
        """Whether there is any service."""
        return bool(self.services)

    def of(self, url: Url) -> tuple[str, ...]:
        """Returns the ids of the services to which a URL belongs, those of the most specific host first."""
        if not self.services:
            return _NONE
        found = self.of_host(url.host)
        of_port = self._ports.get(str(url.port), _NONE) if self._ports else _NONE
        return (*found, *(name for name in of_port if name not in found)) if of_port else found

    def of_host(self, host: str) -> tuple[str, ...]:
        """Returns the ids of the services to which a canonical host belongs."""
        found = _of_suffixes(self._hosts, host)
        if self._excepted and found and (excepted := _of_suffixes(self._excepted, host)):
            found = tuple(name for name in found if name not in excepted)
        named = [name for pattern, name in self._patterns if name not in found and pattern.fullmatch(host) is not None]
        return (*found, *named) if named else found

    def media_of(self, host: str) -> tuple[str, ...]:
        """Returns the ids of the services that send what is played from a canonical host."""
        return _of_suffixes(self._media, host) if self._media else _NONE


def _by_key(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in pairs:
        found[key] = (*found.get(key, _NONE), name)
    return found


def _of_suffixes(index: Mapping[str, tuple[str, ...]], host: str) -> tuple[str, ...]:
    found: tuple[str, ...] = _NONE
    for suffix in host_suffixes(host):
        names = index.get(suffix)
        if names is not None:
            found = (*found, *(name for name in names if name not in found)) if found else names
    return found


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("[^.]*".join(map(re.escape, pattern.split("*"))))


NO_SERVICES: Final = ServiceIndex({})
