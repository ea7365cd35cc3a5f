"""What a text reads like by the text model: a few log-odds, by the weights of all categories and by those of one."""

from typing import NamedTuple

LEAST_OWN, LEAST_OF_BOTH = -1.2, -0.6
"""Log-odds of the most harmful third: that the text belongs to its category, and in sum with those that it is harmful."""


class Reading(NamedTuple):
    """Log-odds that a text is harmful, by window, by the weights of all categories; and the same by those of its category.

    Attributes:
        mean: of all windows.
        top: mean of the most harmful third.
        most: of the most harmful window.
        joint: of all windows' terms together.
        own_mean: that the text belongs to the category for which it was read; so are the following.
    """

    mean: float
    top: float
    most: float
    joint: float
    own_mean: float
    own_top: float
    own_most: float
    own_joint: float

    @property
    def total(self) -> float:
        """By which parts of a text are compared: the sum of both means."""
        return self.mean + self.own_mean

    @property
    def confirms(self) -> bool:
        """Whether the text reads somewhat like its category, or clearly harmful."""
        return self.own_top >= LEAST_OWN or self.top + self.own_top >= LEAST_OF_BOTH


NOTHING_READ = Reading(*[-2.0] * 8)
"""Of a text without a word."""
