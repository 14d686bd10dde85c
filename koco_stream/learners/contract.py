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
from collections.abc import Callable
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner
from koco_stream.learners.saved import fields_of
from koco_stream.learners.spec import SEED, StreamSize
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
        try:
            check(trial)
            outcomes.append(Outcome(str(check.__doc__), None))
        except Exception as error:
            outcomes.append(Outcome(str(check.__doc__), words_of(error)))
            if check in CHECKS[:2]:
                break
    return outcomes


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


def words_of(error: Exception) -> str:
    """What a check has found; of the compiler's errors the cause, where it is a common one."""
    raised = "" if isinstance(error, Broken) else f"it raised {type(error).__name__}: "
    if not type(error).__module__.startswith("numba."):
        return f"{raised}{error}"
    unknown = "cannot be compiled: " + " ".join(str(error).split()[:50])
    known = (said for sign, said in MISTAKES.items() if re.search(sign, str(error)))
    return f"step or forward {next(known, unknown)}"


def demand(holds: Any, otherwise: str) -> None:
    """Raise `Broken` with the words `otherwise` if a promise is not kept."""
    if not holds:
        raise Broken(otherwise)


class Trial:
    """A learner to check, with rows that every learner can learn from."""

    def __init__(self, learner: type[Learner], given: dict[str, Any]) -> None:
        self.learner, self.given = learner, given
        draw = np.random.default_rng(7)
        X = draw.standard_normal((N_ROWS, N_FEATURES))
        X *= draw.random(X.shape) < 0.5
        X[[0, 5, 6]] = 0.0
        self.X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
        self.y = np.where(X @ draw.standard_normal(N_FEATURES) >= 0.0, 1.0, -1.0)

    def made(self) -> Learner:
        """A new learner."""
        return self.learner(**self.given)

    @cached_property
    def expected(self) -> Array:
        """The predictions for all rows."""
        return self.made().progressive(self.X, self.y)

    def compare(self, what: str, found: Array) -> None:
        """Demand that these are the first of the expected predictions, to the bit."""
        expected = self.expected[: found.size]
        t = int(np.argmax(found.view(np.int64) != expected.view(np.int64)))
        demand(
            found.tobytes() == expected.tobytes(),
            f"{what} gave {found[t]!r} where it was {expected[t]!r} (row {t})",
        )

    def learn_in_pieces(self, what: str, between: Callable[[Learner], Learner | None]) -> None:
        """Demand the expected predictions of a learner that learns the rows in pieces; `between`
        these it is given to a function, which may return another one to go on with.
        """
        model, found = self.made(), []
        for a, b in pairwise(CUTS):
            found.append(model.progressive(self.X[a:b], self.y[a:b]))
            model = between(model) or model
        self.compare(what, np.concatenate(found))


def parameters(trial: Trial) -> None:
    """the constructor has the declared parameters and `seed`, with defaults that are allowed"""
    arguments = set(inspect.signature(trial.learner.__init__).parameters) - {"self"}
    wanted = {q.name for q in trial.learner.parameters} | {SEED.name}
    demand(
        arguments == wanted,
        f"declared and not in the constructor: {sorted(wanted - arguments)}; in the constructor"
        f" and not declared: {sorted(arguments - wanted)}",
    )
    trial.learner.to_params(trial.learner.complete(trial.given))


def state(trial: Trial) -> None:
    """`init` makes a NamedTuple of arrays, which `step` changes in place without allocating"""
    params = trial.learner.to_params(trial.learner.complete(trial.given))
    for name, value in fields_of(trial.learner.initial_state(params, N_FEATURES, 0, True)):
        demand(
            isinstance(value, np.ndarray),
            f"the field {name!r} of the state is a {type(value).__name__}, which never changes;"
            " a number is np.zeros(())",
        )
    trial.made().partial_fit(trial.X[1:2], trial.y[1:2])


def finite(trial: Trial) -> None:
    """predictions are finite on rows of norm 1 and on empty ones, and within [−clip, clip]"""
    largest = np.abs(trial.expected).max()  # a FloatingPointError has the row
    public = trial.learner.complete(trial.given)
    demand(
        "clip" in trial.learner.irrelevant(public) or largest <= public["clip"],
        f"the prediction {largest:g} is beyond clip = {public.get('clip')}",
    )


