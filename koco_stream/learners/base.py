"""What a learner is: the base class of all, with the Python interface that they share."""

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.learners import scan
from koco_stream.learners.parameters import SEED
from koco_stream.learners.record import recorded
from koco_stream.learners.saved import filled, load_into, save_model, state_arrays
from koco_stream.learners.spec import Public, Spec
from koco_stream.losses import LOSSES, OF_REAL_LABELS, loss_value
from koco_stream.numerics.compiler import inlined
from koco_stream.scikit_learn import check_feature_names, feature_names, not_fitted, regressor_tags
from koco_stream.streams.rows import Rows, as_labels, as_rows, with_intercept
from koco_stream.types import Array

LEARNT = (
    "_state",
    "_params",
    "_in_force",
    "_diverged",
    "_warned",
    "n_features_in_",
    "feature_names_in_",
    "rounds_",
)  # what fit forgets


class Learner(Spec):
    """An online learner: an algorithm, and the conventions of scikit-learn around it.

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

    init: ClassVar[Callable[..., Any]]
    step: ClassVar[Callable[..., float]]
    forward: ClassVar[Callable[..., float]]
    grows: ClassVar[bool] = False

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

    # The algorithm -------------------------------------------------------------------------------

    @staticmethod
    @inlined
    def full(params: Any, state: Any, features: int) -> bool:
        """Whether the state lacks room for a row with so many features."""
        return False

    @staticmethod
    def enlarge(params: Any, state: Any, features: int, /) -> Any:
        """The same state with room for a row with so many features."""
        return state

    @staticmethod
    def joined(state: Any, /) -> Array | None:
        """The rounds in which points joined that stay in the dictionary, increasing, if any do."""
        return None

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """Learn from a block of rows, filling `predictions` (n,): the state and the rounds done.

        Fewer rounds than rows are done only if a prediction was not finite.
        """
        return scan.advance(cls, params, state, rows, labels, predictions)

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """What the learner would predict next for each row, (n,). Nothing is learnt."""
        return scan.expect(cls, params, state, rows)

    @classmethod
    def registered(cls) -> type[Self]:
        """The class that says what the learner is: this one, or the base of a variant of it."""
        return next(base for base in cls.__mro__ if "parameters" in vars(base))

    # What it is told -----------------------------------------------------------------------------

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the constructor's arguments, which are its `locals()`, as they were given."""
        vars(self).update({k: v for k, v in arguments.items() if k not in ("self", "__class__")})

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments. Raises `WrongInput` with the nearest name for an unknown
        one.
        """
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise WrongInput(
                    f"{type(self).__name__} has no parameter {name!r}{nearest(name, names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {
            n: q.default
            for n, q in inspect.signature(type(self).__init__).parameters.items()
            if n != "self"
        }
        given = [
            f"{n}={v!r}"
            for n, v in self.get_params().items()
            if v is not defaults[n] and v != defaults[n]
        ]
        return f"{type(self).__name__}({', '.join(given)})"

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
        counts: dict[str, list[Any]] = {}

        def note() -> None:
            for name, value in recorded(self._state).items():
                counts.setdefault(name, []).append(value)

        predictions = self._learn(X, y, note)
        labels = as_labels(y, predictions.size)
        loss = LOSSES[self.loss]
        losses = np.array(
            [loss_value(loss, p, label) for p, label in zip(predictions, labels, strict=True)],
            np.float64,
        )
        rounds = np.arange(before + 1, before + 1 + predictions.size)
        return pa.table({"t": rounds, "prediction": predictions, "loss": losses, **counts})

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
        own = cls.registered().__name__

        def class_of(name: str) -> type[Self]:
            if name == own:
                return cls
            raise WrongInput(
                f"{path} holds {name}, not {cls.__name__}; use {name}.load or koco_stream.load"
            )

        return load_into(path, class_of)

    def __getstate__(self) -> dict[str, Any]:
        # For pickle, joblib and deepcopy, as in a file of `save`: arrays that are nobody else's,
        # and nothing that can be made again.
        kept = {
            name: value for name, value in vars(self).items() if name not in ("_state", "_params")
        }
        return (
            {**kept, "_arrays": state_arrays(self._state)} if self.__sklearn_is_fitted__() else kept
        )

    def __setstate__(self, kept: dict[str, Any]) -> None:
        kept = dict(kept)
        arrays = kept.pop("_arrays", None)
        vars(self).update(kept)
        if arrays is not None:
            began = type(self)(**self._in_force)
            began._start(self.n_features_in_)
            self._params, self._state = began._params, filled(began, arrays)

    # Inside ---------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, after_round: Callable[[], None] | None = None) -> Array:
        """`progressive`, calling `after_round` after each round if it is given."""
        self._check_unchanged()
        rows = self._checked(X)
        labels = as_labels(y, rows.n_rows)
        self._check_labels(labels)
        self._start(rows.n_features, feature_names(X))
        if self.fit_intercept:
            rows = with_intercept(rows)
        predictions = np.empty(rows.n_rows)
        done, size = 0, max(rows.n_rows if after_round is None else 1, 1)
        for first in range(0, rows.n_rows, size):
            end = min(first + size, rows.n_rows)
            block = Rows(
                rows.indptr[first : end + 1],
                rows.indices,
                rows.index_stride,
                rows.values,
                rows.n_features,
            )
            self._state, more = self.advance(
                self._params, self._state, block, labels[first:end], predictions[first:end]
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
        self._check_unchanged()
        rows = self._checked(X)
        return with_intercept(rows) if self.fit_intercept else rows

    def _checked(self, X: Any) -> Rows:
        """The rows of X (n, d), which has the features of what was learnt from before, if anything
        was.
        """
        if self.__sklearn_is_fitted__():
            check_feature_names(type(self).__name__, vars(self).get("feature_names_in_"), X)
        return as_rows(X, vars(self).get("n_features_in_"), type(self).__name__)

    def _public(self) -> Public:
        return self.registered().complete({q.name: getattr(self, q.name) for q in self.parameters})

    def _start(self, n_features: int, names: Array | None = None) -> None:
        if "_state" in vars(self):
            return
        params = self.to_params(self._public())
        seed = SEED.check(self.seed)
        width = n_features + (1 if self.fit_intercept else 0)
        self._state = type(self).init(params, width, seed)
        self._params = params
        self._in_force = self.get_params()
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        self.rounds_ = 0

    def _check_unchanged(self) -> None:
        """Refuse to go on with other parameters than learning began with, or after a divergence."""
        if "_in_force" in vars(self) and self._in_force != self.get_params():
            changed = [
                name for name, value in self.get_params().items() if value != self._in_force[name]
            ]
            raise WrongInput(
                f"{', '.join(changed)} changed since learning began; call fit to begin anew, or set"
                " the old value again"
            )
        if "_diverged" in vars(self):
            raise WrongInput(f"{self!r} diverged; call fit to begin anew, with other parameters")

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not there: what learning would have made, or nothing.
        if name in ("_state", "_params") or (name.endswith("_") and not name.startswith("_")):
            raise not_fitted(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _readable_state(self) -> Any:
        """A state that reading may bring up to date without changing what the learner does next."""
        return self._state

    def _check_labels(self, labels: Array) -> None:
        if self.loss not in OF_REAL_LABELS and not (np.abs(labels) == 1.0).all():
            bad = labels[np.abs(labels) != 1.0][0]
            raise WrongInput(f"the {self.loss} loss needs labels -1 and +1, and one is {bad:g}")
        if "_warned" not in vars(self) and labels.size and np.abs(labels).max() > self.clip:
            self._warned = True
            if "clip" in self.irrelevant(self._public()):
                return
            warnings.warn(
                f"a label ({labels[np.abs(labels).argmax()]:g}) is beyond clip = {self.clip:g}: "
                "predictions will never reach it, and the curvature assumes |y| <= clip; scale the"
                " labels or raise clip",
                stacklevel=4,
            )
