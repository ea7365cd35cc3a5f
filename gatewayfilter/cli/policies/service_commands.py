"""`gatewayfilter service`: the catalogue of services that policies block by name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table
from gatewayfilter.errors import MissingItemError, PolicyError
from gatewayfilter.model import check_service

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "service",
    cls=FilterGroup,
    short_help="Services that policies block by name.",
    examples=("gatewayfilter service list --group games",),
)
def service_group() -> None:
    """The catalogue of services: sites and apps that policies block, and quotas count, by name.

    What is missing can be added in the file services.toml of the state folder; an entry there replaces the one of the same name.
    """


@service_group.command(
    "list", examples=("gatewayfilter service list", "gatewayfilter service list --group chat --json"), prints_data=True
)
@click.option("--group", metavar="GROUP", help="Those of a group, such as games, social or video.")
@click.pass_obj
def list_services(invocation: Invocation, *, group: str | None) -> None:
    """Show all services, and the policies that block them."""
    from gatewayfilter.wiring import services

    catalogue = services(invocation.settings())
    groups = sorted({service.group for service in catalogue.values()})
    if group is not None and group not in groups:
        raise MissingItemError(f"there is no group {group!r}; there are {', '.join(groups)}")
    found = [service for service in catalogue.values() if group in {None, service.group}]
    found.sort(key=lambda service: (service.group, service.service_id))
    with invocation.store() as store:
        policies = store.policies.read().policies
    blocked_by = {
        service.service_id: sorted(name for name, policy in policies.items() if policy.services.get(service.service_id))
        for service in found
    }
    if invocation.json:
        print_json([{**asdict(service), "blocked_by": blocked_by[service.service_id]} for service in found])
        return
    rows = [
        (one.service_id, one.name, one.name_zh, one.group, str(len(one.hosts)), ", ".join(blocked_by[one.service_id]))
        for one in found
    ]
    print_table(("service", "name", "Chinese name", "group", "hosts", "blocked by"), rows)
    hint(f"\n{counted(len(found), 'service')}. Block: gatewayfilter policy set POLICY services=ID,ID")


@service_group.command(
    "show",
    examples=("gatewayfilter service show youtube", "gatewayfilter service show youtube --icon youtube.svg"),
    prints_data=True,
)
@click.argument("service_id", metavar="ID")
@click.option("--icon", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write its icon, as SVG.")
@click.pass_obj
def show_service(invocation: Invocation, *, service_id: str, icon: Path | None) -> None:
    """Show a service: its hosts, and what they were chosen by."""
    from gatewayfilter.sources.service_icons import service_icon
    from gatewayfilter.wiring import services

    catalogue = services(invocation.settings())
    check_service(service_id, catalogue)
    service = catalogue[service_id]
    if icon is not None:
        try:
            icon.write_text(service_icon(service), encoding="utf-8")
        except OSError as error:
            raise PolicyError(f"cannot write {icon}: {error.strerror}") from error
    if invocation.json:
        print_json({**asdict(service), "icon": service_icon(service)})
        return
    rows = [
        ("name", f"{service.name}, {service.name_zh}"),
        ("group", service.group),
        ("hosts", ", ".join(service.hosts)),
        ("played from", ", ".join(service.media)),
        ("patterns", ", ".join(service.patterns)),
        ("ports", ", ".join(map(str, service.ports))),
        ("part of", service.part_of),
        ("chosen by", service.source),
        ("from", "services.toml in the state folder" if service.own else "the bundled catalogue"),
    ]
    print_table((service_id, ""), [row for row in rows if row[1]])
