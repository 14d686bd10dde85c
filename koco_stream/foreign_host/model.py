"""What the process of a foreign learner asks of it, whatever its library."""

import math
from abc import ABC, abstractmethod

from koco_stream.types import Array

# A row: its features' numbers and its values, or None and the values of all features.
Row = tuple[Array | None, Array]

# A probability is held within these, so that its log-odds are finite.
LEAST, MOST = 1e-15, 1.0 - 1e-15


class Model(ABC):
    """A learner that predicts and learns row by row. A prediction is a score, as a float."""

    @abstractmethod
    def predict(self, row: Row) -> float:
        """The score of a row. Nothing is learnt."""

    @abstractmethod
    def learn(self, rows: list[Row], labels: list[float]) -> None:
        """Learn rows in order."""

    @abstractmethod
    def round(self, row: Row, label: float) -> float:
        """The score of a row, which is then learnt; not if the score is not finite."""


def log_odds(p: float) -> float:
    """log(p/(1 − p)) of a probability p."""
    p = min(max(p, LEAST), MOST)
    return math.log(p / (1.0 - p))
