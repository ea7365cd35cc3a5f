"""Aliases of codes that earlier releases stored: reasons, change kinds and queue states.

New codes are written. Old ones stay in the decision log, the change feed and the unblock requests, and are translated when
they are read: an update does not rewrite a log of millions of rows.
"""

from collections.abc import Mapping
from typing import Final

RENAMED_CODES: Final[Mapping[str, str]] = {
    "person-allow": "manual-allow",
    "person-block": "manual-block",
    "person-splice": "manual-splice",
    "pass-through": "pinned-app",
    "person-added": "manual-added",
    "person-removed": "manual-removed",
    "resting": "done",
}
"""Old code → the code in use. Codes are unique over all enums, so one table holds them."""


def current_code(code: str) -> str:
    """Returns the code in use for one that may be of an earlier release; others are returned as they are."""
    return RENAMED_CODES.get(code, code)
