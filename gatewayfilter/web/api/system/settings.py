"""`/api/v1/settings`: the settings, with where each comes from."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.setting_values import change_setting, shown_settings
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/settings", tags=["settings"])


class SettingModel(BaseModel):
    """A setting."""

    key: Annotated[str, Field(description="Dotted name.")]
    value: Annotated[Any, Field(description="In a type of JSON, without passwords.")]
    origin: Annotated[str, Field(description="`default`, `file PATH`, `environment NAME` or `option`.")]
    description: Annotated[str, Field(description="What it does.")]
    changeable: Annotated[bool, Field(description="Whether it can be changed here.")]


class ChangeModel(BaseModel):
    """A new value."""

    value: Annotated[str, Field(max_length=4096, description="As typed; items of a list with commas between them.")]


class ChangedSettingModel(BaseModel):
    """A setting after a change. Processes take it when they are started again."""

    key: Annotated[str, Field(description="Dotted name.")]
    before: Annotated[Any, Field(description="The value before.")]
    after: Annotated[Any, Field(description="The value in the file.")]
    file: Annotated[str, Field(description="The file that was changed.")]
    overruled_by: Annotated[str, Field(description="The origin that wins over the file, empty for none.")]


@router.get("", operation_id="list_settings")
def settings(services: Services, _: Admin) -> list[SettingModel]:
    """Returns all settings in the order of the documentation."""
    return [
        SettingModel(key=one.key, value=one.value, origin=one.origin, description=one.description, changeable=one.changeable)
        for one in shown_settings(services.reloaded())
    ]


@router.put("/{key}", operation_id="change_setting")
def change(
    services: Services,
    identity: Admin,
    key: Annotated[str, Path(max_length=100, description="Dotted name.")],
    body: ChangeModel,
) -> ChangedSettingModel:
    """Changes a value in the settings file, whose comments stay."""
    changed = change_setting(services.reloaded(), services.settings_file, key, body.value)
    record(services, identity, "setting.changed", key)
    return ChangedSettingModel(
        key=changed.key,
        before=changed.before,
        after=changed.after,
        file=str(changed.file),
        overruled_by=changed.overruled_by,
    )
