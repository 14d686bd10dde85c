"""Every linear learner with every option against the paper's algorithms, written out in `oracles`.

A literal reference is run in double and in long double. If the two agree to 1e-9 of the clip, so
must the learner; where they do not, the stream is badly conditioned, and the learner's error may be
ten times what the double reference is. Branches of the learners are counted while they
learn, and the last test asks that each occurred.
"""

from collections import Counter
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from koco_stream.learners import LEARNERS
from tests.helpers.linear_streams import projections, start_of, stream
from tests.oracles import first_order
from tests.oracles.exact_algebra import eigen_of_rows, gram_schmidt, solve
from tests.oracles.losses import curvatures, slopes
from tests.oracles.sketched_newton import (
    BufferedFrequentDirections,
    FrequentDirections,
    FullMatrix,
    Oja,
    RandomProjection,
    sketched_newton,
)

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.filterwarnings("ignore:a label"),  # labels beyond the clip are among the cases
    pytest.mark.filterwarnings("ignore:double precision"),  # and steps of any size
]

SMALL = 1e-9  # of the clip: what rounding may do to a prediction on a well-conditioned stream
MULTIPLE = 10  # of the error of references in double, on other streams
OF_INVERSES = 100  # the same for ONS and FDSON, which keep an inverse through rank-one changes
# Instead of SMALL after 150 hard rows: w̄ and Vᵀβ (for RP-SON x and SᵀHSx) cancel where the sketch
# is far above α.
SMALL_AFTER_LONG = {"OjaSON": 1e-8, "RPSON": 1e-6}
# from the round on where the error of a reference in double is this share of uᵀx, or of the clip,
# nothing is compared
LOST = 1e-2
BRANCHES = Counter()

SKETCHED = [
    {"diagonal": diagonal, "projection": projection}
    for diagonal, projection in product([False, True, "updated"], ["weights", "prediction"])
]
CELLS = [
    ("OGD", {"projection": "weights"}),
    ("OGD", {"projection": "prediction"}),
    ("OGD", {"projection": "weights", "step_schedule": "sqrt"}),
    ("OGD", {"projection": "prediction", "step_schedule": "linear"}),
    ("AdaGrad", {}),
    ("NAG", {}),
    ("FTRLProximal", {}),
    ("FTRLProximal", {"damping": 0.0}),
    ("FTRLProximal", {"l1": 0.3}),
    ("FTRLProximal", {"l1": 1.0, "l2": 0.5, "damping": 0.0}),
    ("ONS", {"projection": "weights"}),
    ("ONS", {"projection": "prediction"}),
    ("ONS", {"projection": "weights", "alpha": 0.0}),
    ("ONS", {"projection": "prediction", "alpha": 0.0}),
    *[
        ("OjaSON", {"sketch_start": start, **cell})
        for start in ("random", "gradients")
        for cell in SKETCHED
    ],
    *[("RPSON", cell) for cell in SKETCHED],
    *[("FDSON", cell) for cell in SKETCHED],
]


def options_of(name, cell, drawn):
    """The constructor's arguments of a case: those of the cell, and of `drawn` those that the
    learner has.
    """
    own = {"seed", *(parameter.name for parameter in LEARNERS[name].parameters)}
    return {**{k: v for k, v in drawn.items() if k in own}, **cell}


FIRST_ORDER = {
    "OGD": first_order.ogd,
    "AdaGrad": first_order.adagrad,
    "NAG": first_order.nag,
    "FTRLProximal": first_order.ftrl_proximal,
}


