"""Who sends a request, and what the roles may do."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Protocol

from fastapi import Depends, HTTPException, Request

from gatewayfilter.model import Actor, Via, WebSession
from gatewayfilter.model import Role as AccountRole


class Role(IntEnum):
    """What an account may do; each role may do what the lower ones may."""

    VIEWER = 1
    """Reads."""
    APPROVER = 2
    """Answers requests and reviews, and pauses."""
    ADMIN = 3
    """Changes everything else."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends a request.

    Attributes:
        name: of the account.
        role: what it may do; with a token, at most what its scope allows.
        csrf: what a form has to repeat, `""` where no cookie was involved.
        language: of the account, `""` for the browser's.
        account_id: number of the account.
        via: session or token.
        via_detail: network of the session, or name of the token.
        session: `None` with a token.
    """

    name: str
    role: Role
    csrf: str = ""
    language: str = ""
    account_id: int = 0
    via: Via = Via.SESSION
    via_detail: str = ""
    session: WebSession | None = None

    @property
    def actor(self) -> Actor:
        """Who makes a change, for the audit log."""
        return Actor(self.name, self.via, self.via_detail)

    @property
    def model_role(self) -> AccountRole:
        """The role as accounts have it."""
        return AccountRole[self.role.name]

    def may(self, role: Role) -> bool:
        """Returns whether the role is among those that it has."""
        return self.role >= role


class Authenticator(Protocol):
    """Finds who sends a request."""

    def identify(self, request: Request) -> Identity | None:
        """Returns the identity by cookie or token, `None` for nobody."""
        ...


def current(request: Request) -> Identity | None:
    """Returns who sends the request, `None` for nobody. Asked once for each request."""
    if not hasattr(request.state, "identity"):
        request.state.identity = request.app.state.authenticator.identify(request)
    identity: Identity | None = request.state.identity
    return identity


def require(role: Role) -> Callable[[Request], Identity]:
    """Returns a dependency that refuses requests of a lower role: 401 for nobody, 403 for a lower role."""

    def check(request: Request) -> Identity:
        identity = current(request)
        if identity is None:
            raise HTTPException(401, "log in first")
        if not identity.may(role):
            raise HTTPException(403, f"this needs the role {role.name.lower()}")
        return identity

    return check


Viewer = Annotated[Identity, Depends(require(Role.VIEWER))]
Approver = Annotated[Identity, Depends(require(Role.APPROVER))]
Admin = Annotated[Identity, Depends(require(Role.ADMIN))]
