"""Learners with given parameters on small inputs, and what they predict, to the bit.

`python -m tests.golden.cases [LEARNER ...]` writes `numbers.json` again, for all learners or for
those named, and prints which cases changed. A case's name holds the parameters that are not at
their defaults: a new parameter or a new choice adds cases and leaves the others as they are.
"""

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
import numpy as np
import scipy.sparse

from koco_stream.learners import LEARNERS
from tests.helpers.examples import EXAMPLES, width_of

NUMBERS = Path(__file__).parent / "numbers.json"
HELD_OUT = 20  # rows

Given = dict[str, Any]

# The values that a number takes besides the base's, one at a time; others are doubled. Choices and
# booleans take all of theirs.
REFUSED = {"Mixture": ("hinge",)}  # values that a learner does not take
OTHER_VALUES: dict[str, tuple[float, ...]] = {
    "members": ([{"name": "NOGD", "budget": 20, "rank": 7}, {"name": "Constant"}],),
    "alpha": (2.0,),
    "bandwidth": (0.7, 300.0),  # the larger one suits the badly scaled rows
    "beta": (3.0,),
    "budget": (1, 50),
    "clip": (0.8, 2.5),
    "curvature": (0.2,),
    "damping": (0.0,),
    "degree": (3,),
    "delta": (0.1,),
    "epsilon": (0.1,),
    "l1": (1.0,),
    "l2": (0.3,),
    "max_dictionary": (3,),
    "n_frequencies": (64,),
    "rank": (1, 40),  # more than the budget: then the budget counts
    "regularisation": (0.01,),
    "ridge": (0.1,),
    "sampling_floor": (0.0, 1.0),
    "sketch_rate": (1.0, 64.0),
    "sketch_size": (2, 10),
    "step_size": (0.05,),
    "threshold": (0.1,),
    "tube": (0.1,),
}

DECREASING = {"curvature": 0.2, "curvature_schedule": "decreasing"}
VOWPAL_WABBIT = {
    "diagonal": "updated",
    "projection": "prediction",
    "loss": "half_squared",
    "fit_intercept": True,
}

# More than one parameter beside the base.
COMBINATIONS: dict[str, list[Given]] = {
    "FTRLProximal": [
        {"damping": 0.0, "l1": 0.0},
        {"damping": 0.0, "l1": 1.0, "l2": 0.3, "loss": "logistic", "fit_intercept": True},
    ],
    "OjaSON": [
        *(
            {"sketch_rate": 16.0, "sketch_start": start, "diagonal": d}
            for start in ("gradients", "random")
            for d in (False, True)
        ),
        {"sketch_size": 0},
        {"sketch_size": 0, "diagonal": True},
        {"sketch_size": 10, "diagonal": True, "fit_intercept": True},
        {"loss": "logistic", "clip": 2.5, "diagonal": True},
        {"sketch_size": 0, "diagonal": "updated", "projection": "prediction"},
        VOWPAL_WABBIT,
        {**VOWPAL_WABBIT, "sketch_start": "random"},
        DECREASING,
    ],
    "ONS": [DECREASING, {"loss": "logistic", "clip": 2.5, "fit_intercept": True}, {"alpha": 0.0}],
    "RPSON": [
        DECREASING,
        {"sketch_size": 10, "diagonal": True, "fit_intercept": True},
        VOWPAL_WABBIT,
    ],
    "FDSON": [
        DECREASING,
        {"sketch_size": 10, "diagonal": True, "fit_intercept": True},
        VOWPAL_WABBIT,
    ],
    "RFDSON": [
        DECREASING,
        {"alpha": 0.5, "projection": "prediction", "fit_intercept": True},
        {"sketch_size": 10, "alpha": 0.5, "loss": "logistic", "clip": 2.5},
    ],
    "SAdaGrad": [{"sketch_size": 10, "alpha": 0.5, "loss": "logistic", "fit_intercept": True}],
    "AdaFD": [{"sketch_size": 10, "delta": 0.1, "loss": "logistic", "fit_intercept": True}],
    "KORS": [{"beta": 3.0, "estimate": "poster"}, {"max_dictionary": 3, "kernel": "linear"}],
    "PROSNKONS": [
        DECREASING,
        {"beta": 3.0, "estimate": "poster"},
        {"loss": "logistic", "kernel": "linear", "fit_intercept": True},
    ],
    "CONKONS": [
        DECREASING,
        {"beta": 3.0, "estimate": "poster"},
        {"loss": "logistic", "kernel": "linear", "fit_intercept": True},
    ],
    "BKONS": [
        DECREASING,
        {"beta": 3.0, "max_dictionary": 30},
        {"max_dictionary": 3, "kernel": "polynomial", "fit_intercept": True},
    ],
    "KONS": [DECREASING, {"loss": "logistic", "kernel": "polynomial", "fit_intercept": True}],
    "SketchedKONS": [
        DECREASING,
        {"beta": 3.0, "sampling_floor": 0.0},
        {"loss": "logistic", "kernel": "linear", "fit_intercept": True},
    ],
    "OGD": [{"step_schedule": "sqrt", "fit_intercept": True}],
    "NORMA": [
        {"regularisation": 0.0},
        {"step_schedule": "sqrt", "loss": "hinge", "tube": 0.5, "kernel": "linear"},
        {"loss": "hinge", "tube": 0.5, "budget": 5},
        {"kernel": "linear", "fit_intercept": True},
    ],
    "FOGD": [{"loss": "squared", "tube": 0.3, "fit_intercept": True}],
    "NOGD": [
        {"loss": "squared", "tube": 0.3, "fit_intercept": True},
        {"budget": 50, "rank": 40},
        {"kernel": "linear", "budget": 50},
    ],
    "DualSGD": [{"loss": "logistic", "budget": 5, "fit_intercept": True}],
}


