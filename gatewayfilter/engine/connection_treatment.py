"""The treatment of connections by the request rules of a policy: what passes unread, and where it has to end.

A connection that passes unread cannot have its requests changed: a site whose filter is enforced is connected to by its enforced
addresses, or, where it has none, decrypted; where the policy decrypts nothing, it is denied.
"""

from dataclasses import replace
from typing import Final

from gatewayfilter.engine.policies.request_rules import RequestRules
from gatewayfilter.engine.policies.search_sites import HostRules
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action, Enforcement, HostAction, HostVerdict, Reason, TlsHandling, Verdict
from gatewayfilter.urls import canonical_host

_OF_EVERYTHING: Final = frozenset({Reason.SCHEDULE, Reason.POLICY, Reason.SERVICE, Reason.QUOTA})
_INTERCEPT: Final = TlsHandling.INTERCEPT


def treated_connection(rules: RequestRules, host: str, verdict: HostVerdict) -> HostVerdict:
    """Returns the verdict on connections to a host as the rules of a policy treat it.

    Args:
        rules: in force.
        host: canonical or as sent by a client.
        verdict: by lists, manual rules and schedules.
    """
    if rules.tls is not _INTERCEPT and _is_blocked(verdict):
        verdict = replace(verdict, action=HostAction.DENY, verdict=verdict.because or verdict.verdict)
    if verdict.action is HostAction.DENY:
        return replace(verdict, shows_page=False) if rules.tls is TlsHandling.SNI_ONLY else verdict
    if verdict.action is HostAction.INTERCEPT and rules.tls is not _INTERCEPT:
        unread = Verdict(Action.ALLOW, Reason.POLICY, rule=rules.tls_policy, detail=f"tls={rules.tls}")
        verdict = HostVerdict(HostAction.SPLICE, unread, because=verdict.because)
    found = _host_rules(rules, host)
    if found is None:
        return verdict
    if found.searched is not None and rules.tls is _INTERCEPT:
        verdict = replace(verdict, action=HostAction.INTERCEPT, named=True)  # its searches have to be read
    return verdict if found.enforced is None else _led(rules, found.enforced, verdict)


def _host_rules(rules: RequestRules, host: str) -> HostRules | None:
    if not rules.hosts:
        return None
    try:
        return rules.hosts.get(canonical_host(host))
    except (UrlError, UnicodeError):
        return None


def _led(rules: RequestRules, enforced: Enforcement, verdict: HostVerdict) -> HostVerdict:
    """Returns the verdict on connections to a site whose filter is enforced."""
    if enforced.address:
        return replace(verdict, connect_to=enforced.address)
    if rules.tls is _INTERCEPT:
        return replace(verdict, action=HostAction.INTERCEPT, named=True)
    denied = Verdict(Action.BLOCK, Reason.SAFESEARCH, rule=rules.tls_policy, detail=enforced.key)
    page = rules.tls is TlsHandling.PAGE_ONLY
    return HostVerdict(HostAction.DENY, denied, named=True, because=denied, shows_page=page)


def _is_blocked(verdict: HostVerdict) -> bool:
    """Returns whether a host is blocked as a whole, which only a rule for a part of it may lift: unread, parts are the same."""
    by_policy = verdict.because is not None and verdict.because.reason in _OF_EVERYTHING
    return verdict.verdict.blocked or (by_policy and verdict.verdict.unknown)
