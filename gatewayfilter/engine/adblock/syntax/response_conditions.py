"""Conditions on the response: `$header` and `$ipaddress`."""

from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

from gatewayfilter.engine.adblock.syntax.removeparam import split_flags, text_test
from gatewayfilter.errors import RuleError

type HeaderTest = Callable[[Mapping[str, str]], bool]
type AddressTest = Callable[[str], bool]

_PRIVATE_WORDS = {"lan", "loopback"}


def header_test(value: str) -> HeaderTest:
    """Returns the test for `name`, `name:value`, `name:/expression/`, each value negated by `~`; names in lower case.

    Raises:
        RuleError: it cannot be read.
    """
    name, colon, wanted = value.partition(":")
    name = name.strip().lower()
    if not name or not name.isascii() or any(mark in name for mark in ' ()<>@,;\\"/[]?={}'):
        raise RuleError(f"not a header name: {name[:100]!r}")
    if not colon:
        return lambda headers: name in headers
    wanted = wanted.strip()
    negated = wanted.startswith("~")
    wanted = wanted[negated:]
    expression = split_flags(wanted)
    if expression is not None:
        found = text_test(*expression)
        return lambda headers: name in headers and found(headers[name]) is not negated
    return lambda headers: name in headers and (wanted == headers[name]) is not negated


def address_test(value: str) -> AddressTest:
    """Returns the test for addresses, networks (`192.0.2.0/24`), prefixes (`192.0.2.*`) and expressions, separated by `|`.

    Raises:
        RuleError: one cannot be parsed.
    """
    tests: list[tuple[bool, AddressTest]] = []
    expression = split_flags(value)
    for item in [value] if expression else value.split("|"):
        text = item.strip()
        negated = text.startswith("~")
        tests.append((negated, _one_address(text[negated:])))
    wanted = [test for negated, test in tests if not negated]
    unwanted = [test for negated, test in tests if negated]

    def test(address: str) -> bool:
        if not address or any(found(address) for found in unwanted):
            return False
        return not wanted or any(found(address) for found in wanted)

    return test


def plain_addresses(value: str) -> tuple[str, ...]:
    """Returns the addresses of a value that consists of addresses only, in canonical form; none for any other value."""
    found: list[str] = []
    for item in value.split("|"):
        try:
            found.append(ip_address(item.strip()).compressed)
        except ValueError:
            return ()
    return tuple(found)


def canonical_address(address: str) -> str:
    """Returns an address in the form of `plain_addresses`; any other text is returned as it is."""
    if ":" not in address:
        return address
    try:
        return ip_address(address).compressed
    except ValueError:
        return address


def _one_address(text: str) -> AddressTest:
    expression = split_flags(text)
    if expression is not None:
        return text_test(*expression)
    if text in _PRIVATE_WORDS:
        return lambda address: _is_private(address, text)
    if text.endswith("*") and len(text) > 1:
        return lambda address: address.startswith(text[:-1])
    try:
        if "/" in text:
            network = ip_network(text, strict=False)
            return lambda address: _parsed(address) in network
        wanted = ip_address(text)
    except ValueError as error:
        raise RuleError(f"not an address: {text[:100]!r}") from error
    return lambda address: _parsed(address) == wanted


def _parsed(address: str) -> object:
    try:
        return ip_address(address)
    except ValueError:
        return None


def _is_private(address: str, word: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return found.is_loopback if word == "loopback" else found.is_private and not found.is_loopback
