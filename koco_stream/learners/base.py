"""The base class of all learners, with their common Python interface."""

from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, warn, why_diverged
from koco_stream.io.array_file import write_arrays
from koco_stream.io.paths import store_path
from koco_stream.learners.docstring import completed
from koco_stream.learners.record import doubtful_rounds, recorded
from koco_stream.learners.saved import (
    arrays_of,
    description,
    read_model,
    restored,
    revived,
    state_arrays,
)
from koco_stream.learners.scan import Algorithm
from koco_stream.learners.spec import SEED, Public
from koco_stream.losses import LOSSES, check_labels, loss_value
from koco_stream.scikit_learn import (
    Estimator,
    check_feature_names,
    estimator_tags,
    feature_names,
    not_fitted,
)
from koco_stream.streams.inputs import as_labels, as_rows
from koco_stream.streams.rows import Rows, with_intercept
from koco_stream.types import Array

# The attributes that `fit` resets.
INTERNAL = ("_state", "_params", "_in_force", "_diverged", "_warned", "_doubted")
LEARNT = (*INTERNAL, "n_features_in_", "feature_names_in_", "rounds_")


class Learner(Algorithm, Estimator):
    """An online learner: an algorithm with the interface of a scikit-learn estimator.

    A subclass defines `parameters` and what `Spec` reads beside; a constructor that stores its
    arguments by `self._keep(locals())`; and the algorithm as functions without `self`:

    - `init(params, n_features, seed)`: the state before the first round, a NamedTuple of arrays;
    - `step(params, state, idx, val, y)`: one round on the row (idx, val), compiled: changes the
    arrays of `state` and returns the prediction ŷ;
    - `forward(params, state, idx, val)`: a row's prediction before it is truncated to [−clip,
    clip], compiled; changes nothing.

    A learner whose state needs more memory as it learns sets `grows = True` and defines `full` and
    `enlarge`.

    After learning, `n_features_in_` is the number of features of X, `feature_names_in_` their names
    if X is a data frame, and `rounds_` the number of rows seen.
    """

    n_features_in_: int
    rounds_: int
    _params: Any
    _state: Any
    _in_force: dict[str, Any]
    _diverged = False
    _warned = False
    _doubted = False

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "parameters" in vars(cls):
            cls.__doc__ = completed(cls, (*cls.parameters, SEED))

    @classmethod
    def registered(cls) -> type[Self]:
        """This class, or the base class that defines `parameters` and is in the registry."""
        return next(base for base in cls.__mro__ if "parameters" in vars(base))

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Store the constructor's arguments, given as its `locals()`, unchanged as attributes."""
        vars(self).update({k: v for k, v in arguments.items() if k not in ("self", "__class__")})

    def __sklearn_tags__(self) -> Any:
        """The estimator's tags, by which scikit-learn selects its checks."""
        return estimator_tags("regressor")

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def progressive(self, X: Any, y: Any) -> Array:
        """Learn from the rows in order and return each prediction, made before the label is seen.

        One call with many rows gives exactly the results of single rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            A NumPy array, a SciPy or `sparse` matrix, or an Arrow table of prepared rows.
        y : array-like of shape (n,)
            The labels.

        Raises
        ------
        WrongInput
            A `ValueError`: NaN, infinity, another number of features than before, or a parameter
            that is out of range or has changed since learning began.
        FloatingPointError
            The learner diverged; the message has the row's number. Only `fit` can be called then.
        """
        return self._learn(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from the rows of X (n, d) with labels y (n,), continuing from the last call.

        Raises as `progressive` does.
        """
        self.progressive(X, y)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Reset the learner, then learn from the rows of X (n, d) in order, in a single pass."""
        rows = as_rows(X)
        labels = as_labels(y, rows.n_rows)
        if rows.n_rows == 0:
            raise WrongInput(
                f"Found array with 0 sample(s) (shape=(0, {rows.n_features})) while a minimum of 1"
                " is required."
            )
        for name in LEARNT:
            vars(self).pop(name, None)
        return self.partial_fit(X, labels)

    def predict(self, X: Any) -> Array:
        """Predictions (n,) for the rows of X (n, d), each as if it came in the next round.

        The learner does not change.
        """
        rows = self._rows_of(X)
        return self.expect(self._params, self._readable_state(), rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R² of `predict(X)`, as for scikit-learn's regressors."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def record(self, X: Any, y: Any) -> Any:
        """Learn like `progressive`, but return an Arrow table with one row per round.

        Its columns are `t` (the round, from 1), `prediction`, `loss`, and the learner's own: counts
        of rare events so far, and what a dictionary did.
        """
        import pyarrow as pa

        before = vars(self).get("rounds_", 0)
        states: list[dict[str, Any]] = []
        predictions = self._learn(X, y, states)
        pairs = zip(predictions, as_labels(y, predictions.size), strict=True)
        losses = np.array([loss_value(LOSSES[self.loss], *pair) for pair in pairs], np.float64)
        columns = {name: [row[name] for row in states] for name in (states[0] if states else ())}
        rounds = np.arange(before + 1, before + 1 + predictions.size)
        return pa.table({"t": rounds, "prediction": predictions, "loss": losses, **columns})

    def save(self, path: str | Path) -> None:
        """Write the learner to a file atomically; once loaded, it goes on to the same bits.

        A subclass is loaded by its own `load`; `koco_stream.load` returns the library's class.
        """
        write_arrays(store_path(path), description(self), arrays_of(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a learner of this class. Raises `WrongInput` for another file or a damaged one."""
        otherwise = f"not {cls.__name__}; use koco_stream.load"
        return revived(
            Path(path), *read_model(Path(path)), {cls.registered().__name__: cls}, otherwise
        )

    def __getstate__(self) -> dict[str, Any]:
        # For pickle, joblib and deepcopy, as in a saved file: arrays that are not shared, and
        # nothing that can be recomputed.
        with self._lock:
            pickled = super().__getstate__()
            if pickled.pop("_params", None) is not None:
                arrays = state_arrays(pickled.pop("_state"))
                pickled["_arrays"] = {name: array.copy() for name, array in arrays.items()}
            return pickled

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        arrays = pickled.pop("_arrays", None)
        vars(self).update(pickled)
        if arrays is not None:
            new = type(self)(**self._in_force)
            new._start(self.n_features_in_)
            self._params, self._state = new._params, restored(new._state, arrays, self.grows)

    def _learn(self, X: Any, y: Any, states: list[dict[str, Any]] | None = None) -> Array:
        """Learn like `progressive`; if `states` is given, append what is recorded of each round."""
        rows, labels = self.begin(X, y)
        if self.fit_intercept:
            rows = with_intercept(rows)
        predictions = np.empty(rows.n_rows)
        size = max(rows.n_rows, 1) if states is None else 1
        for first in range(0, rows.n_rows, size):
            these = slice(first, first + size)
            block = rows._replace(indptr=rows.indptr[first : first + size + 1])
            self._state, done = self.advance(
                self._params, self._state, block, labels[these], predictions[these]
            )
            self.rounds_ += done
            if done < block.n_rows:
                self._diverged = True
                raise self.divergence(first + done, predictions[first + done])
            if states is not None:
                states.append(recorded(self._state))
        self.warn_of_doubt()
        return predictions

    def begin(self, X: Any, y: Any) -> tuple[Rows, Array]:
        """Check X (n, d) and y (n,) and start the learner if it is new; returns rows and labels."""
        if not self.__sklearn_is_fitted__():
            self._public()  # a wrong parameter is told before what it makes of the labels
        rows = self._checked(X)
        labels = as_labels(y, rows.n_rows)
        check_labels(self.loss, labels)
        self._warn_of_large(labels)
        self._start(rows.n_features, feature_names(X))
        return rows, labels

    def divergence(self, row: int, prediction: float) -> FloatingPointError:
        """The exception for a prediction that is not finite."""
        return FloatingPointError(f"{self!r} diverged: {why_diverged(f'row {row}', prediction)}")

    def _rows_of(self, X: Any) -> Rows:
        """X (n, d) as rows for a fitted learner, with its intercept."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        rows = self._checked(X)
        return with_intercept(rows) if self.fit_intercept else rows

    def _checked(self, X: Any) -> Rows:
        """X (n, d) as rows, if the learner may learn or predict from them."""
        given, name = self.get_params(), type(self).__name__
        in_force = vars(self).get("_in_force", given)
        changed = [q for q, value in given.items() if value != in_force[q]]
        if changed:
            raise WrongInput(
                f"{', '.join(changed)} changed since learning began; call fit to start again, or"
                " restore the old value"
            )
        if self._diverged:
            raise WrongInput(f"{self!r} diverged; call fit to start again, with other parameters")
        if self.__sklearn_is_fitted__():
            check_feature_names(name, vars(self).get("feature_names_in_"), X)
        return as_rows(X, vars(self).get("n_features_in_"), name)

    def _public(self) -> Public:
        """All parameters, checked."""
        try:
            return self.registered().complete(
                {q.name: getattr(self, q.name) for q in self.parameters}
            )
        except WrongInput as error:
            raise WrongInput(f"{type(self).__name__}: {error}") from None

    def _start(self, n_features: int, names: Array | None = None) -> None:
        if self.__sklearn_is_fitted__():
            return
        params = self.to_params(self._public())
        width = n_features + bool(self.fit_intercept)
        self._state = type(self).init(params, width, SEED.check(self.seed))
        self._params = params
        self._in_force = self.get_params()
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        self.rounds_ = 0

    def _readable_state(self) -> Any:
        """The state, prepared for reading. Preparing it never changes later results."""
        return self._state

    def _warn_of_large(self, labels: Array) -> None:
        """Warn once if labels are beyond the clip, so that no prediction can reach them."""
        # not the largest of |y|: it would take longer to get memory for |y| than to compare
        if not self._warned and labels.size and max(labels.max(), -labels.min()) > self.clip:
            self._warned = True
            if "clip" not in self.irrelevant(self._public()):
                warn(
                    f"a label ({labels[np.abs(labels).argmax()]:g}) is beyond clip = {self.clip:g}:"
                    " predictions will never reach it, and the curvature assumes |y| <= clip; scale"
                    " the labels or raise clip"
                )

    def warn_of_doubt(self) -> None:
        """Warn once if rounds are doubtful."""
        if not self._doubted and (doubtful := doubtful_rounds([self._state])):
            self._doubted = True
            warn(
                f"double precision cannot vouch for six digits of the predictions of {doubtful} of"
                f" {self.rounds_} rounds, because steps are so large; scale the features (koco"
                " prepare --scale), or take a larger alpha"
            )


def unlearnt(learner: Any) -> Any:
    """A new learner with the parameters of `learner`."""
    if not isinstance(learner, Learner):
        raise WrongInput(
            f"learner must be a learner, such as koco_stream.OjaSON(), not {learner!r}"
        )
    return type(learner)(**learner.get_params())
