"""Every linear learner with every option against the paper's algorithms, written out in `oracles`,
as far as a stream is well enough conditioned (`oracles.linear_learners`).
"""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from koco_stream.learners.linear import frequent_directions
from tests.helpers.examples import sizes_of
from tests.helpers.linear_streams import projections
from tests.oracles.linear_learners import (
    BY_FILE,
    SMALL,
    WITH_EIGENVECTORS,
    Reference,
    assert_agrees,
    options_of,
)
from tests.oracles.losses import slopes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a label"),  # labels beyond the clip are among the cases
    pytest.mark.filterwarnings("ignore:double precision"),  # and steps of any size
    pytest.mark.filterwarnings("ignore:the first rows have"),  # which are of any length
]

# Instead of SMALL on hard rows: an inverse that is kept through rank-one changes, w̄ and Vᵀβ (for
# RP-SON x and SᵀHSx) cancel where the sketch is far above α.
SMALL_OF = {"ONS": 1e-7, "FDSON": 1e-7, "OjaSON": 1e-8, "RPSON": 1e-6}

PROJECTIONS = [{"projection": "weights"}, {"projection": "prediction"}]
SKETCHED = [{"diagonal": d, **p} for d, p in product([False, True, "updated"], PROJECTIONS)]
CELLS = [
    *[("OGD", cell) for cell in PROJECTIONS],
    ("OGD", {"projection": "weights", "step_schedule": "sqrt"}),
    ("OGD", {"projection": "prediction", "step_schedule": "linear"}),
    ("AdaGrad", {}),
    ("NAG", {}),
    ("FTRLProximal", {}),
    ("FTRLProximal", {"damping": 0.0}),
    ("FTRLProximal", {"l1": 0.3}),
    ("FTRLProximal", {"l1": 1.0, "l2": 0.5, "damping": 0.0}),
    *[("ONS", cell) for cell in PROJECTIONS],
    *[("ONS", {"alpha": 0.0, **cell}) for cell in PROJECTIONS],
    *[("OjaSON", {"sketch_start": "random", **cell}) for cell in SKETCHED],
    *[("OjaSON", {"sketch_start": "gradients", **cell}) for cell in SKETCHED],
    *[("RPSON", cell) for cell in SKETCHED],
    *[("FDSON", cell) for cell in SKETCHED],
    *[("RFDSON", cell) for cell in PROJECTIONS],
    *[("RFDSON", {"alpha": 0.0, **cell}) for cell in PROJECTIONS],
    ("SAdaGrad", {}),
    ("SAdaGrad", {"alpha": 0.0}),
    ("AdaFD", {}),
    *[(name, cell) for name, module in BY_FILE.items() for cell in module.CELLS],
]


def counters(model):
    """How often so far: whatever of these the learner's state has."""
    names = ("folds", "cleanings", "dense_rounds", "shrinks", "found", "filled", "alpha")
    state = model._state._asdict()
    state.update(state["diagnostics"]._asdict() if "diagnostics" in state else {})
    return {k: float(state[k]) for k in names if k in state}


def learn(reference):
    """(predictions (n,), the learner, how often each branch was taken), learning row by row. NaN
    stands for the rounds after a divergence.
    """
    name, options, X, y = reference
    model = LEARNERS[name](**options).partial_fit(X[:0], y[:0])
    predictions, taken, rows = np.full(len(X), np.nan), Counter(), reference.rows()
    was, weights = counters(model), model.coef_
    for t in range(len(X)):
        try:
            predictions[t] = model.progressive(X[t : t + 1], y[t : t + 1])[0]
        except FloatingPointError:
            break
        now, w = counters(model), model.coef_
        branches = {"empty row": not rows[t].any()}
        if rows[t].any():
            branches = branches_of(reference, t, predictions[t], was, now, weights, w)
        taken.update(branch for branch, so in branches.items() if so)
        was, weights = now, w
    return predictions, model, taken


