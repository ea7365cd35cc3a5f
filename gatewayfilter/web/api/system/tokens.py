"""`/api/v1/tokens`: API tokens, the own ones, and for admins those of all accounts."""

from typing import Annotated

from fastapi import HTTPException, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.model import ApiToken, Scope
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Identity, Role, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/tokens", tags=["tokens"])


class TokenModel(BaseModel):
    """A token."""

    id: Annotated[int, Field(description="Its number.")]
    account: Annotated[str, Field(description="In whose name it acts.")]
    name: Annotated[str, Field(description="Of the program.")]
    scope: Annotated[Scope, Field(description="What it may do, within the role of its account.")]
    created_at: Annotated[float, Field(description="Unix seconds.")]
    expires_at: Annotated[float | None, Field(description="Unix seconds, null for never.")]
    used_at: Annotated[float | None, Field(description="Unix seconds of its last use, to the minute; null for never.")]


class MadeToken(TokenModel):
    """A token that was made just now."""

    token: Annotated[str, Field(description="Its text, shown only now; sent as Authorization: Bearer TOKEN.")]


class TokenList(BaseModel):
    """Tokens."""

    items: Annotated[list[TokenModel], Field(description="The oldest first.")]
    next: Annotated[str | None, Field(description="Always null: one page holds all.")] = None


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="Of the program.", max_length=200)]
    scope: Annotated[Scope, Field(description="What it may do.")] = Scope.READ
    lifetime_s: Annotated[float | None, Field(description="Seconds, null for ever.", ge=60, le=3_660 * 86_400.0)] = 7_776_000.0


@router.get("", operation_id="list_tokens")
def show_all(services: Services, identity: Viewer) -> TokenList:
    """Returns the own tokens; for admins those of all accounts."""
    names = {account.account_id: account.name for account in services.store.accounts.all()}
    found = services.store.tokens.all(None if identity.may(Role.ADMIN) else identity.account_id)
    return TokenList(items=[_model(token, names[token.account_id]) for token in found if token.account_id in names])


@router.post("", operation_id="create_token", status_code=201)
def add(services: Services, identity: Viewer, body: NewToken) -> MadeToken:
    """Makes a token in the own name, by a session or by a token of the scope admin."""
    _refuse_tokens(identity)
    account = services.access.account(identity.account_id)
    text, made = services.access.tokens.add(account, body.name, body.scope, body.lifetime_s, within=identity.model_role)
    record(services, identity, "token.added", made.name, f"account {account.name}, scope {made.scope}")
    return MadeToken(**_model(made, account.name).model_dump(), token=text)


@router.delete("/{token_id}", operation_id="delete_token", status_code=204, response_class=Response)
def remove(
    services: Services, identity: Viewer, token_id: Annotated[int, Path(description="Number of the token.", ge=1, le=2**62)]
) -> None:
    """Removes an own token; admins remove those of all accounts."""
    _refuse_tokens(identity)
    owner = None if identity.may(Role.ADMIN) else services.access.account(identity.account_id)
    token = services.access.tokens.remove(token_id, owner)
    record(services, identity, "token.removed", token.name)


def _refuse_tokens(identity: Identity) -> None:
    """Refuses tokens below the scope admin: one that reads would make another one before it expires."""
    if identity.session is None and not identity.may(Role.ADMIN):
        raise HTTPException(403, "a token needs the scope admin to make or remove tokens")


def _model(token: ApiToken, account: str) -> TokenModel:
    return TokenModel(
        id=token.token_id,
        account=account,
        name=token.name,
        scope=token.scope,
        created_at=token.created_at,
        expires_at=token.expires_at,
        used_at=token.used_at,
    )
