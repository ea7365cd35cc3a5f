"""`gatewayfilter fingerprints`: content that was judged before and is known again."""

from __future__ import annotations

import re
import time
from itertools import islice
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say

if TYPE_CHECKING:
    from typing import TextIO

    from gatewayfilter.cli.ui.command_context import Invocation

_MD5 = re.compile(r"^\s*([0-9a-fA-F]{32})(?:[\s,;*].*)?$")
_SAMPLES = 3
_AT_ONCE = 1000
"""Lines of a list of images that share a transaction."""


@click.group(
    "fingerprints",
    cls=FilterGroup,
    short_help="Content that was judged, known again.",
    examples=("gatewayfilter fingerprints stats",),
)
def fingerprints_group() -> None:
    """Fingerprints of pages, texts and images that were judged: the same content gets its recorded verdict at once."""


@fingerprints_group.command(examples=("gatewayfilter fingerprints stats --json",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Show how many fingerprints of each kind there are, how many are harmful, and how often they were found again."""
    with invocation.store() as store:
        counts = store.fingerprints.stats()
    if invocation.json:
        print_json(counts)
    else:
        print_table(("what", "count"), [(name.replace("_", " "), f"{count:,}") for name, count in counts.items()])


@fingerprints_group.command(
    examples=("gatewayfilter fingerprints images known.md5 --category adult",), prints_data=True, recorded="fingerprints.added"
)
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"))
@click.option("--category", required=True, metavar="NAME", help="What the images are.")
@click.option(
    "--days", type=click.FloatRange(min=1), default=3650.0, show_default=True, metavar="N", help="How long they are known."
)
@click.pass_obj
def images(invocation: Invocation, *, file: TextIO, category: str, days: float) -> int:
    """Import a list of known bad images: an MD5 at the beginning of each line, `-` for standard input."""
    from gatewayfilter.errors import ListError
    from gatewayfilter.learn.verdicts.content_id import image_identity
    from gatewayfilter.model import Classification, Fingerprint
    from gatewayfilter.wiring import categories

    if category not in categories():
        raise ListError(f"there is no category {category!r}")
    said = Classification(category, 0.0, 0.0)
    now = time.time()
    taken = rejected = 0
    samples: list[tuple[int, str]] = []
    with invocation.store() as store:
        lines = ((number, line) for number, line in enumerate(file, 1) if line.strip() and not line.lstrip().startswith("#"))
        while batch := list(islice(lines, _AT_ONCE)):
            read = [(number, line, _MD5.match(line)) for number, line in batch]
            # The last of equal ones counts: PostgreSQL writes no row twice in one statement.
            identities = {image_identity(bytes.fromhex(match[1])): None for _, _, match in read if match}
            known = [Fingerprint(identity, said, "import", "", "", now, now + days * 86_400) for identity in identities]
            store.fingerprints.put_all(known)
            bad = [(number, line.strip()[:60]) for number, line, match in read if not match]
            samples += bad[: _SAMPLES - len(samples)]
            rejected += len(bad)
            taken += len(read) - len(bad)
    if invocation.json:
        print_json({"taken": taken, "rejected": rejected, "samples": samples})
    else:
        say(f"{counted(taken, 'image')} taken, {counted(rejected, 'line')} rejected.")
        for number, line in samples:
            say(f"  line {number}: no MD5: {line}", err=True)
    return 0 if taken or not rejected else 1