class Reference(NamedTuple):
    """A learner's reference on given rows: `run` makes it anew."""

    name: str
    options: dict
    X: np.ndarray
    y: np.ndarray

    def sketch(self, n, order):
        """A new sketch of such a learner, for n rows and the features in this order."""
        o = self.options
        if self.name == "OjaSON":
            start = random_start(o, self.X.shape[1])
            return Oja(
                o["sketch_size"], o["sketch_rate"], None if start is None else start[:, order]
            )
        if self.name == "RPSON":
            return RandomProjection(projections(o["sketch_size"], o["seed"], n))
        return (
            BufferedFrequentDirections(o["sketch_size"]) if self.name == "FDSON" else FullMatrix()
        )

    def run(self, dtype=float, flipped=False, noise=None, printed=False):
        """(predictions (n,), weights (d,), sketch or None, uᵀx (n,) before it is bounded).

        `flipped`: with the features in reverse order. `noise`: as in `sketched_newton`. `printed`:
        as in `oracles.sketched_newton.Sketch`.
        """
        o = self.options
        X = np.hstack([self.X, np.ones((len(self.X), 1))]) if o.get("fit_intercept") else self.X
        order = slice(None, None, -1 if flipped else 1)
        shared = {"clip": o["clip"], "slope": slopes[o["loss"]], "dtype": dtype}
        named = ("step_size", "step_schedule", "alpha", "projection", "diagonal")
        shared |= {k: o[k] for k in named if k in o}
        if self.name == "FTRLProximal":
            every = LEARNERS[self.name].defaults() | o
            shared |= {k: every[k] for k in ("damping", "l1", "l2")}
        if self.name in FIRST_ORDER:
            predictions, weights = FIRST_ORDER[self.name](X[:, order], self.y, **shared)
            return predictions, weights, None, predictions
        sketch = self.sketch(len(X), order)
        sketch.printed = printed
        curvature = o.get("curvature") or curvatures[o["loss"]](o["clip"])
        return sketched_newton(
            X[:, order],
            self.y,
            sketch,
            curvature=curvature,
            decreasing=(o.get("curvature_schedule") == "decreasing"),
            noise=noise,
            **shared,
        )


def random_start(options, d):
    """V_0 (m, d) of an OjaSON that has seen no row, without the rows that d leaves no room for;
    None if its sketch starts from gradients.
    """
    if options["sketch_start"] == "gradients":
        return None
    V = start_of(LEARNERS["OjaSON"](**options), d)
    return V[np.any(V != 0, axis=1)]


def counters(model):
    """How often so far: whatever of these the learner's state has."""
    names = ("folds", "cleanings", "dense_rounds", "shrinks", "found", "filled")
    return {k: int(getattr(model._state, k)) for k in names if hasattr(model._state, k)}


def learn(name, options, X, y):
    """(predictions (n,), the learner), learning row by row. Counts the branches taken."""
    model = LEARNERS[name](**options).partial_fit(X[:0], y[:0])
    predictions, before, weights = [], counters(model), np.zeros(1)
    for t in range(len(X)):
        predictions.append(model.progressive(X[t : t + 1], y[t : t + 1])[0])
        after = counters(model)
        up = {k: after[k] > before[k] for k in after}
        before = after
        if not X[t].any() and not options.get("fit_intercept"):
            BRANCHES[name, "empty row"] += 1
            continue
        saturated = abs(predictions[-1]) == options["clip"]
        started, dense, folded = up.get("found"), up.get("dense_rounds"), up.get("folds")
        branches = {
            "first row": t == 0,
            "saturated": saturated,
            "within the clip": not saturated,
            "zero slope": slopes[options["loss"]](predictions[-1], y[t]) == 0,
            "dense round": dense,
            "fold": folded and not dense,
            "clean-up": up.get("cleanings"),
            "row start": started,
            "row start in a dense round": started and dense,
            "row start in a round that folds": started and folded and not dense,
            "no row start": not started
            and after.get("found", np.inf) < options.get("sketch_size", 0),
            "shrink": up.get("shrinks"),
            "shrink when saturated": up.get("shrinks") and saturated,
        }
        if options.get("alpha") == 0:
            new = np.linalg.matrix_rank(X[: t + 1]) > np.linalg.matrix_rank(X[:t])
            branches |= {
                "alpha 0, outside the range": new,
                "alpha 0, in the range": not new and not saturated,
                "alpha 0, in the range, saturated": not new and saturated,
            }
        if name == "FTRLProximal":
            seen, was = model._state.zn[:, 1] > 0, weights != 0
            weights = model.coef_
            branches |= {
                "a weight that stays 0": (seen & ~was & (weights == 0)).any(),
                "a weight that leaves 0": (~was & (weights != 0)).any(),
                "a weight that returns to 0": (was & (weights == 0)).any(),
            }
        if name == "NAG":
            before, size = np.abs(X[:t]).max(0, initial=0.0), np.abs(X[t])
            branches |= {
                "a feature's first value": (size > before)[before == 0].any(),
                "a larger value than before": (size > before)[before > 0].any(),
                "no larger value": not (size > before).any(),
            }
        BRANCHES.update((name, branch) for branch, taken in branches.items() if taken)
    return np.array(predictions), model


