"""Every linear learner with every option against the paper's algorithms, written out in `oracles`.

A literal reference is run in double and in long double. Where the two agree to 1e-9 of the clip, so
must the learner; where they do not, the stream is badly conditioned, and the learner may be off by
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
from scipy import sparse

import koco_stream
from tests.oracles import first_order
from tests.oracles.exact_algebra import cholesky, eigen_of_rows, gram_schmidt, solve
from tests.oracles.losses import curvatures, slopes
from tests.oracles.sketched_newton import (
    BufferedFrequentDirections,
    FrequentDirections,
    FullMatrix,
    Oja,
    RandomProjection,
    sketched_newton,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:a label"
)  # labels beyond the clip are among the cases

SMALL = 1e-9  # of the clip: what rounding may do to a prediction on a well-conditioned stream
MULTIPLE = 10  # of what references in double are off by, on other streams
OF_INVERSES = 100  # the same for ONS and FDSON, which keep an inverse through rank-one changes
# In place of SMALL after 150 hard rows: w̄ and Vᵀβ (for RP-SON x and SᵀHSx) cancel where the sketch
# is far above α.
SMALL_AFTER_LONG = {"OjaSON": 1e-8, "RPSON": 1e-6}
# from the round on where a reference in double is off by this share of uᵀx, or of the clip, nothing
# is compared
LOST = 1e-2
BRANCHES = Counter()

SKETCHED = [
    {"diagonal": diagonal, "projection": projection}
    for diagonal, projection in product([False, True, "updated"], ["weights", "prediction"])
]
CELLS = [
    ("OGD", {"projection": "weights"}),
    ("OGD", {"projection": "prediction"}),
    ("AdaGrad", {}),
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


def label_of(value):
    if isinstance(value, str):
        return value
    name, options = value
    return "-".join([name, *(v if isinstance(v, str) else f"{k}{v}" for k, v in options.items())])


def make(name, options):
    """The learner. An option that has its default is left out."""
    defaults = {"diagonal": False, "projection": "weights"}
    given_ = {k: v for k, v in options.items() if k not in defaults or v != defaults[k]}
    return getattr(koco_stream, name)(**given_)


def options_of(name, cell, drawn):
    """The constructor's arguments of a case: those of the cell, and of `drawn` those that the
    learner has.
    """
    own = {"loss", "clip", "fit_intercept", "seed"}
    if name in ("OGD", "AdaGrad"):
        own |= {"step_size"}
    else:
        own |= {"alpha", "curvature", "curvature_schedule"}
    if name in ("OjaSON", "RPSON", "FDSON"):
        own |= {"sketch_size"}
    if name == "OjaSON":
        own |= {"sketch_rate"}
    return {**{k: v for k, v in drawn.items() if k in own}, **cell}


class Reference(NamedTuple):
    """A learner's reference on given rows: `run` makes it anew."""

    name: str
    options: dict
    X: np.ndarray
    y: np.ndarray

    def run(self, dtype=float, flipped=False, noise=None, printed=False):
        """(predictions (n,), weights (d,), sketch or None, uᵀx (n,) before it is bounded).

        `flipped`: with the features in reverse order. `noise`: as in `sketched_newton`. `printed`:
        as in `oracles.sketched_newton.Sketch`.
        """
        o = self.options
        X = np.hstack([self.X, np.ones((len(self.X), 1))]) if o.get("fit_intercept") else self.X
        order = slice(None, None, -1 if flipped else 1)
        X = X[:, order]
        shared = {"clip": o["clip"], "slope": slopes[o["loss"]], "dtype": dtype}
        if self.name == "AdaGrad":
            predictions, weights = first_order.adagrad(
                X, self.y, step_size=o["step_size"], **shared
            )
            return predictions, weights, None, predictions
        shared["projection"] = o.get("projection", "weights")
        if self.name == "OGD":
            predictions, weights = first_order.ogd(X, self.y, step_size=o["step_size"], **shared)
            return predictions, weights, None, predictions
        if self.name == "OjaSON":
            start = (
                None
                if o["sketch_start"] == "gradients"
                else random_start(o, self.X.shape[1])[:, order]
            )
            sketch = Oja(o["sketch_size"], o["sketch_rate"], start)
        elif self.name == "RPSON":
            sketch = RandomProjection(projections(o["sketch_size"], o["seed"], len(X)))
        elif self.name == "FDSON":
            sketch = BufferedFrequentDirections(o["sketch_size"])
        else:
            sketch = FullMatrix()
        sketch.printed = printed
        curvature = o.get("curvature")
        return sketched_newton(
            X,
            self.y,
            sketch,
            alpha=o["alpha"],
            curvature=curvatures[o["loss"]](o["clip"]) if curvature is None else curvature,
            decreasing=o.get("curvature_schedule") == "decreasing",
            diagonal=o.get("diagonal", False),
            noise=noise,
            **shared,
        )