def branches_of(reference, t, prediction, was, now, weights, w):
    """Which branches the learner took in round t, whose row is not empty."""
    name, o, rows = reference.name, reference.options, reference.rows()
    up = {k: now[k] > was[k] for k in now}
    saturated = abs(prediction) == o["clip"]
    moves = slopes[o["loss"]](prediction, reference.y[t]) != 0
    started, dense, folded = up.get("found"), up.get("dense_rounds"), up.get("folds")
    shrunk = up.get("shrinks")
    branches = {
        "first row": t == 0,
        "saturated": saturated,
        "within the clip": not saturated,
        "zero slope": not moves,
        "dense round": dense,
        "fold": folded and not dense,
        "clean-up": up.get("cleanings"),
        "row start": started,
        "row start in a dense round": started and dense,
        "row start in a round that folds": started and folded and not dense,
        "no row start": not started and now.get("found", np.inf) < o.get("sketch_size", 0),
        "shrink": shrunk,
        "shrink when saturated": shrunk and saturated,
    }
    if name == "ONS" and o["alpha"] == 0:
        rank = np.linalg.matrix_rank
        outside = rank(rows[: t + 1]) > rank(rows[:t])
        branches |= {
            "alpha 0, outside the range": outside,
            "alpha 0, in the range": not outside and not saturated,
            "alpha 0, in the range, saturated": not outside and saturated,
        }
    if name in WITH_EIGENVECTORS:
        joins = shrunk or up["filled"]
        projects = moves and saturated and o.get("projection") == "weights"
        branches |= {
            "dependent row": moves and not joins,
            "projection, alpha 0, outside": projects and joins and was["alpha"] == 0,
            "projection, alpha 0, inside": projects and not joins and was["alpha"] == 0,
            "projection, alpha above 0": projects and was["alpha"] > 0,
            "new column": t > 0 and (rows[t] != 0)[~rows[:t].any(axis=0)].any(),
            "shrink, alpha grows": shrunk and now["alpha"] > was["alpha"],
            "shrink, alpha stays": shrunk and now["alpha"] == was["alpha"],
        }
    before, size = np.abs(rows[:t]).max(0, initial=0.0), np.abs(rows[t])
    seen = np.maximum(before, size) > 0
    return branches | {
        "a weight that stays 0": (seen & (weights == 0) & (w == 0)).any(),
        "a weight that leaves 0": ((weights == 0) & (w != 0)).any(),
        "a weight that returns to 0": ((weights != 0) & (w == 0)).any(),
        "a feature's first value": (size > before)[before == 0].any(),
        "a larger value than before": (size > before)[before > 0].any(),
        "no larger value": not (size > before).any(),
    }


# Streams
# --------------------------------------------------------------------------------------------------


def labels(draw, n, options):
    """Labels (n,): within the clip, now and then at it, for a squared loss; ±1 for others."""
    if "squared" not in options["loss"] or "hinge" in options["loss"]:
        return np.where(draw.random(n) < 0.5, -1.0, 1.0)
    y = draw.uniform(-1, 1, n) * options["clip"]
    return np.where(draw.random(n) < 0.2, np.sign(y) * options["clip"], y)


def picked(draw, name, cell, choices, **more):
    """The complete arguments of a learner: those of the cell, and others of the choices."""
    choices = choices | {
        "sketch_size": sizes_of(name, cell) if name in WITH_SKETCH else [0],
        "curvature_schedule": ["constant", "decreasing"],
        "fit_intercept": [False, True],
        "sketch_rate": [1.0, 16.0, 128.0],
    }
    drawn = {k: some[draw.integers(len(some))] for k, some in choices.items()}
    return options_of(name, drawn, {"seed": int(draw.integers(100))}, more, cell)


WITH_SKETCH = ("OjaSON", "RPSON", "FDSON", *WITH_EIGENVECTORS)

# Learners that keep an inverse or a factor of αI + SSᵀ lose the digits of its condition number, and
# eigenvectors are right to the rounding of the largest eigenvalue. They are given rows whose sizes
# differ by a thousand, the others by 1e14.
MODERATE = ("ONS", "RPSON", "FDSON", *WITH_EIGENVECTORS)
SIZES = {
    False: {"tiny": 1e-8, "huge": 1e6, "empty": 0.0},
    True: {"tiny": 0.1, "huge": 30.0, "empty": 0.0},
}
KINDS = ["repeated", "multiple", "combined", "near", "tiny", "huge", "empty"]
HARD = {
    "loss": list(slopes),
    "alpha": [1e-3, 0.1, 1.0, 10.0],
    "delta": [1e-3, 0.1, 1.0],
    "curvature": [0.125, 1.0],
    "step_size": [1e-3, 0.1, 1.0],
    "clip": [0.5, 1.0, 10.0],
}