def conditioning(reference, exact):
    """What double arithmetic may do to a prediction: (at each round of its own (n,), so far to the
    state (n,)), relative to the clip.

    That is how far literal references in double are from `exact`, the one in long double. One of
    them may be right by luck: it is run on the features in both orders, with the noise that
    rounding makes, and with A⁻¹ by the paper's formula. It is measured on uᵀx, since the bound on
    predictions hides what is beyond it.
    """
    clip, products = reference.options["clip"], exact[3]
    noises = [{"noise": np.random.default_rng(seed)} for seed in range(2)]
    double = [reference.run(**how) for how in ({}, {"flipped": True}, *noises, {"printed": True})]
    errors = np.max([np.abs(run[3] - products) for run in double], axis=0)
    errors = np.where(np.isfinite(errors), errors, np.inf).astype(float)
    return errors / clip, np.maximum.accumulate(
        errors / np.maximum(clip, np.abs(products)).astype(float)
    )


def assert_agrees(reference, predictions, small=SMALL):
    """The predictions are the long double reference's, as far as references in double say that they
    can be. NaN stands for the rounds after a divergence.

    Returns (rounds that were compared at `small`, the long double run).
    """
    clip = reference.options["clip"]
    multiple = OF_INVERSES if reference.name in ("ONS", "FDSON") else MULTIPLE
    with np.errstate(all="ignore"):
        exact = reference.run(np.longdouble)
        own, so_far = conditioning(reference, exact)
        errors = np.abs(predictions - exact[0]) / clip
    allowed = np.maximum(small, multiple * np.maximum(own, so_far))
    known = ~np.isnan(predictions)
    wrong = np.flatnonzero(~(errors <= allowed) & (so_far < LOST) & known)
    assert wrong.size == 0, (
        f"row {wrong[0]}: {predictions[wrong[0]]!r}, reference {exact[0][wrong[0]]!r}; error"
        f" {float(errors[wrong[0]]):.1e} of the clip, allowed {allowed[wrong[0]]:.1e}"
    )
    return int(np.sum((allowed == small) & known)), exact


# Streams
# --------------------------------------------------------------------------------------------------


def labels(draw, n, options):
    """Labels (n,): within the clip, now and then at it, for a squared loss; ±1 for others."""
    if "squared" not in options["loss"] or "hinge" in options["loss"]:
        return np.where(draw.random(n) < 0.5, -1.0, 1.0)
    y = draw.uniform(-1, 1, n) * options["clip"]
    return np.where(draw.random(n) < 0.2, np.sign(y) * options["clip"], y)


well_behaved = st.fixed_dictionaries(
    {
        "stream": st.integers(0, 10_000),
        "d": st.sampled_from([5, 8]),
        "density": st.sampled_from([0.2, 0.5, 1.0]),
        "options": st.fixed_dictionaries(
            {
                "sketch_size": st.sampled_from([1, 3, 6]),
                "alpha": st.sampled_from([1.0, 4.0, 20.0]),
                "step_size": st.sampled_from([0.05, 0.5]),
                "clip": st.sampled_from([0.3, 1.0, 3.0]),
                "sketch_rate": st.sampled_from([1.0, 16.0, 128.0]),
                "curvature_schedule": st.sampled_from(["constant", "decreasing"]),
                "fit_intercept": st.booleans(),
                "seed": st.integers(0, 100),
            }
        ),
    }
)


def well_behaved_stream(case, options):
    X, _ = stream(case["stream"], n=40, d=case["d"], density=case["density"])
    return X, labels(np.random.default_rng(case["stream"] + 1), len(X), options)


