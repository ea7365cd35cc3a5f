"""`/settings`: the settings, with where each comes from, and the change of one."""

from functools import partial
from typing import Annotated, Any

from fastapi import Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.errors import ConfigError
from gatewayfilter.use_cases.setting_values import ShownSetting, change_setting, shown_settings
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.rendering.pages import gettext, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()


@router.get("/settings")
def page(
    request: Request,
    services: Services,
    _: Admin,
    q: Annotated[str, Query(max_length=100)] = "",
    changed: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Shows the settings by section."""
    return _page(request, services, q, changed=changed)


@router.post("/settings")
def change(
    request: Request,
    services: Services,
    identity: Admin,
    key: Annotated[str, Form(max_length=100)],
    value: Annotated[str, Form(max_length=4096)] = "",
) -> Response:
    """Changes a value in the settings file."""
    try:
        change_setting(services.reloaded(), services.settings_file, key, value)
    except ConfigError as error:
        return _page(request, services, key, error=str(error), wrong=key, typed=value)
    record(services, identity, "setting.changed", key)
    return RedirectResponse(f"/settings?q={key}&changed={key}", 303)


def _page(
    request: Request, services: Services, wanted: str, *, changed: str = "", error: str = "", wrong: str = "", typed: str = ""
) -> Response:
    frame: dict[str, Any] = {
        "active": "settings",
        "q": wanted,
        "changed": changed,
        "error": error,
        "wrong": wrong,
        "typed": typed,
        "file": services.settings_file,
    }
    content = partial(_content, request, services, wanted)
    if error:
        return render(request, "system/settings.html", 422, **frame, **content())
    return render_early(request, "system/settings.html", content, **frame)


def _content(request: Request, services: WebServices, wanted: str) -> dict[str, Any]:
    words = wanted.lower().split()
    sections: dict[str, list[tuple[ShownSetting, str]]] = {}
    for one in shown_settings(services.reloaded()):
        description = gettext(request, one.description)
        searched = f"{one.key}\n{one.description}\n{description}".lower()
        if all(word in searched for word in words):
            sections.setdefault(one.key.rpartition(".")[0] or one.key, []).append((one, description))
    return {"sections": sections}
