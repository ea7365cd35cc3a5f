"""The treatment of connections by the request rules of a policy: what passes unread, and where it has to end.

A connection that passes unread cannot have its requests changed: a site whose filter is enforced is connected to by its enforced
addresses, or, where it has none, decrypted; where the policy decrypts nothing, it is denied.
"""

from dataclasses import replace
from typing import Final

from gatewayfilter.engine.policies.request_rules import RequestRules
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, TlsHandling, Verdict
from gatewayfilter.urls import canonical_host

_INTERCEPT: Final = TlsHandling.INTERCEPT


def treated_connection(rules: RequestRules, host: str, verdict: HostVerdict) -> HostVerdict:
    """Returns the verdict on connections to a host as the rules of a policy treat it.

    Args:
        rules: in force.
        host: canonical or as sent by a client.
        verdict: by lists, manual rules and schedules.
    """
    if verdict.action is HostAction.DENY:
        return replace(verdict, shows_page=False) if rules.tls is TlsHandling.SNI_ONLY else verdict
    if verdict.action is HostAction.INTERCEPT and rules.tls is not _INTERCEPT:
        unread = Verdict(Action.ALLOW, Reason.POLICY, rule=rules.tls_policy, detail=f"tls={rules.tls}")
        verdict = HostVerdict(HostAction.SPLICE, unread, because=verdict.because)
    if not rules.hosts:
        return verdict
    try:
        found = rules.hosts.get(canonical_host(host))
    except (UrlError, UnicodeError):
        return verdict
    if found is None:
        return verdict
    if found.searched is not None and rules.tls is _INTERCEPT:
        verdict = replace(verdict, action=HostAction.INTERCEPT, named=True)  # its searches have to be read
    if found.enforced is None:
        return verdict
    if found.enforced.address:
        return replace(verdict, connect_to=found.enforced.address)
    if rules.tls is _INTERCEPT:
        return replace(verdict, action=HostAction.INTERCEPT, named=True)
    denied = Verdict(Action.BLOCK, Reason.SAFESEARCH, rule=rules.tls_policy, detail=found.enforced.key)
    page = rules.tls is TlsHandling.PAGE_ONLY
    return HostVerdict(HostAction.DENY, denied, named=True, because=denied, shows_page=page)
