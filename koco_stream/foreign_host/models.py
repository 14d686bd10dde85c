"""Learners of other libraries, asked for rounds, whose prediction is a score."""

import math
from collections import deque
from typing import Any

import numpy as np

from koco_stream.foreign_host.target import learns_classes
from koco_stream.foreign_host.vowpal_wabbit_options import rows_in_use
from koco_stream.types import Array

# A row: its features' numbers and its values, or None and the values of all features.
Row = tuple[Array | None, Array]

# A probability is held within these, so that its log-odds are finite.
LEAST, MOST = 1e-15, 1.0 - 1e-15
CLASSES = np.array([-1, 1])  # for scikit-learn


def log_odds(p: float) -> float:
    """log(p/(1 − p))."""
    p = min(max(p, LEAST), MOST)
    return math.log(p / (1.0 - p))


class RiverModel:
    """A learner with `learn_one` and `predict_one`."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.classifies = hasattr(learner, "predict_proba_one")
        self.has_probabilities = self.classifies

    def round(self, row: Row, label: float) -> float:
        """A row's score; the row is learnt if that is finite."""
        x = _features(row)
        score = self._score(x)
        if math.isfinite(score):
            self.learner.learn_one(x, label > 0.0 if self.classifies else label)
        return score

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


class ScikitLearnModel:
    """A learner with `partial_fit`; its argument `classes` says that it classifies."""

    def __init__(self, learner: Any, n_features: int) -> None:
        self.learner, self.n_features = learner, n_features
        self.classifies = learns_classes(learner)
        self.has_learnt = False

    def round(self, row: Row, label: float) -> float:
        """A row's score; the row is learnt if that is finite."""
        X = self._matrix(row)
        score = self._score(X)
        if math.isfinite(score):
            self._learn(X, label)
        return score

    def _matrix(self, row: Row) -> Any:
        """A new matrix, since a learner may keep it."""
        idx, val = row
        if idx is None:
            return val.reshape(1, -1)
        from scipy.sparse import csr_matrix

        indptr = np.array([0, val.size], np.int32)
        return csr_matrix((val, idx, indptr), shape=(1, self.n_features))

    def _learn(self, X: Any, label: float) -> None:
        if self.classifies:
            more = {} if self.has_learnt else {"classes": CLASSES}
            self._call("partial_fit", X, np.array([label], np.int64), **more)
        else:
            self._call("partial_fit", X, np.array([label]))
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
            if not isinstance(X, np.ndarray) and "sparse" in str(error).lower():
                raise TypeError(
                    f"{type(self.learner).__name__} takes no sparse rows, and this dataset has"
                    " them; choose a learner that takes them, or a dense dataset"
                ) from error
            raise


class VowpalWabbitModel:
    """Vowpal Wabbit with the options of its command line."""

    def __init__(self, options: str, seed: int) -> None:
        from vowpalwabbit import LabelType, PredictionType, Workspace

        words = options.split()
        if not any(word.partition("=")[0] == "--random_seed" for word in words):
            words += ["--random_seed", str(seed)]
        self.workspace = Workspace(arg_list=[*words, "--quiet"])
        # It has pointers to the examples of an epoch, whose memory Python would free.
        self.in_use = deque[Any](maxlen=rows_in_use(options))
        self.scalar = PredictionType.SCALAR
        predicts, learns = self.workspace.get_prediction_type(), self.workspace.get_label_type()
        if predicts != self.scalar or learns != LabelType.SIMPLE:
            raise ValueError(
                f"with these options Vowpal Wabbit learns from labels of the type {learns.name} and"
                f" predicts {predicts.name}; only options with the types SIMPLE and SCALAR can run"
            )

    def round(self, row: Row, label: float) -> float:
        """The prediction for a row, made as it is learnt."""
        example = self._example(row)
        example.set_label_string(f"{label:.9g}")
        self.workspace.learn(example)
        predicted = float(example.get_prediction(self.scalar))
        self.workspace.finish_example(example)
        self.in_use.append(example)
        return predicted

    def _example(self, row: Row) -> Any:
        idx, val = row
        numbers = range(val.size) if idx is None else idx.tolist()
        # The space names the namespace of features that stand behind a bare `|`.
        return self.workspace.example({" ": list(zip(numbers, val.tolist(), strict=True))})


Model = RiverModel | ScikitLearnModel | VowpalWabbitModel