# Learners that keep an inverse or a factor of αI + SSᵀ lose the digits of its condition number.
# They are given rows whose sizes differ by a thousand, the others by 1e14.
KEEPS_AN_INVERSE = ("ONS", "RPSON", "FDSON")
SIZES = {
    False: {"tiny": 1e-8, "huge": 1e6, "empty": 0.0},
    True: {"tiny": 0.1, "huge": 30.0, "empty": 0.0},
}
KINDS = ["fresh", "repeated", "multiple", "combined", "near", "tiny", "huge", "empty"]
hard = st.fixed_dictionaries(
    {
        "stream": st.integers(0, 10_000),
        "d": st.integers(1, 7),
        "among": st.sets(st.sampled_from(KINDS[1:])).map(sorted),
        "kinds": st.lists(st.integers(0, 999), min_size=3, max_size=40),
        "options": st.fixed_dictionaries(
            {
                "loss": st.sampled_from(["squared", "squared", "logistic", "squared_hinge"]),
                "sketch_size": st.integers(1, 6),
                "alpha": st.sampled_from([1e-3, 0.1, 1.0, 10.0]),
                "curvature": st.sampled_from([0.125, 1.0]),
                "step_size": st.sampled_from([1e-3, 0.1, 1.0]),
                "clip": st.sampled_from([0.5, 1.0, 10.0]),
                "sketch_rate": st.sampled_from([1.0, 16.0, 128.0]),
                "curvature_schedule": st.sampled_from(["constant", "decreasing"]),
                "fit_intercept": st.booleans(),
                "seed": st.integers(0, 100),
            }
        ),
    }
)


def hard_stream(case, options, moderate):
    """Rows of small whole numbers, and of the kinds among which this stream has: what earlier rows
    make, tiny, huge, empty.
    """
    draw = np.random.default_rng(case["stream"])
    kinds = ["fresh", "fresh", *case["among"]]
    X = np.zeros((0, case["d"]))
    for number in case["kinds"]:
        kind = kinds[number % len(kinds)]
        fresh = draw.integers(-3, 4, case["d"]) * draw.choice([1.0, 1.0, 0.1, 10.0])
        one, other = np.vstack([fresh, X])[draw.integers(len(X) + 1, size=2)]
        x = {
            "repeated": one,
            "multiple": one * draw.choice([-0.3, 7.0, 3.0 if moderate else 1000.0]),
            "combined": 2 * one - 0.5 * other,
            "near": one + 0.05 * np.abs(one).max() * draw.standard_normal(case["d"]),
        }.get(kind, fresh)
        X = np.vstack([X, x * SIZES[moderate].get(kind, 1.0)])
    return X, labels(draw, len(X), options)


# Tests
# --------------------------------------------------------------------------------------------------


def assert_same_state(name, model, exact, sketch_size):
    """Weights and sketch are those of the reference `exact`."""
    _, weights, sketch, _ = exact
    near = {"rtol": 1e-8, "atol": 1e-8 * max(1.0, float(np.abs(weights).max()))}
    np.testing.assert_allclose(model.coef_, weights.astype(float), **near)
    if name == "OjaSON":
        filled = len(sketch.V)
        np.testing.assert_allclose(model.sketch_[:filled], sketch.V.astype(float), atol=1e-8)
        assert not model.sketch_[filled:].any()
        np.testing.assert_allclose(
            model.eigenvalues_[:filled], sketch.eigenvalues.astype(float), rtol=1e-8, atol=1e-8
        )
    if name in ("RPSON", "FDSON"):
        found, S = model.sketch_, sketch.S.astype(float)
        assert S.shape == found.shape == (sketch_size, weights.size)
        if name == "FDSON":  # rows are defined up to their sign
            np.testing.assert_allclose(model.buffer_, sketch.buffer.astype(float), atol=1e-8)
            found, S = found.T @ found, S.T @ S
        np.testing.assert_allclose(found, S, atol=1e-8)


@pytest.mark.parametrize("loss", slopes)
@pytest.mark.parametrize("cell", CELLS, ids=str)
@settings(max_examples=4, deadline=None)
@given(case=well_behaved)
def test_well_behaved_streams__give_the_papers_numbers_weights_and_sketch(cell, loss, case):
    name, fixed = cell
    options = options_of(
        name,
        fixed,
        {**case["options"], "loss": loss, **({"curvature": 0.3} if loss == "hinge" else {})},
    )
    X, y = well_behaved_stream(case, options)
    reference = Reference(name, options, X, y)
    predictions, model = learn(*reference)
    if (
        options.get("alpha") == 0
    ):  # a small gradient makes a large step: no such stream is well-behaved
        assert_agrees(reference, predictions)
    else:
        expected = reference.run()
        np.testing.assert_allclose(predictions, expected[0], atol=SMALL * options["clip"], rtol=0)
        assert_same_state(name, model, expected, options.get("sketch_size"))


