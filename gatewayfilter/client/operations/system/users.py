"""The API of users. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class UserList(TypedDict):
    """All accounts."""

    items: list[UserModel]
    next: NotRequired[str | None]


class UserModel(TypedDict):
    """An account."""

    id: int
    name: str
    role: Literal["viewer", "approver", "admin"]
    disabled: bool
    second_factor: bool
    external_id: str
    language: str
    created_at: float
    changed_at: float
    logged_in_at: float | None


class NewUser(TypedDict):
    """An account to add."""

    name: str
    role: NotRequired[Literal["viewer", "approver", "admin"]]
    password: NotRequired[str | None]
    external_id: NotRequired[str]


class UserChange(TypedDict):
    """A change of an account; what is left out stays."""

    name: NotRequired[str | None]
    role: NotRequired[Literal["viewer", "approver", "admin"] | None]
    disabled: NotRequired[bool | None]
    password: NotRequired[str | None]
    external_id: NotRequired[str | None]
    second_factor: NotRequired[bool | None]


class UsersApi:
    """Operations of users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_users(self) -> Answer[UserList]:
        """Returns the accounts by name."""
        return self._transport.send(Call("GET", "/api/v1/users"))

    def create_user(self, body: NewUser) -> Answer[UserModel]:
        """Adds an account."""
        return self._transport.send(Call("POST", "/api/v1/users", body=body))

    def get_user(self, user_id: int) -> Answer[UserModel]:
        """Returns an account."""
        return self._transport.send(Call("GET", "/api/v1/users/{user_id}", parameters={"user_id": user_id}))

    def update_user(self, user_id: int, body: UserChange, *, if_match: str = "") -> Answer[UserModel]:
        """Changes an account, as a whole or not at all."""
        return self._transport.send(
            Call("PATCH", "/api/v1/users/{user_id}", parameters={"user_id": user_id}, headers={"if-match": if_match}, body=body)
        )

    def delete_user(self, user_id: int, *, if_match: str = "") -> Answer[bytes]:
        """Removes an account with its sessions and tokens. The last admin stays."""
        return self._transport.send(
            Call("DELETE", "/api/v1/users/{user_id}", parameters={"user_id": user_id}, headers={"if-match": if_match})
        )
