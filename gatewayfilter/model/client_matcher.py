"""Client matchers: what a client is recognized by, in canonical form."""

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import Final

from gatewayfilter.errors import PolicyError

_MAC: Final = re.compile(r"[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}|[0-9a-f]{12}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}")
_MOST_USER_CHARACTERS: Final = 255
_USER: Final = "user:"
_MAPPED_BITS: Final = 96


class MatcherKind(StrEnum):
    """The kinds of matchers, in the order in which a client is looked up."""

    USER = "user"
    MAC = "mac"
    ADDRESS = "address"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One property by which a client is recognized.

    Attributes:
        value: canonical: a user name, `aa:bb:cc:dd:ee:ff`, an address, or a network as `10.0.0.0/8`.
    """

    kind: MatcherKind
    value: str

    def __str__(self) -> str:
        return f"{_USER}{self.value}" if self.kind is MatcherKind.USER else self.value


def parse_matcher(text: str) -> Matcher:
    """Returns the matcher that a text stands for.

    ==========================  =======================================================================
    written                     stands for
    ==========================  =======================================================================
    ``user:anna``               a user who logs in to the proxy
    ``aa:bb:cc:dd:ee:ff``       a device of the local network; also with ``-``, in groups of four, plain
    ``192.168.1.20``, ``::1``   one address
    ``10.0.0.0/8``              a network; one of a single address is that address
    ==========================  =======================================================================

    Raises:
        PolicyError: it is none of these.
    """
    plain = text.strip()
    if plain.lower().startswith(_USER):
        return _user(plain[len(_USER) :])
    if _MAC.fullmatch(plain.lower()) is not None:
        digits = re.sub(r"[^0-9a-f]", "", plain.lower())
        return Matcher(MatcherKind.MAC, ":".join(digits[at : at + 2] for at in range(0, 12, 2)))
    try:
        if "/" not in plain:
            return Matcher(MatcherKind.ADDRESS, canonical_address(plain))
        network = ip_network(plain)
    except ValueError as error:
        raise PolicyError(_complaint(plain, error)) from error
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:  # requests come from the address of IPv4
        network = ip_network((mapped, network.prefixlen - _MAPPED_BITS))
    if network.num_addresses == 1:
        return Matcher(MatcherKind.ADDRESS, str(network.network_address))
    return Matcher(MatcherKind.NETWORK, str(network))


def canonical_address(text: str) -> str:
    """Returns an IP address in canonical form, without a zone; one of IPv4 in IPv6 is that of IPv4.

    Raises:
        ValueError: it is no address.
    """
    address = ip_address(text.partition("%")[0].strip("[]"))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped if mapped is not None else address)


def _user(name: str) -> Matcher:
    if not name or len(name) > _MOST_USER_CHARACTERS or not name.isprintable() or ":" in name:
        raise PolicyError(f"{name!r} is no name of a proxy user")
    return Matcher(MatcherKind.USER, name)


def _complaint(text: str, error: ValueError) -> str:
    if "host bits" in str(error):
        return f"{text} is no network: its address has bits behind the prefix; did you mean {ip_network(text, strict=False)}?"
    return f"{text!r} is no address, network, MAC or user:NAME"
