"""The acquisition of a list into a work folder: downloaded or copied, unpacked, recognised, counted."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from gatewayfilter.errors import ListError, SourceError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.download.http_download import Received, Validators, download, is_web_address
from gatewayfilter.sources.download.includes import expand_includes, has_includes
from gatewayfilter.sources.download.unpack import unpack
from gatewayfilter.sources.formats.detect import HEAD_SIZE, refuse_non_lists, sniff
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport

_QUOTED = 3
"""Bad lines that a refusal quotes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to get.

    Attributes:
        list_format: `None` to find it out.
        action: what the list means.
        folders: which category to take of an archive with several, by any of these names.
        validators, sha256: of the copy at hand, `""` for none.
        max_bytes: of the download and of the plain list.
        timeout_s: for one try of a download.
    """

    address: str
    list_format: ListFormat | None
    action: ListAction
    folders: Collection[str]
    validators: Validators
    sha256: str
    max_bytes: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Acquired:
    """A list that was got and can be used: `path` is a plain file, synced, in the work folder."""

    path: Path
    sha256: str
    validators: Validators
    report: ParseReport


def acquire(
    wanted: Wanted, work: Path, sleep: Callable[[float], None], received: Received | None = None
) -> Acquired | Validators:
    """Gets a list.

    Args:
        wanted: what to get.
        work: an empty folder, for this.
        sleep: waits between two tries of a download.
        received: called with the number of bytes downloaded.

    Returns:
        The list, or the newest validators when it is the copy at hand.

    Raises:
        SourceError, ListError: it could not be downloaded, or is no list; with the reason.
    """
    try:
        return _acquire(wanted, work, sleep, received)
    except OSError as error:
        raise SourceError(f"cannot read or write the list: {error.strerror or error}") from error


def _acquire(wanted: Wanted, work: Path, sleep: Callable[[float], None], received: Received | None) -> Acquired | Validators:
    origin, validators = Path(wanted.address), Validators()
    if is_web_address(wanted.address):
        origin = work / "body"
        answer = download(
            wanted.address,
            origin,
            wanted.validators,
            max_bytes=wanted.max_bytes,
            timeout_s=wanted.timeout_s,
            sleep=sleep,
            received=received,
        )
        if answer is None:
            return wanted.validators
        validators = answer
    elif not origin.exists():
        raise SourceError(f"there is no {wanted.address}")
    path = work / "list"
    is_ut1 = unpack(origin, path, wanted.folders, wanted.max_bytes)
    _put_parts_in(path, wanted, work, sleep)
    with path.open("rb+") as file:
        sha256 = file_digest(file, "sha256").hexdigest()
        if sha256 == wanted.sha256:
            return validators
        file.seek(0)
        list_format = _recognise(file.read(HEAD_SIZE), ListFormat.UT1 if is_ut1 else wanted.list_format)
        file.seek(0)
        from gatewayfilter.sources.formats.parse import count_list  # noqa: PLC0415  with numpy, when a list has come

        report = count_list(file, list_format, wanted.action)
        os.fsync(file.fileno())
    _refuse_mostly_bad(report)
    return Acquired(path, sha256, validators, report)


def _put_parts_in(path: Path, wanted: Wanted, work: Path, sleep: Callable[[float], None]) -> None:
    """Puts in what an Adblock list includes (`!#include`), each part got as the list was."""
    with path.open("rb") as file:
        if not has_includes(file):
            return

    def get(address: str, part: Path) -> None:
        body = Path(address)
        if is_web_address(address):
            body = part.with_suffix(".body")
            download(address, body, Validators(), max_bytes=wanted.max_bytes, timeout_s=wanted.timeout_s, sleep=sleep)
        elif not body.is_file():
            raise SourceError("there is no such file")
        unpack(body, part, (), wanted.max_bytes)
        with part.open("rb") as file:
            refuse_non_lists(file.read(HEAD_SIZE))

    expand_includes(path, wanted.address, work, get, wanted.max_bytes)


def _refuse_mostly_bad(report: ParseReport) -> None:
    """A file of which most lines are rejected is something else than it seemed: what is left of it would be chance."""
    if not report.entries:
        raise ListError(f"it holds no usable entry; {_quoted(report) or 'nothing but comments'}")
    good = report.entries + report.duplicates + sum(report.unsupported.values())
    if report.rejected > good:
        raise ListError(
            f"most of it cannot be read as {report.list_format}: {report.rejected:,} bad lines, {good:,} good; {_quoted(report)}"
        )


def _quoted(report: ParseReport) -> str:
    return "; ".join(f"line {line}, {text[:60]!r}: {why}" for line, text, why in report.samples[:_QUOTED])


def _recognise(head: bytes, told: ListFormat | None) -> ListFormat:
    if told is None:
        return sniff(head)
    refuse_non_lists(head)
    return told
