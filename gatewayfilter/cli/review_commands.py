"""`gatewayfilter review`: what the classifier blocked, for a person to confirm or to undo."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterGroup
from gatewayfilter.cli.moments import show_moment
from gatewayfilter.cli.output import print_json, print_table, say
from gatewayfilter.cli.review_decisions import approve, change, redo, reject, undo
from gatewayfilter.cli.review_reports import export, phrases, show_log, stats
from gatewayfilter.cli.review_rows import all_tasks, summary

if TYPE_CHECKING:
    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.interfaces import UnblockRequest
    from gatewayfilter.judgements import ReviewStep, ReviewTask

_STATES = ("open", "approved", "rejected")
_EXCERPT = 600


@click.group(
    "review",
    cls=FilterGroup,
    short_help="Confirm or undo what the classifier judged harmful.",
    examples=("gatewayfilter review list", "gatewayfilter review reject 12"),
)
def review_group() -> None:
    """Tasks for a person: pages and hosts that the classifier judged harmful, with the evidence. Your word always wins."""


@review_group.command(
    "list", examples=("gatewayfilter review list", "gatewayfilter review list --category gambling"), prints_data=True
)
@click.option("--state", type=click.Choice([*_STATES, "all"]), default="open", show_default=True, help="Which tasks.")
@click.option("--category", default="", metavar="NAME", help="Only tasks of this category.")
@click.option("--asked", "only_asked", is_flag=True, help="Only tasks about pages that visitors asked to have unblocked.")
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Most rows.")
@click.pass_obj
def show_list(invocation: Invocation, *, state: str, category: str, only_asked: bool, limit: int) -> None:
    """List tasks, the oldest first.

    `group` is the first task whose page is the same or nearly, `asked` how often visitors asked for the page on its block page.
    """
    from gatewayfilter.cli.asked import Asked
    from gatewayfilter.judgements import ReviewState

    with invocation.store() as store:
        wanted = None if state == "all" else ReviewState(state)
        asked = Asked(store.unblock)
        every = all_tasks(store, wanted, category)
        tasks = list(islice((task for task in every if asked.of(task) or not only_asked), limit))
    if invocation.json:
        print_json([{**summary(task), "asked": asked.times(task)} for task in tasks])
    elif not tasks:
        say("No task waits." if state == "open" else "There are no such tasks.")
    else:
        print_table(
            ("task", "group", "state", "blocked", "category", "score", "since", "asked", "url"),
            [
                (
                    task.task_id,
                    task.group_id,
                    task.state.value,
                    "yes" if task.blocked else "no",
                    task.category,
                    f"{task.classification.score:.0f}",
                    show_moment(task.created_at),
                    asked.times(task) or "",
                    task.url,
                )
                for task in tasks
            ],
        )


@review_group.command(examples=("gatewayfilter review show 12",), prints_data=True)
@click.argument("task", type=click.IntRange(1))
@click.pass_obj
def show(invocation: Invocation, *, task: int) -> int:
    """Show a task: evidence and arithmetic, the page's text, pages like it, what visitors asked, and every step taken."""
    from gatewayfilter.cli.asked import Asked

    with invocation.store() as store:
        found = store.reviews.get(task)
        steps = store.reviews.steps(task)
        alike = store.reviews.tasks(group_id=found.group_id) if found else []
        archived = store.verdicts.archived(found.url) if found else ""
        asked = Asked(store.unblock).of(found) if found else []
    if found is None:
        say(f"There is no task {task}.", err=True)
        return 1
    others = [other.task_id for other in alike if other.task_id != task]
    if invocation.json:
        print_json(
            {
                **summary(found),
                "text": found.text,
                "alike": others,
                "steps": steps,
                "archived": archived,
                "asked": asked,
                "classification": found.classification,
            }
        )
    else:
        _show_task(found, others, steps, archived, asked)
    return 0


def _show_task(task: ReviewTask, others: list[int], steps: list[ReviewStep], archived: str, asked: list[UnblockRequest]) -> None:
    judged = task.classification
    say(f"task {task.task_id}: {task.url}")
    if task.final_url:
        say(f"leads to {task.final_url}, which is decided with it")
    say(
        f"{task.state.value}, {'blocked' if task.blocked else 'not blocked'}, {task.category}, "
        f"since {show_moment(task.created_at)}"
    )
    if judged.title:
        say(f"title: {judged.title}")
    hits = [hit for hit in judged.evidence if hit.category == judged.category]
    if hits:
        say()
        print_table(
            ("weight", "word", "zone", "position"),
            [(f"{hit.weight:+.1f}", hit.word, hit.zone, hit.position) for hit in hits],
        )
        listed = sum(hit.weight for hit in hits)
        bounded = abs(listed - judged.score) >= 0.05  # half of the last digit shown
        why = f" of {listed:.1f}: topic words and context count up to a bound" if bounded else ""
        say(f"score {judged.score:.1f}{why}; limit {judged.limit:.1f}")
    if task.text:
        say(f"\n{task.text[:_EXCERPT]}{'…' if len(task.text) > _EXCERPT else ''}")
    if others:
        say(f"\nalike: {', '.join(map(str, others))}")
    if archived:
        say(f"archived: {archived}")
    for request in asked:
        said = f": {request.comment}" if request.comment else ""
        say(f"{show_moment(request.at)}  {request.client or 'a visitor'}  asked for {request.url}, {request.times}x{said}")
    for step in reversed(steps):
        undone = " (undone)" if step.undone else ""
        note = f": {step.detail['note']}" if step.detail.get("note") else ""
        say(f"{show_moment(step.at)}  {step.who}  {step.action}{undone}{note}")


for _command in (approve, reject, change, undo, redo, stats, show_log, phrases, export):
    review_group.add_command(_command)
