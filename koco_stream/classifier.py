"""A classifier that wraps a learner: of two classes, or of each against the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.array_file import write_arrays
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import named
from koco_stream.learners import LEARNERS
from koco_stream.learners.base import Learner, unlearnt
from koco_stream.learners.saved import contents, read_model, revived
from koco_stream.learners.scan import learn_together
from koco_stream.losses import of_log_odds
from koco_stream.scikit_learn import Estimator, estimator_tags
from koco_stream.streams.inputs import as_rows, label_vector
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
            learners = [unlearnt(self.learner) for _ in known[0 if known.size > 2 else 1 :]]
            if not learners[0].predicts:
                raise WrongInput(
                    f"{self.learner!r} predicts nothing, so it cannot classify; give a learner that"
                    " uses its dictionary, such as PROSNKONS"
                )
        signs = _signs(labels, known)
        first, *others = learners
        rows, _ = first.begin(X, signs[0])
        for one in others:
            one._start(first.n_features_in_)
        self.learners_, self.classes_ = learners, known
        return self._classes_of(learn_together(learners, rows, signs))

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
        first, *others = self.learners_
        scores = [first.predict(X), *(one.predict(as_rows(X)) for one in others)]
        return np.stack(scores, axis=1) if others else scores[0]

    def predict(self, X: Any) -> Array:
        """The predicted class (n,) of each row of X (n, d), without learning."""
        return self._classes_of(np.atleast_2d(self.decision_function(X).T))

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
        of, arrays = contents(unlearnt(self.learner))
        header: dict[str, Any] = {"learner": "Classifier", "of": of}
        if self.__sklearn_is_fitted__():
            classes = self.classes_.tolist()
            if not all(isinstance(one, bool | int | float | str) for one in classes):
                raise WrongInput(
                    f"classes of type {type(classes[0]).__name__} cannot be saved; use numbers or"
                    " texts"
                )
            header |= {"classes": classes, "type": self.classes_.dtype.str, "learners": []}
            for k, one in enumerate(self.learners_):
                described, own = contents(one, f"{k} ")
                header["learners"].append(described)
                arrays |= own
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
        otherwise = "which is not the library's; give its class as learner"
        with named(store_path(path)):
            model = cls(revived(Path(path), header["of"], {}, known, otherwise))
            if "learners" in header:
                model.learners_ = [
                    revived(Path(path), part, arrays, known, otherwise, f"{k} ")
                    for k, part in enumerate(header["learners"])
                ]
                model.classes_ = np.array(header["classes"], header["type"])
        return model

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict(X)`, as scikit-learn's classifiers have it."""
        return float(np.average(self.predict(X) == _labels(y), weights=sample_weight))

    def _classes_of(self, scores: Array) -> Array:
        """The classes (n,) for the learners' predictions (K, n)."""
        return self.classes_[
            scores.argmax(0) if len(scores) > 1 else (scores[0] >= 0.0).astype(np.intp)
        ]

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
