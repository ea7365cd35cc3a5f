"""Content security policies, extended by what the filter's own style sheet needs and nothing more.

Source: Content Security Policy Level 3, §6.8 (directive fallback) and §8.4 (hashes).
"""

from collections.abc import Callable
from typing import Final

from mitmproxy.http import Headers

_NAMES: Final = ("content-security-policy", "content-security-policy-report-only")
_FALLBACK: Final = ("style-src-elem", "style-src", "default-src")
_OF_INLINE: Final = ("'nonce-", "'sha256-", "'sha384-", "'sha512-", "'strict-dynamic'")


def allow_style(headers: Headers, source_of: Callable[[], str]) -> None:
    """Lets a response's policies allow one inline style sheet.

    Args:
        headers: of the response; each policy of each header is changed.
        source_of: returns the sheet's hash as a CSP source; called only where there is a policy.
    """
    present = [name for name in _NAMES if name in headers]
    if present:
        source = source_of()
        for name in present:
            values = headers.get_all(name)
            headers.set_all(name, [", ".join(_allowing(policy, source) for policy in value.split(",")) for value in values])


def _allowing(policy: str, source: str) -> str:
    directives = [part.strip() for part in policy.split(";")]
    named: dict[str, int] = {}
    for position, directive in enumerate(directives):
        name = directive.partition(" ")[0].lower()
        named.setdefault(name, position)  # a browser ignores the second of a name
    decisive = next((name for name in _FALLBACK if name in named), None)
    if decisive is None:
        return policy.strip()
    sources = directives[named[decisive]].split()[1:]
    lower = [item.lower() for item in sources]
    if "'unsafe-inline'" in lower and not any(item.startswith(_OF_INLINE) for item in lower):
        return policy.strip()
    sources = [item for item in sources if item.lower() != "'none'"]
    if decisive == "default-src":
        directives.append(" ".join(("style-src", *sources, source)))
    else:
        directives[named[decisive]] = " ".join((decisive, *sources, source))
    return "; ".join(directive for directive in directives if directive)
