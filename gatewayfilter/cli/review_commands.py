"""`gatewayfilter review`: what the classifier blocked, for a person to confirm or to undo."""

from __future__ import annotations

import getpass
import os
import time
from itertools import islice
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterGroup
from gatewayfilter.cli.moments import show_moment
from gatewayfilter.cli.output import print_json, print_json_line, print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.interfaces import UnblockRequest
    from gatewayfilter.judgements import ReviewState, ReviewStep, ReviewTask
    from gatewayfilter.learn import ReviewDesk
    from gatewayfilter.store import Store

_STATES = ("open", "approved", "rejected")
_PAGE = 500
_EXCERPT = 600


def _who() -> str:
    return os.environ.get("SUDO_USER") or getpass.getuser()


_by = click.option("--by", "who", default=_who, metavar="NAME", help="Who decides; your user name by default.")
_note = click.option("--note", default="", metavar="TEXT", help="Why; kept with the step.")
_alike = click.option("--alike", is_flag=True, help="Also decide the open tasks whose pages are alike.")
_tasks = click.argument("tasks", nargs=-1, required=True, type=click.IntRange(1), metavar="TASK...")


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
        every = _all(store, wanted, category)
        tasks = list(islice((task for task in every if asked.of(task) or not only_asked), limit))
    if invocation.json:
        print_json([{**_summary(task), "asked": asked.times(task)} for task in tasks])
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
                **_summary(found),
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
        say(f"score {judged.score:.1f}, limit {judged.limit:.1f}")
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


@review_group.command(examples=("gatewayfilter review approve 12", "gatewayfilter review approve 12 --alike"), prints_data=True)
@_tasks
@_alike
@_by
@_note
@click.pass_obj
def approve(invocation: Invocation, *, tasks: tuple[int, ...], alike: bool, who: str, note: str) -> None:
    """Say that tasks are right: the pages are blocked, and the same content is known as harmful."""
    _decide(invocation, tasks, lambda desk, task: desk.approve(task, who, note), alike=alike)


@review_group.command(examples=("gatewayfilter review reject 12 --note 'a museum'",), prints_data=True)
@_tasks
@_alike
@_by
@_note
@click.pass_obj
def reject(invocation: Invocation, *, tasks: tuple[int, ...], alike: bool, who: str, note: str) -> None:
    """Say that pages are harmless: they are allowed at once, and the same content is never blocked again.

    What visitors asked about these pages is settled by it, as by any decision.
    """
    _decide(invocation, tasks, lambda desk, task: desk.reject(task, who, note), alike=alike)


@review_group.command(examples=("gatewayfilter review change 12 fraud",), prints_data=True)
@click.argument("task", type=click.IntRange(1))
@click.argument("category")
@_alike
@_by
@_note
@click.pass_obj
def change(invocation: Invocation, *, task: int, category: str, alike: bool, who: str, note: str) -> None:
    """Say that a page is harmful, but of another category; also for a task that is decided already."""
    from gatewayfilter.errors import ReviewError
    from gatewayfilter.wiring import categories

    registry = categories()
    if category not in registry:
        known = sorted(entry.category_id for entry in registry)
        raise ReviewError(f"there is no category {category!r}: there are {', '.join(known)}")
    _decide(invocation, (task,), lambda desk, number: desk.change(number, category, who, note), alike=alike)


@review_group.command(examples=("gatewayfilter review undo 12",), prints_data=True)
@_tasks
@_by
@_note
@click.pass_obj
def undo(invocation: Invocation, *, tasks: tuple[int, ...], who: str, note: str) -> None:
    """Take the last step of tasks back: lists, verdicts and tasks are as they were before it."""
    _decide(invocation, tasks, lambda desk, task: desk.undo(task, who, note), alike=False)