MILD = {"alpha": [1.0, 4.0, 20.0], "delta": [0.1, 1.0], "step_size": [0.05, 0.5]}


def drawn(name, cell, seed):
    """Rows of small whole numbers, and of the kinds among which this stream has: what earlier rows
    make, tiny, huge, empty. A stream of an even seed is mild, which makes it well conditioned: it
    has none of these, and no large steps.
    """
    draw, moderate, mild = np.random.default_rng(seed), name in MODERATE, seed % 2 == 0
    options = picked(draw, name, cell, HARD | MILD if mild else HARD)
    if moderate and options.get("alpha"):
        options["alpha"] = max(options["alpha"], 0.1)
    d = int(draw.integers(1, 8))
    kinds = ["fresh", "fresh", *draw.choice(KINDS, draw.integers(len(KINDS) + 1), replace=False)]
    X = np.zeros((0, d))
    for _ in range(draw.integers(3, 41)):
        kind = "fresh" if mild else draw.choice(kinds)
        fresh = draw.integers(-3, 4, d) * (0.15 if mild else draw.choice([1.0, 1.0, 0.1, 10.0]))
        one, other = np.vstack([fresh, X])[draw.integers(len(X) + 1, size=2)]
        x = {
            "repeated": one,
            "multiple": one * draw.choice([-0.3, 7.0, 3.0 if moderate else 1000.0]),
            "combined": 2 * one - 0.5 * other,
            "near": one + 0.05 * np.abs(one).max() * draw.standard_normal(d),
        }.get(kind, fresh)
        X = np.vstack([X, x * SIZES[moderate].get(kind, 1.0)])
    return Reference(name, options, X, labels(draw, len(X), options))


def directed(name, cell, seed):
    """Streams that force what is rare: features of scales from 10⁻⁴ to 10⁴ (for some learners from
    0.1 to 10), rows nearly on a line, blocks of alike rows, rows that grow, that are large, that
    are in a plane, and rows of which some are empty, alike, or so large that predictions are at the
    clip, as labels are.
    """
    draw, n = np.random.default_rng(seed), 120
    X, decades = draw.standard_normal((n, 6)), 1 if name in MODERATE else 4
    line, plane = (draw.standard_normal((n, k)) @ draw.standard_normal((k, 6)) for k in (1, 2))
    whole = draw.integers(-1, 2, (n, 6)) * (draw.random((n, 6)) < np.linspace(0.1, 0.9, n)[:, None])
    whole[2::5] = whole[1::5]
    rows = [
        X,
        X * 10 ** draw.uniform(-decades, decades, 6),
        line + 0.01 * X * (draw.random((n, 1)) < 0.1),
        draw.random(6) + 0.02 * np.geomspace(1, 0.1, 6) * X,
        X * np.geomspace(1e-2, 30, n)[:, None],
        whole.astype(float),
        plane,
        30 * X,
    ]
    alpha = 0.1 if name in MODERATE else [1.0, 1e-3][seed % 2]
    drawn = {"loss": "squared", "clip": 1.0, "curvature": 0.125, "seed": seed, "delta": 0.1}
    drawn |= {"sketch_rate": [1.0, 128.0][seed % 2], "step_size": 1.0, "l1": 0.3, "alpha": alpha}
    drawn["sketch_size"] = sizes_of(name, cell)[-1] if name in WITH_SKETCH else 0
    options = options_of(name, drawn, cell)
    return Reference(name, options, rows[seed % len(rows)], draw.choice([-1.0, 1.0], n))


# Tests
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", [range(7), pytest.param(range(7, 40), marks=pytest.mark.long)], ids=str
)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_random_streams__are_predicted_as_well_as_the_stream_is_conditioned(cell, seeds):
    for seed in seeds:
        reference, mild = drawn(*cell, seed), seed % 2 == 0
        predictions, model, _ = learn(reference)
        small = SMALL if mild else SMALL_OF.get(cell[0], SMALL)
        model = in_the_span(reference, model) if mild else None
        compared = assert_agrees(reference, predictions, model, small)
        # a small gradient makes a large step where α is 0: no such stream is well conditioned
        assert compared >= 0.9 * len(predictions) or not mild or cell[1].get("alpha") == 0


