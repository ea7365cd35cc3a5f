"""`/users`: accounts and API tokens, for admins."""

from typing import Annotated

from fastapi import Form, Request
from fastapi.responses import Response

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role
from gatewayfilter.use_cases.sign_on.people import external_id
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.access.redirects import done
from gatewayfilter.web.rendering.pages import render
from gatewayfilter.web.routers import PageRouter

router = PageRouter()

Text = Annotated[str, Form(max_length=2_000)]


@router.get("/users")
def show(request: Request, services: Services, _: Admin) -> Response:
    """Shows all accounts and tokens."""
    return _page(request, services)


@router.post("/users")
def add(
    request: Request,
    services: Services,
    identity: Admin,
    name: Text = "",
    password: Text = "",
    role: Annotated[Role, Form()] = Role.VIEWER,
) -> Response:
    """Adds an account."""
    try:
        account = services.access.accounts.add(name, role, password)
    except AccountError as error:
        return _page(request, services, 422, name=name, role=role, error=str(error))
    record(services, identity, "user.added", account.name, f"role {account.role}")
    return done(request, "/users")


@router.post("/users/{account_id}/role")
def set_role(request: Request, services: Services, identity: Admin, account_id: int, role: Annotated[Role, Form()]) -> Response:
    """Gives an account another role."""
    account = services.access.accounts.set_role(services.access.account(account_id), role)
    record(services, identity, "user.role", account.name, f"role {role}")
    return done(request, "/users")


@router.post("/users/{account_id}/password")
def set_password(request: Request, services: Services, identity: Admin, account_id: int, password: Text = "") -> Response:
    """Sets a password; all sessions of the account end."""
    account = services.access.account(account_id)
    try:
        services.access.accounts.set_password(account, password)
    except AccountError as error:
        return _page(request, services, 422, error=f"{account.name}: {error}")
    record(services, identity, "user.password", account.name)
    return done(request, "/users")


@router.post("/users/{account_id}/link")
def link(request: Request, services: Services, identity: Admin, account_id: int, subject: Text = "") -> Response:
    """Links an account to a person at the provider of single sign-on, or to nobody; its sessions end."""
    account = services.access.account(account_id)
    subject = subject.strip()
    linked = external_id(services.settings.web.oidc.issuer, subject) if subject else ""
    try:
        services.access.accounts.link(account, linked)
    except AccountError as error:
        return _page(request, services, 422, error=f"{account.name}: {error}")
    record(services, identity, "user.linked" if linked else "user.unlinked", account.name, linked)
    return done(request, "/users")


@router.post("/users/{account_id}/disabled")
def set_disabled(
    request: Request, services: Services, identity: Admin, account_id: int, disabled: Annotated[bool, Form()]
) -> Response:
    """Disables or enables an account."""
    account = services.access.accounts.set_disabled(services.access.account(account_id), disabled=disabled)
    record(services, identity, "user.disabled" if disabled else "user.enabled", account.name)
    return done(request, "/users")


@router.post("/users/{account_id}/second-factor/remove")
def remove_second_factor(request: Request, services: Services, identity: Admin, account_id: int) -> Response:
    """Requires no one-time code of an account any more: for a lost phone."""
    account = services.access.accounts.remove_second_factor(services.access.account(account_id))
    record(services, identity, "user.second-factor-removed", account.name)
    return done(request, "/users")


@router.post("/users/{account_id}/remove")
def remove(request: Request, services: Services, identity: Admin, account_id: int) -> Response:
    """Removes an account with its sessions and tokens."""
    account = services.access.account(account_id)
    services.access.accounts.remove(account)
    record(services, identity, "user.removed", account.name)
    return done(request, "/users")


@router.post("/users/tokens/{token_id}/remove")
def remove_token(request: Request, services: Services, identity: Admin, token_id: int) -> Response:
    """Removes a token of any account."""
    token = services.access.tokens.remove(token_id)
    record(services, identity, "token.removed", token.name)
    return done(request, "/users")


def _page(
    request: Request, services: Services, status: int = 200, *, name: str = "", role: Role = Role.VIEWER, error: str = ""
) -> Response:
    accounts = services.store.accounts.all()
    names = {account.account_id: account.name for account in accounts}
    tokens = [(token, names[token.account_id]) for token in services.store.tokens.all() if token.account_id in names]
    return render(
        request,
        "system/users.html",
        status,
        active="users",
        rows=[(account, len(services.store.sessions.of_account(account.account_id))) for account in accounts],
        tokens=tokens,
        only_admin=_only_admin(accounts),
        given=name[:100],
        given_role=role.value,
        error=error,
        issuer=services.settings.web.oidc.issuer,
    )


def _only_admin(accounts: list[Account]) -> int:
    """Returns the number of the account that must stay an admin, 0 when there are several."""
    admins = [account.account_id for account in accounts if account.role is Role.ADMIN and not account.disabled]
    return admins[0] if len(admins) == 1 else 0