def _decide(
    invocation: Invocation, tasks: tuple[int, ...], decide: Callable[[ReviewDesk, int], ReviewTask], *, alike: bool
) -> None:
    from gatewayfilter.cli.asked import Asked, settle_asked
    from gatewayfilter.judgements import ReviewState
    from gatewayfilter.wiring import review_desk

    with invocation.store() as store:
        desk = review_desk(invocation.settings(), store)
        numbers = list(dict.fromkeys([*tasks, *(_open_alike(store, tasks) if alike else ())]))
        decided = [decide(desk, number) for number in numbers]
        asked = Asked(store.unblock)
        for task in decided:
            if task.state is not ReviewState.OPEN:
                settle_asked(store.unblock, asked, task)
    if invocation.json:
        print_json([_summary(task) for task in decided])
    for task in () if invocation.json else decided:
        say(f"task {task.task_id}: {task.state.value}, {'blocked' if task.blocked else 'not blocked'}: {task.url}")


def _open_alike(store: Store, tasks: tuple[int, ...]) -> list[int]:
    from gatewayfilter.judgements import ReviewState

    groups = {found.group_id for number in tasks if (found := store.reviews.get(number)) is not None}
    return [other.task_id for group in groups for other in store.reviews.tasks(ReviewState.OPEN, group_id=group, limit=_PAGE)]


@review_group.command(examples=("gatewayfilter review stats",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Show how many tasks wait in each category, and how long the oldest has waited."""
    with invocation.store() as store:
        rows = store.reviews.stats()
    now = time.time()
    shown = [
        {"state": state, "category": category, "tasks": count, "oldest_hours": round((now - oldest) / 3600, 1)}
        for state, category, count, oldest in rows
    ]
    if invocation.json:
        print_json(shown)
    elif not shown:
        say("There are no tasks.")
    else:
        print_table(("state", "category", "tasks", "oldest, hours"), [tuple(row.values()) for row in shown])


@review_group.command(examples=("gatewayfilter review phrases",), prints_data=True)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Most phrases.")
@click.pass_obj
def phrases(invocation: Invocation, *, limit: int) -> None:
    """Propose exception phrases: what stands around the words on rejected pages, and on no approved one."""
    from gatewayfilter.judgements import ReviewState
    from gatewayfilter.learn.phrases import propose

    with invocation.store() as store:
        proposed = propose(_all(store, ReviewState.REJECTED), _all(store, ReviewState.APPROVED), limit)
    if invocation.json:
        print_json(proposed)
    elif not proposed:
        say("Nothing to propose: no rejected task has words of its own around the hits.")
    else:
        print_table(
            ("pages", "word", "take it over with"),
            [
                (item.pages, item.word, f"gatewayfilter words add --category {item.category} '{item.phrase}' --exception")
                for item in proposed
            ],
        )


@review_group.command(examples=("gatewayfilter review export > reviews.jsonl", "gatewayfilter review export --examples"))
@click.option("--examples", is_flag=True, help="Only text and label of decided pages, as `gatewayfilter learn train` reads them.")
@click.pass_obj
def export(invocation: Invocation, *, examples: bool) -> None:
    """Print all tasks with their texts and steps as JSON lines."""
    from gatewayfilter.judgements import ReviewKind, ReviewState

    with invocation.store() as store:
        for task in _all(store, None):
            if not examples:
                steps = store.reviews.steps(task.task_id)
                print_json_line({**_summary(task), "text": task.text, "classification": task.classification, "steps": steps})
            elif task.kind is ReviewKind.PAGE and task.state is not ReviewState.OPEN and task.text:
                label = task.category if task.state is ReviewState.APPROVED else ""
                print_json_line({"text": task.text, "label": label, "url": task.url})


def _all(store: Store, state: ReviewState | None, category: str = "") -> Iterator[ReviewTask]:
    after = 0
    while batch := store.reviews.tasks(state, category=category, after=after, limit=_PAGE):
        yield from batch
        after = batch[-1].task_id


def _summary(task: ReviewTask) -> dict[str, object]:
    return {
        "task": task.task_id,
        "group": task.group_id,
        "kind": task.kind,
        "state": task.state,
        "blocked": task.blocked,
        "category": task.category,
        "score": task.classification.score,
        "limit": task.classification.limit,
        "url": task.url,
        "title": task.classification.title,
        "evidence": task.classification.summary(),
        "created_at": task.created_at,
        "decided_at": task.decided_at,
        "decided_by": task.decided_by,
    }
