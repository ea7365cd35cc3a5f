"""What a text reads like by the text model: a few log-odds, by the weights of all categories and by those of one."""

from typing import NamedTuple


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


NOTHING_READ = Reading(*[-2.0] * 8)
"""Of a text without a word."""
