"""Answers to forms of the pages of people: the page anew for htmx, a redirect to it otherwise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.use_cases.access.audit_trail import Recording
from gatewayfilter.web.access.changes import changing, undo_url
from gatewayfilter.web.access.identity import Identity
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.services import WebServices


@dataclass(slots=True)
class Said:
    """What a page tells of the form that was just sent.

    Attributes:
        text: a sentence, in the language of the page; `""` for nothing.
        undo: address that takes the change back, `""` for none.
        is_error: whether nothing was changed.
    """

    text: str = ""
    undo: str = ""
    is_error: bool = False


def show_page(request: Request, template: str, said: Said, **context: Any) -> Response:
    """Returns a page that tells what was said.

    Args:
        request: that it answers.
        template: of the page.
        said: of the form that was just sent.
        context: the template's variables.
    """
    return render(request, template, **{"active": "people", "said": said, "partial": is_partial(request), **context})


def show_early(request: Request, template: str, later: Callable[[], dict[str, Any]], said: Said, **context: Any) -> Response:
    """Returns a page as `show_page` does, with its frame sent ahead, unless it answers a form: that has a status of its own.

    Args:
        request: that it answers.
        template: of the page.
        later: returns the template's variables.
        said: of the form that was just sent.
        context: the variables of the frame.
    """
    if request.method != "GET":
        return show_page(request, template, said, **context, **later())
    frame = {"active": "people", "said": said, "partial": is_partial(request), **context}
    return render_early(request, template, later, **frame)


@contextmanager
def attempt(services: WebServices, identity: Identity, action: str, subject: str, said: Said, done: str) -> Iterator[Recording]:
    """Makes the changes of the block, as `changing` does; an error of the input becomes what is said.

    Args:
        services: with the database.
        identity: who makes the change.
        action: for the audit log.
        subject: likewise.
        said: filled in: with `done` and the address that undoes it, or with the error.
        done: a sentence for success.
    """
    try:
        with changing(services, identity, action, subject) as recording:
            yield recording
    except StoreError:
        raise
    except GatewayFilterError as error:
        said.text, said.is_error = str(error), True
    else:
        said.text, said.undo = done, undo_url(recording.entry_id)


def answered(request: Request, url: str, said: Said, show: Callable[[Said], Response]) -> Response:
    """Returns the answer to a form.

    Args:
        request: that sent it.
        url: of the page that shows the result.
        said: of the form.
        show: makes that page.
    """
    if is_partial(request):
        page = show(said)
        if said.is_error:  # also where the answer is not shown otherwise
            page.headers.update({"hx-retarget": "#main", "hx-reselect": "#main", "hx-reswap": "outerHTML show:window:top"})
        return page
    if said.is_error:
        page = show(said)
        page.status_code = 422
        return page
    return RedirectResponse(url, 303)
