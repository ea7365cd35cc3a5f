"""The API of settings. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class SettingModel(TypedDict):
    """A setting."""

    key: str
    value: Any
    origin: str
    description: str
    changeable: bool


class ChangeModel(TypedDict):
    """A new value."""

    value: str


class ChangedSettingModel(TypedDict):
    """A setting after a change. Processes take it when they are started again."""

    key: str
    before: Any
    after: Any
    file: str
    overruled_by: str


class SettingsApi:
    """Operations of settings."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_settings(self) -> Answer[list[SettingModel]]:
        """Returns all settings in the order of the documentation."""
        return self._transport.send(Call("GET", "/api/v1/settings"))

    def change_setting(self, key: str, body: ChangeModel) -> Answer[ChangedSettingModel]:
        """Changes a value in the settings file, whose comments stay."""
        return self._transport.send(Call("PUT", "/api/v1/settings/{key}", parameters={"key": key}, body=body))
