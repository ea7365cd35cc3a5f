"""`gatewayfilter check`."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.filter.connection_sentences import connection_sentences
from gatewayfilter.cli.filter.service_check import check_service_hosts
from gatewayfilter.cli.ui.classification_view import show_judgement
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import moment_option, show_moment
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.cli.ui.quota_view import show_left
from gatewayfilter.cli.ui.resource_types import type_option
from gatewayfilter.cli.ui.review_rows import summary
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Classification, Explanation, Request, ResourceType, Verdict
from gatewayfilter.urls import parse_loose_url, unescaped

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.config import Settings
    from gatewayfilter.model import ReviewTask
    from gatewayfilter.proxy.listener.connection_report import ConnectionReport
    from gatewayfilter.settings import Strictness
    from gatewayfilter.use_cases.url_check import UrlCheck


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter check https://example.com/",
        "gatewayfilter check https://cdn.example/ad.js --source https://news.example/ --type script",
        "gatewayfilter check https://app.example/ --client 192.168.1.20",
        "gatewayfilter check --service tiktok --client tablet",
        "gatewayfilter check example.com --at 2030-01-31T18:00 --json",
    ),
    prints_data=True,
    short_help="Show the verdict on a URL, and why.",
)
@click.argument("url", required=False)
@click.option("--service", metavar="ID", help="All hosts of a service of the catalogue, each as a whole, in place of a URL.")
@click.option("--source", metavar="URL", help="The page that requests it; decides whether it is third-party.")
@click.option(
    "--type",
    "resource_type",
    default="document",
    metavar="TYPE",
    callback=type_option,
    show_default=True,
    help="What it is for: document, script, image …",
)
@click.option("--method", default="GET", metavar="METHOD", show_default=True, help="HTTP method.")
@click.option("--client", default="", metavar="CLIENT", help="What holds for this client: its address, name or user:NAME.")
@click.option("--at", metavar="TIME", callback=moment_option, help="As if it were then: what has expired by then does not count.")
@click.pass_obj
def check(
    invocation: Invocation,
    *,
    url: str | None,
    service: str | None,
    source: str | None,
    resource_type: ResourceType,
    method: str,
    client: str,
    at: float | None,
) -> int:
    """Show the verdict on a URL: each decider's answer in order, the verdict, and the classifier's last judgement.

    For https the treatment of connections to the host is shown too: where they pass unread, the verdict has no effect. Nothing
    is fetched. Exit code 0 when the URL is allowed, 1 when it is blocked. With --service: 1 when every host of it is blocked.
    """
    if service is not None:
        if url is not None:
            raise PolicyError("name a URL, or a service by --service")
        return check_service_hosts(invocation, service, client, at)
    if url is None:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'URL'", param_type="argument")
    request = Request(
        url=parse_loose_url(url),
        source=parse_loose_url(source) if source else None,
        resource_type=resource_type,
        method=method.upper(),
    )
    settings = invocation.settings()
    found = _check(settings, request, client, at)
    if invocation.json:
        reviewed = None if found.reviewed is None else summary(found.reviewed)
        facts = {"reviewed": reviewed, "quotas": found.quotas}
        print_json({**_document(found.explanation, found.judged), **_of_connection(found.connection), **facts})
    else:
        _show(found.explanation, found.connection)
        show_left(found.quotas)
        _show_judged(found.judged, found.reviewed, settings.classify.strictness)
    return int(found.explanation.verdict.blocked)


def _check(settings: Settings, request: Request, client: str, at: float | None) -> UrlCheck:
    from gatewayfilter.cli.ui.command_context import open_store
    from gatewayfilter.use_cases.url_check import check_url
    from gatewayfilter.wiring import open_engine

    clock = time.time if at is None else lambda: at
    with closing(open_store(settings)) as store:
        return check_url(settings, store, open_engine(settings, store, clock=clock), request, client, clock)


def _document(explanation: Explanation, judged: tuple[Classification, float] | None) -> dict[str, object]:
    request = explanation.request
    return {
        "url": request.url,
        "source": request.source,
        "type": request.resource_type,
        "method": request.method,
        "client": request.client,
        "answers": explanation.answers,
        "verdict": explanation.verdict,
        "classification": None if judged is None else {"judged_at": judged[1], "classification": judged[0]},
    }


def _of_connection(connection: ConnectionReport | None) -> dict[str, object]:
    if connection is None:
        return {"host": None, "connection": None}
    facts = {"unread": connection.unread, "pinned_apps": connection.learned, "raw_tunnels": connection.raw}
    return {"host": connection.decision, "connection": facts}


def _show(explanation: Explanation, connection: ConnectionReport | None) -> None:
    say(str(explanation.request.url))
    readable = unescaped(explanation.request.url.path)
    if readable != explanation.request.url.path:
        say(f"reads {readable}")
    say()
    print_table(
        ("decider", "answer", "explanation"),
        [(answer.decider, answer.answer, answer.explanation) for answer in explanation.answers],
    )
    say()
    say(_sentence(explanation.verdict))
    if connection is not None:
        for sentence in connection_sentences(connection, explanation.request.client):
            hint(sentence)


def _show_judged(judged: tuple[Classification, float] | None, reviewed_task: ReviewTask | None, strictness: Strictness) -> None:
    """Prints what a person decided, and what the classifier found."""
    if reviewed_task is not None and reviewed_task.decided_at is not None:
        what = reviewed_task.category if reviewed_task.blocked else "harmless"
        number, at = reviewed_task.task_id, show_moment(reviewed_task.decided_at)
        say(f"\n{reviewed_task.decided_by} said on {at} that it is {what} (review task {number}).")
    if judged is not None:
        classification, judged_at = judged
        if (
            reviewed_task is not None and judged_at == reviewed_task.decided_at
        ):  # a manual decision is recorded in place of the judgement
            classification, judged_at = reviewed_task.classification, reviewed_task.created_at
        say(f"\nThe classifier said on {show_moment(judged_at)}:")
        show_judgement(classification, strictness)


def _sentence(verdict: Verdict) -> str:
    parts = [f"{verdict.action.upper()} ({verdict.reason})"]
    if verdict.source_list:
        place = f"{verdict.source_list}, line {verdict.line}" if verdict.line else verdict.source_list
        parts.append(f"by {place}")
    if verdict.rule:
        parts.append(f"rule {verdict.rule}")
    if verdict.category:
        parts.append(f"category {verdict.category}")
    if verdict.detail:
        parts.append(verdict.detail)
    if verdict.unknown:
        parts.append("on no list: the crawler will fetch and classify it")
    return ", ".join(parts)
