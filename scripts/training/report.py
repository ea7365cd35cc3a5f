"""What a model blocks and finds, by group, set and writer."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scripts.training.bounds import DESCRIBED, FOUND, GROUPS
from scripts.training.inputs import HARMLESS, KEPT


class Labelled(Protocol):
    """A page of a set."""

    @property
    def origin(self) -> str:
        """Its set."""

    @property
    def half(self) -> str:
        """`tune`, `report` or `real`, as of a sample."""

    @property
    def label(self) -> str:
        """A category, `HARMLESS`, or what the set calls it."""

    @property
    def is_harmful(self) -> bool:
        """Whether the label is one of the categories."""


def report(documents: Sequence[Labelled], blocked: NDArray[np.bool_]) -> None:
    """Prints shares of blocked pages by group, set and writer."""
    origin = np.array([document.origin for document in documents])
    harmful = np.array([document.is_harmful for document in documents])
    harmless = np.array([document.label == HARMLESS for document in documents])
    kept = np.array([document.half == "report" for document in documents])

    def row(name: str, those: NDArray[np.bool_]) -> None:
        if those.any():
            print(f"| {name} | {those.sum():,} | {blocked[those].sum():,} | {100 * blocked[those].mean():.2f} % |")

    print("| harmless | pages | blocked | |\n|---|---|---|---|")
    for group, sets in GROUPS.items():
        row(f"**{group}**", harmless & np.isin(origin, sets))
        for name in sets:
            row(name, harmless & (origin == name))
    row(f"{KEPT}: near the subjects", kept & (origin == f"{KEPT}-fine"))
    for name in ("fourth-fine", "ordinary", "daily"):
        row(f"{name}, reporting half", kept & (origin == name))
    print("| harmful | pages | found | |\n|---|---|---|---|")
    for name in (*(name for name in FOUND if name != DESCRIBED), "en_weapons_html"):
        row(name, harmful & (origin == name))
    for name in (KEPT, "pages", "fourth"):
        row(f"{name}: described sites", kept & harmful & (origin == name))
