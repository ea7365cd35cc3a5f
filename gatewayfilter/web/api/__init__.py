"""The REST API below `/api/v1`."""

from collections.abc import Iterator

from fastapi import APIRouter

from gatewayfilter.web.api.learning import crawler, extraction, review_reports, reviews, second_opinion, words
from gatewayfilter.web.api.lists import entries, rule_files, rules, sources
from gatewayfilter.web.api.people import clients, groups, pauses, policies, quotas, schedules, services
from gatewayfilter.web.api.system import (
    audit,
    backup,
    fleet,
    health,
    https,
    notifications,
    proxy_users,
    self_check,
    session,
    settings,
    tokens,
    users,
)
from gatewayfilter.web.api.traffic import bypass_links, check, events, log, log_files, overview, reports, unblock_requests


def routers() -> Iterator[APIRouter]:
    """Yields the routers of all subjects, in the order of the reference page."""
    yield bypass_links.router
    yield check.router
    yield events.router
    yield log_files.router
    yield log.router
    yield overview.router
    yield reports.router
    yield unblock_requests.router
    yield clients.router
    yield groups.router
    yield pauses.router
    yield policies.router
    yield quotas.router
    yield schedules.router
    yield services.router
    yield entries.router
    yield rule_files.router
    yield rules.router
    yield sources.router
    yield crawler.router
    yield extraction.router
    yield second_opinion.router
    yield review_reports.router
    yield reviews.router
    yield words.router
    yield audit.router
    yield backup.router
    yield fleet.router
    yield health.router
    yield https.router
    yield notifications.router
    yield proxy_users.router
    yield self_check.router
    yield session.router
    yield settings.router
    yield tokens.router
    yield users.router