def random_start(options, d):
    """V_0 (m, d) of an OjaSON that has seen no row; rows that d leaves no room for are left out."""
    V = make("OjaSON", options).partial_fit(np.zeros((0, d)), np.zeros(0)).sketch_
    return V[np.any(V != 0, axis=1)]


def projections(m, seed, n):
    """The vectors r_t (n, m) of an RPSON: its sketch after n rows e_t, for which ĝ_t is −e_t."""
    probe = koco_stream.RPSON(m, 1.0, curvature=0.25, seed=seed)
    return -probe.partial_fit(np.eye(n), np.ones(n)).sketch_.T


def counters(model):
    """How often so far: whatever of these the learner's state has."""
    names = ("folds", "dense_rounds", "shrinks", "found", "filled")
    return {k: int(getattr(model._state, k)) for k in names if hasattr(model._state, k)}


def learn(name, options, X, y):
    """(predictions (n,), the learner), learning row by row. Counts the branches taken."""
    model = make(name, options).partial_fit(X[:0], y[:0])
    predictions, before = [], counters(model)
    for t in range(len(X)):
        predictions.append(model.progressive(X[t : t + 1], y[t : t + 1])[0])
        after = counters(model)
        up = {k: after[k] > before[k] for k in after}
        empty = not X[t].any() and not options.get("fit_intercept")
        branches = {"empty row": empty}
        if not empty:
            saturated = abs(predictions[-1]) == options["clip"]
            started, dense, folded = up.get("found"), up.get("dense_rounds"), up.get("folds")
            branches |= {
                "first row": t == 0,
                "saturated": saturated,
                "within the clip": not saturated,
                "zero slope": slopes[options["loss"]](predictions[-1], y[t]) == 0,
                "dense round": dense,
                "fold": folded and not dense,
                "row start": started,
                "row start in a dense round": started and dense,
                "row start in a round that folds": started and folded and not dense,
                "no row start": (
                    "found" in after and not started and after["found"] < options["sketch_size"]
                ),
                "shrink": up.get("shrinks"),
                "shrink when saturated": up.get("shrinks") and saturated,
            }
            if options.get("alpha") == 0:
                new = np.linalg.matrix_rank(X[: t + 1]) > np.linalg.matrix_rank(X[:t])
                place = "off" if new else "in"
                branches[f"alpha 0, {place} the range{', saturated' if saturated else ''}"] = True
        BRANCHES.update((name, branch) for branch, taken in branches.items() if taken)
        before = after
    return np.array(predictions), model


def conditioning(reference, exact):
    """What double arithmetic may do to a prediction: (at each round of its own (n,), so far to the
    state (n,)), relative to the clip.

    That is how far literal references in double are from `exact`, the one in long double. One of
    them may be right by luck: it is run on the features in both orders, with the noise that
    rounding makes, and with A⁻¹ by the paper's formula. It is measured on uᵀx, since the bound on
    predictions hides what is beyond it.
    """
    clip = reference.options["clip"]
    double = [reference.run(float, flipped) for flipped in (False, True)]
    double += [reference.run(float, noise=np.random.default_rng(seed)) for seed in range(2)]
    double.append(reference.run(float, printed=True))
    products = exact[3]
    off = np.max([np.abs(run[3] - products) for run in double], axis=0)
    off = np.where(np.isfinite(off), off, np.inf).astype(float)
    return off / clip, np.maximum.accumulate(off / np.maximum(clip, np.abs(products)).astype(float))


def assert_agrees(reference, predictions, small=SMALL):
    """The predictions are the long double reference's, as far as references in double say that they
    can be.

    Returns (rounds that were compared at `small`, the long double run).
    """
    clip = reference.options["clip"]
    multiple = OF_INVERSES if reference.name in ("ONS", "FDSON") else MULTIPLE
    with np.errstate(all="ignore"):
        exact = reference.run(np.longdouble)
        own, so_far = conditioning(reference, exact)
        off = np.abs(predictions - exact[0]) / clip
    allowed = np.maximum(small, multiple * np.maximum(own, so_far))
    wrong = np.flatnonzero(~(off <= allowed) & (so_far < LOST))
    assert wrong.size == 0, (
        f"row {wrong[0]}: {predictions[wrong[0]]!r}, reference {exact[0][wrong[0]]!r}; off by"
        f" {float(off[wrong[0]]):.1e} of the clip, allowed {allowed[wrong[0]]:.1e}"
    )
    return int(np.sum(allowed == small)), exact


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


