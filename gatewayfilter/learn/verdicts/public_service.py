"""Public-service hosts: domains that registries give to governments, universities and armed forces only.

Our own rule, by the registries' published policies. A second-level name counts where the public suffix list holds it as a
suffix of the registry, so that a private registration of `gov` or `ac` in some country does not. Left out: `edu.pl`, which is
open to anyone.
"""

from typing import Final

from gatewayfilter.urls import host_suffixes, is_registry_suffix

_TOP: Final = frozenset({"gov", "edu", "mil", "int"})
_SECOND: Final = frozenset({"gov", "gob", "gouv", "govt", "gub", "edu", "ac", "mil"})
"""With a country code behind them, as in `gov.cn`, `ac.uk`."""
_NAMED: Final = frozenset(
    {
        *("go.jp", "lg.jp", "go.kr", "go.th", "go.id", "go.ke", "go.tz", "go.ug", "go.cr", "gv.at", "gc.ca"),
        *("admin.ch", "bund.de", "europa.eu", "nhs.uk", "police.uk", "mod.uk", "parliament.uk"),
    }
)
_OPEN: Final = frozenset({"edu.pl"})


def public_service_suffix(host: str) -> str:
    """Returns the reserved suffix that a canonical host stands below, `""` for none."""
    for name in host_suffixes(host):
        if name in _NAMED or name in _TOP:
            return name
        label, _, country = name.partition(".")
        if len(country) == 2 and label in _SECOND and name not in _OPEN and is_registry_suffix(name):
            return name
    return ""
