"""The API of tokens. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class TokenList(TypedDict):
    """Tokens."""

    items: list[TokenModel]
    next: NotRequired[str | None]


class TokenModel(TypedDict):
    """A token."""

    id: int
    account: str
    name: str
    scope: Literal["read", "approve", "admin"]
    created_at: float
    expires_at: float | None
    used_at: float | None


class NewToken(TypedDict):
    """A token to make."""

    name: str
    scope: NotRequired[Literal["read", "approve", "admin"]]
    lifetime_s: NotRequired[float | None]


class MadeToken(TypedDict):
    """A token that was made just now."""

    id: int
    account: str
    name: str
    scope: Literal["read", "approve", "admin"]
    created_at: float
    expires_at: float | None
    used_at: float | None
    token: str


class TokensApi:
    """Operations of tokens."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_tokens(self) -> Answer[TokenList]:
        """Returns the own tokens; for admins those of all accounts."""
        return self._transport.send(Call("GET", "/api/v1/tokens"))

    def create_token(self, body: NewToken) -> Answer[MadeToken]:
        """Makes a token in the own name, by a session or by a token of the scope admin."""
        return self._transport.send(Call("POST", "/api/v1/tokens", body=body))

    def delete_token(self, token_id: int) -> Answer[bytes]:
        """Removes an own token; admins remove those of all accounts."""
        return self._transport.send(Call("DELETE", "/api/v1/tokens/{token_id}", parameters={"token_id": token_id}))
