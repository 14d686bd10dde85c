"""Learners with River's methods: `learn_one` and `predict_one`.

A row is a dictionary from feature numbers to values. A classifier, which has `predict_proba_one`,
is given the labels True and False.
"""

import math
from typing import Any

from koco_stream.foreign_host.model import Model, Row, log_odds


class RiverModel(Model):
    """A learner with River's methods.

    The score of a classifier is the log-odds of True, and 0 as long as it has no answer. One that
    predicts classes only has the scores −1 and +1.
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.classifies = hasattr(learner, "predict_proba_one")
        self.has_probabilities = self.classifies

    def predict(self, row: Row) -> float:
        """The score of a row. Nothing is learnt."""
        return self._score(_features(row))

    def learn(self, rows: list[Row], labels: list[float]) -> None:
        """Learn rows in order."""
        for row, label in zip(rows, labels, strict=True):
            self.learner.learn_one(_features(row), self._label(label))

    def round(self, row: Row, label: float) -> float:
        """The score of a row, which is then learnt; not if the score is not finite."""
        x = _features(row)
        score = self._score(x)
        if math.isfinite(score):
            self.learner.learn_one(x, self._label(label))
        return score

    def _label(self, label: float) -> Any:
        return label > 0.0 if self.classifies else label

    def _score(self, x: dict[int, float]) -> float:
        if self.has_probabilities:
            try:
                found = self.learner.predict_proba_one(x)
            except NotImplementedError:  # River's classifiers all have the method
                self.has_probabilities = False
            else:
                return log_odds(float(found.get(True, 0.0))) if found else 0.0
        predicted = self.learner.predict_one(x)
        if predicted is None:
            return 0.0
        if self.classifies:
            return 1.0 if predicted else -1.0
        return float(predicted)


def _features(row: Row) -> dict[int, float]:
    idx, val = row
    return dict(enumerate(val.tolist()) if idx is None else zip(idx.tolist(), val.tolist()))  # noqa: B905