class Input(NamedTuple):
    """Rows X (n, d), real labels y (n,) within 0.8, their signs (n,) as ±1, and held-out rows (20,
    d).
    """

    X: Any
    y: np.ndarray
    signs: np.ndarray
    held_out: Any


class Case(NamedTuple):
    """`given`: the constructor's arguments that are not at their defaults."""

    learner: str
    given: Given
    input: str

    @property
    def name(self) -> str:
        """`LEARNER|parameter=value,...|INPUT`, the parameters in alphabetical order."""
        return "|".join(
            [
                self.learner,
                ",".join(f"{name}={value}" for name, value in sorted(self.given.items())),
                self.input,
            ]
        )


# The inputs
# -----------------------------------------------------------------------------------------------
# Sums are written out: BLAS and `np.sum` add in an order that the machine chooses.


def labels_of(X: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Labels (n,) within 0.8: a linear function of the rows with noise, squashed."""
    scores = 0.5 * draw.standard_normal(len(X))
    for j in range(X.shape[1]):
        scores = scores + X[:, j] * draw.standard_normal()
    return 0.8 * scores / (1.0 + np.abs(scores))


def split(X: Any, y: np.ndarray) -> Input:
    n = y.size - HELD_OUT
    return Input(X[:n], y[:n], np.where(y[:n] >= 0.0, 1.0, -1.0), X[n:])


def dense() -> Input:
    draw = np.random.default_rng(1)
    X = draw.standard_normal((150 + HELD_OUT, 13))
    return split(X, labels_of(X, draw))


def sparse() -> Input:
    """CSR of single precision, some five values a row; the first row is empty, and others."""
    draw = np.random.default_rng(2)
    n, d = 200 + HELD_OUT, 60
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < 0.08)
    for t in (0, 7, 50, 51, n - 1):
        X[t] = 0.0
    X = X.astype(np.float32)
    return split(scipy.sparse.csr_matrix(X), labels_of(X.astype(np.float64), draw))


def scaled() -> Input:
    """Features of sizes from a thousandth to a thousand."""
    draw = np.random.default_rng(3)
    sizes = np.array([1e-3, 3e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 1e2, 1e3])
    X = draw.standard_normal((120 + HELD_OUT, sizes.size))
    return split(X * sizes, labels_of(X, draw))


def repeated() -> Input:
    """Five rows again and again, as they are, as multiples, and sums of two of them."""
    draw = np.random.default_rng(4)
    rows, factors = draw.standard_normal((5, 8)), (1.0, 1.0, 2.0, -1.0, 0.5)
    X = np.array([rows[t % 5] * factors[t // 5 % 5] for t in range(120 + HELD_OUT)])
    for t in range(3, len(X), 7):
        X[t] = rows[t % 5] + rows[(t + 1) % 5]
    return split(X, labels_of(X, draw))


@cache
def inputs() -> dict[str, Input]:
    return {source.__name__: source() for source in (dense, sparse, scaled, repeated)}


# The cases
# ------------------------------------------------------------------------------------------------


def other_values(name: str, base: Given) -> Iterator[Given]:
    """What is given beside the base: every other value of every parameter, one at a time,
    with what it needs to matter.
    """
    learner = LEARNERS[name]
    named = {q.name for q in learner.parameters}
    for q in learner.parameters:
        usual = base.get(q.name, learner.defaults()[q.name])
        doubled = (2 * usual,) if isinstance(usual, float) else ()
        values = (False, True) if q.kind is bool else OTHER_VALUES.get(q.name, doubled)
        needs: Given = {}
        if q.name == "degree":
            needs = {"kernel": "polynomial"}
        if name == "NORMA" and q.name == "tube":
            needs = {"loss": "hinge"}
        for value in (*values, *q.choices):
            if value == usual or value in REFUSED.get(name, ()):
                continue
            flat = value == "hinge" and "curvature" in named  # no curvature of its own
            yield {q.name: value, **({"curvature": 0.1} if flat else needs)}
    if learner.stochastic(learner.complete(base)):
        yield {"seed": 3}


def cases_of(name: str, daily: bool = False) -> list[Case]:
    """The cases of a learner. Raises `KeyError` for one without an example.

    `daily`: the example on every input, and each other case on one of them, in turn; but none for
    which the learner would be compiled anew.
    """
    base, defaults, found = EXAMPLES[name], LEARNERS[name].defaults(), {}
    for turn, more in enumerate(({}, *other_values(name, base), *COMBINATIONS.get(name, []))):
        given = {
            q: value
            for q, value in {**base, **more}.items()
            if q not in defaults or value != defaults[q]
        }
        names = [*inputs()]
        if daily and more:
            same = width_of(name, given) == width_of(name, base)
            names = [names[turn % len(names)]] if same else []
        for input_name in names:
            case = Case(name, given, input_name)
            found[case.name] = case
    return list(found.values())


# Their numbers
# --------------------------------------------------------------------------------------------


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def made(case: Case, plain: bool = False) -> tuple[Any, Input, np.ndarray]:
    """The case's learner, before its first row, its input, and the labels that its loss takes.

    `plain`: all values in double precision, with the same numbers and bits; a learner is compiled
    anew for values in single precision.
    """
    model, data = LEARNERS[case.learner](**case.given), inputs()[case.input]
    if plain:
        X, held_out = (rows.astype(np.float64) for rows in (data.X, data.held_out))
        data = data._replace(X=X, held_out=held_out)
    return model, data, data.y if model.loss in ("squared", "half_squared") else data.signs


def number_of(case: Case, plain: bool = False) -> str:
    """Hashes, joined by colons: of the progressive predictions, of `predict` on the held-out rows,
    and of `dictionary_` and `weights_` where the learner has them. For a learner that diverges: in
    which row.

    Attributes that are computed with BLAS are not promised to the bit, and so not in it.
    """
    model, data, labels = made(case, plain)
    try:
        predictions = model.progressive(data.X, labels)
    except FloatingPointError:
        return f"diverged in row {model.rounds_}"
    public = [
        getattr(model, name) for name in ("dictionary_", "weights_") if hasattr(type(model), name)
    ]
    return ":".join(digest(array) for array in (predictions, model.predict(data.held_out), *public))


def numbers_of(name: str, daily: bool = False) -> dict[str, str]:
    """The numbers of a learner's cases, by the names of these."""
    return {case.name: number_of(case, daily) for case in cases_of(name, daily)}


def environment() -> dict[str, str]:
    """What may change the last digits: the versions, the architecture, and what the exponentials
    and logarithms of C and NumPy depend on, which is the C library and the vector instructions of
    the processor; AVX-512 has been seen to change none.
    """
    features = llvmlite.binding.get_host_cpu_features()
    return {
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "C library": " ".join(platform.libc_ver()),
        "processor features": " ".join(name for name in ("avx2", "fma") if features.get(name)),
    }


def recorded() -> dict[str, dict[str, str]]:
    """What `numbers.json` holds: `environment` and `cases`."""
    return json.loads(NUMBERS.read_text())


def changes(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """A line for each case that is new, gone, or has other numbers, in order of the names."""
    lines = []
    for name in sorted({*old, *new}):
        if name not in old:
            lines.append(f"new: {name}: {new[name]}")
        elif name not in new:
            lines.append(f"gone: {name}")
        elif old[name] != new[name]:
            lines.append(f"changed: {name}: {old[name]} -> {new[name]}")
    return lines


def main(chosen: list[str]) -> None:
    """Write the numbers of the learners that are named again, or of all; print which changed."""
    old, here = recorded(), environment()
    assert old["environment"] == here or not chosen, "in another environment, write all numbers"
    gone = {name for name in old["cases"] if not chosen or name.split("|")[0] in chosen}
    cases = {name: number for name, number in old["cases"].items() if name not in gone}
    for learner in chosen or LEARNERS:
        cases |= numbers_of(learner)
    content = {"environment": here, "cases": dict(sorted(cases.items()))}
    NUMBERS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print("\n".join(changes(old["cases"], cases)))


if __name__ == "__main__":
    main(sys.argv[1:])
