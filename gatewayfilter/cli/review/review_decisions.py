"""`gatewayfilter review`: decisions on tasks."""

from __future__ import annotations

import getpass
import os
import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import print_json, say
from gatewayfilter.cli.ui.review_rows import PAGE, summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.learn import ReviewService
    from gatewayfilter.model import ManualRule, ReviewTask
    from gatewayfilter.store import Store


def _who() -> str:
    if name := os.environ.get("SUDO_USER"):
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        return f"user {os.getuid()}"


_by = click.option("--by", "who", default=_who, metavar="NAME", help="Who decides; your user name by default.")
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
    return _decide(invocation, tasks, lambda service, task: service.approve(task, who, note), alike=alike)


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
    return _decide(invocation, tasks, lambda service, task: service.reject(task, who, note, overturn=overturn), alike=alike)


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
    from gatewayfilter.errors import ReviewError
    from gatewayfilter.wiring import categories

    registry = categories()
    if category not in registry:
        known = sorted(entry.category_id for entry in registry)
        raise ReviewError(f"there is no category {category!r}: there are {', '.join(known)}")
    return _decide(
        invocation, (task,), lambda service, number: service.change(number, category, who, note, overturn=overturn), alike=alike
    )


@click.command(cls=FilterCommand, examples=("gatewayfilter review undo 12",), prints_data=True)
@_tasks
@_by
@_note
@click.pass_obj
def undo(invocation: Invocation, *, tasks: tuple[int, ...], who: str, note: str) -> int:
    """Take the last step of tasks back: lists, verdicts and tasks are as they were before it. Again takes back the one before."""
    return _decide(invocation, tasks, lambda service, task: service.undo(task, who, note), spread=False)


@click.command(cls=FilterCommand, examples=("gatewayfilter review redo 12",), prints_data=True)
@_tasks
@_by
@_note
@click.pass_obj
def redo(invocation: Invocation, *, tasks: tuple[int, ...], who: str, note: str) -> int:
    """Do the step of tasks again that was undone last; only until something else is decided."""
    return _decide(invocation, tasks, lambda service, task: service.redo(task, who, note), spread=False)


def _decide(
    invocation: Invocation,
    tasks: tuple[int, ...],
    decide: Callable[[ReviewService, int], ReviewTask],
    *,
    alike: bool = False,
    spread: bool = True,
) -> int:
    """Decides tasks one by one; one that cannot be decided is reported, and the others are still decided.

    Args:
        invocation: of the command.
        tasks: their numbers.
        decide: makes the step.
        alike: also of the open tasks of their groups.
        spread: also of the open tasks about the same content.
    """
    from gatewayfilter.cli.review.unblock_index import UnblockIndex, complete_requests
    from gatewayfilter.errors import ReviewError
    from gatewayfilter.model import ReviewState
    from gatewayfilter.wiring import review_service

    decided: list[ReviewTask] = []
    refused: list[ReviewError] = []
    with invocation.store() as store:
        service = review_service(invocation.settings(), store)
        same = [task.task_id for number in tasks if spread for task in service.same_content(number)]
        near = _open_alike(store, tasks) if alike else []
        for number in dict.fromkeys((*tasks, *same, *near)):
            try:
                decided.append(decide(service, number))
            except ReviewError as error:
                refused.append(error)
        index = UnblockIndex(store.unblock)
        for task in decided:
            if task.state is not ReviewState.OPEN:
                complete_requests(store.unblock, index, task)
        rules = _rules_in_the_way(store, decided)
    if invocation.json and decided:
        print_json([summary(task) for task in decided])
    for task in () if invocation.json else decided:
        named = "" if task.task_id in tasks else " (the same content)" if task.task_id in same else " (alike)"
        say(f"task {task.task_id}: {task.state.value}, {'blocked' if task.blocked else 'not blocked'}: {task.url}{named}")
        for rule in rules.get(task.task_id, ()):
            say(f"  your rule {rule.rule_id} allows it all the same; to remove it: gatewayfilter list remove {rule.rule_id}")
    for why in refused:
        say(f"gatewayfilter: {why}", err=True)
    return 2 if refused else 0


def _rules_in_the_way(store: Store, decided: list[ReviewTask]) -> dict[int, list[ManualRule]]:
    """Returns manual rules that allow, for all clients, what was just blocked: a manual rule outranks every list."""
    from gatewayfilter.engine.state.manual_rules import ManualRules
    from gatewayfilter.model import ListAction
    from gatewayfilter.urls import parse_url

    rules = ManualRules(store.lists.rules() if any(task.blocked for task in decided) else ())
    if not rules:
        return {}
    now = time.time()
    found = {}
    for task in decided:
        url = parse_url(task.url)
        matching = rules.matching(url, rules.for_host(url), now) if task.blocked else []
        found[task.task_id] = [rule for rule in matching if rule.action is ListAction.ALLOW and not rule.group]
    return found


def _open_alike(store: Store, tasks: tuple[int, ...]) -> list[int]:
    from gatewayfilter.model import ReviewState

    groups = {found.group_id for number in tasks if (found := store.reviews.get(number)) is not None}
    return [other.task_id for group in groups for other in store.reviews.tasks(ReviewState.OPEN, group_id=group, limit=PAGE)]
