"""`gatewayfilter review`: one task with all its facts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.classification_view import show_breakdown, show_second_look
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.cli.ui.review_rows import summary
from gatewayfilter.model import HOST_ZONE, in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import Classification, Evidence, ReviewTask
    from gatewayfilter.use_cases.review.rejudging import JudgedToday
    from gatewayfilter.use_cases.review.review_tasks import TaskFacts

_EXCERPT = 600
_MOST_ALIKE = 10


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter review show 12", "gatewayfilter review show 12 --text"),
    prints_data=True,
)
@click.argument("task", type=click.IntRange(1))
@click.option("--text", "whole_text", is_flag=True, help="Show all of the text that was kept, not its beginning.")
@click.pass_obj
def show(invocation: Invocation, *, task: int, whole_text: bool) -> int:
    """Show a task: evidence and score breakdown, the page's text, similar pages, users' requests, and every step taken.

    Evidence and score breakdown are those of when the task was made. Where the words have changed since, the page is judged again
    and both stand beside each other.
    """
    from gatewayfilter.use_cases.review.rejudging import judged_today
    from gatewayfilter.use_cases.review.review_tasks import task_facts

    with invocation.store() as store:
        found = store.reviews.get(task)
        if found is None:
            say(f"There is no task {task}.", err=True)
            return 1
        facts, today = task_facts(store, found), judged_today(invocation.settings(), store, found)
    if invocation.json:
        print_json(
            {
                **summary(found),
                "text": found.text,
                "alike": [other.task_id for other in facts.alike],
                "steps": facts.steps,
                "archived": facts.archived,
                "asked": facts.requests,
                "classification": found.classification,
                "score_breakdown": found.score_breakdown,
                "today": today,
            }
        )
    else:
        _show_task(found, facts, today, whole_text=whole_text)
    return 0


@click.command(cls=FilterCommand, examples=("gatewayfilter review page 12 > page.html",))
@click.argument("task", type=click.IntRange(1))
@click.pass_obj
def page(invocation: Invocation, *, task: int) -> int:
    """Write the page that a task is about to standard output, as it was fetched.

    Careful: this is the original page, scripts included. It is not written to a terminal. Exit code 1 when the page is no longer
    in the archive.
    """
    from gatewayfilter.errors import ReviewError
    from gatewayfilter.use_cases.review.rejudging import archived_page

    if sys.stdout.isatty():
        raise ReviewError(f"a page is not for a terminal: gatewayfilter review page {task} > page.html")
    with invocation.store() as store:
        found = store.reviews.get(task)
        kept = archived_page(invocation.settings(), store, found) if found is not None else None
    if kept is None:
        say(f"There is no task {task}." if found is None else f"The archive has no page of task {task} any more.", err=True)
        return 1
    sys.stdout.buffer.write(kept.body)
    return 0


def _show_task(task: ReviewTask, facts: TaskFacts, today: JudgedToday | None, *, whole_text: bool) -> None:
    judged = task.classification
    say(f"task {task.task_id}: {task.url}")
    if task.final_url:
        say(f"leads to {task.final_url}, which is decided with it")
    say(
        f"{task.state.value}, {'blocked' if task.blocked else 'not blocked'}, {task.category}, "
        f"since {show_moment(task.created_at)}"
    )
    if worded := in_words(judged.certainty, judged.doubt):
        say(f"certainty that it is harmful: {worded}{', so it was allowed' if task.doubtful else ''}")
    if judged.title:
        say(f"title: {judged.title}")
    _show_evidence(task, today)
    _show_score(task, today)
    show_second_look(judged)
    if task.text:
        cut = "" if whole_text or len(task.text) <= _EXCERPT else "…"
        say(f"\n{task.text if whole_text else task.text[:_EXCERPT]}{cut}")
    _show_alike(task, facts.alike)
    if facts.archived:
        say(f"archived: {facts.archived}")
    for request in facts.requests:
        remark = f": {request.comment}" if request.comment else ""
        say(f"{show_moment(request.at)}  {request.client or 'a visitor'}  asked for {request.url}, {request.times}x{remark}")
    for step in reversed(facts.steps):
        undone = " (undone)" if step.undone else ""
        note = f": {step.detail['note']}" if step.detail.get("note") else ""
        say(f"{show_moment(step.at)}  {step.who}  {step.action}{undone}{note}")


def _show_evidence(task: ReviewTask, today: JudgedToday | None) -> None:
    """Prints the hits of the category that the task was made in; where the words have changed, what a hit counts today."""
    category = task.score_breakdown.category if task.score_breakdown else task.classification.category or task.category
    hits = _of_category(task.classification, category)
    if today is None:
        if hits:
            say()
            rows = [(f"{hit.weight:+.1f}", hit.word, hit.zone, hit.position) for hit in hits]
            print_table(("weight", "word", "zone", "position"), rows)
        return
    now = {hit.word: hit for hit in _of_category(today.classification, category)}
    then = {hit.word: hit for hit in hits}
    both = [(then.get(word), now.get(word)) for word in dict.fromkeys((*then, *now))]
    if both:
        say()
        print_table(
            ("weight then", "today", "word", "zone", "position"),
            [
                (_weight(old), _weight(new), hit.word, hit.zone, hit.position)
                for old, new in both
                if (hit := old or new) is not None
            ],
        )


def _of_category(judged: Classification, category: str) -> Sequence[Evidence]:
    return [hit for hit in judged.evidence if hit.category == category and hit.zone != HOST_ZONE]


def _weight(hit: Evidence | None) -> str:
    return "" if hit is None else f"{hit.weight:+.1f}"


def _show_score(task: ReviewTask, today: JudgedToday | None) -> None:
    judged = task.classification
    if (then := task.score_breakdown) is None:
        if judged.evidence:
            say(f"score {judged.score:.1f}; limit {judged.limit:.1f}")
        return
    say()
    if today is None:
        show_breakdown(then)
    else:
        show_breakdown(then, today.score_breakdown, compared=True)
        found = today.classification
        now = f"{found.category or ('in doubt' if found.doubt else 'harmless')}, score {found.score:.1f}"
        what = "" if today.whole else ", of the kept text alone, without its zones: the archive has the page no more"
        say(f"The words have changed since: by today's it is {now} (limit {found.limit:.1f}){what}.")
    recorded = judged.scores.get(then.category, judged.score if judged.category == then.category else then.score)
    if abs(recorded - then.score) >= 0.05:  # half of the last digit shown
        say(f"The verdict is that of the same content seen elsewhere, with a score of {recorded:.1f}.")


def _show_alike(task: ReviewTask, alike: Sequence[ReviewTask]) -> None:
    if not alike:
        return
    say(f"\nalike: {', '.join(str(other.task_id) for other in alike)}")
    for other in alike[:_MOST_ALIKE]:
        same = "the same page" if task.page is not None and other.page == task.page else "nearly the same"
        say(f"  {other.task_id}  {other.state.value}  {same}  {other.url}")
    if len(alike) > _MOST_ALIKE:
        more = counted(len(alike) - _MOST_ALIKE, "more task")
        hint(f"  and {more}: gatewayfilter review list --group {task.task_id} --state all")
