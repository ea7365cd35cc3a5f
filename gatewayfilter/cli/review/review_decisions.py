"""`gatewayfilter review`: decisions on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.actor import record, user_name
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import hint, print_json, say
from gatewayfilter.cli.ui.review_rows import summary
from gatewayfilter.use_cases.access.inverses import inverse_of_reviews
from gatewayfilter.use_cases.review.review_deciding import Because, Decision, ReviewMove, decide

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_NAMED = {Because.NAMED: "", Because.SAME_CONTENT: " (the same content)", Because.ALIKE: " (alike)"}


_by = click.option("--by", "who", default=user_name, metavar="NAME", help="Who decides; your user name by default.")
_note = click.option("--note", default="", metavar="TEXT", help="Why; kept with the step.")
_alike = click.option("--alike", is_flag=True, help="Also decide the open tasks with similar pages.")
_overturn = click.option("--overturn", is_flag=True, help="Also where another reviewer has decided already.")
_tasks = click.argument("tasks", nargs=-1, required=True, type=click.IntRange(1), metavar="TASK...")


@click.command(
    cls=FilterCommand, examples=("gatewayfilter review approve 12", "gatewayfilter review approve 12 --alike"), prints_data=True
)
@_tasks
@_alike
@_by
@_note
@click.pass_obj
def approve(invocation: Invocation, *, tasks: tuple[int, ...], alike: bool, who: str, note: str) -> int:
    """Approve tasks: the pages are blocked, and the same content counts as harmful on every site.

    Open tasks about the same content are decided with it. Exit code 2 when a task could not be decided; the others are.
    """
    return _decide(invocation, tasks, Decision(ReviewMove.APPROVE, who, note), alike=alike)


@click.command(cls=FilterCommand, examples=("gatewayfilter review reject 12 --note 'a museum'",), prints_data=True)
@_tasks
@_alike
@_by
@_note
@_overturn
@click.pass_obj
def reject(invocation: Invocation, *, tasks: tuple[int, ...], alike: bool, who: str, note: str, overturn: bool) -> int:
    """Reject tasks: the pages are allowed at once, and the same content is never blocked again.

    Open tasks about the same content are decided with it. It also closes users' requests about these pages, as any
    decision does. Exit code 2 when a task could not be decided; the others are.
    """
    return _decide(invocation, tasks, Decision(ReviewMove.REJECT, who, note, overturn=overturn), alike=alike)


@click.command(cls=FilterCommand, examples=("gatewayfilter review change 12 fraud",), prints_data=True)
@click.argument("task", type=click.IntRange(1))
@click.argument("category")
@_alike
@_by
@_note
@_overturn
@click.pass_obj
def change(invocation: Invocation, *, task: int, category: str, alike: bool, who: str, note: str, overturn: bool) -> int:
    """Move a page to another category; also for a task that you have decided already.

    Open tasks about the same content are decided with it.
    """
    return _decide(invocation, (task,), Decision(ReviewMove.CHANGE, who, note, category, overturn), alike=alike)


@click.command(cls=FilterCommand, examples=("gatewayfilter review undo 12",), prints_data=True)
@_tasks
@_by
@_note
@click.pass_obj
def undo(invocation: Invocation, *, tasks: tuple[int, ...], who: str, note: str) -> int:
    """Take the last step of tasks back: lists, verdicts and tasks are as they were before it. Again takes back the one before."""
    return _decide(invocation, tasks, Decision(ReviewMove.UNDO, who, note))


@click.command(cls=FilterCommand, examples=("gatewayfilter review redo 12",), prints_data=True)
@_tasks
@_by
@_note
@click.pass_obj
def redo(invocation: Invocation, *, tasks: tuple[int, ...], who: str, note: str) -> int:
    """Do the step of tasks again that was undone last; only until something else is decided."""
    return _decide(invocation, tasks, Decision(ReviewMove.REDO, who, note))


def _decide(invocation: Invocation, tasks: tuple[int, ...], decision: Decision, *, alike: bool = False) -> int:
    with invocation.store() as store:
        found = decide(invocation.settings(), store, tasks, decision, alike=alike)
        if found.tasks:
            decided = [item.task for item in found.tasks]
            undo = None if decision.move in {ReviewMove.UNDO, ReviewMove.REDO} else inverse_of_reviews(decided)
            numbers = ", ".join(str(task.task_id) for task in decided)
            record(store, decision.move.audit_action, decided[0].url, f"task {numbers}", undo)
    if invocation.json and found.tasks:
        print_json([summary(item.task) for item in found.tasks])
    for item in () if invocation.json else found.tasks:
        task = item.task
        named = _NAMED[item.because]
        say(f"task {task.task_id}: {task.state.value}, {'blocked' if task.blocked else 'not blocked'}: {task.url}{named}")
        for rule in item.allowing:
            hint(f"  your rule {rule.rule_id} allows it all the same; to remove it: gatewayfilter list remove {rule.rule_id}")
    for why in found.refused:
        say(f"gatewayfilter: {why}", err=True)
    return 1 if found.all_missing else 2 if found.refused else 0
