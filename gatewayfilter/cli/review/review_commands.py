"""`gatewayfilter review`: what the classifier blocked, for the operator to confirm or to undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.review.review_decisions import approve, change, redo, reject, undo
from gatewayfilter.cli.review.review_reports import export, phrases, show_log, stats
from gatewayfilter.cli.review.review_show import page, show
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.cli.ui.review_rows import summary
from gatewayfilter.model import ReviewState, in_words

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_STATES = ("open", "approved", "rejected")


@click.group(
    "review",
    cls=FilterGroup,
    short_help="Confirm or undo what the classifier judged harmful.",
    examples=("gatewayfilter review list", "gatewayfilter review reject 12"),
)
def review_group() -> None:
    """Review tasks: pages and hosts that the classifier judged harmful, with the evidence. Your decisions outrank it."""


@review_group.command(
    "list", examples=("gatewayfilter review list", "gatewayfilter review list --category gambling"), prints_data=True
)
@click.option("--state", type=click.Choice([*_STATES, "all"]), default="open", show_default=True, help="Which tasks.")
@click.option("--category", default="", metavar="NAME", help="Only tasks of this category.")
@click.option("--group", type=click.IntRange(1), metavar="TASK", help="Only tasks with pages similar to this one's.")
@click.option("--asked", "only_asked", is_flag=True, help="Only tasks about pages that users requested to unblock.")
@click.option("--doubtful/--blocked", "doubtful", default=None, help="Only pages in doubt, or only what is blocked meanwhile.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Most rows.")
@click.pass_obj
def show_list(
    invocation: Invocation,
    *,
    state: str,
    category: str,
    group: int | None,
    only_asked: bool,
    doubtful: bool | None,
    limit: int,
) -> None:
    """List tasks, the oldest first, and after them those about pages in doubt, which are allowed meanwhile.

    `certainty` is the classifier's, `group` is the first task with the same or a similar page, `asked` how often users requested
    to unblock the page.
    """
    from gatewayfilter.use_cases.review.review_tasks import TaskQuery, task_page

    query = TaskQuery(None if state == "all" else ReviewState(state), category, group or 0, only_asked, doubtful)
    with invocation.store() as store:
        tasks = task_page(store, query, limit).tasks
    if invocation.json:
        print_json([{**summary(item.task), "asked": item.asked} for item in tasks])
    elif not tasks:
        say("No task waits." if state == "open" else "There are no such tasks.")
    else:
        print_table(
            ("task", "group", "state", "blocked", "category", "score", "certainty", "since", "asked", "url"),
            [
                (
                    task.task_id,
                    task.group_id,
                    task.state.value,
                    "yes" if task.blocked else "no",
                    task.category,
                    f"{task.classification.score:.0f}",
                    in_words(task.classification.certainty, task.classification.doubt),
                    show_moment(task.created_at),
                    item.asked or "",
                    task.url,
                )
                for item in tasks
                for task in [item.task]
            ],
        )


for _command in (show, page, approve, reject, change, undo, redo, stats, show_log, phrases, export):
    review_group.add_command(_command)
