"""The contract: what every learner of ours promises, checked on a class.

`koco learners check` runs it on a user's learner. Each check is a function whose docstring is the
promise, and which raises `Broken` with what it found.
"""

import inspect
import pickle
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SEED
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.rows import frozen
from koco_stream.types import Array

N_ROWS, N_FEATURES = 120, 12
CUTS = (0, 1, 2, 40, 77, N_ROWS)
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


class Broken(Exception):
    """A promise that a learner does not keep. The message says what was found."""


class Outcome(NamedTuple):
    """A promise, and what was found instead; None if it is kept."""

    promise: str
    found: str | None


def check_contract(learner: type[Learner], given: dict[str, Any] | None = None) -> list[Outcome]:
    """Check a learner's promises with the parameters `given`, until one of the first two fails, on
    which the others build.
    """
    trial = Trial(learner, given or {})
    outcomes = []
    for check in CHECKS:
        found = fault_in(check, trial)
        outcomes.append(Outcome(str(check.__doc__), found))
        if found and check in CHECKS[:2]:
            break
    return outcomes


def fault_in(check: Callable[["Trial"], None], trial: "Trial") -> str | None:
    """What a check finds; None if the promise is kept."""
    try:
        check(trial)
        return None
    except Broken as broken:
        return str(broken)
    except Exception as error:
        compiling = type(error).__module__.startswith("numba.")
        return compiler_text(error) if compiling else f"it raised {type(error).__name__}: {error}"


# What the compiler says of common mistakes, and the mistake.
MISTAKES = {
    r"NRT required|allocat|function (zeros|empty|ones|full|array|zeros_like|empty_like|copy)>": (
        "makes an array or another object, and compiled code allocates nothing"
    ),
    r"readonly|read-only|immutable|mutable=False": (
        "writes to the row, which other learners read after it"
    ),
    r"(?s)Reference\(.*(getitem|unpack|len)|(getitem|unpack|len).*Reference\(": (
        "takes the state or params apart; read their fields by name, as s.w"
    ),
}


