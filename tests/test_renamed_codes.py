"""Codes of earlier releases are read as those of today, wherever they were stored or are given."""

import pytest

from gatewayfilter.interfaces import QueueState
from gatewayfilter.model import ChangeKind, Reason
from gatewayfilter.renamed_codes import RENAMED_CODES, current_code
from tests.case_tables import all_cases

ENUMS = (Reason, ChangeKind, QueueState)


@all_cases(("old", "new"), RENAMED_CODES.items())
def test_an_old_code_is_a_member_by_its_new_name(old: str, new: str) -> None:
    (enum,) = (enum for enum in ENUMS if new in set(enum))
    assert enum(old) is enum(new)
    assert current_code(old) == new
    assert all(old not in set(other) for other in ENUMS), "it is written no more"


@all_cases("enum", ENUMS)
def test_a_code_that_never_was_is_none(enum: type[Reason]) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        enum("nonsense")
    assert current_code("nonsense") == "nonsense"