@pytest.mark.parametrize("cell", CELLS, ids=str)
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)  # shrinking takes minutes
@given(case=hard)
def test_hard_streams__are_predicted_as_well_as_the_stream_is_conditioned(cell, case):
    name, fixed = cell
    moderate = name in KEEPS_AN_INVERSE
    options = options_of(name, fixed, case["options"])
    if moderate and options["alpha"] > 0:
        options["alpha"] = max(options["alpha"], 0.1)
    X, y = hard_stream(case, options, moderate)
    reference = Reference(name, options, X, y)
    assert_agrees(reference, learn(*reference)[0])


def directed(kind, seed, n, decades):
    """Streams that force what is rare: features of scales 10^±`decades`, rows nearly on a line,
    blocks of alike rows, rows that grow.
    """
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, 6))
    line = draw.standard_normal(6) * draw.standard_normal((n, 1))
    rows = {
        "plain": X,
        "scales": X * 10 ** draw.uniform(-decades, decades, 6),
        "collinear": line + 0.01 * X * (draw.random((n, 1)) < 0.1),
        "alike": draw.random(6) + 0.02 * np.geomspace(1, 0.1, 6) * X,
        "growing": X * np.geomspace(1e-2, 30, n)[:, None],
    }
    return rows[kind], draw.choice([-1.0, 1.0], n)


DIRECTED = ["plain", "scales", "collinear", "alike", "growing"]
DIRECTED_CELLS = [
    ("ONS", {}),
    ("OjaSON", {"sketch_start": "random"}),
    ("OjaSON", {"sketch_start": "gradients"}),
    ("RPSON", {}),
    ("FDSON", {}),
]


@pytest.mark.parametrize(("seed", "rate"), [(0, 1.0), (1, 128.0)])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("kind", DIRECTED)
@pytest.mark.parametrize("cell", DIRECTED_CELLS, ids=str)
def test_directed_streams__are_predicted_as_well_as_the_stream_is_conditioned(
    cell, kind, alpha, seed, rate
):
    name, fixed = cell
    drawn = {"loss": "squared", "clip": 1.0, "curvature": 0.125, "sketch_size": 3}
    drawn |= {"sketch_rate": rate, "seed": seed}
    drawn["alpha"] = max(alpha, 0.1) if name in KEEPS_AN_INVERSE else alpha
    options = options_of(name, fixed, drawn)
    X, y = directed(kind, seed, 150, 1 if name in KEEPS_AN_INVERSE else 4)
    reference = Reference(name, options, X, y)
    assert_agrees(reference, learn(*reference)[0], SMALL_AFTER_LONG.get(name, SMALL))


def test_many_shrinks__lose_nothing_when_their_maps_are_applied_to_all_columns():
    # FD-SON keeps the maps of 2048 shrinks, one a round here, before every column is brought up to
    # date.
    options = {"loss": "squared", "clip": 1.0, "curvature": 0.125, "sketch_size": 1, "alpha": 20.0}
    draw = np.random.default_rng(0)
    X = draw.standard_normal((2300, 3)) * (draw.random((2300, 3)) < 0.7) / 2
    reference = Reference("FDSON", options, X, draw.uniform(-0.5, 0.5, 2300))
    predictions, model = learn(*reference)
    expected = reference.run()
    np.testing.assert_allclose(predictions, expected[0], atol=SMALL, rtol=0)
    assert_same_state("FDSON", model, expected, 1)


# The references themselves
# ----------------------------------------------------------------------------------


