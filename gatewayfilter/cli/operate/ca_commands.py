"""`gatewayfilter ca`: the certificate that clients must trust for HTTPS."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.errors import StartupError
from gatewayfilter.program_name import as_callable

if TYPE_CHECKING:
    from gatewayfilter.certificates.authority import CaFormat, CertificateAuthority
    from gatewayfilter.cli.ui.command_context import Invocation

_BINARY = frozenset({"der", "p12"})


@click.group(
    "ca", cls=FilterGroup, short_help="The certificate authority for HTTPS.", examples=("gatewayfilter ca export > ca.pem",)
)
def ca_group() -> None:
    """The certificate authority that signs what clients see over HTTPS.

    It is made when it is first needed. Its key never leaves the state folder; clients need the certificate alone.
    """


def _folder(invocation: Invocation) -> Path:
    from gatewayfilter.wiring import prepare_data_dir

    settings = invocation.settings()
    prepare_data_dir(settings)
    return settings.data_dir / "ca"


def _authority(invocation: Invocation) -> CertificateAuthority:
    from gatewayfilter.certificates.authority import ensure_ca

    return ensure_ca(_folder(invocation))


def _facts(authority: CertificateAuthority) -> dict[str, object]:
    """Returns what identifies the authority, with the file to install; the key's file is named as what it is."""
    return {
        "name": authority.name,
        "sha256": authority.fingerprint,
        "expires": authority.expires_at.timestamp(),
        "file": authority.certificate_path,
        "key_file": authority.path,
    }


def _rows(authority: CertificateAuthority, *, waiting: bool = False) -> list[tuple[str, object]]:
    facts = _facts(authority)
    return [
        ("name", facts["name"]),
        ("sha256", facts["sha256"]),
        ("expires", show_day(authority.expires_at.timestamp())),
        ("certificate", as_callable("gatewayfilter ca export --next") if waiting else facts["file"]),
        ("private key", f"{authority.path} (stays on this machine)"),
    ]


@ca_group.command(examples=("gatewayfilter ca show", "gatewayfilter ca show --json"), prints_data=True)
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show the authority's name, fingerprint and expiry, to compare with what a client shows.

    One that is made but not in force yet (`ca renew --new-key`) is shown beside it.
    """
    from gatewayfilter.certificates.authority import RENEW_WITHIN_DAYS
    from gatewayfilter.certificates.renewal import next_authority

    authority = _authority(invocation)
    waiting = next_authority(authority.path.parent)
    left = authority.expires_at - datetime.now(UTC)
    if invocation.json:
        print_json({**_facts(authority), "days_left": left.days, "next": _facts(waiting) if waiting is not None else None})
        return
    print_table(("what", "value"), _rows(authority))
    if waiting is not None:
        say()
        print_table(("next", "value"), _rows(waiting, waiting=True))
    if left < timedelta(days=RENEW_WITHIN_DAYS):
        hint(f"It expires in {left.days} days: gatewayfilter ca renew", err=True)


@ca_group.command(
    examples=(
        "gatewayfilter ca export --output gatewayfilter-ca.pem",
        "gatewayfilter ca export --format der -o ca.cer",
        "gatewayfilter ca export --format mobileconfig -o gatewayfilter-ca.mobileconfig",
    ),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["pem", "der", "p12", "mobileconfig"]),
    default="pem",
    show_default=True,
    help="pem for most, der for Windows and Android, p12 for Java, mobileconfig for iPhone, iPad and Mac.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to (default: standard output).",
)
@click.option("--next", "waiting", is_flag=True, help="The authority that `ca renew --new-key` made, before it is in force.")
@click.pass_obj
def export(invocation: Invocation, *, form: CaFormat, output: Path | None, waiting: bool) -> None:
    """Write the certificate, never the key, for installing on clients."""
    authority = _authority(invocation)
    if waiting:
        from gatewayfilter.certificates.renewal import next_authority

        found = next_authority(authority.path.parent)
        if found is None:
            raise StartupError("no authority is waiting: gatewayfilter ca renew --new-key makes one")
        authority = found
    content = authority.export(form)
    if output is None or str(output) == "-":
        if form in _BINARY and sys.stdout.isatty():
            raise StartupError(f"the {form} form is binary: name a file with --output")
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise StartupError(f"cannot write {output}: {error.strerror}") from error
    say(f"Wrote the certificate to {output}. Install it on each client as a trusted root certificate.")


@ca_group.command(
    examples=("gatewayfilter ca renew", "gatewayfilter ca renew --new-key", "gatewayfilter ca renew --activate"),
    prints_data=True,
    recorded="ca.renewed",
)
@click.option("--new-key", is_flag=True, help="Make the next authority with a new key, and leave the old one in force.")
@click.option("--activate", is_flag=True, help="Put the authority that --new-key made into force.")
@click.pass_obj
def renew(invocation: Invocation, *, new_key: bool, activate: bool) -> None:
    """Give the authority another ten years.

    Its key and name stay, so devices that have the old certificate go on to trust the filter until that one's end: install the
    new one on them before. When the key may have leaked, take --new-key, install the new certificate on all devices, then
    --activate. Running workers take the new one when they are started again.
    """
    from gatewayfilter.certificates.renewal import activate_next, make_next, renew_same_key

    if new_key and activate:
        raise click.UsageError("--new-key and --activate are two steps: devices get the certificate between them")
    folder = _folder(invocation)
    if new_key:
        _authority(invocation)
        made = make_next(folder)
        words = (
            "The next authority is made, and not in force: the filter still signs with the old one. "
            "Install the file of `gatewayfilter ca export --next` on all devices, then `gatewayfilter ca renew --activate`."
        )
    elif activate:
        made = activate_next(folder)
        words = (
            "A running filter still signs with the old authority: start it again. "
            "Devices without the new certificate then show a warning on every HTTPS page."
        )
    else:
        made = renew_same_key(folder)
        words = "Renewed. Start the filter again, and install the new certificate before the old one ends."
    if invocation.json:
        print_json(_facts(made))
        return
    print_table(("what", "value"), _rows(made, waiting=new_key))
    hint(words)
