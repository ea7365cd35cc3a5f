"""`/reports`: what was blocked in a day, a week or a month, for whom and why; made for printing, too."""

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from gatewayfilter.model import LogDimension
from gatewayfilter.use_cases.moments import midnight
from gatewayfilter.use_cases.traffic.log_report import make_report
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.pages.traffic.log_rows import log_url
from gatewayfilter.web.pages.traffic.overview import TopRow, list_words
from gatewayfilter.web.rendering.category_titles import CategoryTitles
from gatewayfilter.web.rendering.pages import language_of, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()


class ReportSpan(StrEnum):
    """The time span of a report."""

    TODAY = "today"
    YESTERDAY = "yesterday"
    WEEK = "week"
    MONTH = "month"


_DAYS = {ReportSpan.TODAY: (0, None), ReportSpan.YESTERDAY: (1, 0), ReportSpan.WEEK: (6, None), ReportSpan.MONTH: (29, None)}
"""How many days ago a span begins, and ends (`None` for now)."""
_CONDITIONS = {LogDimension.HOST: "site", LogDimension.CATEGORY: "category", LogDimension.SOURCE: "list"}


@router.get("/reports")
def show_report(
    request: Request, services: Services, _: Viewer, span: Annotated[ReportSpan, Query()] = ReportSpan.WEEK
) -> Response:
    """Returns the report of a time span."""
    content = partial(_content, request, services, span)
    return render_early(request, "traffic/reports.html", content, active="reports", span=span.value)


def _content(request: Request, services: WebServices, span: ReportSpan) -> dict[str, Any]:
    now = services.clock()
    first, last = _DAYS[span]
    since = midnight(now, services.zone, days_ago=first)
    until = None if last is None else midnight(now, services.zone, days_ago=last)
    report = make_report(services.store, services.settings, since, until)
    titles = CategoryTitles(language_of(request))
    tops = {
        name: [
            TopRow(
                titles(one.name) if dimension is LogDimension.CATEGORY else list_words(request, one.name),
                one.blocked,
                log_url(**{name: one.name}, outcome="blocked", since="30d"),
            )
            for one in report.blocked(dimension)
            if one.name
        ]
        for dimension, name in _CONDITIONS.items()
    }
    return {
        "report": report,
        "spans": [(one.value, f"/reports?span={one.value}") for one in ReportSpan],
        "tops": tops,
        "clients": [(one, log_url(client=one.name, since="30d")) for one in report.clients if one.name],
        "share": report.summary.blocked / report.summary.decisions if report.summary.decisions else 0.0,
    }