def random_rows(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("dtype", [float, np.longdouble])
@pytest.mark.parametrize("shape", [(1, 4), (6, 8), (12, 3), (5, 5)])
def test_algebra__is_numpys(shape, dtype):
    rounding, plain = 100 * np.finfo(dtype).eps, random_rows(1, *shape)
    S = plain.astype(dtype)
    A = S.T @ S + np.eye(shape[1])
    values, V = eigen_of_rows(S)
    np.testing.assert_allclose(
        values.astype(float), (np.linalg.svd(plain, compute_uv=False) ** 2), rtol=1e-12
    )
    assert np.abs(V @ V.T - np.eye(len(V))).max() < rounding
    assert np.abs((V.T * values) @ V - S.T @ S).max() < rounding * values[0]
    assert np.abs(A @ solve(A, S[0]) - S[0]).max() < rounding * (1 + values[0])
    Q, triangle = np.linalg.qr(plain[: shape[1]].T)
    np.testing.assert_allclose(
        gram_schmidt(S[: shape[1]]).astype(float), (Q * np.sign(np.diag(triangle))).T, atol=1e-10
    )


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize(
    "sketch",
    [
        Oja(3, 1.0),
        Oja(3, 4.0, np.eye(3, 5)),
        FrequentDirections(3),
        BufferedFrequentDirections(3),
        RandomProjection(random_rows(2, 30, 3)),
    ],
    ids=lambda sketch: type(sketch).__name__,
)
def test_inverse__is_that_of_alpha_and_the_sketch_also_by_the_papers_formula(sketch, printed):
    y, shared = np.sign(random_rows(4, 29, 1)[:, 0]), {"alpha": 2.0, "curvature": 0.3, "clip": 1.0}
    sketch.printed = printed
    sketched_newton(random_rows(3, 29, 5), y, sketch, slope=slopes["squared"], **shared)
    S, v = sketch.rows(), random_rows(5, 1, 5)[0]
    np.testing.assert_allclose(
        sketch.inverse(v), np.linalg.solve(2.0 * np.eye(5) + S.T @ S, v), atol=1e-12
    )


@pytest.mark.parametrize(
    "sketch", [FrequentDirections(4), BufferedFrequentDirections(3)], ids=["printed", "buffered"]
)
def test_frequent_directions__are_the_full_matrix_while_nothing_is_shrunk(sketch):
    X, y = random_rows(6, 40, 3) @ random_rows(7, 3, 6), np.sign(random_rows(8, 40, 1)[:, 0])
    shared = {"alpha": 2.0, "curvature": 0.3, "clip": 1.0, "slope": slopes["logistic"]}
    full, sketched = (sketched_newton(X, y, s, **shared)[0] for s in (FullMatrix(), sketch))
    np.testing.assert_allclose(sketched, full, atol=1e-10)


@pytest.mark.parametrize("m", [1, 4])
def test_random_projections__have_variance_one_over_m(m):
    R = projections(m, 3, 2000)
    assert abs(R.mean()) < 4 / np.sqrt(m * R.size)
    assert m * np.mean(R**2) == pytest.approx(1.0, abs=6 / np.sqrt(R.size))


# Branches
# --------------------------------------------------------------------------------------------------

EVERY = ["empty row", "first row", "saturated", "within the clip", "zero slope"]
EXPECTED = {
    "OGD": EVERY,
    "AdaGrad": EVERY,
    "FTRLProximal": [
        *EVERY,
        "a weight that stays 0",
        "a weight that leaves 0",
        "a weight that returns to 0",
    ],
    "NAG": [*EVERY, "a feature's first value", "a larger value than before", "no larger value"],
    "ONS": [
        *EVERY,
        "alpha 0, outside the range",
        "alpha 0, in the range",
        "alpha 0, in the range, saturated",
    ],
    "OjaSON": [
        *EVERY,
        "dense round",
        "fold",
        "clean-up",
        "row start",
        "row start in a dense round",
        "row start in a round that folds",
        "no row start",
    ],
    "RPSON": [*EVERY, "dense round", "fold"],
    "FDSON": [*EVERY, "shrink", "shrink when saturated", "fold"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_branch__occurred_in_the_tests_above(name):
    if not BRANCHES:
        pytest.skip("needs the tests above, in the same session")
    missing = [branch for branch in EXPECTED[name] if not BRANCHES[name, branch]]
    assert not missing, {
        branch: n for (learner, branch), n in sorted(BRANCHES.items()) if learner == name
    }
