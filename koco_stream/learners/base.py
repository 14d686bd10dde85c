"""What a learner is: the base class of all, with the Python interface that they share."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.learners.parameters import SEED
from koco_stream.learners.record import recorded
from koco_stream.learners.saved import load_into, restored, save_model, state_arrays
from koco_stream.learners.scan import Algorithm, embed_rows
from koco_stream.learners.spec import Public
from koco_stream.losses import LOSSES, check_labels, loss_value
from koco_stream.scikit_learn import (
    Estimator,
    check_feature_names,
    feature_names,
    not_fitted,
    regressor_tags,
)
from koco_stream.streams.rows import Rows, as_labels, as_rows, with_intercept
from koco_stream.types import Array

# What `fit` forgets.
LEARNT = (
    *("_state", "_params", "_in_force", "_diverged", "_warned"),
    *("n_features_in_", "feature_names_in_", "rounds_"),
)


class Learner(Algorithm, Estimator):
    """An online learner: an algorithm, and the interface of a scikit-learn estimator around it.

    A subclass says what is particular to its algorithm: `parameters`, `to_params` and `cost` (see
    `Spec`); a constructor that keeps its arguments by `self._keep(locals())`; and the algorithm
    itself, as functions without `self`, of which the compiled ones update `state` in place:

    - `init(params, n_features, seed)`: the state before the first round, a NamedTuple of arrays;
    - `step(params, state, idx, val, y)`: one round on the row (idx, val), compiled; returns ŷ;
    - `forward(params, state, idx, val)`: the prediction for a row before it is held within
      [−clip, clip], compiled; learns nothing.

    `Params`, a NamedTuple of numbers, has at least `loss` and `clip`. A learner whose state takes
    more memory as it learns also has `grows = True`, `full` and `enlarge`.

    After learning: `n_features_in_` (features of X), `feature_names_in_` (their names, if X is a
    data frame), `rounds_` (rows seen).
    """

    loss: str
    clip: float
    fit_intercept: bool
    seed: int
    n_features_in_: int
    feature_names_in_: Array
    rounds_: int
    _params: Any
    _state: Any
    _in_force: dict[str, Any]
    _diverged = False
    _warned = False

    @classmethod
    def registered(cls) -> type[Self]:
        """The class that says what the learner is: this one, or the base of a variant of it."""
        return next(base for base in cls.__mro__ if "parameters" in vars(base))

    # What it is told -----------------------------------------------------------------------------

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the constructor's arguments, which are its `locals()`, as they were given."""
        vars(self).update({k: v for k, v in arguments.items() if k not in ("self", "__class__")})

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks before it runs its checks."""
        return regressor_tags(target_required=True)

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    # Learning -------------------------------------------------------------------------------------

    def progressive(self, X: Any, y: Any) -> Array:
        """Learn from the rows in order and return each prediction (n,), made before its label was
        seen.

        `X` is (n, d): a NumPy array, a SciPy or `sparse` matrix, or an Arrow table of prepared
        rows; `y` is (n,). The next call goes on from where this one ends: many rows at once are
        exactly the loop of single rows.

        Raises `WrongInput` (a `ValueError`) for NaN, infinity, another number of features than
        before, a parameter out of range or changed since learning began, and `FloatingPointError`
        with the row's number if the learner diverges: it is of no use then but for `fit`.
        """
        return self._learn(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from the rows in order, going on from where the last call ended. Raises as
        `progressive` does.
        """
        self.progressive(X, y)
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn from the rows in order, once."""
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
        """Predictions (n,) for the rows of X (n, d), each as it would be made in the next round.
        Nothing is learnt.
        """
        rows = self._rows_of(X)
        return self.expect(self._params, self._readable_state(), rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R² of `predict(X)`, as scikit-learn's regressors give
        it.
        """
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def record(self, X: Any, y: Any) -> Any:
        """As `progressive`, but returns an Arrow table: `t` (the round, from 1), `prediction`,
        `loss`, and the learner's own columns: how often so far it did something rare (`folds`,
        `dense_rounds`, `shrinks`, `restarts`), and what its dictionary did
        (`inclusion_probability`, `included`, `dictionary_size`), where it has one.
        """
        import pyarrow as pa

        before = vars(self).get("rounds_", 0)
        states: list[dict[str, Any]] = []
        predictions = self._learn(X, y, lambda: states.append(recorded(self._state)))
        pairs = zip(predictions, as_labels(y, predictions.size), strict=True)
        losses = np.array([loss_value(LOSSES[self.loss], *pair) for pair in pairs], np.float64)
        columns = {name: [row[name] for row in states] for name in (states[0] if states else ())}
        rounds = np.arange(before + 1, before + 1 + predictions.size)
        return pa.table({"t": rounds, "prediction": predictions, "loss": losses, **columns})

    # Keeping --------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, atomically. Another process that loads it goes on to the
        same bits.

        What a subclass has saved is read by its own `load`; `koco_stream.load` gives the library's
        class.
        """
        save_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a learner of this class. Raises `WrongInput` if the file is damaged, of a newer
        format, or another learner's.
        """
        otherwise = f"not {cls.__name__}; use koco_stream.load"
        return load_into(path, {cls.registered().__name__: cls}, otherwise)

    def __getstate__(self) -> dict[str, Any]:
        # For pickle, joblib and deepcopy, as in a file of `save`: arrays that are nobody else's,
        # and nothing that can be made again.
        kept = {n: value for n, value in vars(self).items() if n not in ("_state", "_params")}
        if self.__sklearn_is_fitted__():
            kept["_arrays"] = state_arrays(self._state)
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        arrays = vars(self).pop("_arrays", None)
        if arrays is not None:
            began = type(self)(**self._in_force)
            began._start(self.n_features_in_)
            self._params = began._params
            self._state = restored(began._state, arrays, self.grows)

    # Inside ---------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, after_round: Callable[[], None] | None = None) -> Array:
        """`progressive`, calling `after_round` after each round if it is given."""
        rows = self._checked(X)
        labels = as_labels(y, rows.n_rows)
        check_labels(self.loss, labels)
        self._warn_of_large(labels)
        self._start(rows.n_features, feature_names(X))
        if self.fit_intercept:
            rows = with_intercept(rows)
        predictions = np.empty(rows.n_rows)
        done, size = 0, rows.n_rows if after_round is None else 1
        while done < rows.n_rows:
            end = done + size
            block = rows._replace(indptr=rows.indptr[done : end + 1])
            self._state, more = self.advance(
                self._params, self._state, block, labels[done:end], predictions[done:end]
            )
            done += more
            if done < end:
                break
            if after_round is not None:
                after_round()
        self.rounds_ += done
        if done < rows.n_rows:
            self._diverged = True
            raise FloatingPointError(
                f"{self!r} diverged: the prediction for row {done} is {predictions[done]}; a larger"
                " alpha, a smaller step or rows of smaller norm help"
            )
        return predictions

    def _rows_of(self, X: Any) -> Rows:
        """The rows of X (n, d) as the learner, which has learnt, sees them."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        rows = self._checked(X)
        return with_intercept(rows) if self.fit_intercept else rows

    def _embedded(self, X: Any, n_features: int) -> Array:
        """The features (n, `n_features`) of rows, in which a learner with `embed` is linear."""
        rows = self._rows_of(X)
        features = np.empty((rows.n_rows, n_features))
        embed = self.compiled(embed_rows, "embed")
        embed(self._params, self._state, rows, features)
        return features

    def _checked(self, X: Any) -> Rows:
        """The rows of X (n, d), which has the features of what was learnt from before, if anything
        was.
        """
        self._check_unchanged()
        if self.__sklearn_is_fitted__():
            check_feature_names(type(self).__name__, vars(self).get("feature_names_in_"), X)
        return as_rows(X, vars(self).get("n_features_in_"), type(self).__name__)

    def _public(self) -> Public:
        return self.registered().complete({q.name: getattr(self, q.name) for q in self.parameters})

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

    def _check_unchanged(self) -> None:
        """Refuse to go on with other parameters than learning began with, or after a divergence."""
        given = self.get_params()
        in_force = vars(self).get("_in_force", given)
        changed = [name for name, value in given.items() if value != in_force[name]]
        if changed:
            raise WrongInput(
                f"{', '.join(changed)} changed since learning began; call fit to begin anew, or set"
                " the old value again"
            )
        if self._diverged:
            raise WrongInput(f"{self!r} diverged; call fit to begin anew, with other parameters")

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not there: what learning would have made, or nothing.
        if name in ("_state", "_params") or (name.endswith("_") and not name.startswith("_")):
            raise not_fitted(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _readable_state(self) -> Any:
        """A state that reading may bring up to date without changing what the learner does next."""
        return self._state

    def _warn_of_large(self, labels: Array) -> None:
        """Warn once of labels that no prediction can reach."""
        if not self._warned and labels.size and np.abs(labels).max() > self.clip:
            self._warned = True
            if "clip" in self.irrelevant(self._public()):
                return
            warnings.warn(
                f"a label ({labels[np.abs(labels).argmax()]:g}) is beyond clip = {self.clip:g}: "
                "predictions will never reach it, and the curvature assumes |y| <= clip; scale the"
                " labels or raise clip",
                stacklevel=4,
            )


def unlearnt(learner: Any) -> Any:
    """A new learner with the parameters of this one. Raises `WrongInput` if it is no learner."""
    if not isinstance(learner, Learner):
        like = "such as koco_stream.OjaSON()"
        raise WrongInput(f"learner must be a learner, {like}, not {learner!r}")
    return type(learner)(**learner.get_params())
