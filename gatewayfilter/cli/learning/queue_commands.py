"""`gatewayfilter queue`: the frontier of pages to fetch."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day, show_moment
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.renamed_codes import current_code

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.use_cases.learning.crawl_queue import TaskFacts

_STATES = ("waiting", "leased", "done", "dead")


class _StateChoice(click.Choice[str]):
    """A choice of queue states that takes those of earlier releases too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the state in use."""
        return super().convert(current_code(value), param, ctx)


@click.group("queue", cls=FilterGroup, short_help="The queue of pages to fetch.", examples=("gatewayfilter queue stats",))
def queue_group() -> None:
    """The crawler's queue of pages on no list, the most urgent first."""


@queue_group.command(
    examples=("gatewayfilter queue add https://example.com/", "gatewayfilter queue add --task forums https://forum.example/"),
    prints_data=True,
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--task", default="", metavar="NAME", help="Follow links by the strategy [crawl.tasks.NAME] of the settings.")
@click.pass_obj
def add(invocation: Invocation, *, urls: tuple[str, ...], task: str) -> int:
    """Queue pages for the running crawler, ahead of all others; with --task, at the priority of that task.

    Exit code 1 when all were in the queue already (waiting, leased, or done a short time ago), 2 when one may not be crawled:
    then none is added.
    """
    from gatewayfilter.use_cases.learning.crawl_queue import add_urls

    settings = invocation.settings()
    with invocation.store() as store:
        added = add_urls(settings, store, urls, task)
    new, known = added.queued, added.known
    if invocation.json:
        print_json({"queued": new, "known": known})
    else:
        say(f"{counted(new, 'URL')} queued" + (f", {known:,} there already." if known else "."))
    return 0 if new else 1


@queue_group.command(examples=("gatewayfilter queue tasks", "gatewayfilter queue tasks --json"), prints_data=True)
@click.pass_obj
def tasks(invocation: Invocation) -> None:
    """Show the crawl tasks of the settings, and of those in the queue how many URLs are in each state.

    `links` counts the pages that links led to, in this period of `pages_per_site`.
    """
    from gatewayfilter.use_cases.learning.crawl_queue import queue_tasks

    with invocation.store() as store:
        found = queue_tasks(invocation.settings(), store)
    if invocation.json:
        print_json(
            {
                task.name: {
                    "strategy": task.strategy.model_dump(mode="json") if task.strategy is not None else None,
                    "links": task.links,
                    "urls": task.urls,
                    "held_since": task.held_since,
                }
                for task in found
            }
        )
    elif not found:
        say("There are no crawl tasks: a table [crawl.tasks.NAME] in the settings makes one.")
    else:
        print_table(
            ("task", "depth", "pages per site", "follows", "again after h", "links", *_STATES, "paused since"),
            [(task.name, *_strategy(task), task.links, *task.urls.values(), _since(task.held_since)) for task in found],
        )


def _since(moment: float | None) -> str:
    return "" if moment is None else show_moment(moment)


def _strategy(task: TaskFacts) -> tuple[object, ...]:
    chosen = task.strategy
    if chosen is None:
        return "not set", "", "none", ""
    return chosen.depth, chosen.pages_per_site, chosen.follow.value, f"{chosen.recrawl_hours:g}"


@queue_group.command(examples=("gatewayfilter queue show", "gatewayfilter queue show --state dead --limit 100"), prints_data=True)
@click.option("--state", type=_StateChoice(_STATES), help="Only URLs in this state.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Most rows.")
@click.pass_obj
def show(invocation: Invocation, *, state: str | None, limit: int) -> None:
    """Show the URLs of the queue, the most urgent first."""
    from gatewayfilter.interfaces import QueueState

    with invocation.store() as store:
        rows = store.frontier.show(limit, QueueState(state) if state else None)
    if invocation.json:
        print_json(rows)
    elif not rows:
        say("The queue is empty." if state is None else f"No URL is {state}.")
    else:
        print_table(
            ("state", "priority", "tries", "not before", "task", "url", "error"),
            [
                (
                    "paused" if row.held else row.state,
                    row.priority,
                    row.attempts,
                    show_day(row.not_before or None),
                    row.task,
                    row.url,
                    row.error,
                )
                for row in rows
            ],
        )


@queue_group.command(examples=("gatewayfilter queue stats --json",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Show how many URLs are in each state; `due` are those that wait and may be fetched now."""
    from gatewayfilter.use_cases.learning.crawl_queue import queue_facts

    with invocation.store() as store:
        facts = queue_facts(store, time.time())
    counts, paused_since = facts.counts, facts.paused_since
    if invocation.json:
        print_json({**counts, "paused_since": paused_since, "held": facts.holds})
    else:
        print_table(("state", "urls"), [(state, f"{count:,}") for state, count in counts.items()])
        if paused_since is not None:
            hint(f"\nPaused since {show_moment(paused_since)}: `gatewayfilter queue resume` lets it go on.")
        for hold in facts.holds:
            command = f"gatewayfilter queue resume --{hold.kind} {hold.name}"
            hint(f"\nThe {hold.kind} {hold.name} is paused since {show_moment(hold.since)}: `{command}` lets it go on.")


@queue_group.command(
    examples=(
        "gatewayfilter queue pause",
        "gatewayfilter queue pause --task forums",
        "gatewayfilter queue pause --host a.example",
    ),
    prints_data=True,
    recorded="queue.paused",
)
@click.option("--task", default="", metavar="NAME", help="Only the URLs of this crawl task.")
@click.option("--host", default="", metavar="HOST", help="Only the URLs of this host, without those below it.")
@click.pass_obj
def pause(invocation: Invocation, *, task: str, host: str) -> None:
    """Fetch nothing more, over restarts too, until `queue resume`; pages in work are finished, new ones go on waiting."""
    from gatewayfilter.use_cases.learning.crawl_queue import pause_queue

    settings = invocation.settings()
    with invocation.store() as store:
        changed = pause_queue(settings, store, time.time(), task, host)
    if invocation.json:
        print_json({"paused": True, "changed": changed})
    else:
        say(f"{_paused(task, host)} is paused." if changed else f"{_paused(task, host)} was paused already.")


@queue_group.command(
    examples=("gatewayfilter queue resume", "gatewayfilter queue resume --task forums"),
    prints_data=True,
    recorded="queue.resumed",
)
@click.option("--task", default="", metavar="NAME", help="Only the pause of this crawl task.")
@click.option("--host", default="", metavar="HOST", help="Only the pause of this host.")
@click.pass_obj
def resume(invocation: Invocation, *, task: str, host: str) -> None:
    """Go on fetching after `queue pause`. Tasks and hosts with a pause of their own stay paused without --task or --host."""
    from gatewayfilter.use_cases.learning.crawl_queue import resume_queue

    with invocation.store() as store:
        changed = resume_queue(store, task, host)
    if invocation.json:
        print_json({"paused": False, "changed": changed})
    else:
        say(f"{_paused(task, host)} goes on." if changed else f"{_paused(task, host)} was not paused.")


def _paused(task: str, host: str) -> str:
    return f"The task {task}" if task else f"The host {host}" if host else "The queue"


@queue_group.command(examples=("gatewayfilter queue proxies", "gatewayfilter queue proxies --json"), prints_data=True)
@click.pass_obj
def proxies(invocation: Invocation) -> int:
    """Collect the crawler's outbound proxies, check each now, and show them, the best first. Exit code 1 when none answers."""
    from gatewayfilter.use_cases.learning.proxy_checks import check_proxies

    found = check_proxies(invocation.settings())
    if invocation.json:
        print_json(found)
    elif not found:
        say("No outbound proxies are set: crawl.proxies and crawl.proxies_from are empty.")
    else:
        hides = {True: "yes", False: "no", None: "unknown"}
        print_table(
            ("proxy", "answers in ms", "anonymous", "failures"),
            [
                (row.address, f"{row.response_ms:.0f}" if row.successes else "", hides[row.anonymous], row.failures)
                for row in found
            ],
        )
    return 0 if any(row.successes for row in found) else 1


@queue_group.command(examples=("gatewayfilter queue retry",), prints_data=True)
@click.pass_obj
def retry(invocation: Invocation) -> None:
    """Put the URLs that failed for good back to waiting."""
    from gatewayfilter.use_cases.learning.crawl_queue import retry_failed

    with invocation.store() as store:
        count = retry_failed(store)
    if invocation.json:
        print_json({"revived": count})
    else:
        say(f"{counted(count, 'URL')} put back to waiting.")


@queue_group.command(
    examples=("gatewayfilter queue clear --yes", "gatewayfilter queue clear --task forums"),
    prints_data=True,
    recorded="queue.cleared",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--task", metavar="NAME", help="Only the URLs of this crawl task, which ends with that.")
@click.pass_obj
def clear(invocation: Invocation, *, yes: bool, task: str | None) -> int:
    """Empty the queue: waiting, done and dead URLs. They return when a user visits them again."""
    from gatewayfilter.use_cases.learning.crawl_queue import clear_queue

    question = "Empty the queue?" if task is None else f"Take the URLs of the task {task} out of the queue?"
    if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        return 1
    with invocation.store() as store:
        count = clear_queue(store, task)
    if invocation.json:
        print_json({"removed": count})
    else:
        say(f"{counted(count, 'URL')} removed.")
    return 0
