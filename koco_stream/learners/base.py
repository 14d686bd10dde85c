"""The base class of all learners, with their common Python interface."""

from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, warn
from koco_stream.io.array_file import write_arrays
from koco_stream.io.paths import store_path
from koco_stream.learners.docstring import completed
from koco_stream.learners.record import recorded
from koco_stream.learners.saved import contents, read_model, restored, revived
from koco_stream.learners.scan import Algorithm, learn_together, warn_of_long
from koco_stream.learners.spec import SEED, UNUSED_SEED, Public
from koco_stream.losses import LOSSES, check_labels, loss_value
from koco_stream.scikit_learn import Estimator, check_feature_names, estimator_tags, feature_names
from koco_stream.streams.inputs import as_labels, as_rows
from koco_stream.streams.rows import Rows, with_intercept
from koco_stream.types import Array

# The attributes that `fit` resets.
LEARNT = (
    *("n_features_in_", "feature_names_in_", "rounds_"),
    *("_state", "_params", "_in_force", "_diverged", "_warned", "_doubted"),
)


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

    _diverged = _warned = _doubted = False

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if "parameters" in vars(cls):
            draws = cls.always_stochastic or cls.stochastic != super().stochastic
            cls.__doc__ = completed(cls, (*cls.parameters, SEED if draws else UNUSED_SEED))

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
        rows, labels = self.begin(X, y)
        return learn_together([self], rows, labels[np.newaxis])[0]

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
        return self.expect(self._params, self._state, self._rows_of(X))

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

        rows, labels = self.begin(X, y)
        rounds = []
        for t in range(labels.size):
            row = rows._replace(indptr=rows.indptr[t : t + 2])
            y_hat = learn_together([self], row, labels[np.newaxis, t : t + 1], t)[0, 0]
            rounds.append(
                {
                    "t": self.rounds_,
                    "prediction": y_hat,
                    "loss": loss_value(LOSSES[self.loss], y_hat, labels[t]),
                    **recorded(self._state),
                }
            )
        return pa.Table.from_pylist(rounds)

    def _given(self) -> dict[str, Any]:
        """The constructor's arguments as values, of which a change is noticed."""
        return self.get_params()

    def stored_params(self) -> dict[str, Any]:
        """The constructor's arguments as a file has them."""
        return vars(self).get("_in_force") or self.get_params()

    def save(self, path: str | Path) -> None:
        """Write the learner to a file atomically; once loaded, it goes on to the same bits.

        A subclass is loaded by its own `load`; `koco_stream.load` returns the library's class.
        """
        write_arrays(store_path(path), *contents(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a learner of this class. Raises `WrongInput` for another file or a damaged one."""
        known = {cls.registered().__name__: cls}
        return revived(
            Path(path), *read_model(Path(path)), known, f"not {cls.__name__}; use koco_stream.load"
        )

    def begin(self, X: Any, y: Any) -> tuple[Rows, Array]:
        """Check X (n, d) and y (n,) and start the learner if it is new; returns the rows, with its
        intercept, and labels.
        """
        is_new = not self.__sklearn_is_fitted__()
        if is_new:
            self._public()  # a wrong parameter is told before what it makes of the labels
        rows = self._rows_of(X)
        labels = as_labels(y, rows.n_rows)
        check_labels(self.loss, labels)
        self._warn_of_large(labels)
        if is_new:
            warn_of_long(self, rows)
        self._start(rows.n_features - bool(self.fit_intercept), feature_names(X))
        return rows, labels

    def _rows_of(self, X: Any) -> Rows:
        """X (n, d) as rows with the intercept, if the learner may learn or predict from them."""
        in_force, name = vars(self).get("_in_force", {}), type(self).__name__
        changed = [q for q, value in self._given().items() if in_force.get(q, value) != value]
        if changed:
            raise WrongInput(
                f"{', '.join(changed)} changed since learning began; call fit to start again, or"
                " restore the old value"
            )
        if self._diverged:
            raise WrongInput(f"{self!r} diverged; call fit to start again, with other parameters")
        if in_force:
            check_feature_names(name, vars(self).get("feature_names_in_"), X)
        rows = as_rows(X, vars(self).get("n_features_in_"), name)
        return with_intercept(rows) if self.fit_intercept else rows

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
        self._state = self.initial_state(
            params,
            width,
            SEED.check(self.seed),  # type: ignore[arg-type]
            True,
        )
        self._params = params
        self._in_force = self._given()
        self.n_features_in_ = n_features
        self.rounds_ = 0
        if names is not None:
            self.feature_names_in_ = names

    def __getstate__(self) -> dict[str, Any]:
        # For pickle, joblib and deepcopy, as in a saved file: arrays that are not shared, and
        # nothing that can be recomputed.
        with self._lock:
            arrays = {name: array.copy() for name, array in contents(self)[1].items()}
            pickled = {**super().__getstate__(), "_arrays": arrays}
            return {k: v for k, v in pickled.items() if k not in ("_params", "_state")}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        arrays = pickled.pop("_arrays", {})
        vars(self).update(pickled)
        if "_in_force" in pickled:
            new = type(self)(**self._in_force)
            new._start(self.n_features_in_)
            self._params, self._state = new._params, restored(new._state, arrays, self.grows)

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


def unlearnt(learner: Any) -> Any:
    """A new learner with the parameters of `learner`."""
    if not isinstance(learner, Learner):
        raise WrongInput(
            f"learner must be a learner, such as koco_stream.OjaSON(), not {learner!r}"
        )
    return type(learner)(**learner.get_params())
