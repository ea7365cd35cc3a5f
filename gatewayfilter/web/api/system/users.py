"""`/api/v1/users`: accounts of the dashboard, for admins."""

from hashlib import sha256
from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role
from gatewayfilter.web.access.changes import IfMatch, check_version, etag, record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/users", tags=["users"])

_VERSION_DIGITS: Final = 16

UserId = Annotated[int, Path(description="Number of the account.", ge=1, le=2**62)]
External = Annotated[
    str, Field(description="Issuer and subject of single sign-on with a space between, empty for none.", max_length=2_500)
]
Password = Annotated[str, Field(description="At least ten characters.", max_length=1_000)]


class UserModel(BaseModel):
    """An account."""

    id: Annotated[int, Field(description="Its number.")]
    name: Annotated[str, Field(description="Unique without regard to case.")]
    role: Annotated[Role, Field(description="What it may do.")]
    disabled: Annotated[bool, Field(description="Whether it can log in.")]
    second_factor: Annotated[bool, Field(description="Whether a log-in needs a one-time code.")]
    external_id: Annotated[str, Field(description='Issuer and subject of single sign-on with a space between, "" for none.')]
    language: Annotated[str, Field(description='Of its pages, "" for that of the browser.')]
    created_at: Annotated[float, Field(description="Unix seconds.")]
    changed_at: Annotated[float, Field(description="Unix seconds.")]
    logged_in_at: Annotated[float | None, Field(description="Unix seconds of the last log-in, null for never.")]


class UserList(BaseModel):
    """All accounts."""

    items: Annotated[list[UserModel], Field(description="By name; at most a thousand.")]
    next: Annotated[str | None, Field(description="Always null: one page holds all.")] = None


class NewUser(BaseModel):
    """An account to add."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="Letters, digits and . _ - @ +", max_length=200)]
    role: Annotated[Role, Field(description="What it may do.")] = Role.VIEWER
    password: Annotated[Password | None, Field(description="Left out where single sign-on is the only log-in.")] = None
    external_id: External = ""


class UserChange(BaseModel):
    """A change of an account; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="Another name.", max_length=200)] = None
    role: Annotated[Role | None, Field(description="Another role; the last admin stays one.")] = None
    disabled: Annotated[bool | None, Field(description="Whether it can log in; its sessions end when it cannot.")] = None
    password: Annotated[Password | None, Field(description="A new password; all its sessions end.")] = None
    external_id: Annotated[External | None, Field(description='Another identity, "" for none; all its sessions end.')] = None
    second_factor: Annotated[bool | None, Field(description="false removes the second factor; true is refused.")] = None


@router.get("", operation_id="list_users")
def show_all(services: Services, _: Admin) -> UserList:
    """Returns the accounts by name."""
    return UserList(items=[_model(account) for account in services.store.accounts.all()])


@router.post("", operation_id="create_user", status_code=201)
def add(response: Response, services: Services, identity: Admin, body: NewUser) -> UserModel:
    """Adds an account."""
    if body.password is None and not body.external_id:
        raise AccountError("an account has a password, or an identity of single sign-on")
    account = services.access.accounts.add(body.name, body.role, body.password, external_id=body.external_id)
    record(services, identity, "user.added", account.name, f"role {account.role}")
    response.headers.update(etag(_version(account)) | {"location": f"/api/v1/users/{account.account_id}"})
    return _model(account)


@router.get("/{user_id}", operation_id="get_user")
def show(response: Response, services: Services, _: Admin, user_id: UserId) -> UserModel:
    """Returns an account."""
    account = services.access.account(user_id)
    response.headers.update(etag(_version(account)))
    return _model(account)


@router.patch("/{user_id}", operation_id="update_user")
def change(
    response: Response, services: Services, identity: Admin, user_id: UserId, body: UserChange, if_match: IfMatch = ""
) -> UserModel:
    """Changes an account, as a whole or not at all."""
    with services.store.changing():
        account = services.access.account(user_id)
        check_version(if_match, lambda: _version(account))
        account = _changed(services, identity, account, body)
    response.headers.update(etag(_version(account)))
    return _model(account)


@router.delete("/{user_id}", operation_id="delete_user", status_code=204, response_class=Response)
def remove(services: Services, identity: Admin, user_id: UserId, if_match: IfMatch = "") -> None:
    """Removes an account with its sessions and tokens. The last admin stays."""
    with services.store.changing():
        account = services.access.account(user_id)
        check_version(if_match, lambda: _version(account))
        services.access.accounts.remove(account)
        record(services, identity, "user.removed", account.name)


def _changed(services: Services, identity: Admin, account: Account, body: UserChange) -> Account:
    accounts = services.access.accounts
    if body.second_factor is not None:
        account = accounts.without_second_factor(account, wanted=body.second_factor)
        record(services, identity, "user.second-factor-removed", account.name)
    if body.name is not None:
        record(services, identity, "user.renamed", account.name, f"name {body.name}")
        account = accounts.rename(account, body.name)
    if body.role is not None:
        account = accounts.set_role(account, body.role)
        record(services, identity, "user.role", account.name, f"role {account.role}")
    if body.disabled is not None:
        account = accounts.set_disabled(account, disabled=body.disabled)
        record(services, identity, "user.disabled" if body.disabled else "user.enabled", account.name)
    if body.password is not None:
        account = accounts.set_password(account, body.password)
        record(services, identity, "user.password", account.name)
    if body.external_id is not None:
        account = accounts.link(account, body.external_id)
        record(services, identity, "user.linked" if body.external_id else "user.unlinked", account.name, body.external_id)
    return account


def _version(account: Account) -> str:
    shown = (
        account.name,
        account.role,
        account.disabled,
        account.password_hash,
        account.totp_secret,
        account.language,
        account.external_id,
    )
    return sha256(repr(shown).encode()).hexdigest()[:_VERSION_DIGITS]


def _model(account: Account) -> UserModel:
    return UserModel(
        id=account.account_id,
        name=account.name,
        role=account.role,
        disabled=account.disabled,
        second_factor=account.has_second_factor,
        external_id=account.external_id,
        language=account.language,
        created_at=account.created_at,
        changed_at=account.changed_at,
        logged_in_at=account.logged_in_at,
    )
