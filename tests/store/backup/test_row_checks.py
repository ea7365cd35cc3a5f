"""Values that a database accepts but no reader can read."""

from typing import Any

import pytest
from sqlalchemy import Table

from gatewayfilter.errors import BackupError
from gatewayfilter.store.backup.row_checks import check_row
from gatewayfilter.store.sql.schema import ACCOUNTS, API_TOKENS, BYPASS_LINKS, DEVICES, REVIEW_TASKS, UNBLOCK_REQUESTS

MOMENTS = (0.0, -1e10, 9.9e10, None)
NO_MOMENTS = (1e11, -1e11, float("inf"), float("nan"), "now")
GOOD: dict[Table, dict[str, tuple[Any, ...]]] = {
    REVIEW_TASKS: {"state": ("open",), "kind": ("page",)},
    UNBLOCK_REQUESTS: {
        "state": ("open",), "rule_ids": ([], [1, 2], None), "at": MOMENTS, "decided_at": MOMENTS, "until": MOMENTS,
    },
    ACCOUNTS: {
        "role": ("admin",), "recovery": ([], ["a"]), "networks": ([], ["a", "b"]), "created_at": MOMENTS, "changed_at": MOMENTS,
        "logged_in_at": MOMENTS,
    },
    API_TOKENS: {"scope": ("read",), "created_at": MOMENTS, "expires_at": MOMENTS, "used_at": MOMENTS},
    BYPASS_LINKS: {
        "kind": ("domain",), "rule_ids": ([3], None), "until": MOMENTS, "created_at": MOMENTS, "used_at": MOMENTS,
        "revoked_at": MOMENTS,
    },
    DEVICES: {},
}  # fmt: skip
BAD: dict[str, tuple[Any, ...]] = {
    "rule_ids": ("1", {"a": 1}, [1, "2"], [True], [1.0]),
    "recovery": (None, "a", ["a", 1]),
    "networks": (None, "a", [None]),
    **dict.fromkeys(("state", "kind", "role", "scope"), ("unheard of", None, 7)),
}


@pytest.mark.parametrize("table", GOOD, ids=lambda table: table.name)
def test_each_value_of_a_row(table: Table) -> None:
    columns = GOOD[table]
    row = {column: values[0] for column, values in columns.items()}
    check_row(table, row)
    for column, values in columns.items():
        for value in values:
            check_row(table, row | {column: value})
        for value in BAD.get(column, NO_MOMENTS):
            with pytest.raises(BackupError, match=f"a row of {table.name} has an unusable value for {column}"):
                check_row(table, row | {column: value})
