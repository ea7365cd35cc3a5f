"""The pages of the dashboard."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.pages.learning import crawler, extraction, review, words
from gatewayfilter.web.pages.lists import check, rule_files, rules, sources
from gatewayfilter.web.pages.people import client, clients, pauses, policies, times
from gatewayfilter.web.pages.system import (
    account,
    audit,
    backup,
    first_account,
    fleet,
    https,
    login,
    probes,
    reference,
    second_factor,
    settings,
    setup,
    sign_on,
    system,
    users,
)
from gatewayfilter.web.pages.traffic import log, overview, reports, requests, why


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects."""
    yield log.router
    yield overview.router
    yield reports.router
    yield requests.router
    yield why.router
    yield client.router
    yield clients.router
    yield pauses.router
    yield policies.router
    yield times.router
    yield check.router
    yield rule_files.router
    yield rules.router
    yield sources.router
    yield crawler.router
    yield extraction.router
    yield review.router
    yield words.router
    yield account.router
    yield audit.router
    yield backup.router
    yield first_account.router
    yield fleet.router
    yield https.router
    yield login.router
    yield probes.router
    yield reference.router
    yield second_factor.router
    yield settings.router
    yield setup.router
    yield sign_on.router
    yield system.router
    yield users.router