def well_behaved_stream(case, options, n=40):
    draw, d = np.random.default_rng(case["stream"]), case["d"]
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < case["density"])
    X[draw.random(n) < 0.05] = 0.0
    return X / np.sqrt((X**2).sum(1).mean()), labels(draw, n, options)


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
        x = draw.integers(-3, 4, case["d"]) * draw.choice([1.0, 1.0, 0.1, 10.0])
        if len(X) and kind in ("repeated", "multiple", "combined", "near"):
            one, other = X[draw.integers(len(X), size=2)]
            x = {
                "repeated": one,
                "multiple": one * draw.choice([-0.3, 7.0, 3.0 if moderate else 1000.0]),
                "combined": 2 * one - 0.5 * other,
                "near": one + 0.05 * np.abs(one).max() * draw.standard_normal(case["d"]),
            }[kind]
        x = x * SIZES[moderate].get(kind, 1.0)
        X = np.vstack([X, x])
    return X, labels(draw, len(X), options)


# Tests
# --------------------------------------------------------------------------------------------------


def assert_same_state(name, model, exact, sketch_size):
    """Weights and sketch are those of the reference `exact`."""
    _, weights, sketch, _ = exact
    near = {"rtol": 1e-8, "atol": 1e-8 * max(1.0, float(np.abs(weights).max()))}
    np.testing.assert_allclose(model.coef_, weights.astype(float), **near)
    if name == "OjaSON":
        V = sketch.V.astype(float)
        np.testing.assert_allclose(model.sketch_[: len(V)], V, atol=1e-8)
        assert not model.sketch_[len(V) :].any()
        eigenvalues = sketch.eigenvalues.astype(float)
        np.testing.assert_allclose(model.eigenvalues_[: len(V)], eigenvalues, rtol=1e-8, atol=1e-8)
    if name in ("RPSON", "FDSON"):
        S = sketch.S.astype(float)
        assert S.shape == model.sketch_.shape == (sketch_size, weights.size)
    if name == "RPSON":
        np.testing.assert_allclose(model.sketch_, S, atol=1e-8)
    if name == "FDSON":  # rows are defined up to their sign
        np.testing.assert_allclose(model.sketch_.T @ model.sketch_, S.T @ S, atol=1e-8)
        np.testing.assert_allclose(model.buffer_, sketch.buffer.astype(float), atol=1e-8)


@pytest.mark.parametrize("loss", slopes)
@pytest.mark.parametrize("cell", CELLS, ids=label_of)
@settings(max_examples=4, deadline=None)
@given(case=well_behaved)
def test_well_behaved_streams__give_the_papers_numbers_weights_and_sketch(cell, loss, case):
    name, fixed = cell
    drawn = {**case["options"], "loss": loss, **({"curvature": 0.3} if loss == "hinge" else {})}
    options = options_of(name, fixed, drawn)
    X, y = well_behaved_stream(case, options)
    predictions, model = learn(name, options, X, y)
    reference = Reference(name, options, X, y)
    if (
        options.get("alpha") == 0
    ):  # a small gradient makes a large step: no such stream is well-behaved
        assert_agrees(reference, predictions)
    else:
        expected = reference.run()
        np.testing.assert_allclose(predictions, expected[0], atol=SMALL * options["clip"], rtol=0)
        assert_same_state(name, model, expected, options.get("sketch_size"))


@pytest.mark.parametrize("cell", CELLS, ids=label_of)
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
    predictions, _ = learn(name, options, X, y)
    assert_agrees(Reference(name, options, X, y), predictions)


OJA = {"loss": "squared", "clip": 1.0, "sketch_rate": 1.0, "sketch_start": "gradients", "seed": 0}


@pytest.mark.parametrize(
    ("X", "y", "m", "alpha", "last"),
    [
        ([[30, 0], [30, 20], [30, 10]], [1, -1, 1], 2, 1.0, 0.533948),
        ([[1, 0, 0], [1, 0.2, 0], [1, 0.2, 0.01], [1, 0.2, 0.5]], [1, -1, 1, -1], 3, 1e-3, 1.0),
    ],
    ids=["in a dense round", "by growth"],
)
def test_a_row_that_starts_in_a_round_that_folds__is_part_of_the_sketch(X, y, m, alpha, last):
    X, y = np.array(X, float), np.array(y, float)
    options = {**OJA, "sketch_size": m, "alpha": alpha}
    predictions, model = learn("OjaSON", options, X, y)
    sharp, exact = assert_agrees(Reference("OjaSON", options, X, y), predictions)
    assert sharp == len(X)
    assert predictions[-1] == pytest.approx(last, abs=1e-6)
    assert_same_state("OjaSON", model, exact, m)


