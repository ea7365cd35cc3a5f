"""`/review`: learned pages that wait for a person, with their text, the evidence in it and its arithmetic."""

from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from gatewayfilter.errors import ReviewError
from gatewayfilter.model import ReviewState, ReviewTask
from gatewayfilter.model.certainty import level_of
from gatewayfilter.use_cases.review.review_answers import decide_recorded
from gatewayfilter.use_cases.review.review_deciding import Decided, Decision, ReviewMove, also_decided
from gatewayfilter.use_cases.review.review_evidence import grouped, host_facts, host_record, marked_text, terms_of
from gatewayfilter.use_cases.review.review_tasks import (
    POSITION,
    TaskPage,
    TaskQuery,
    find_task,
    read_position,
    task_facts,
    task_page,
    write_position,
)
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Approver, Viewer
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_A_PAGE = 40
_MOST_NAMED = 50
Number = Annotated[int, Path(ge=1, le=2**53)]


class Queue(BaseModel):
    """Which tasks the queue holds, as the page's URL has it."""

    state: Literal["open", "approved", "rejected", "all"] = "open"
    category: Annotated[str, Field(max_length=100)] = ""
    which: Literal["", "asked", "doubtful", "blocked"] = ""
    group: Annotated[int, Field(ge=0, le=2**53)] = 0
    after: Annotated[str, Field(pattern=f"^$|{POSITION}")] = ""
    decided: Annotated[str, Field(max_length=400)] = ""

    def url(self, path: str = "/review", **changed: object) -> str:
        """Returns the address of a page with this queue."""
        values = {**self.model_dump(exclude={"decided"}), **changed}
        given = {key: value for key, value in values.items() if value and not (key == "state" and value == "open")}
        return f"{path}?{urlencode(given)}" if given else path

    def query(self) -> TaskQuery:
        """Returns it as the use case takes it."""
        doubtful = {"doubtful": True, "blocked": False}.get(self.which)
        state = None if self.state == "all" else ReviewState(self.state)
        return TaskQuery(state, self.category, self.group, self.which == "asked", doubtful)


class DecisionForm(BaseModel):
    """The form of a task; its button is the step."""

    move: Literal["approve", "reject", "change", "undo", "redo"]
    category: Annotated[str, Field(max_length=100)] = ""
    note: Annotated[str, Field(max_length=500)] = ""
    alike: bool = False
    overturn: bool = False


QueueOfUrl = Annotated[Queue, Query()]


@router.get("/review")
def queue_page(request: Request, services: Services, _: Viewer, queue: QueueOfUrl) -> Response:
    """Shows the queue; beside it, on a wide screen, its first task."""
    content = partial(_first_of_queue, services, queue)
    return render_early(request, "learning/review.html", content, **_frame(services, queue), alone=False, refused="")


@router.get("/review/{number}")
def task_page_of(request: Request, services: Services, _: Viewer, number: Number, queue: QueueOfUrl) -> Response:
    """Shows a task."""
    return _show(request, services, number, queue)


@router.post("/review/{number}/decide")
def decide_task(
    request: Request, services: Services, who: Approver, number: Number, queue: QueueOfUrl, form: Annotated[DecisionForm, Form()]
) -> Response:
    """Takes a step on a task, and leads to the next one of the queue."""
    find_task(services.store, number)
    following = _following(services, queue, number)
    decision = Decision(ReviewMove(form.move), who.name, form.note, form.category, form.overturn)
    done = _decide(services, who, [number], decision, alike=form.alike)
    if not done.tasks:
        return _show(request, services, number, queue, status=409, refused="; ".join(done.refused))
    decided = {item.task.task_id for item in done.tasks}
    stays = form.move in ("undo", "redo")
    target = number if stays else next((other for other in following if other not in decided), 0)
    named = ",".join(map(str, sorted(decided)[:_MOST_NAMED]))
    return RedirectResponse(queue.url(f"/review/{target}" if target else "/review", decided="" if stays else named), 303)


