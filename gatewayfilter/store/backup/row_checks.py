"""Values of restored rows that the database accepts but no reader can read."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlalchemy import Table

from gatewayfilter.errors import BackupError
from gatewayfilter.interfaces import RequestState
from gatewayfilter.model import EntryKind, ReviewKind, ReviewState, Role, Scope
from gatewayfilter.store.sql.schema import ACCOUNTS, API_TOKENS, BYPASS_LINKS, REVIEW_TASKS, UNBLOCK_REQUESTS

_LATEST: Final = 1e11
"""Unix seconds of the year 5138: the calendar has no much later ones."""


def check_row(table: Table, row: Mapping[str, Any]) -> None:
    """Checks a row of a backup.

    Raises:
        BackupError: it holds a value that this program does not have.
    """
    for column, check in _CHECKS.get(table, _NONE).items():
        try:
            check(row[column])
        except (ValueError, TypeError) as error:
            raise BackupError(f"the backup cannot be used: a row of {table.name} has an unusable value for {column}") from error


def _check_moment(value: float | None) -> None:
    if value is not None and not abs(value) < _LATEST:
        raise ValueError("no time")


def _check_numbers(value: object) -> None:
    if value is not None and not (isinstance(value, list) and all(type(number) is int for number in value)):
        raise ValueError("no list of numbers")


def _check_texts(value: object) -> None:
    if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise ValueError("no list of texts")


_NONE: Final[Mapping[str, Callable[[Any], object]]] = {}
_CHECKS: Final[Mapping[Table, Mapping[str, Callable[[Any], object]]]] = {
    REVIEW_TASKS: {"state": ReviewState, "kind": ReviewKind},
    UNBLOCK_REQUESTS: {
        "state": RequestState,
        "rule_ids": _check_numbers,
        "at": _check_moment,
        "decided_at": _check_moment,
        "until": _check_moment,
    },
    ACCOUNTS: {
        "role": Role,
        "recovery": _check_texts,
        "networks": _check_texts,
        "created_at": _check_moment,
        "changed_at": _check_moment,
        "logged_in_at": _check_moment,
    },
    API_TOKENS: {"scope": Scope, "created_at": _check_moment, "expires_at": _check_moment, "used_at": _check_moment},
    BYPASS_LINKS: {
        "kind": EntryKind,
        "rule_ids": _check_numbers,
        "until": _check_moment,
        "created_at": _check_moment,
        "used_at": _check_moment,
        "revoked_at": _check_moment,
    },
}