def directed(kind, seed, n, decades):
    """Streams that force what is rare: features of scales 10^±`decades`, rows nearly on a line,
    blocks of alike rows, rows that grow.
    """
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, 6))
    if kind == "scales":
        X = X * 10 ** draw.uniform(-decades, decades, 6)
    if kind == "collinear":
        X = draw.standard_normal(6) * draw.standard_normal((n, 1)) + 0.01 * X * (
            draw.random((n, 1)) < 0.1
        )
    if kind == "alike":
        X = draw.random(6) + 0.02 * np.geomspace(1, 0.1, 6) * X
    if kind == "growing":
        X = X * np.geomspace(1e-2, 30, n)[:, None]
    return X, np.where(draw.random(n) < 0.5, -1.0, 1.0)


DIRECTED = ["plain", "scales", "collinear", "alike", "growing"]
DIRECTED_CELLS = [
    ("ONS", {}),
    ("OjaSON", {"sketch_start": "random"}),
    ("OjaSON", {"sketch_start": "gradients"}),
    ("RPSON", {}),
    ("FDSON", {}),
]


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("kind", DIRECTED)
@pytest.mark.parametrize("cell", DIRECTED_CELLS, ids=label_of)
def test_directed_streams__are_predicted_as_well_as_the_stream_is_conditioned(cell, kind, alpha):
    name, fixed = cell
    for seed, rate in enumerate([1.0, 128.0]):
        drawn = {
            "loss": "squared",
            "clip": 1.0,
            "curvature": 0.125,
            "sketch_size": 3,
            "alpha": max(alpha, 0.1) if name in KEEPS_AN_INVERSE else alpha,
            "sketch_rate": rate,
            "seed": seed,
        }
        options = options_of(name, fixed, drawn)
        X, y = directed(kind, seed, 150, 1 if name in KEEPS_AN_INVERSE else 4)
        predictions, _ = learn(name, options, X, y)
        assert_agrees(
            Reference(name, options, X, y), predictions, SMALL_AFTER_LONG.get(name, SMALL)
        )


def test_many_shrinks__lose_nothing_when_their_maps_are_applied_to_all_columns():
    # FD-SON keeps the maps of 2048 shrinks, one a round here, before every column is brought up to
    # date.
    options = {"loss": "squared", "clip": 1.0, "curvature": 0.125, "sketch_size": 1, "alpha": 20.0}
    draw = np.random.default_rng(0)
    X = draw.standard_normal((2300, 3)) * (draw.random((2300, 3)) < 0.7) / 2
    y = draw.uniform(-0.5, 0.5, 2300)
    predictions, model = learn("FDSON", options, X, y)
    expected = Reference("FDSON", options, X, y).run()
    np.testing.assert_allclose(predictions, expected[0], atol=SMALL, rtol=0)
    assert_same_state("FDSON", model, expected, 1)


def csr_with_zeros(X):
    """CSR with a stored zero in each row that has one to spare."""
    full = sparse.csr_matrix(np.where(X == 0, 7.0, X))
    full.data[full.data == 7.0] = 0.0
    return full