def deterministic(trial: Trial) -> None:
    """the same seed gives the same bits, at any time, beside other learners"""
    expected = trial.expected.tobytes()
    generators = pickle.dumps((random.getstate(), np.random.get_state()))
    again = trial.made().progressive(trial.X, trial.y)
    demand(
        generators == pickle.dumps((random.getstate(), np.random.get_state())),
        "it uses a global random generator; take numbers from koco_stream.numerics.random, by"
        " seed and round",
    )
    demand(
        again.tobytes() == expected,
        "two learners with the same seed gave other predictions on the same rows: something is"
        " kept outside the state, or drawn from a global random generator",
    )
    # clocks that are centuries ahead, and run fast
    clocks = dict.fromkeys(CLOCKS, count(10**10, 10**4).__next__)
    with patch.dict(vars(time), clocks):
        later = trial.made().progressive(trial.X, trial.y)
        demand(later.tobytes() == expected, "its predictions depend on the time")


def blocks(trial: Trial) -> None:
    """rows in pieces are learnt as at once, to the bit, also in turns with another learner"""
    other = trial.made()

    def in_turns(model: Learner) -> None:
        other.partial_fit(trial.X[::-1], trial.y[::-1])

    trial.learn_in_pieces("the same rows in pieces", lambda model: model)
    trial.learn_in_pieces("rows in turns with another learner, which shares state,", in_turns)


def saved(trial: Trial) -> None:
    """a learner that is saved and loaded, as a checkpoint has it, goes on to the same bits"""

    def loaded(model: Learner) -> Learner:
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.koco")
            again = trial.learner.load(Path(folder) / "model.koco")
        demand(
            again.stored_params() == model.stored_params(), "a loaded learner has other parameters"
        )
        return again

    trial.learn_in_pieces("a learner that was saved and loaded", loaded)


def unchanged_rows(trial: Trial) -> None:
    """rows and labels are not changed, and what a later label is changes no earlier prediction"""
    X, y = trial.X.copy(), trial.y.copy()
    trial.made().progressive(X, y)
    demand(
        X.tobytes() == trial.X.tobytes() and y.tobytes() == trial.y.tobytes(),
        "it changed the rows or labels that it was given",
    )
    y[N_ROWS // 2 :] *= -1.0
    trial.compare(
        "rows whose later labels were others",
        trial.made().progressive(X, y)[: N_ROWS // 2 + 1],  # its own label comes after
    )


def predicting(trial: Trial) -> None:
    """`predict` gives the next prediction and changes nothing"""

    def asked(model: Learner) -> None:
        said = model.predict(trial.X[model.rounds_ :])[:1]
        then = trial.expected[model.rounds_ : model.rounds_ + 1]
        demand(
            np.allclose(said, then, rtol=1e-9, atol=1e-12),
            f"predict says {said}, and the next round's prediction is {then}",
        )

    trial.learn_in_pieces("rows after a call of predict", asked)


def single_precision(trial: Trial) -> None:
    """values in single precision are learnt from"""
    trial.made().partial_fit(trial.X.astype(np.float32), trial.y)


def divergence(trial: Trial) -> None:
    """rows too large for it end in a prediction that is not finite, and not in an exception"""
    try:
        trial.learner(**{**trial.given, "clip": 1e300}).partial_fit(
            np.full((20, N_FEATURES), 1e200), np.full(20, 1e200)
        )
    except (FloatingPointError, WrongInput):
        return  # said with the row's number; or the learner has no such parameters


def memory(trial: Trial) -> None:
    """`floats` is a number for the largest streams"""
    found = trial.learner.floats(trial.learner.complete(trial.given), StreamSize(10**9, 10**7, 1.0))
    demand(0 <= found < float("inf"), f"for 10⁷ features it is {found}")


CHECKS: tuple[Callable[[Trial], None], ...] = (
    parameters,
    state,
    finite,
    deterministic,
    blocks,
    saved,
    unchanged_rows,
    predicting,
    single_precision,
    divergence,
    memory,
)
