"""`/api/v1/proxy-users`: who may use the proxy, where `proxy.auth_file` names a file of users."""

from typing import Annotated

from fastapi import Path, Response
from pydantic import BaseModel, ConfigDict, Field

from gatewayfilter.errors import MissingItemError
from gatewayfilter.use_cases.operation.proxy_users import ProxyUsers
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/proxy-users", tags=["proxy-users"])

UserName = Annotated[str, Path(description="The name: no colon, space or number sign.", min_length=1, max_length=200)]


class ProxyUserList(BaseModel):
    """The users of the proxy."""

    items: Annotated[list[str], Field(description="Names in order.")]


class ProxyPassword(BaseModel):
    """A new password."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[str, Field(min_length=1, max_length=500, description="As the device sends it; a hash alone is kept.")]


@router.get("", operation_id="list_proxy_users")
def list_users(services: Services, _: Admin) -> ProxyUserList:
    """Returns the names of the users."""
    return ProxyUserList(items=ProxyUsers(services.settings).names())


@router.put("/{name}", operation_id="put_proxy_user", status_code=204, response_class=Response)
def put_user(services: Services, identity: Admin, name: UserName, body: ProxyPassword) -> None:
    """Adds a user, or changes the password of one. A running filter applies it within a second."""
    ProxyUsers(services.settings).put(name, body.password)
    record(services, identity, "proxy-user.changed", name)


@router.delete("/{name}", operation_id="remove_proxy_user", status_code=204, response_class=Response)
def remove_user(services: Services, identity: Admin, name: UserName) -> None:
    """Removes a user."""
    if not ProxyUsers(services.settings).remove(name):
        raise MissingItemError(f"there is no user {name}")
    record(services, identity, "proxy-user.removed", name)