@router.post("/review/undo")
def undo(
    request: Request,
    services: Services,
    who: Approver,
    queue: QueueOfUrl,
    tasks: Annotated[str, Query(pattern=r"^\d{1,15}(,\d{1,15}){0,49}$")],
) -> Response:
    """Takes the last step on each of some tasks back."""
    numbers = [int(number) for number in tasks.split(",")]
    done = _decide(services, who, numbers, Decision(ReviewMove.UNDO, who.name))
    if not done.tasks:
        raise ReviewError("; ".join(done.refused) or "nothing was undone")
    target = queue.url(f"/review/{numbers[0]}")
    return Response(status_code=204, headers={"hx-redirect": target}) if is_partial(request) else RedirectResponse(target, 303)


def _decide(services: WebServices, who: Approver, numbers: list[int], decision: Decision, *, alike: bool = False) -> Decided:
    actor = who.actor
    return decide_recorded(services.settings, services.store, actor, services.clock, numbers, decision, alike=alike)


def _show(
    request: Request, services: WebServices, number: int, queue: Queue, *, status: int = 200, refused: str = ""
) -> Response:
    task = find_task(services.store, number)
    frame = {**_frame(services, queue), "task": task, "alone": True, "refused": refused}
    content = partial(_task_of_queue, services, queue, task)
    if request.method == "GET":
        return render_early(request, "learning/review.html", content, **frame)
    return render(request, "learning/review.html", status, **{**frame, **content()})


def _read(services: WebServices, queue: Queue) -> TaskPage:
    return task_page(services.store, queue.query(), _A_PAGE, read_position(queue.after))


def _following(services: WebServices, queue: Queue, number: int) -> list[int]:
    """Returns the tasks after one in the queue, then those before it."""
    numbers = [task.task_id for group in grouped(item.task for item in _read(services, queue).tasks) for task in group]
    at = numbers.index(number) + 1 if number in numbers else 0
    return numbers[at:] + numbers[:at]


def _first_of_queue(services: WebServices, queue: Queue) -> dict[str, Any]:
    found = _read(services, queue)
    first = found.tasks[0].task if found.tasks else None
    return {**_context(services, queue, found), **(_task_context(services, first) if first is not None else {"task": None})}


def _task_of_queue(services: WebServices, queue: Queue, task: ReviewTask) -> dict[str, Any]:
    return {**_context(services, queue, _read(services, queue)), **_task_context(services, task)}


def _frame(services: WebServices, queue: Queue) -> dict[str, Any]:
    decided = [int(number) for number in queue.decided.split(",") if number.isdecimal() and len(number) < 16][:_MOST_NAMED]
    last = [task for number in decided if (task := services.store.reviews.get(number)) is not None]
    return {
        "active": "review",
        "queue": queue,
        "decided": last,
        "undo_url": queue.url("/review/undo", tasks=",".join(str(task.task_id) for task in last)) if last else "",
    }


def _context(services: WebServices, queue: Queue, found: TaskPage) -> dict[str, Any]:
    asked = {item.task.task_id: item.asked for item in found.tasks}
    return {
        "groups": grouped(item.task for item in found.tasks),
        "asked": asked,
        "older": queue.url(after=write_position(found.after)) if found.after else "",
        "waiting": services.store.reviews.open_count(),
        "doubtful": services.store.reviews.open_count(doubtful=True),
        "categories": [entry.category_id for entry in services.categories],
    }


def _task_context(services: WebServices, task: ReviewTask) -> dict[str, Any]:
    judged = task.classification
    return {
        "task": task,
        "pieces": marked_text(task.text, judged.evidence),
        "terms": terms_of(task),
        "host_facts": host_facts(task),
        "host": host_record(services.store, task),
        "facts": task_facts(services.store, task),
        "also": also_decided(services.store, task),
        "level": None if judged.certainty is None else level_of(judged.certainty),
    }
