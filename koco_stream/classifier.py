"""A binary classifier that wraps a learner."""

from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner, unlearnt
from koco_stream.learners.kernel.kors import KORS
from koco_stream.scikit_learn import Estimator, estimator_tags
from koco_stream.streams.rows import label_vector
from koco_stream.types import Array


class Classifier(Estimator):
    """A binary classifier around a learner.

    The learner sees the first class, in sorted order, as −1 and the second as +1.

    Parameters
    ----------
    learner : Learner
        Any learner but KORS, with any loss. It is not changed: a new one with its parameters
        learns. Its `clip` should be at least 1.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes, sorted. A prediction of 0 counts as the second one, as in the tables of sweeps.
    learner_ : Learner
        The fitted learner.
    n_features_in_, feature_names_in_, rounds_
        As for a learner.
    """

    classes_: Array
    learner_: Learner

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The argument `learner` and, if `deep`, the learner's parameters as `learner__NAME`."""
        inner = self.learner.get_params() if deep and isinstance(self.learner, Learner) else {}
        return {"learner": self.learner, **{f"learner__{name}": q for name, q in inner.items()}}

    def set_params(self, **params: Any) -> Self:
        """Set `learner`, or the learner's parameters by `learner__NAME`.

        An unknown name raises `WrongInput`, which suggests the nearest name.
        """
        inner = {name: params.pop(name) for name in list(params) if name.startswith("learner__")}
        super().set_params(**params)
        if inner:
            self.learner.set_params(**{n.removeprefix("learner__"): q for n, q in inner.items()})
        return self

    def __repr__(self) -> str:
        return f"Classifier({self.learner!r})"

    def __sklearn_tags__(self) -> Any:
        """The estimator's tags, by which scikit-learn selects its checks."""
        return estimator_tags("classifier")

    def __sklearn_is_fitted__(self) -> bool:
        return "learner_" in vars(self)

    def progressive(self, X: Any, y: Any, classes: Any = None) -> Array:
        """Learn from the rows in order; returns each row's class, predicted before its label is
        seen.

        Parameters
        ----------
        X : array-like of shape (n, d)
            As for a learner.
        y : array-like of shape (n,)
            Labels of any kind that can be sorted.
        classes : array-like, optional
            Both classes; needed in the first call if `y` has only one of them.

        Returns
        -------
        ndarray of shape (n,)
            The predicted classes.

        Raises
        ------
        WrongInput
            A label is neither class, there are more than two classes, or as the learner does.
        """
        labels = _labels(y)
        if self.__sklearn_is_fitted__():
            known, learner = self.classes_, self.learner_
        else:
            known = _two_classes(labels if classes is None else _labels(classes))
            learner = self._new_learner()
        try:
            scores = learner.progressive(X, _signs(labels, known))
        finally:
            # The learner is kept after a divergence, but not after a rejected first call.
            if learner.__sklearn_is_fitted__():
                self.learner_, self.classes_ = learner, known
        return self._class_of(scores)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from the rows of X in order, continuing from the last call.

        Arguments and errors are those of `progressive`.
        """
        self.progressive(X, y, classes)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Reset the classifier, then learn from the rows of X in order, in a single pass.

        Raises `WrongInput` unless `y` has two classes.
        """
        labels = _labels(y)
        known = _two_classes(labels)
        self.learner_ = self._new_learner().fit(X, _signs(labels, known))
        self.classes_ = known
        return self

    def decision_function(self, X: Any) -> Array:
        """The learner's predictions (n,) for the rows of X (n, d).

        A value of at least 0 means the second class.
        """
        return self.learner_.predict(X)

    def predict(self, X: Any) -> Array:
        """The predicted class (n,) of each row of X (n, d). The learner does not change."""
        return self._class_of(self.decision_function(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict(X)`, as for scikit-learn's classifiers."""
        return float(np.average(self.predict(X) == _labels(y), weights=sample_weight))

    def _new_learner(self) -> Learner:
        if isinstance(self.learner, KORS):
            raise WrongInput(
                "KORS predicts nothing, so it is no classifier; give a learner that uses its"
                " dictionary, such as PROSNKONS"
            )
        return unlearnt(self.learner)

    def _class_of(self, scores: Array) -> Array:
        return self.classes_[(scores >= 0.0).astype(np.intp)]

    def __getattr__(self, name: str) -> Any:
        inherited = name in ("n_features_in_", "feature_names_in_", "rounds_")
        if inherited and self.__sklearn_is_fitted__():
            return getattr(self.learner_, name)
        return super().__getattr__(name)


def _labels(y: Any) -> Array:
    """The labels as an array (n,), their type unchanged. NaN and infinity raise `WrongInput`."""
    labels = label_vector(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise WrongInput(f"y[{row}] is {labels[row]} (NaN or inf); remove the row")
    return labels


def _two_classes(labels: Array) -> Array:
    """The two distinct labels (2,), sorted. Raises `WrongInput` if there are not exactly two."""
    classes = np.unique(labels)
    if classes.size == 2:
        return classes
    if classes.size < 2:
        found = f"only one class, {classes[0]!s}" if classes.size else "no label"
        raise WrongInput(
            f"two classes are needed, and y has {found}; give both as classes to the first"
            " partial_fit"
        )
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise WrongInput(
            "Unknown label type: continuous. A classifier needs two classes; use the learner itself"
            " for real labels"
        )
    raise WrongInput(
        "Only binary classification is supported. The type of the target is multiclass"
        f" ({classes.size} classes): learn one class against the rest"
    )


def _signs(labels: Array, classes: Array) -> Array:
    """The labels as −1 (first class) and +1 (second class). Any other label raises `WrongInput`."""
    second = labels == classes[1]
    other = ~second & (labels != classes[0])
    if other.any():
        row = int(np.flatnonzero(other)[0])
        raise WrongInput(
            f"y[{row}] is {labels[row]!s}, and the classes are {classes[0]!s} and {classes[1]!s}"
        )
    return np.where(second, 1.0, -1.0)