def in_the_span(reference, model):
    """None for an ONS without a ridge, which has other weights outside the span of the rows."""
    return model if reference.name != "ONS" or reference.options["alpha"] else None


EVERY = ["first row", "empty row", "saturated", "within the clip", "zero slope"]
SEEN = ["a feature's first value", "a larger value than before", "no larger value"]
OF_SHRINKS = [*EVERY, "shrink", "shrink when saturated"]
OF_EIGENVECTORS = [
    *OF_SHRINKS, "dependent row", "new column", "shrink, alpha grows", "shrink, alpha stays",
]  # fmt: skip
WITHOUT_RIDGE = {"alpha": 0.0}
BRANCHES = [
    ("OGD", {}, EVERY),
    ("AdaGrad", {}, EVERY),
    ("NAG", {}, [*EVERY, *SEEN]),
    (
        "FTRLProximal",
        {},
        [*EVERY, *(f"a weight that {how} 0" for how in ("stays", "leaves", "returns to"))],
    ),
    ("ONS", {}, EVERY),
    (
        "ONS",
        WITHOUT_RIDGE,
        [
            *EVERY, "alpha 0, outside the range", "alpha 0, in the range",
            "alpha 0, in the range, saturated",
        ],
    ),
    ("OjaSON", {"sketch_start": "random"}, [*EVERY, "dense round", "fold"]),
    (
        "OjaSON",
        {"sketch_start": "gradients"},
        [
            *EVERY, "dense round", "fold", "clean-up", "row start", "row start in a dense round",
            "row start in a round that folds", "no row start",
        ],
    ),
    ("RPSON", {}, [*EVERY, "dense round", "fold"]),
    ("FDSON", {}, OF_SHRINKS),
    ("RFDSON", {}, [*OF_EIGENVECTORS, "projection, alpha above 0"]),
    (
        "RFDSON",
        WITHOUT_RIDGE,
        [*OF_EIGENVECTORS, "projection, alpha 0, outside", "projection, alpha 0, inside"],
    ),
    ("SAdaGrad", {}, OF_EIGENVECTORS),
    ("SAdaGrad", WITHOUT_RIDGE, OF_EIGENVECTORS),
    ("AdaFD", {}, OF_EIGENVECTORS[:-2]),
    *[(name, {}, EVERY) for name in BY_FILE],
]  # fmt: skip


@pytest.mark.parametrize(("name", "cell", "branches"), BRANCHES, ids=str)
def test_directed_streams__take_every_branch_and_are_predicted_as_well_as_they_can_be(
    name, cell, branches
):
    taken = Counter()
    for seed in range(8):
        reference = directed(name, cell, seed)
        predictions, model, of_stream = learn(reference)
        small = SMALL_OF.get(name, SMALL)
        assert_agrees(reference, predictions, in_the_span(reference, model), small)
        taken += of_stream
    assert [branch for branch in branches if not taken[branch]] == []


@pytest.mark.parametrize("name", ["FDSON", *WITH_EIGENVECTORS])
def test_many_shrinks__lose_nothing_when_their_maps_are_applied_to_all_columns(name, monkeypatch):
    """Columns that are rarely used, over periods that end, of shrinks that are kept."""
    draw = np.random.default_rng(1)
    X = draw.standard_normal((300, 8)) * (draw.random((300, 8)) < np.linspace(0.02, 0.9, 8))
    drawn = {"alpha": 0.5, "delta": 0.1, "step_size": 0.1, "sketch_size": 2}
    reference = Reference(name, options_of(name, drawn), X, draw.uniform(-0.5, 0.5, 300))
    predictions, model, taken = learn(reference)
    monkeypatch.setattr(frequent_directions, "period", lambda n_out, d: 2048)
    long, _, _ = learn(reference)
    assert taken["fold"] >= 4
    np.testing.assert_allclose(predictions, long, rtol=0, atol=1e-11)
    assert_agrees(reference, predictions, model)


@pytest.mark.parametrize("m", [1, 3])
def test_random_projections__have_variance_one_over_m(m):
    R = projections(m, 3, 2000)
    assert abs(R.mean()) < 4 / np.sqrt(m * R.size)
    assert m * np.mean(R**2) == pytest.approx(1.0, abs=6 / np.sqrt(R.size))
