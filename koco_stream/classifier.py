"""A classifier that wraps a learner: of two classes, or of each against the rest."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.array_file import write_arrays
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import named
from koco_stream.learners import LEARNERS
from koco_stream.learners.base import Learner, unlearnt
from koco_stream.learners.kernel.kors import KORS
from koco_stream.learners.saved import arrays_of, description, read_model, revived
from koco_stream.losses import of_log_odds
from koco_stream.scikit_learn import Estimator, estimator_tags, not_fitted
from koco_stream.streams.inputs import as_rows, label_vector
from koco_stream.streams.rows import with_intercept
from koco_stream.types import Array

INHERITED = ("n_features_in_", "feature_names_in_", "rounds_")


class Classifier(Estimator):
    """A classifier around a learner.

    Of two classes, in sorted order, the learner sees the first as −1 and the second as +1. With
    more, each class has a learner that sees it as +1 and the others as −1, and the first largest
    prediction wins. Rows have no weights (`sample_weight`): the papers define none.

    Parameters
    ----------
    learner : Learner
        Any learner except KORS, with any loss; its `clip` should be at least 1. New learners with
        its parameters learn.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted. Of two, a prediction of 0 counts as the second one.
    learners_ : list of Learner
        The fitted learners: one for two classes, and K for more.
    learner_ : Learner
        The first of them.
    n_features_in_, feature_names_in_, rounds_
        The attributes of the learners.
    """

    changed_in_place = ("learners_",)
    classes_: Array
    learners_: list[Learner]

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The argument `learner` and, if `deep`, the learner's parameters as `learner__NAME`."""
        inner = self.learner.get_params() if deep and isinstance(self.learner, Learner) else {}
        return {"learner": self.learner, **{f"learner__{name}": q for name, q in inner.items()}}

    def set_params(self, **params: Any) -> Self:
        """Set `learner`, or the learner's parameters by `learner__NAME`."""
        inner = {name: params.pop(name) for name in list(params) if name.startswith("learner__")}
        super().set_params(**params)
        if inner:
            self.learner.set_params(**{n.removeprefix("learner__"): q for n, q in inner.items()})
        return self

    def __repr__(self) -> str:
        return f"Classifier({self.learner!r})"

    def __sklearn_tags__(self) -> Any:
        return estimator_tags("classifier")

    def __sklearn_is_fitted__(self) -> bool:
        return "learners_" in vars(self)

    def progressive(self, X: Any, y: Any, classes: Any = None) -> Array:
        """Learn from the rows in order, and predict each row's class before its label is seen.

        The labels y (n,) may be of any kind that can be sorted. `classes` are all of them, which
        the first call needs if `y` lacks some. After a `FloatingPointError`, a divergence, only
        `fit` can be called.
        """
        labels = _labels(y)
        given = labels if classes is None else _labels(classes, "classes")
        if self.__sklearn_is_fitted__():
            known, learners = self.classes_, self.learners_
            if classes is not None and not np.array_equal(np.unique(given), known):
                raise WrongInput(
                    f"classes is {np.unique(given).tolist()}, and the first call had"
                    f" {known.tolist()}; leave it out, or begin with a new Classifier"
                )
        else:
            known = _known_classes(given)
            learners = self._new_learners(known)
        try:
            scores = _advanced(learners, X, _signs(labels, known))
        finally:
            # The learners are kept after a divergence, but not after a rejected first call.
            if learners[0].__sklearn_is_fitted__():
                self.learners_, self.classes_ = learners, known
        return self._class_of(scores.T if len(learners) > 1 else scores[0])

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from the rows of X in order, as `progressive` does."""
        self.progressive(X, y, classes)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Reset the classifier, then learn from the rows of X in order, in a single pass."""
        fresh = Classifier(self.learner).partial_fit(X, y)
        self.learners_, self.classes_ = fresh.learners_, fresh.classes_
        return self

    def decision_function(self, X: Any) -> Array:
        """The learner's predictions (n,) for the rows of X (n, d), or (n, K) with more classes.

        With two classes, a value of at least 0 means the second class.
        """
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        first, *others = self.learners_
        scores = [first.predict(X), *(one.predict(as_rows(X)) for one in others)]
        return np.stack(scores, axis=1) if others else scores[0]

    def predict(self, X: Any) -> Array:
        """The predicted class (n,) of each row of X (n, d), without learning."""
        return self._class_of(self.decision_function(X))

    @property
    def predict_proba(self) -> Callable[[Any], Array]:
        """With the loss "logistic", the method `predict_proba(X)`: the probability (n, K) of each
        class for the rows of X (n, d).

        p = 1/(1 + exp(−ŷ)), at most 1/(1 + exp(−`clip`)); of more than two classes, divided by the
        sum.
        """
        if getattr(self.learner, "loss", None) != "logistic":
            raise AttributeError  # explained by `__getattr__`
        return self._probabilities

    def _probabilities(self, X: Any) -> Array:
        unlikely, likely = of_log_odds(self.decision_function(X))
        if likely.ndim == 1:
            return np.stack([unlikely, likely], axis=1)
        return likely / likely.sum(axis=1, keepdims=True)

    def save(self, path: str | Path) -> None:
        """Write the classifier, whose classes are numbers or texts, to a file atomically."""
        header: dict[str, Any] = {
            "learner": "Classifier",
            "of": description(unlearnt(self.learner)),
        }
        arrays: dict[str, Array] = {}
        if self.__sklearn_is_fitted__():
            classes = self.classes_.tolist()
            if not all(isinstance(one, bool | int | float | str) for one in classes):
                raise WrongInput(
                    f"classes of type {type(classes[0]).__name__} cannot be saved; use numbers or"
                    " texts"
                )
            header |= {"classes": classes, "type": self.classes_.dtype.str}
            header["learners"] = [description(one) for one in self.learners_]
            for k, one in enumerate(self.learners_):
                arrays |= {f"{k} {name}": array for name, array in arrays_of(one).items()}
        write_arrays(store_path(path), header, arrays)

    @classmethod
    def load(cls, path: str | Path, learner: type[Learner] | None = None) -> Self:
        """Load a classifier; `learner` is the class of a learner that is not the library's own."""
        known = LEARNERS if learner is None else {learner.registered().__name__: learner}
        header, arrays = read_model(Path(path))
        if header["learner"] != "Classifier":
            raise WrongInput(
                f"{path} holds {header['learner']}, not a classifier; use koco_stream.load"
            )

        def one(described: dict[str, Any], prefix: str) -> Learner:
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            otherwise = "which is not the library's; give its class as learner"
            return revived(Path(path), described, own, known, otherwise)

        with named(store_path(path)):
            model = cls(one(header["of"], "of "))
            if "learners" in header:
                learners = [one(part, f"{k} ") for k, part in enumerate(header["learners"])]
                classes = np.array(header["classes"], header["type"])
                model.learners_, model.classes_ = learners, classes
        return model

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict(X)`, as scikit-learn's classifiers have it."""
        return float(np.average(self.predict(X) == _labels(y), weights=sample_weight))

    def _new_learners(self, classes: Array) -> list[Learner]:
        if isinstance(self.learner, KORS):
            raise WrongInput(
                "KORS predicts nothing, so it cannot classify; give a learner that uses its"
                " dictionary, such as PROSNKONS"
            )
        return [unlearnt(self.learner) for _ in range(1 if classes.size == 2 else classes.size)]

    def _class_of(self, scores: Array) -> Array:
        of_two = scores.ndim == 1
        return self.classes_[(scores >= 0.0).astype(np.intp) if of_two else scores.argmax(axis=1)]

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba":
            raise AttributeError(
                f"{self!r} has no probabilities; only a learner with loss='logistic' gives them"
            )
        if name in ("learner_", *INHERITED) and self.__sklearn_is_fitted__():
            first = self.learners_[0]
            return first if name == "learner_" else getattr(first, name)
        return super().__getattr__(name)


def _labels(given: Any, name: str = "y") -> Array:
    labels = label_vector(given)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise WrongInput(f"{name}[{row}] is {labels[row]} (NaN or inf); remove the row")
    if labels.dtype.kind in "biuf":
        return labels
    # of a list of texts and numbers, NumPy makes texts
    each = given if labels.dtype.kind in "SU" and isinstance(given, list | tuple) else labels
    for row, label in enumerate(each):
        if not _in_order(label, label):
            raise WrongInput(f"{name}[{row}] is {label!r}, which is no label; remove the row")
        if not _in_order(label, each[0]):
            raise WrongInput(
                f"{name}[{row}] is {label!r} and {name}[0] is {each[0]!r}; give labels of one kind,"
                " such as texts only"
            )
    return labels


def _in_order(one: Any, other: Any) -> bool:
    """Whether two labels can be sorted; a missing one cannot."""
    try:
        return bool(one < other or one >= other)
    except TypeError:
        return False


def _known_classes(labels: Array) -> Array:
    classes = np.unique(labels)
    if classes.size < 2:
        found = f"only one class, {classes[0]!s}" if classes.size else "no label"
        raise WrongInput(
            f"two classes are needed, and y has {found}; give all as classes to the first"
            " partial_fit"
        )
    if classes.size > 2 and classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise WrongInput(
            "Unknown label type: continuous. A classifier needs classes; use the learner itself"
            " for real labels"
        )
    return classes


def _signs(labels: Array, classes: Array) -> Array:
    """Each learner's labels −1 and +1, (1, n) or (K, n)."""
    matches = classes[:, None] == labels
    known = matches.any(axis=0)
    if not known.all():
        row = int(np.argmin(known))
        raise WrongInput(
            f"y[{row}] is {labels.tolist()[row]!r}, and the classes are {classes.tolist()}; correct"
            " it, or give all as classes to the first call"
        )
    return np.where(matches[1:] if classes.size == 2 else matches, 1.0, -1.0)


def _advanced(learners: list[Learner], X: Any, signs: Array) -> Array:
    """Let the learners learn from the rows together; returns their predictions (K, n)."""
    with ExitStack() as locked:
        for learner in learners:
            locked.enter_context(learner._lock)
        rows, _ = learners[0].begin(X, signs[0])
        for learner, y in zip(learners[1:], signs[1:], strict=True):
            learner.begin(rows, y)
        if learners[0].fit_intercept:
            rows = with_intercept(rows)
        predictions = np.empty(signs.shape)
        states, done, failures = learners[0].advance_states(
            [type(learner) for learner in learners],
            [learner._params for learner in learners],
            [learner._state for learner in learners],
            rows,
            signs,
            predictions,
        )
        diverged = not failures and min(done) < rows.n_rows
        for learner, state, rounds in zip(learners, states, done, strict=True):
            learner._state, learner._diverged = state, diverged
            learner.rounds_ += rounds
            learner.warn_of_doubt()
    for failure in failures.values():
        raise failure
    if diverged:
        k = done.index(min(done))
        raise learners[k].divergence(done[k], predictions[k, done[k]])
    return predictions