FORMS = {
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_matrix,
    "COO": sparse.coo_array,
    "CSR with stored zeros": csr_with_zeros,
    "CSR of float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("name", ["OGD", "AdaGrad", "ONS", "OjaSON", "RPSON", "FDSON"])
def test_every_form_of_input__gives_the_papers_predictions(name, form, intercept):
    drawn = {
        **OJA,
        "sketch_size": 3,
        "alpha": 2.0,
        "step_size": 0.1,
        "curvature": 0.125,
        "fit_intercept": intercept,
    }
    options = options_of(name, {"sketch_start": "gradients"} if name == "OjaSON" else {}, drawn)
    case = {"stream": 5, "d": 8, "density": 0.4}
    X, y = well_behaved_stream(case, options)
    X = X.astype(np.float32).astype(float)  # so that float32 loses nothing
    model = make(name, options)
    predictions = np.concatenate(
        [model.progressive(FORMS[form](X[a:b]), y[a:b]) for a, b in ((0, 1), (1, 25), (25, 40))]
    )
    np.testing.assert_allclose(
        predictions, Reference(name, options, X, y).run()[0], atol=SMALL, rtol=0
    )


# The references themselves
# ----------------------------------------------------------------------------------


def random_rows(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("dtype", [float, np.longdouble])
@pytest.mark.parametrize("shape", [(1, 4), (6, 8), (12, 3), (5, 5)])
def test_algebra__is_numpys(shape, dtype):
    rounding = 100 * np.finfo(dtype).eps
    S = random_rows(1, *shape)
    A = S.T @ S + np.eye(shape[1])
    values, V = eigen_of_rows(S.astype(dtype))
    np.testing.assert_allclose(
        values.astype(float), np.linalg.eigvalsh(A)[::-1][: min(shape)] - 1, rtol=1e-12
    )
    assert np.abs(V @ V.T - np.eye(len(V))).max() < rounding
    assert (
        np.abs((V.T * values) @ V - S.T.astype(dtype) @ S.astype(dtype)).max()
        < rounding * values[0]
    )
    np.testing.assert_allclose(
        cholesky(A.astype(dtype)).astype(float), np.linalg.cholesky(A), atol=1e-12
    )
    b = S[0].astype(dtype)
    assert np.abs(
        A.astype(dtype) @ solve(A.astype(dtype), b) - b
    ).max() < rounding * np.linalg.norm(A)
    Q, R = np.linalg.qr(S[: shape[1]].T)
    np.testing.assert_allclose(
        gram_schmidt(S[: shape[1]].astype(dtype)).astype(float),
        (Q * np.sign(np.diag(R))).T,
        atol=1e-10,
    )


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
def test_inverse__is_the_papers_with_s_and_h(sketch):
    shared = {"alpha": 2.0, "curvature": 0.3, "clip": 1.0, "slope": slopes["squared"]}
    run = sketched_newton(
        random_rows(3, 29, 5), np.sign(random_rows(4, 29, 1)[:, 0]), sketch, **shared
    )
    S, v = run.sketch.S, random_rows(5, 1, 5)[0]
    if isinstance(sketch, BufferedFrequentDirections):
        S = np.vstack([S, run.sketch.buffer])
    H = np.linalg.inv(2.0 * np.eye(len(S)) + S @ S.T)
    np.testing.assert_allclose(run.sketch.inverse(v), (v - S.T @ H @ (S @ v)) / 2.0, atol=1e-12)
    np.testing.assert_allclose(
        run.sketch.inverse(v), np.linalg.solve(2.0 * np.eye(5) + S.T @ S, v), atol=1e-12
    )


@pytest.mark.parametrize(
    "make_sketch",
    [lambda: FrequentDirections(4), lambda: BufferedFrequentDirections(3)],
    ids=["printed", "buffered"],
)
def test_frequent_directions__are_the_full_matrix_while_nothing_is_shrunk(make_sketch):
    X, y = random_rows(6, 40, 3) @ random_rows(7, 3, 6), np.sign(random_rows(8, 40, 1)[:, 0])
    shared = {"alpha": 2.0, "curvature": 0.3, "clip": 1.0, "slope": slopes["logistic"]}
    full = sketched_newton(X, y, FullMatrix(), **shared)
    np.testing.assert_allclose(
        sketched_newton(X, y, make_sketch(), **shared).predictions, full.predictions, atol=1e-10
    )


def test_pseudo_inverse__is_that_of_a_and_makes_scales_of_features_irrelevant():
    # The rows that first span the space are orthogonal on every scale. Other rows outside the range
    # would be predicted by their Euclidean projection onto it, which a linear map changes.
    X, y = np.vstack([np.eye(3), random_rows(9, 27, 3)]), np.sign(random_rows(11, 30, 1)[:, 0])
    shared = {"curvature": 0.3, "clip": 1.0, "slope": slopes["logistic"], "dtype": np.longdouble}
    one, other = (
        sketched_newton(X * scales, y, FullMatrix(), alpha=0.0, **shared)
        for scales in (np.ones(3), np.array([1.0, 30.0, 1e3]))
    )
    inverse = np.linalg.pinv(one.sketch.A.astype(float)) @ X[-1]
    np.testing.assert_allclose(one.sketch.inverse(X[-1]).astype(float), inverse, rtol=1e-8)
    assert np.abs(one.predictions - other.predictions).max() < 1e-10


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
    "ONS": [
        *EVERY,
        "alpha 0, off the range",
        "alpha 0, in the range",
        "alpha 0, in the range, saturated",
    ],
    "OjaSON": [
        *EVERY,
        "dense round",
        "fold",
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
