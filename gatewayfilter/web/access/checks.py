"""Checks of URLs for pages and the API: by the engine of now, or as of another time."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gatewayfilter.model import DeciderAnswer, Request
    from gatewayfilter.use_cases.url_check import UrlCheck
    from gatewayfilter.web.services import WebServices

_DECIDES: Final = frozenset({"allow", "block"})


def checked(services: WebServices, request: Request, client: str = "", at: float | None = None) -> UrlCheck:
    """Returns what is in force for a request. The engine is in a child process, which takes a second to start.

    Args:
        services: of the dashboard.
        request: without a client.
        client: name, address or `user:NAME`, `""` for none.
        at: Unix seconds, `None` for now.

    Raises:
        PolicyError: there is no such client.
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
        ClassifyError: it took too long.
    """
    settings = pickle.dumps(services.settings)
    found: UrlCheck = services.checker.run(
        "gatewayfilter.web.access.check_job:check", settings, request, client, services.clock(), at
    )
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """A decider's answer.

    Attributes:
        wins: whether it decided.
        matches: it would have decided, if an earlier one had not.
    """

    answer: DeciderAnswer
    wins: bool
    matches: bool


def steps_of(found: UrlCheck) -> list[Step]:
    """Returns the deciders' answers in order, with the one that decided marked."""
    won = False
    steps: list[Step] = []
    for answer in found.explanation.answers:
        decides = answer.answer in _DECIDES and answer.verdict is not None
        wins = decides and not won and answer.verdict == found.explanation.verdict
        steps.append(Step(answer, wins, decides and not wins and answer.decider != "unknown"))
        won = won or wins
    return steps
