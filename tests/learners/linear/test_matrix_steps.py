"""RFD-SON, S-AdaGrad, Ada-FD and full AdaGrad against their algorithms, written out in
`oracles.matrix_steps`, and against each other where they coincide.

The oracle is run in double and in long double. Where the two agree to 1e-9 of the clip, so must the
learner; where they do not, the stream is badly conditioned, and the learner's error may be ten
times what the double oracle's is. Branches of the learners are counted while they learn, and the
last test asks that each occurred.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from koco_stream import ONS, RFDSON, AdaFD, SAdaGrad
from koco_stream.learners import LEARNERS
from koco_stream.learners.linear import eigen_sketch
from tests.oracles.losses import curvatures, slopes
from tests.oracles.matrix_steps import MatrixSteps

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.filterwarnings("ignore:a label"),  # labels beyond the clip are among the cases
]

SMALL = 1e-9  # of the clip: what rounding may do to a prediction on a well-conditioned stream
MULTIPLE = 10  # of the error of oracles in double, on other streams
LOST = 1e-2  # from the round on where oracles in double are as wrong as this, nothing is compared
BRANCHES = Counter()
SKETCHED = ["RFDSON", "SAdaGrad", "AdaFD"]
PERIOD = 16  # shrinks between folds, where a test has folds


class Reference(NamedTuple):
    """A learner's oracle on given rows: `run` makes it anew."""

    name: str
    options: dict
    X: np.ndarray
    y: np.ndarray

    def rows(self):
        """X, with the intercept's column if there is one."""
        one = np.ones((len(self.X), int(self.options.get("fit_intercept", False))))
        return np.hstack([self.X, one])

    def run(self, dtype=float, order=slice(None)):
        """The oracle after all rows, with the features in this order."""
        o, m = self.options, self.options.get("sketch_size")
        shared = {"clip": o["clip"], "slope": slopes[o["loss"]], "dtype": dtype}
        if m is not None:
            shared |= {"size": m, "buffer": min(-(-2 * m // 3), 14)}
        if self.name == "RFDSON":
            shared |= {
                "floor": o["alpha"],
                "growth": 0.5,
                "curvature": o.get("curvature") or curvatures[o["loss"]](o["clip"]),
                "decreasing": o["curvature_schedule"] == "decreasing",
                "projection": o["projection"],
            }
        else:
            growth, floor = (1.0, "alpha") if self.name == "SAdaGrad" else (0.0, "delta")
            shared |= {"growth": growth, "floor": o[floor], "step_size": o["step_size"]}
        return MatrixSteps(self.name, **shared).run(self.rows()[:, order], self.y)


def options_of(name, drawn):
    """The constructor's arguments: of `drawn` those that the learner has."""
    own = {parameter.name for parameter in LEARNERS[name].parameters}
    options = {k: v for k, v in drawn.items() if k in own}
    if options["loss"] == "hinge" and "curvature_schedule" in own:
        options["curvature"] = 0.3
    if name == "AdaFD":
        options["delta"] = max(options["delta"], 1e-3)
    return options


def learn(reference, sparse=False):
    """(predictions (n,), the learner), learning row by row. Counts the branches taken.

    NaN stands for the rounds after a divergence.
    """
    name, options, X, y = reference
    model = LEARNERS[name](**options).partial_fit(X[:0], y[:0])
    rows, predictions, used = reference.rows(), [], np.zeros(reference.rows().shape[1], bool)
    given = scipy.sparse.csr_matrix(X) if sparse else X
    for t in range(len(X)):
        before = counters(model)
        try:
            predictions.append(model.progressive(given[t : t + 1], y[t : t + 1])[0])
        except FloatingPointError:
            BRANCHES[name, "diverged"] += 1
            predictions += [np.nan] * (len(X) - t)
            break
        saturated = abs(predictions[-1]) == options["clip"]
        slope = slopes[options["loss"]](predictions[-1], y[t])
        after, empty = counters(model), not rows[t].any()
        shrunk = after.get("shrinks", 0) > before.get("shrinks", 0)
        new = shrunk or after.get("filled", 0) > before.get("filled", 0)
        moves = slope != 0 and not empty
        projects = moves and saturated and options.get("projection") == "weights"
        BRANCHES.update(
            (name, branch)
            for branch, taken in {
                "empty row": empty,
                "zero slope": slope == 0 and not empty,
                "saturated": saturated,
                "within the clip": not saturated,
                "shrink when saturated": shrunk and saturated,
                "dependent row": moves and not new and "filled" in after,
                "projection, alpha 0, outside": projects and new and before["floor"] == 0,
                "projection, alpha 0, inside": projects and not new and before["floor"] == 0,
                "projection, alpha above 0": projects and before["floor"] > 0,
                "new column": t > 0 and (rows[t].astype(bool) & ~used).any(),
                "fold": after.get("folds", 0) > before.get("folds", 0),
            }.items()
            if taken
        )
        used |= rows[t].astype(bool)
    return np.array(predictions), model


def counters(model):
    """Whatever of these the learner's state has."""
    names = ("folds", "shrinks", "filled", "floor")
    return {k: float(getattr(model._state, k)) for k in names if hasattr(model._state, k)}


def assert_agrees(reference, predictions, model):
    """Predictions, weights and sketch are the long double oracle's, as far as oracles in double
    say that they can be. Returns the number of rounds that were compared at `SMALL`.
    """
    clip, d = reference.options["clip"], reference.rows().shape[1]
    with np.errstate(all="ignore"):
        exact = reference.run(np.longdouble)
        orders = (slice(None), slice(None, None, -1), np.random.default_rng(0).permutation(d))
        doubles = [(reference.run(float, order), order) for order in orders]
        products = np.array(exact.products)
        off = np.max([np.abs(np.array(run.products) - products) for run, _ in doubles], axis=0)
        off = np.where(np.isfinite(off), off, np.inf).astype(float)
        sizes = np.maximum(clip, np.abs(products)).astype(float)
        so_far = np.maximum.accumulate(off / sizes)
        errors = np.abs(predictions - np.array(exact.predictions)) / clip
    allowed = np.maximum(SMALL, MULTIPLE * np.maximum(off / clip, so_far))
    known = ~np.isnan(predictions)
    wrong = np.flatnonzero(~(errors <= allowed) & (so_far < LOST) & known)
    assert wrong.size == 0, (
        f"row {wrong[0]}: {predictions[wrong[0]]!r}, oracle {exact.predictions[wrong[0]]!r}; error"
        f" {float(errors[wrong[0]]):.1e} of the clip, allowed {allowed[wrong[0]]:.1e}"
    )
    if known.all() and so_far[-1] < LOST:
        w = exact.weights.astype(float)
        lost = max(np.abs(run.weights - w[order]).max() for run, order in doubles)
        near = max(SMALL * max(clip, np.abs(w).max()), MULTIPLE * lost)
        np.testing.assert_allclose(model.coef_, w, rtol=0, atol=near)
    if known.all() and so_far.max() < SMALL and reference.name in SKETCHED:
        assert_same_sketch(reference.name, model, exact)
    return int(np.sum((allowed == SMALL) & known))


def assert_same_sketch(name, model, exact):
    S = exact.S.astype(float)
    matrix, found = S.T @ S, model.sketch_
    size = max(np.abs(matrix).max(), *(float(rho) for rho in exact.rhos), 1e-300)
    values = model.eigenvalues_
    assert (np.diff(values) <= 0).all()
    assert len(values) < model.sketch_size + eigen_sketch.buffer_for(model.sketch_size)
    assert int(model._state.shrinks) == len(exact.rhos)
    BRANCHES[name, "shrink, rho above 0"] += sum(rho > 0 for rho in exact.rhos)
    BRANCHES[name, "shrink, rho 0"] += sum(rho == 0 for rho in exact.rhos)
    np.testing.assert_allclose(found.T @ found, matrix, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(found @ found.T, np.diag(values), rtol=0, atol=1e-8 * size)
    if name != "AdaFD":
        np.testing.assert_allclose(model.alpha_, float(exact.floor), rtol=1e-8, atol=1e-8 * size)


# Streams
# --------------------------------------------------------------------------------------------------

KINDS = {
    "random": ["fresh"],
    "low rank": ["fresh", "combined"],
    "repeated": ["fresh", "repeated", "repeated", "multiple"],
    "orthogonal": ["unit", "unit", "unit", "empty"],
    "mixed": ["fresh", "fresh", "repeated", "combined", "unit", "empty"],
}
cases = st.fixed_dictionaries(
    {
        "stream": st.integers(0, 10_000),
        "n": st.integers(3, 40),
        "d": st.sampled_from([1, 4, 8, 14]),
        "density": st.sampled_from([0.2, 0.5, 1.0]),
        "kind": st.sampled_from(list(KINDS)),
        "sparse": st.booleans(),
        "options": st.fixed_dictionaries(
            {
                "loss": st.sampled_from(list(slopes)),
                "sketch_size": st.integers(1, 6),
                "alpha": st.sampled_from([0.0, 0.0, 0.1, 1.0]),
                "delta": st.sampled_from([0.0, 0.1, 1.0]),
                "step_size": st.sampled_from([0.05, 0.5]),
                "clip": st.sampled_from([0.3, 1.0, 3.0]),
                "curvature_schedule": st.sampled_from(["constant", "decreasing"]),
                "projection": st.sampled_from(["weights", "weights", "prediction"]),
                "fit_intercept": st.booleans(),
            }
        ),
    }
)


def rows_of(kind, draw, n, d, density=1.0):
    """Rows (n, d): fresh ones, and what the kind adds. Combined ones are the sum of two before."""
    X = np.zeros((0, d))
    for _ in range(n):
        fresh = draw.integers(-3, 4, d) * (draw.random(d) < density) / 2.0
        one, other = np.vstack([fresh, X])[draw.integers(len(X) + 1, size=2)]
        x = {
            "fresh": fresh,
            "repeated": one,
            "multiple": -0.3 * one,
            "combined": one - 0.5 * other,
            "unit": np.eye(d)[draw.integers(d)],
            "empty": 0 * fresh,
        }[draw.choice(KINDS[kind])]
        X = np.vstack([X, x])
    return X


def labels_of(draw, n, options):
    """Labels (n,): within the clip, now and then at it or beyond, for a squared loss; ±1 for
    others.
    """
    if "squared" not in options["loss"] or "hinge" in options["loss"]:
        return np.where(draw.random(n) < 0.5, -1.0, 1.0)
    y = draw.uniform(-1, 1, n) * options["clip"]
    ends = np.sign(y) * options["clip"] * draw.choice([1.0, 1.5], n)
    return np.where(draw.random(n) < 0.3, ends, y)


def reference_of(name, case):
    draw, options = np.random.default_rng(case["stream"]), options_of(name, case["options"])
    if options["loss"] == "hinge" and options["clip"] == 1.0:
        options["clip"] = 0.9  # a projection to where the slope jumps hangs on rounding
    X = rows_of(case["kind"], draw, case["n"], case["d"], case["density"])
    return Reference(name, options, X, labels_of(draw, len(X), options))


# Tests
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SKETCHED)
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)  # shrinking takes minutes
@given(case=cases)
def test_streams__are_predicted_as_well_as_they_are_conditioned(name, case):
    reference = reference_of(name, case)
    assert_agrees(reference, *learn(reference, case["sparse"]))


DEFAULTS = {"loss": "squared", "clip": 1.0, "curvature_schedule": "constant", "delta": 0.1}
DEFAULTS |= {"projection": "weights", "step_size": 0.1, "alpha": 0.0, "sketch_size": 3}


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("name", SKETCHED)
def test_plain_streams__are_predicted_to_rounding(name, alpha, m):
    """Streams of dense rows are well-conditioned: nearly everywhere the bound is not widened."""
    draw = np.random.default_rng(m)
    X, y = draw.standard_normal((60, 9)) / 3, draw.uniform(-1, 1, 60)
    options = options_of(name, {**DEFAULTS, "alpha": alpha, "sketch_size": m})
    reference = Reference(name, options, X, y)
    predictions, model = learn(reference)
    assert assert_agrees(reference, predictions, model) >= 0.9 * len(X)


@pytest.mark.parametrize("name", SKETCHED)
def test_many_features__are_not_looked_at_one_by_one(name):
    """With many features, what of a row lies outside the sketch is a difference of two square
    norms, unless that has too few digits. Repeated rows lie within, others nearly.
    """
    draw = np.random.default_rng(4)
    X, y = np.zeros((60, eigen_sketch.FEW + 76)), draw.uniform(-1, 1, 60)
    X[:, ::40] = draw.standard_normal((60, 28)) * (draw.random((60, 28)) < 0.5)
    X[::5] = X[1]
    X[2::5] = X[1] * (1 + 1e-5 * draw.standard_normal(X.shape[1]))
    options = options_of(name, {**DEFAULTS, "alpha": 1.0, "sketch_size": 3})
    reference = Reference(name, options, X, y)
    predictions, model = learn(reference, sparse=True)
    assert assert_agrees(reference, predictions, model) >= 0.9 * len(X)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", SKETCHED)
def test_large_steps__saturate_predictions_and_meet_slopes_of_zero(name, loss):
    """The slope of a hinge is 0 where a prediction is its label, at the clip."""
    draw = np.random.default_rng(3)
    X, y = draw.standard_normal((60, 5)), draw.choice([-1.0, 1.0], 60)
    X[::3] = 2.0 * X[1]
    y[::3] = 1.0
    options = options_of(name, {**DEFAULTS, "loss": loss, "sketch_size": 1, "step_size": 1.0})
    reference = Reference(name, options, X, y)
    predictions, model = learn(reference)
    assert assert_agrees(reference, predictions, model) >= 0.5 * len(X)
    assert (np.abs(predictions) == options["clip"]).any()
    assert ((predictions == 1.0) & (y == 1.0)).any()


@pytest.mark.parametrize("name", SKETCHED)
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_orthogonal_rows_of_one_size__leave_an_empty_sketch(name, loss):
    """With as many equal eigenvalues as there are rows, a shrink takes all of them."""
    m, b = 3, 2
    X = np.tile(np.eye(10), (2, 1))
    options = options_of(name, {**DEFAULTS, "loss": loss, "sketch_size": m, "step_size": 1e-3})
    if name == "RFDSON":
        options["projection"] = "prediction"
    y = np.ones(len(X))
    reference = Reference(name, options, X, y)
    predictions, model = learn(reference)
    assert_agrees(reference, predictions, model)
    if loss == "hinge":  # all slopes are −1, as long as no prediction has reached the margin
        model = LEARNERS[name](**options).partial_fit(X[: 2 * b], y[: 2 * b])
        size = options.get("curvature", 1.0)
        assert model.eigenvalues_.size == 0
        assert model.sketch_.shape == (0, 10)
        assert model._state.shrinks == 2
        if name != "AdaFD":
            assert model.alpha_ == pytest.approx(size * {"RFDSON": 0.5, "SAdaGrad": 1.0}[name])


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("name", SKETCHED)
def test_many_shrinks__lose_nothing_when_their_maps_are_applied_to_all_columns(
    name, m, monkeypatch
):
    """Columns that are rarely used, over periods that end: the numbers are the oracle's, and those
    of a learner whose period does not end.
    """
    draw = np.random.default_rng(m)
    X = draw.standard_normal((300, 8)) * (draw.random((300, 8)) < np.linspace(0.02, 0.9, 8))
    options = options_of(name, {**DEFAULTS, "alpha": 0.5, "sketch_size": m})
    reference = Reference(name, options, X, draw.uniform(-0.5, 0.5, 300))
    long, _ = learn(reference, sparse=True)
    monkeypatch.setattr(eigen_sketch, "PERIOD", PERIOD)
    predictions, model = learn(reference, sparse=True)
    assert model._state.folds >= 4
    np.testing.assert_allclose(predictions, long, rtol=0, atol=1e-12)
    assert_agrees(reference, predictions, model)


@pytest.mark.parametrize("m", [1, 2, 6])
@pytest.mark.parametrize("schedule", ["constant", "decreasing"])
@pytest.mark.parametrize("kind", ["random", "repeated", "orthogonal", "decaying"])
def test_rfd__is_within_half_of_what_was_shrunk_of_the_full_matrix(kind, schedule, m):
    """The bound of robust frequent directions, at every round: ‖SᵀS + αI − Σ ĝĝᵀ‖ ≤ Σρ/2 = α."""
    draw, d = np.random.default_rng(m), 12
    X = {"decaying": lambda: draw.standard_normal((80, d)) * 2.0 ** -np.arange(d)}.get(
        kind, lambda: rows_of(kind, draw, 80, d)
    )()
    y, model = draw.uniform(-1, 1, 80), RFDSON(m, curvature_schedule=schedule)
    model.partial_fit(X[:0], y[:0])
    G, sigma, t, equal = np.zeros((d, d)), curvatures["squared"](1.0), 0, 0
    for x, label in zip(X, y, strict=True):
        prediction = model.progressive(x[np.newaxis], np.array([label]))[0]
        t += bool(x.any())
        g = slopes["squared"](prediction, label) * x
        if x.any():
            G += sigma / (np.sqrt(t) if schedule == "decreasing" else 1.0) * np.outer(g, g)
        S, alpha = model.sketch_, model.alpha_
        off = np.linalg.norm(S.T @ S + alpha * np.eye(d) - G, 2)
        assert off <= alpha + 1e-9 * np.trace(G)
        equal += alpha > 0 and off >= alpha * (1 - 1e-9)
    assert model.alpha_ > 0
    assert equal > 0  # no smaller bound holds


def of_rank(rank, n, d, seed):
    """Rows (n, d) of this rank, and labels (n,)."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d)) / d
    return X, draw.uniform(-1, 1, n)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_sketched_adagrad__is_the_full_one_while_the_sketch_has_room(rank, fit_intercept, loss):
    X, y = of_rank(rank, 60, 9, rank)
    y = np.sign(y) if loss == "logistic" else y
    m = {"sketch_size": rank + fit_intercept}
    shared = {"loss": loss, "fit_intercept": fit_intercept, "step_size": 0.2}
    rows = np.hstack([X, np.ones((len(X), int(fit_intercept)))])
    for sketched, floor in ((SAdaGrad(**m, **shared), 0.0), (AdaFD(**m, **shared, delta=0.3), 0.3)):
        full = MatrixSteps("AdaGrad", clip=1.0, slope=slopes[loss], step_size=0.2, floor=floor).run(
            rows, y
        )
        found = sketched.progressive(X, y)
        np.testing.assert_allclose(found, full.predictions, rtol=0, atol=SMALL)
        np.testing.assert_allclose(sketched.coef_, full.weights, rtol=0, atol=SMALL)
        assert sketched._state.shrinks > 0


@pytest.mark.parametrize("alpha", [0.1, 3.0])
@pytest.mark.parametrize("projection", ["weights", "prediction"])
@pytest.mark.parametrize("schedule", ["constant", "decreasing"])
def test_rfd_son__is_ons_while_the_sketch_has_room(schedule, projection, alpha):
    X, y = of_rank(3, 60, 9, 1)
    shared = {"alpha": alpha, "projection": projection, "curvature_schedule": schedule}
    sketched, full = RFDSON(sketch_size=3, **shared), ONS(**shared)
    found, expected = sketched.progressive(X, y), full.progressive(X, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SMALL)
    np.testing.assert_allclose(sketched.coef_, full.coef_, rtol=0, atol=SMALL)
    assert sketched.alpha_ == alpha
    assert sketched._state.shrinks > 0


@pytest.mark.parametrize("name", SKETCHED)
def test_reading_attributes__changes_nothing(name):
    """To the bit, also of the columns that were not up to date when they were read."""
    draw = np.random.default_rng(2)
    X = draw.standard_normal((120, 10)) * (draw.random((120, 10)) < 0.3)
    y = draw.uniform(-1, 1, 120)
    options = options_of(name, DEFAULTS)
    left, read = (LEARNERS[name](**options).partial_fit(X[:0], y[:0]) for _ in range(2))
    expected = left.progressive(X, y)
    found = []
    for t in range(len(X)):
        for attribute in ("coef_", "sketch_", "eigenvalues_", "alpha_"):
            if hasattr(type(read), attribute):
                value = getattr(read, attribute)
                if isinstance(value, np.ndarray):
                    value += 1.0  # what was read is the reader's own
        found.append(read.progressive(X[t : t + 1], y[t : t + 1])[0])
    assert np.array(found).tobytes() == expected.tobytes()
    assert read.coef_.tobytes() == left.coef_.tobytes()


# Branches
# --------------------------------------------------------------------------------------------------

EVERY = ["empty row", "zero slope", "saturated", "within the clip"]
OF_SKETCHES = [
    *EVERY, "shrink, rho above 0", "shrink, rho 0", "shrink when saturated", "dependent row",
    "new column", "fold",
]  # fmt: skip
EXPECTED = {
    "RFDSON": [
        *OF_SKETCHES,
        "projection, alpha 0, outside",
        "projection, alpha 0, inside",
        "projection, alpha above 0",
    ],
    "SAdaGrad": OF_SKETCHES,
    "AdaFD": OF_SKETCHES,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_branch__occurred_in_the_tests_above(name):
    if not BRANCHES:
        pytest.skip("needs the tests above, in the same session")
    missing = [branch for branch in EXPECTED[name] if not BRANCHES[name, branch]]
    assert not missing, {
        branch: n for (learner, branch), n in sorted(BRANCHES.items()) if learner == name
    }
