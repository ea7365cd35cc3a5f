"""`gatewayfilter review`: counts, the record of steps, phrases to take over, and the export."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_json_line, print_table, say
from gatewayfilter.cli.ui.review_rows import summary
from gatewayfilter.use_cases.review.review_reports import proposed_phrases, review_counts
from gatewayfilter.use_cases.review.review_tasks import all_tasks

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.learn.review.phrase_suggestions import ProposedPhrase


@click.command(cls=FilterCommand, examples=("gatewayfilter review stats",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Show how many tasks wait in each category, how long the oldest has waited, and how fast tasks were decided this week."""
    with invocation.store() as store:
        level = review_counts(store, time.time())
    if invocation.json:
        print_json(level)
    elif not level["counts"]:
        say("There are no tasks.")
    else:
        print_table(("state", "category", "tasks", "oldest, hours"), [tuple(row.values()) for row in level["counts"]])
        say()
        oldest = level["oldest_open_hours"]
        waiting = "" if oldest is None else f", the oldest for {oldest} hours"
        say(f"{counted(level['open'], 'task')} {'waits' if level['open'] == 1 else 'wait'}{waiting}.")
        if level["decided_in_7_days"]:
            hours = level["median_hours_to_decision"]
            say(f"{level['decided_in_7_days']:,} decided in the last 7 days, half of them within {hours} hours.")


@click.command(
    "log", cls=FilterCommand, examples=("gatewayfilter review log", "gatewayfilter review log -n 500 --json"), prints_data=True
)
@click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Most steps.")
@click.pass_obj
def show_log(invocation: Invocation, *, limit: int) -> None:
    """Show what was decided, by whom and when, the newest first; of all tasks."""
    with invocation.store() as store:
        steps = store.reviews.steps(limit=limit)
        tasks = {number: store.reviews.get(number) for number in {step.task_id for step in steps}}
    rows = [
        {
            "at": step.at,
            "who": step.who,
            "action": step.action,
            "undone": step.undone,
            "task": step.task_id,
            "url": task.url if (task := tasks[step.task_id]) is not None else "",
            "note": step.detail.get("note", ""),
        }
        for step in steps
    ]
    if invocation.json:
        print_json(rows)
    elif not rows:
        say("Nothing was decided yet.")
    else:
        print_table(
            ("when", "who", "step", "task", "url", "note"),
            [
                (
                    show_moment(step.at),
                    step.who,
                    f"{step.action}{' (undone)' if step.undone else ''}",
                    step.task_id,
                    row["url"],
                    row["note"],
                )
                for step, row in zip(steps, rows, strict=True)
            ],
        )


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter review phrases", "gatewayfilter review phrases --take 1 --take 3"),
    prints_data=True,
)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Most phrases.")
@click.option(
    "--take", "taken", type=click.IntRange(1), multiple=True, metavar="N", help="Take phrase N over; may be given again."
)
@click.pass_obj
def phrases(invocation: Invocation, *, limit: int, taken: tuple[int, ...]) -> int:
    """Propose exception phrases: what stands around the words on rejected pages, and on no approved one.

    A phrase that is taken over covers the word inside it, which then does not count. Exit code 1 when there is no phrase N.
    """
    with invocation.store() as store:
        proposed = proposed_phrases(invocation.settings(), store, limit)
    if taken:
        return _take_over(invocation, proposed, taken)
    if invocation.json:
        print_json(proposed)
    elif not proposed:
        say("Nothing to propose: no rejected task has words of its own around the hits.")
    else:
        print_table(
            ("number", "pages", "category", "word", "phrase"),
            [(number, item.pages, item.category, item.word, item.phrase) for number, item in enumerate(proposed, 1)],
        )
        hint("\nTo take one over: gatewayfilter review phrases --take NUMBER")
    return 0


def _take_over(invocation: Invocation, proposed: list[ProposedPhrase], taken: tuple[int, ...]) -> int:
    from gatewayfilter.wiring import custom_words

    own = custom_words(invocation.settings())
    numbers = dict.fromkeys(taken)
    chosen = [proposed[number - 1] for number in numbers if number <= len(proposed)]
    missing = [number for number in numbers if number > len(proposed)]
    for item in chosen:
        own.add_exception(item.category, item.phrase)
    if invocation.json:
        print_json({"taken": chosen, "missing": missing})
    for item in () if invocation.json else chosen:
        say(f"{item.phrase!r} covers {item.word!r} from now on: it does not count for {item.category}.")
    if chosen and not invocation.json:
        say("A running filter applies this within a second and judges the blocked pages again.")
        hint(f"To take it back: gatewayfilter words remove --category {chosen[-1].category} {shlex.quote(chosen[-1].phrase)}")
    for number in missing:
        say(f"gatewayfilter: there is no phrase {number}: there are {len(proposed):,}", err=True)
    return int(bool(missing))


@click.command(
    cls=FilterCommand, examples=("gatewayfilter review export > reviews.jsonl", "gatewayfilter review export --examples")
)
@click.option("--examples", is_flag=True, help="Only text and label of decided pages, as `gatewayfilter learn train` reads them.")
@click.pass_obj
def export(invocation: Invocation, *, examples: bool) -> None:
    """Print all tasks with their texts and steps as JSON lines."""
    from gatewayfilter.model import ReviewKind, ReviewState

    with invocation.store() as store:
        for task in all_tasks(store, None):
            if not examples:
                steps = store.reviews.steps(task.task_id)
                judged = {"classification": task.classification, "score_breakdown": task.score_breakdown}
                print_json_line({**summary(task), "text": task.text, **judged, "steps": steps})
            elif task.kind is ReviewKind.PAGE and task.state is not ReviewState.OPEN and task.text:
                label = task.category if task.state is ReviewState.APPROVED else ""
                print_json_line({"text": task.text, "label": label, "url": task.url})
