"""`gatewayfilter ca`: the certificate that clients must trust for HTTPS."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.command import FilterGroup
from gatewayfilter.cli.output import print_json, print_table, say
from gatewayfilter.errors import StartupError

if TYPE_CHECKING:
    from gatewayfilter.cli.invocation import Invocation
    from gatewayfilter.proxy.ca import CaFormat, CertificateAuthority


@click.group(
    "ca", cls=FilterGroup, short_help="The certificate authority for HTTPS.", examples=("gatewayfilter ca export > ca.pem",)
)
def ca_group() -> None:
    """The certificate authority that signs what clients see over HTTPS.

    It is made when it is first needed. Its key never leaves the state folder; clients need the certificate alone.
    """


def _authority(invocation: Invocation) -> CertificateAuthority:
    from gatewayfilter.proxy.ca import ensure_ca
    from gatewayfilter.wiring import prepare_data_dir

    settings = invocation.settings()
    prepare_data_dir(settings)
    return ensure_ca(settings.data_dir / "ca")


@ca_group.command(examples=("gatewayfilter ca show", "gatewayfilter ca show --json"), prints_data=True)
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show the authority's name, fingerprint and expiry, to compare with what a client shows."""
    authority = _authority(invocation)
    facts = {
        "name": authority.name,
        "sha256": authority.fingerprint,
        "expires": authority.expires_at.isoformat(timespec="seconds"),
        "file": authority.path,
    }
    if invocation.json:
        print_json(facts)
    else:
        print_table(("what", "value"), list(facts.items()))


@ca_group.command(
    examples=("gatewayfilter ca export --output gatewayfilter-ca.pem", "gatewayfilter ca export --format der -o ca.cer"),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["pem", "der", "p12"]),
    default="pem",
    show_default=True,
    help="pem for most, der for Windows and Android, p12 for Java.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to (default: standard output).",
)
@click.pass_obj
def export(invocation: Invocation, *, form: CaFormat, output: Path | None) -> None:
    """Write the certificate, never the key, for installing on clients."""
    content = _authority(invocation).export(form)
    if output is None or str(output) == "-":
        if form != "pem" and sys.stdout.isatty():
            raise StartupError(f"the {form} form is binary: name a file with --output")
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise StartupError(f"cannot write {output}: {error.strerror}") from error
    say(f"Wrote the certificate to {output}. Install it on each client as a trusted root certificate.")
