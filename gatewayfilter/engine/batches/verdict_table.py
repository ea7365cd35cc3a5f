"""The table of the distinct verdicts on a batch."""

from gatewayfilter.model import Verdict


class VerdictTable:
    """Numbers verdicts in the order in which they are first met.

    Attributes:
        verdicts: by number.
    """

    __slots__ = ("_numbers", "verdicts")

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self._numbers: dict[int, int] = {}

    def number(self, verdict: Verdict) -> int:
        """Returns the number of a verdict. Equal ones may have several numbers, as they are told apart by identity."""
        number = self._numbers.get(id(verdict))
        if number is None:  # the list keeps the object, so that no other one has its id
            number = self._numbers[id(verdict)] = len(self.verdicts)
            self.verdicts.append(verdict)
        return number
