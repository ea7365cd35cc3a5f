"""`/api/v1/https`: certificate authority and pinned apps."""

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.use_cases import https as use_case
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.shared_models import RemovedModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/https", tags=["https"])

type Form = Literal["pem", "der", "p12", "mobileconfig"]
MEDIA_TYPES = {
    "pem": "application/x-pem-file",
    "der": "application/x-x509-ca-cert",
    "p12": "application/x-pkcs12",
    "mobileconfig": "application/x-apple-aspen-config",
}


class AuthorityModel(BaseModel):
    """A certificate authority."""

    name: Annotated[str, Field(description="Its name, as devices show it.")]
    sha256: Annotated[str, Field(description="Fingerprint of its certificate.")]
    expires_at: Annotated[float, Field(description="Unix seconds.")]
    days_left: Annotated[int, Field(description="Days until it ends.")]


class AuthoritiesModel(BaseModel):
    """The authority in force, and the next one."""

    current: Annotated[AuthorityModel, Field(description="Signs what devices see.")]
    waiting: Annotated[AuthorityModel | None, Field(description="Made, and not in force yet.")]


class PinnedAppModel(BaseModel):
    """A name that passes unread for a device."""

    client: Annotated[str, Field(description="Address of the device.")]
    host: Annotated[str, Field(description="The name.")]
    learned_at: Annotated[float, Field(description="Unix seconds.")]
    expires_at: Annotated[float, Field(description="Unix seconds.")]
    failures: Annotated[int, Field(description="Connections that had failed.")]


class RenewalModel(BaseModel):
    """A renewal."""

    step: Annotated[
        Literal["same-key", "new-key", "activate"],
        Field(description="Another ten years; the next authority with a new key; the next one put into force."),
    ]


def _model(facts: use_case.AuthorityFacts) -> AuthorityModel:
    return AuthorityModel(name=facts.name, sha256=facts.sha256, expires_at=facts.expires_at, days_left=facts.days_left)


@router.get("/authority", operation_id="get_authority")
def authority(services: Services, _: Viewer) -> AuthoritiesModel:
    """Returns what identifies the certificate authority."""
    found = services.authorities()
    return AuthoritiesModel(current=_model(found.current), waiting=_model(found.waiting) if found.waiting else None)


@router.get("/certificate", operation_id="download_certificate", response_class=Response)
def certificate(
    services: Services,
    _: Viewer,
    form: Annotated[
        Form, Query(description="pem for most, der for Windows and Android, p12 for Java, mobileconfig for Apple.")
    ] = "pem",
    waiting: Annotated[bool, Query(description="That of the next authority.")] = False,  # noqa: FBT002  a query parameter
) -> Response:
    """Returns the certificate that devices install, never the key."""
    return Response(
        services.child.run("gatewayfilter.use_cases.https:certificate", services.settings, form, waiting=waiting),
        media_type=MEDIA_TYPES[form],
    )


@router.post("/authority/renew", operation_id="renew_authority")
def renew(services: Services, identity: Admin, body: RenewalModel) -> AuthorityModel:
    """Renews the certificate authority; running workers take it when they are started again."""
    renewed = use_case.renew_authority(services.settings, body.step)
    record(services, identity, "authority.renewed", renewed.name, body.step)
    return _model(renewed)


@router.get("/pinned-apps", operation_id="list_pinned_apps")
def pinned_apps(services: Services, _: Viewer) -> list[PinnedAppModel]:
    """Returns the apps that accept no certificate of the filter, the newest first; at most 2,000."""
    return [
        PinnedAppModel(
            client=entry.client,
            host=entry.host,
            learned_at=entry.learned_at,
            expires_at=entry.expires_at,
            failures=entry.failures,
        )
        for entry in use_case.pinned_apps(services.settings, services.clock())
    ]


@router.delete("/pinned-apps/{host}", operation_id="remove_pinned_app")
def remove_pinned_app(
    services: Services,
    identity: Admin,
    host: Annotated[str, Path(description="The name.", max_length=253)],
    client: Annotated[str, Query(description="Only for this device.", max_length=60)] = "",
) -> RemovedModel:
    """Has connections to a name decrypted again."""
    removed = use_case.forget_pinned_app(services.settings, host, client)
    if removed:
        record(services, identity, "pinned-app.removed", host, client)
    return RemovedModel(removed=removed)