def compiler_text(error: Exception) -> str:
    """The compiler's error in words, where its cause is a common one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    unknown = "cannot be compiled: " + " ".join(lines[:4])
    known = (said for sign, said in MISTAKES.items() if re.search(sign, str(error)))
    return f"step or forward {next(known, unknown)}"


class Trial:
    """A learner to check, with rows that every learner can learn from."""

    def __init__(self, learner: type[Learner], given: dict[str, Any]) -> None:
        self.learner, self.given = learner, given
        draw = np.random.default_rng(7)
        X = draw.standard_normal((N_ROWS, N_FEATURES))
        X *= draw.random(X.shape) < 0.5
        X[5] = 0.0
        self.X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
        self.y = np.where(X @ draw.standard_normal(N_FEATURES) >= 0.0, 1.0, -1.0)

    def made(self, **more: Any) -> Learner:
        """A new learner."""
        return self.learner(**{**self.given, **more})

    def predictions(self) -> Array:
        """The predictions of a new learner for all rows."""
        return self.made().progressive(self.X, self.y)


def parameters(trial: Trial) -> None:
    """the constructor has the declared parameters and `seed`, with defaults that are allowed"""
    learner = trial.learner
    arguments = set(inspect.signature(learner.__init__).parameters) - {"self"}
    wanted = {q.name for q in learner.parameters} | {SEED.name}
    if arguments != wanted:
        raise Broken(
            f"declared and not in the constructor: {sorted(wanted - arguments)}; in the constructor"
            f" and not declared: {sorted(arguments - wanted)}"
        )
    learner.to_params(learner.complete(trial.given))


def state(trial: Trial) -> None:
    """`init` makes a NamedTuple of arrays, which `step` changes in place without allocating"""
    learner = trial.learner
    params = learner.to_params(learner.complete(trial.given))
    made = learner.init(params, N_FEATURES, 0)
    for name, value in _fields(made):
        if not isinstance(value, np.ndarray):
            raise Broken(
                f"the field {name!r} of the state is a {type(value).__name__}, which never changes;"
                " a number is np.zeros(())"
            )
    one = as_rows(trial.X[:1])
    learner.advance(params, made, one, frozen([1.0], np.float64), np.zeros(1))


def _fields(made: Any) -> Iterator[tuple[str, Any]]:
    for name, value in made._asdict().items():
        if hasattr(value, "_asdict"):
            yield from _fields(value)
        else:
            yield name, value


def finite(trial: Trial) -> None:
    """predictions are finite on rows of norm 1, and within [−clip, clip]"""
    predictions = trial.predictions()  # a FloatingPointError has the row
    public = trial.learner.complete(trial.given)
    clip = float(public.get("clip") or np.inf)  # type: ignore[arg-type]
    if "clip" not in trial.learner.irrelevant(public) and np.abs(predictions).max() > clip:
        raise Broken(f"the prediction {np.abs(predictions).max():g} is beyond clip = {clip:g}")


def deterministic(trial: Trial) -> None:
    """the same seed gives the same bits, at any time, beside other learners"""
    first = trial.predictions()
    random.seed(1)
    np.random.seed(1)
    before = pickle.dumps((random.getstate(), np.random.get_state()))
    second = trial.predictions()
    if before != pickle.dumps((random.getstate(), np.random.get_state())):
        raise Broken(
            "it uses a global random generator; take numbers from koco_stream.numerics.random, by"
            " seed and round"
        )
    if first.tobytes() != second.tobytes():
        raise Broken(
            "two learners with the same seed gave other predictions on the same rows: something is"
            " kept outside the state, or drawn from a global random generator"
        )
    # clocks that run some years ahead, and three times as fast
    clocks = {name: partial(_ahead, getattr(time, name)) for name in CLOCKS}
    with patch.dict(vars(time), clocks):
        if trial.predictions().tobytes() != first.tobytes():
            raise Broken("its predictions depend on the time")


def _ahead(clock: Callable[[], Any]) -> Any:
    return 3 * clock() + 10**8


def blocks(trial: Trial) -> None:
    """rows in pieces are learnt as the same rows at once, to the bit"""
    _same(trial.predictions(), _in_pieces(trial, trial.made()), "the same rows in pieces")


def separate(trial: Trial) -> None:
    """two learners that learn in turns do not touch each other"""
    found = _in_pieces(trial, trial.made(), beside=trial.made())
    _same(trial.predictions(), found, "rows in turns with another learner, which shares state,")


def _in_pieces(trial: Trial, model: Learner, beside: Learner | None = None) -> Array:
    found = []
    for a, b in pairwise(CUTS):
        found.append(model.progressive(trial.X[a:b], trial.y[a:b]))
        if beside is not None:
            beside.partial_fit(trial.X[::-1][a:b], trial.y[::-1][a:b])
    return np.concatenate(found)


def saved(trial: Trial) -> None:
    """a learner that is saved and loaded, as a checkpoint has it, goes on to the same bits"""
    expected, half = trial.predictions(), N_ROWS // 2
    model = trial.made().partial_fit(trial.X[:half], trial.y[:half])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.koco"
        model.save(path)
        again = trial.learner.load(path)
    found = again.progressive(trial.X[half:], trial.y[half:])
    _same(expected[half:], found, "a learner that was saved and loaded")
    if again.get_params() != model.get_params():
        raise Broken("a learner that was saved and loaded has other parameters")


def rows_kept(trial: Trial) -> None:
    """rows and labels are not changed, and what a later label is changes no earlier prediction"""
    X, y = trial.X.copy(), trial.y.copy()
    expected = trial.made().progressive(X, y)
    if X.tobytes() != trial.X.tobytes() or y.tobytes() != trial.y.tobytes():
        raise Broken("it changed the rows or labels that it was given")
    y[N_ROWS // 2 :] *= -1.0
    found = trial.made().progressive(X, y)
    until = N_ROWS // 2 + 1  # the row's own label comes after its prediction
    _same(expected[:until], found[:until], "rows whose later labels were others")


def predicting(trial: Trial) -> None:
    """`predict` gives the next prediction and changes nothing"""
    half = N_ROWS // 2
    model = trial.made().partial_fit(trial.X[:half], trial.y[:half])
    said = model.predict(trial.X[half:])[:1]
    found = model.progressive(trial.X[half:], trial.y[half:])
    _same(trial.predictions()[half:], found, "rows after a call of predict")
    if not np.allclose(said, found[:1], rtol=1e-9, atol=1e-12):
        raise Broken(f"predict says {said[0]!r}, and the next round's prediction is {found[0]!r}")


def empty_rows(trial: Trial) -> None:
    """a row without values is a round like any other"""
    model = trial.made().partial_fit(trial.X[:40], trial.y[:40])
    empty = np.zeros((2, N_FEATURES))
    found = [*model.progressive(empty, [1.0, -1.0]), *trial.made().progressive(empty, [1.0, 1.0])]
    if not np.isfinite(found).all():
        raise Broken(f"its prediction for an empty row is {found}")
    model.partial_fit(trial.X[40:], trial.y[40:])


def single_precision(trial: Trial) -> None:
    """values in single precision are learnt from"""
    trial.made().partial_fit(trial.X.astype(np.float32), trial.y)


def divergence(trial: Trial) -> None:
    """rows too large for it end in a prediction that is not finite, and not in an exception"""
    try:
        trial.made(clip=1e300).partial_fit(np.full((20, N_FEATURES), 1e200), np.full(20, 1e200))
    except (FloatingPointError, WrongInput):
        return  # said with the row's number; or the learner has no such parameters


def memory(trial: Trial) -> None:
    """`floats` is a number for the largest streams"""
    from koco_stream.learners.spec import StreamSize

    for d in (1, 10**7):
        found = trial.learner.floats(trial.learner.complete(trial.given), StreamSize(10**9, d, 1.0))
        if not 0 <= found < float("inf"):
            raise Broken(f"for {d} features it is {found}")


def _same(expected: Array, found: Array, what: str) -> None:
    if expected.tobytes() != found.tobytes():
        t = int(np.flatnonzero(expected != found)[0])
        raise Broken(f"{what} gave {found[t]!r} where it was {expected[t]!r} (row {t})")


CHECKS: tuple[Callable[[Trial], None], ...] = (
    parameters,
    state,
    finite,
    deterministic,
    blocks,
    separate,
    saved,
    rows_kept,
    predicting,
    empty_rows,
    single_precision,
    divergence,
    memory,
)
