"""Learners with scikit-learn's methods: `partial_fit`, and `predict` or `decision_function`.

A row is a matrix of one row: an array if it is dense, else a SciPy matrix in CSR form.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from koco_stream.foreign_host.model import Model, Row, log_odds
from koco_stream.foreign_host.target import learns_classes
from koco_stream.types import Array

CLASSES = np.array([-1, 1])


class ScikitLearnModel(Model):
    """A learner with scikit-learn's methods.

    A classifier is one whose `partial_fit` has an argument `classes`. The score is its
    `decision_function`, or else the log-odds of its `predict_proba`, or else what it predicts. It
    is 0 before anything was learnt.
    """

    def __init__(self, learner: Any, n_features: int) -> None:
        self.learner, self.n_features = learner, n_features
        self.classifies = learns_classes(learner)
        self.has_learnt = False

    def predict(self, row: Row) -> float:
        """The score of a row. Nothing is learnt."""
        return self._score(self._matrix([row]))

    def learn(self, rows: list[Row], labels: list[float]) -> None:
        """Learn rows, in one call."""
        self._learn(self._matrix(rows), labels)

    def round(self, row: Row, label: float) -> float:
        """The score of a row, which is then learnt; not if the score is not finite."""
        X = self._matrix([row])
        score = self._score(X)
        if math.isfinite(score):
            self._learn(X, [label])
        return score

    def _matrix(self, rows: list[Row]) -> Any:
        """Rows as one matrix. It is new every time, since a learner may keep it."""
        if all(idx is None for idx, _ in rows):
            return np.array([val for _, val in rows])
        every = np.arange(self.n_features, dtype=np.int32)
        indices = [every if idx is None else idx for idx, _ in rows]
        values = [val for _, val in rows]
        indptr = np.cumsum([0, *(val.size for val in values)], dtype=np.int32)
        content = (_joined(values), _joined(indices), indptr)
        return csr_matrix(content, shape=(len(rows), self.n_features))

    def _learn(self, X: Any, labels: list[float]) -> None:
        if self.classifies:
            more = {} if self.has_learnt else {"classes": CLASSES}
            self._call("partial_fit", X, np.array(labels, np.int64), **more)
        else:
            self._call("partial_fit", X, np.array(labels))
        self.has_learnt = True

    def _score(self, X: Any) -> float:
        if not self.has_learnt:
            return 0.0
        # Which of them there are may depend on the constructor's arguments.
        if hasattr(self.learner, "decision_function"):
            return float(np.ravel(self._call("decision_function", X))[0])
        if self.classifies and hasattr(self.learner, "predict_proba"):
            return log_odds(float(self._call("predict_proba", X)[0, 1]))
        return float(np.ravel(self._call("predict", X))[0])

    def _call(self, method: str, X: Any, *labels: Array, **more: Any) -> Any:
        try:
            return getattr(self.learner, method)(X, *labels, **more)
        except (TypeError, ValueError) as error:
            if issparse(X) and "sparse" in str(error).lower():
                raise TypeError(
                    f"{type(self.learner).__name__} takes no sparse rows, and this dataset has"
                    " them; choose a learner that takes them, or a dense dataset"
                ) from error
            raise


def _joined(arrays: list[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
