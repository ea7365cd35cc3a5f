"""`/crawler/rules`: the extraction rules; `/crawler/rules/new` and `/crawler/rules/NAME` edit one on a page."""

import re
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from gatewayfilter.errors import ClassifyError, GatewayFilterError
from gatewayfilter.use_cases.learning.extraction_work import LONGEST_NAME
from gatewayfilter.web.access.changes import undo_url
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Form as FormFields
from gatewayfilter.web.access.identity import Admin, Role, Viewer
from gatewayfilter.web.pages.learning.extraction_form import EditorForm, read_editor
from gatewayfilter.web.rendering.pages import gettext, is_partial, render
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

NEW: Final = "new"
"""The last part of the address of the editor for a new rule: no rule made here is called so."""
Name = Annotated[str, Path(max_length=LONGEST_NAME, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Version = Annotated[int, Query(ge=0, lt=10**9)]
Key = Annotated[str, Query(max_length=40)]
Number = Annotated[int, Query(ge=0, lt=2**53)]
_UNNAMED: Final = re.compile(r"[^a-z0-9]+")


@router.get("/crawler/rules")
def rules(request: Request, services: Services, _: Viewer) -> Response:
    """Shows the rules in use by host, those without one last."""
    found = sorted(services.extraction.rules(), key=lambda row: (not row["host"], row["host"], row["name"]))
    return render(request, "learning/extraction_rules.html", active="crawler", rules=found, new=NEW)


@router.get(f"/crawler/rules/{NEW}")
def new(request: Request, services: Services, _: Admin) -> Response:
    """Shows the editor for a new rule."""
    return _editor(request, services, EditorForm())


@router.post("/crawler/rules/editor")
def edit(request: Request, services: Services, who: Admin, fields: FormFields) -> Response:
    """Does what a button of the editor is for, and shows the editor again; nothing is kept but by the button that saves."""
    form, action = read_editor(fields), fields.text("then")
    try:
        if action == "fetch":
            return _with_page(request, services, form)
        if action == "text":
            form.take(services.extraction.form(form.source))
        elif action in {"save", "save-text"}:
            return _saved(request, services, who, form, as_text=action == "save-text")
        elif action.startswith("pick:"):
            form.picked = int(action[5:]) if action[5:].isdecimal() and len(action) < 12 else -1
    except GatewayFilterError as error:
        return _editor(request, services, form, action=action if action.startswith("text") else "", problem=str(error))
    return _editor(request, services, form, action=action)


@router.get("/crawler/rules/{name}")
def rule(
    request: Request, services: Services, identity: Viewer, name: Name, version: Version = 0, saved: Number = 0, page: Key = ""
) -> Response:
    """Shows a rule: in the editor, or to whom may not edit it, of an earlier version and of a removed rule as text."""
    found = services.extraction.rule(name, version)
    undo = undo_url(saved)
    if identity.may(Role.ADMIN) and found["version"] == found["current"]:
        form = EditorForm(name=name, version=found["current"])
        form.take(found["form"])
        if (shelved := services.shelf.find(page)) is not None:
            form.page, form.address = page, shelved.url
        return _editor(request, services, form, rule=found, undo=undo)
    return render(request, "learning/extraction_rule.html", active="crawler", rule=found, undo=undo)


@router.post("/crawler/rules/{name}/restore")
def restore(
    services: Services, who: Admin, name: Name, version: Annotated[int, Form(ge=1, lt=10**9)], current: Annotated[int, Form()]
) -> Response:
    """Puts an earlier version to use again."""
    _, entry_id = services.extraction.restore(who.actor, name, version, current)
    return RedirectResponse(f"/crawler/rules/{name}?saved={entry_id}", 303)


@router.post("/crawler/rules/{name}/remove")
def remove(request: Request, services: Services, who: Admin, name: Name) -> Response:
    """Takes a rule out of use."""
    _, entry_id = services.extraction.remove(who.actor, name)
    if is_partial(request):
        return render(request, "learning/_extraction_removed.html", name=name, undo=undo_url(entry_id))
    return RedirectResponse("/crawler/rules", 303)


def _with_page(request: Request, services: WebServices, form: EditorForm) -> Response:
    """Fetches the page of an address, or takes the one that was pasted."""
    work = services.extraction
    if form.html:
        shelved = services.shelf.put(form.address, form.html)
    elif form.address:
        found = work.fetch(form.address)
        shelved = services.shelf.put(found["url"], found["html"])
    else:
        raise ClassifyError(gettext(request, "Write the address of a page, or paste one."))
    form.page, form.picked = shelved.key, -1
    form.address = shelved.url or form.address
    if not form.urls and form.address:
        form.urls = next(iter(work.suggested_urls(form.address)), "")
    if not form.name and form.address:
        host = form.address.partition("://")[2].partition("/")[0].removeprefix("www.")
        form.name = _UNNAMED.sub("-", host.partition(":")[0].lower()).strip("-")[:LONGEST_NAME]
    return _editor(request, services, form, action="fetch")


def _saved(request: Request, services: WebServices, who: Admin, form: EditorForm, *, as_text: bool) -> Response:
    work = services.extraction
    if form.name in {"", NEW} and not form.version:
        raise ClassifyError(gettext(request, "Give the rule a name of its own."))
    source = form.source.replace("\r\n", "\n") + "\n" if as_text else work.source(form.rule())
    change, entry_id = work.save(who.actor, form.name, source, form.version)
    url = f"/crawler/rules/{change['name']}?{urlencode({'saved': entry_id, 'page': form.page})}"
    if is_partial(request):
        return Response(headers={"hx-redirect": url})
    return RedirectResponse(url, 303)


def _editor(request: Request, services: WebServices, form: EditorForm, *, action: str = "", **more: Any) -> Response:
    work, problem = services.extraction, more.pop("problem", "")
    page = services.shelf.find(form.page)
    context: dict[str, Any] = {"rule": None, "undo": "", "outline": None, "found": None, "source": "", **more}

    def preview() -> dict[str, Any] | None:
        return None if page is None else work.preview(page.html, page.url, form.rule(), form.picked)

    try:
        if form.page and page is None:
            problem = problem or gettext(request, "The page is kept for an hour. Fetch it again.")
        found = preview()
        if found is not None and action.startswith(("field:", "links:")):
            form.change(action, found["picked"])
            found = preview()
        elif action.startswith(("add-", "drop-")):
            form.change(action, None)
            found = preview()
        context["found"] = found
        if form.fields or form.links:
            context["source"] = work.source(form.rule())
        if form.address:
            context["suggested"] = work.suggested_urls(form.address)
        if page is not None and not (is_partial(request) and action != "fetch"):
            context["outline"] = work.outline(page.html)
    except GatewayFilterError as error:
        problem = problem or str(error)
    return _shown(request, form, problem, action, context)


def _shown(request: Request, form: EditorForm, problem: str, action: str, context: dict[str, Any]) -> Response:
    found = context["found"]
    kinds = (("f", found["fields"]), ("l", found["links"])) if found else ()
    marks = {f"{kind}{at}": row["marked"] for kind, rows in kinds for at, row in enumerate(rows)}
    values: dict[str, Any] = {
        "active": "crawler", "form": form, "problem": problem, "action": action, "marks": marks, "suggested": [], **context,
    }  # fmt: skip
    if not is_partial(request):
        return render(request, "learning/extraction_editor.html", 422 if problem else 200, **values)
    if action == "fetch":
        answer = render(request, "learning/_extraction_editor.html", **values)
        answer.headers["hx-retarget"], answer.headers["hx-reswap"] = "#editor", "outerHTML"
        return answer
    if request.headers.get("hx-target") == "results":
        return render(request, "learning/_extraction_results.html", partial=False, **values)
    return render(request, "learning/_extraction_panel.html", partial=True, **values)
