"""Learners as River estimators, which take one row at a time as a dictionary.

This module needs River: `pip install 'koco-stream[river]'`. Feature names are numbered in order of
appearance (those of one row by name), up to `n_features`; a feature that a row lacks is 0. The
results are bit-identical to the learner's own.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from river import base

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner, unlearnt
from koco_stream.learners.linear.ogd import OGD
from koco_stream.losses import of_log_odds
from koco_stream.one_at_a_time import OneAtATime
from koco_stream.streams.rows import Rows, sparse_rows

Features = dict[Hashable, Any]


class _Adapter(OneAtATime):
    changed_in_place = ("_learning", "_numbers")

    def __init__(self, learner: Learner, n_features: int = 128) -> None:
        self.learner = learner
        self.n_features = n_features
        self._learning: Learner = unlearnt(learner)
        self._numbers: dict[Hashable, int] = {}

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn from the features `x` with the label `y`."""
        self._learning.partial_fit(self._row(x, learning=True), np.array([y], np.float64))

    def predict_one(self, x: Features) -> Any:
        """The prediction for the known features of `x`; 0 before any learning."""
        has_learnt = self._learning.__sklearn_is_fitted__()
        return float(self._learning.predict(self._row(x, learning=False))[0]) if has_learnt else 0.0

    def _row(self, x: Features, learning: bool) -> Rows:
        new = [name for name in x if name not in self._numbers] if learning else []
        if len(self._numbers) + len(new) > self.n_features:
            raise WrongInput(
                f"{new[0]!r} is one feature more than the {self.n_features} that there is room"
                " for; set n_features= to the largest number that there will be"
            )
        row = {name: _number(name, x[name]) for name in x if name in self._numbers or name in new}
        if not np.isfinite(list(row.values())).all():
            raise WrongInput(
                f"the row {x!r} holds NaN or infinity; fill the values in, for example with"
                " river.preprocessing.StatImputer"
            )
        for name in sorted(new, key=str):
            self._numbers[name] = len(self._numbers)
        pairs = sorted((self._numbers[name], value) for name, value in row.items() if value != 0.0)
        return sparse_rows(
            [0, len(pairs)],
            [number for number, _ in pairs],
            np.array([value for _, value in pairs], np.float64),
            self.n_features,
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"learner": OGD(0.1)}  # for River's checks


class RiverRegressor(_Adapter, base.Regressor):
    """A learner as a River regressor.

    Parameters
    ----------
    learner : Learner
        A new learner with its parameters learns.
    n_features : int
        The largest number of features. Most learners' states grow with it, that of `ONS` with its
        square. A row with more raises `WrongInput`.
    """


class RiverClassifier(_Adapter, base.Classifier):
    """A learner as a River binary classifier, with probabilities if its loss is "logistic".

    Parameters
    ----------
    learner, n_features
        The arguments of `RiverRegressor`.
    classes : sequence
        The class that the learner sees as −1 and the one that it sees as +1; a prediction of 0
        counts as the latter.
    """

    def __init__(
        self, learner: Learner, n_features: int = 128, classes: Sequence[Any] = (False, True)
    ) -> None:
        super().__init__(learner, n_features)
        self.classes = classes

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn from the features `x` with the class `y`."""
        if y not in self.classes:
            raise WrongInput(
                f"the class is {y!r}, but the classes are {self.classes[0]!r} and"
                f" {self.classes[1]!r};"
                " classes= names them"
            )
        super().learn_one(x, 1.0 if y == self.classes[1] else -1.0)

    def predict_one(self, x: Features, **kwargs: Any) -> Any:
        """The predicted class for the features `x`."""
        return self.classes[1 if super().predict_one(x) >= 0.0 else 0]

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        """With the loss "logistic", the probability of each class for the features `x`."""
        if getattr(self.learner, "loss", None) != "logistic":
            raise NotImplementedError(
                f"{self.learner!r} has no probabilities; only a learner with loss='logistic' gives"
                " them"
            )
        log_odds = np.array(super().predict_one(x))
        return dict(zip(self.classes, of_log_odds(log_odds).tolist(), strict=True))


def _number(name: Hashable, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise WrongInput(
            f"feature {name!r} is {value!r}, which is not a number; turn it into numbers first, as"
            " river.preprocessing.OneHotEncoder does"
        ) from None
