"""Every kernel learner against the literal form of its paper: predictions, the function learnt,
weights, probabilities, coins, points.
"""

from collections import Counter
from functools import wraps
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

import koco_stream
from koco_stream import KORS, PKAWV
from tests.oracles.kernel_learners import (
    REAL,
    Ald,
    DualSgd,
    Fogd,
    Kons,
    Kors,
    Nogd,
    Norma,
    ProsNKons,
    features,
    fourier_features,
    frequencies,
)
from tests.oracles.losses import curvatures, slopes
from tests.oracles.ridge import Kawv, Pkawv

HELD_OUT = 6
SEEN: Counter[str] = Counter()  # options and rare events of the comparisons of the test that runs
LOSSES = tuple(slopes)
KERNELS = [
    *(("polynomial", 1.0, p) for p in (1, 2, 3, 3)),
    ("gaussian", 0.4, 2),
    ("gaussian", 0.8, 2),
    *3 * [("linear", 1.0, 2)],
]


def each(occur, examples=40):
    """Run a test on examples, in which all these options and rare events have to occur; or, of a
    function, those that it gives for the test's arguments.
    """

    def of(test):
        run = settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )(test)

        @wraps(run)
        def counted(**given):
            SEEN.clear()
            run(**given)
            wanted = occur(**given) if callable(occur) else occur
            missing = sorted(what for what in wanted if not SEEN[what])
            assert not missing, missing

        return counted

    return of


# Streams -----------------------------------------------------------------------------------------


class Stream:
    """Rows, labels, where the stream is cut, and the arguments of a learner that a stream decides.

    given: the rows as the learner gets them, the last ones not to learn from. X (n + HELD_OUT, d):
    the same as numbers, with the intercept's feature. common: loss, clip, fit_intercept.
    """

    def __init__(self, given, X, y, cuts, common, kernel):
        self.given, self.X, self.y, self.cuts = given, X, y, cuts
        self.common, self.kernel = common, kernel

    def __repr__(self):
        form = type(self.given).__name__
        return f"Stream({form} {self.given.shape}, cut {self.cuts}, {self.common}, {self.kernel})"

    def phi(self, dtype=np.float64):
        kernel = self.kernel
        return features(
            kernel["kernel"], self.X.astype(dtype), kernel["bandwidth"], kernel["degree"]
        )

    @property
    def clip(self):
        return self.common["clip"]


def labels(draw, X, loss, clip):
    """Smooth ones with noise; some are 0 and some ±clip, where the slope of a loss can be exactly
    zero."""
    y = np.clip(
        np.sin(2 * X @ draw.standard_normal(X.shape[1])) + 0.2 * draw.standard_normal(len(X)), -1, 1
    )
    if loss not in REAL:
        return np.where(y >= 0, 1.0, -1.0)
    y = np.where(draw.random(len(X)) < 0.2, np.sign(y), y) * clip
    y[draw.random(len(X)) < 0.1] = 0.0
    return y


def pick(draw, choices):
    """One of them, each as probable as the others, which hypothesis does not promise."""
    return choices[draw.integers(len(choices))]


@st.composite
def streams(choose, losses=LOSSES, kernels=tuple(KERNELS), d=(1, 5)):
    """Some 70 rows in [−1, 1], with repeated rows and empty ones."""
    draw = np.random.default_rng(choose(st.integers(0, 2**32)))
    n, width = draw.integers(40, 76), draw.integers(d[0], d[1] + 1)
    loss, clip = pick(draw, losses), pick(draw, [0.3, 1.0, 2.0])
    X = draw.uniform(-1, 1, (n + HELD_OUT, width)) * (
        draw.random((n + HELD_OUT, width)) < pick(draw, [0.5, 1.0])
    )
    for t in np.flatnonzero(draw.random(n) < pick(draw, [0.0, 0.3]))[1:]:
        X[t] = X[draw.integers(t)]
    X[draw.random(len(X)) < 0.1] = 0.0
    return dressed(draw, X, labels(draw, X[:n], loss, clip), loss, clip, pick(draw, kernels))


@st.composite
def wide_streams(choose, losses=LOSSES, kernels=(("gaussian", 1.0, 2), ("linear", 1.0, 2))):
    """140 sparse rows with 150 features, the last 70 repetitions of the first ones: dictionaries
    grow in points and features."""
    draw = np.random.default_rng(choose(st.integers(0, 2**32)))
    loss, clip = pick(draw, losses), pick(draw, [0.3, 1.0])
    X = np.zeros((140 + HELD_OUT, 150))
    for t in range(70):
        X[t, draw.choice(150, 4, replace=False)] = draw.uniform(-1, 1, 4)
    X[70:] = X[draw.integers(0, 70, len(X) - 70)]
    X[140:] *= 0.9
    return dressed(
        draw, X, labels(draw, X[:140], loss, clip), loss, clip, pick(draw, kernels), ["csr"]
    )


def dressed(draw, X, y, loss, clip, kernel, forms=("dense", "csr")):
    """The stream as it is given: dense or sparse, with an intercept or not, cut in three. In single
    precision the learners would be compiled anew.
    """
    form, intercept = pick(draw, forms), bool(draw.integers(2))
    given = X if form == "dense" else scipy.sparse.csr_matrix(X)
    if intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    names = ("kernel", "bandwidth", "degree")
    return Stream(
        given, X, y, [0, *sorted(draw.integers(1, len(y), 2)), len(y)],
        {"loss": loss, "clip": clip, "fit_intercept": intercept},
        dict(zip(names, kernel, strict=True)),
    )  # fmt: skip


# Comparison --------------------------------------------------------------------------------------


def literal(stream, reference, Phi):
    """What the reference says: its predictions (n,) and, after each piece of the stream, its
    function on the rows not learnt from."""
    predictions, functions = [], []
    for first, end in pairwise(stream.cuts):
        predictions += [reference.learn(Phi[t], stream.y[t]) for t in range(first, end)]
        functions.append([reference.predict(phi) for phi in Phi[len(stream.y) :]])
    return np.array(predictions, np.float64), np.array(functions, np.float64)


def taught(name, stream, options):
    """(the learner, its predictions (n,), its function on the rows not learnt from after each piece
    of the stream)."""
    model, predictions, functions = getattr(koco_stream, name)(**options), [], []
    for first, end in pairwise(stream.cuts):
        predictions.append(model.progressive(stream.given[first:end], stream.y[first:end]))
        functions.append(model.predict(stream.given[len(stream.y) :]))
    return model, np.concatenate(predictions), np.array(functions)


def assert_agree(name, stream, options, reference, Phi, small=1e-9):
    """Predictions and functions within `small` of the clip, or of the largest prediction if that is
    larger; the points of the dictionary, if there is one. Returns the learner."""
    expected = literal(stream, reference, Phi)
    if not reference.is_clear():
        reject()
    model, predictions, functions = taught(name, stream, options)
    for ours, theirs in zip((predictions, functions), expected, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=small * max(stream.clip, np.abs(theirs).max())
        )
    if hasattr(model, "dictionary_"):
        np.testing.assert_array_equal(np.sort(model.dictionary_), reference.points)
    note(stream, options, reference)
    return model


def note(stream, options, reference):
    """Count the options of a comparison that was made, and what the reference has seen."""
    points = getattr(reference, "points", [])
    numbers = ("degree", "sampling_floor", "tube")
    SEEN.update(
        f"{key} {value}"
        for key, value in options.items()
        if value is None or isinstance(value, str | bool) or key in numbers
    )
    SEEN.update(reference.seen)
    if getattr(reference, "kors", None):
        SEEN.update(reference.kors.seen)
    used = (stream.X[points] != 0).any(0).sum()
    SEEN["more than 48 points"] += len(points) > 48
    SEEN["points with more than 63 features"] += used > 63
    SEEN["sparse rows" if scipy.sparse.issparse(stream.given) else "dense rows"] += 1


def assert_recorded(name, stream, options, **expected):
    """The columns of the record of another such learner on the whole stream. Returns the record."""
    table = getattr(koco_stream, name)(**options).record(stream.given[: len(stream.y)], stream.y)
    for column, values in expected.items():
        found, values = table.column(column).to_numpy().astype(float), np.array(values, float)
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-9, err_msg=column)
    return table


# Options and rare events -----------------------------------------------------------------------

sampling = st.fixed_dictionaries(
    {
        "beta": st.sampled_from([0.5, 1.0, 4.0]),
        "epsilon": st.sampled_from([0.1, 0.5, 1.0]),
        "estimate": st.sampled_from(["icml", "poster"]),
        "seed": st.one_of(st.integers(0, 100), st.integers(2**50, 2**53)),
    }
)
newton = st.fixed_dictionaries(
    {
        "alpha": st.sampled_from([0.1, 1.0, 5.0]),
        "curvature": st.sampled_from([None, 0.2, 1.0]),
        "curvature_schedule": st.sampled_from(["constant", "decreasing"]),
    }
)
any_stream = st.one_of(streams(), streams(), wide_streams())

STREAMS = {f"loss {loss}" for loss in LOSSES} | {
    "fit_intercept True",
    "fit_intercept False",
    "sparse rows",
    "dense rows",
}
KERNEL = {
    "kernel gaussian",
    "kernel polynomial",
    "kernel linear",
    "degree 1",
    "degree 2",
    "degree 3",
}
POINTS = {"more than 48 points", "points with more than 63 features"}  # the library's first room
SAMPLING = {
    "estimate icml",
    "estimate poster",
    "certain",
    "joins with a weight above 1",
    "is not taken",
    "a repeated point joins",
}
CURVATURE = {"curvature None", "curvature_schedule constant", "curvature_schedule decreasing"}
NEWTON = (
    STREAMS | KERNEL | POINTS | CURVATURE | {"projected", "gradient 0", "gradient not 0", "φ = 0"}
)
PROS = NEWTON | SAMPLING | {"no coordinate", "something is lost or carried"}


# labels beyond a small clip are among the cases
pytestmark = pytest.mark.filterwarnings("ignore:a label")

FAMILY = [
    *(("PROSNKONS", "none"), ("CONKONS", "both"), ("CONKONS", "weights"), ("BKONS", "none")),
    ("NONSALD", "ald"),
]

# KORS and the online Newton steps ----------------------------------------------------------------


def newton_constants(stream, steps, share):
    """What the reference is given. By default the curvature is `share` of the loss's σ; the hinge
    loss has none and is given one."""
    loss = stream.common["loss"]
    if steps["curvature"] is None and loss not in curvatures:
        steps["curvature"] = 0.3
    curvature = steps["curvature"]
    return {
        "loss": loss,
        "alpha": steps["alpha"],
        "clip": stream.clip,
        "curvature": share * curvatures[loss](stream.clip) if curvature is None else curvature,
        "decreasing": steps["curvature_schedule"] == "decreasing",
    }


@each(
    KERNEL
    | POINTS
    | SAMPLING
    | {"max_dictionary None", "dictionary at its maximum", "fit_intercept True"}
)
@given(any_stream, sampling, st.sampled_from([0.05, 1.0, 5.0]), st.sampled_from([None, 1, 9, 60]))
def test_kors__probabilities_coins_points_and_weights(stream, sampling, ridge, most):
    Phi, n = stream.phi(), len(stream.y)
    reference = Kors(Phi.shape[1], Phi.dtype, ridge=ridge, most=most or np.inf, **sampling)
    probabilities, joins, _ = zip(*(reference.offer(phi) for phi in Phi[:n]), strict=True)
    options = {"ridge": ridge, "max_dictionary": most, **sampling, **stream.kernel}
    options["fit_intercept"] = stream.common["fit_intercept"]
    columns = {"inclusion_probability": probabilities, "included": joins}
    assert_recorded("KORS", stream, options, **columns, dictionary_size=np.cumsum(joins))
    model, predictions, _ = taught("KORS", stream, options)
    assert not predictions.any()
    np.testing.assert_array_equal(model.dictionary_, reference.points)
    np.testing.assert_allclose(model.weights_, reference.weights, rtol=1e-9)
    note(stream, options, reference)


@each(NEWTON)
@given(any_stream, newton)
def test_kons__is_the_online_newton_step(stream, steps):
    Phi = stream.phi()
    reference = Kons(Phi.shape[1], Phi.dtype, **newton_constants(stream, steps, 1.0))
    assert_agree("KONS", stream, {**steps, **stream.common, **stream.kernel}, reference, Phi)


@each(
    NEWTON
    | SAMPLING
    | {"sampled", "not sampled", "sampled only by the floor"}
    | {f"sampling_floor {floor}" for floor in (0.0, 0.3, 1.0)},
    examples=80,
)
@given(any_stream, newton, sampling, st.sampled_from([0.0, 0.3, 1.0]))
def test_sketched_kons__is_algorithm_3(stream, steps, sampling, floor):
    Phi, constants = stream.phi(), newton_constants(stream, steps, 1.0)
    kors = Kors(Phi.shape[1], Phi.dtype, ridge=steps["alpha"], **sampling)
    reference = Kons(Phi.shape[1], Phi.dtype, kors=kors, floor=floor, **constants)
    options = {**steps, **sampling, **stream.common, **stream.kernel, "sampling_floor": floor}
    assert_agree("SketchedKONS", stream, options, reference, Phi)
    columns = {"inclusion_probability": reference.probabilities, "in_kors": reference.in_kors}
    table = assert_recorded("SketchedKONS", stream, options, **columns)
    assert table.column("dictionary_size")[-1].as_py() == len(reference.points)


def pros_n_kons(stream, dtype, steps, sampling, ridge, name, carry, most):
    """(features, the reference, the learner's options) of PROS-N-KONS or one of its kin."""
    if carry == "ald":
        return nons_ald(stream, dtype, steps, ridge)
    Phi, constants = stream.phi(dtype), newton_constants(stream, steps, 0.5)
    own = {"BKONS": {"max_dictionary": most}, "CONKONS": {"carry": carry}}.get(name, {})
    limit = own.get("max_dictionary", np.inf)
    kors = Kors(Phi.shape[1], dtype, ridge=ridge, most=limit, **sampling)
    reference = ProsNKons(Phi.shape[1], dtype, kors=kors, carry=carry, **constants)
    options = {**steps, **sampling, **stream.common, **stream.kernel, **own, "ridge": ridge}
    return Phi, reference, options


def nons_ald(stream, dtype, steps, threshold):
    """The same of NONS-ALD."""
    Phi, constants = stream.phi(dtype), newton_constants(stream, steps, 0.5)
    threshold = min(threshold, 0.3)
    given = {**steps, "threshold": threshold, **stream.common, **stream.kernel}
    if steps["curvature"] is None:
        usual = 2.0 * constants["curvature"]  # the loss's σ
        if constants["loss"] == "squared":
            usual = 1.0 / (4.0 * stream.clip**2 + 4.0)
        constants |= {"curvature": usual}
    dictionary = Ald(Phi.shape[1], dtype, threshold=threshold)
    return Phi, ProsNKons(Phi.shape[1], dtype, kors=dictionary, carry="both", **constants), given


def of_family(name, carry):
    """What has to occur to PROS-N-KONS or one of its kin."""
    if name == "NONSALD":
        return (PROS - SAMPLING - {"no coordinate"}) | {"joins", "is dependent"}
    return PROS | ({"dictionary at its maximum"} if name == "BKONS" else set())


@pytest.mark.parametrize(("name", "carry"), FAMILY, ids=str)
@each(of_family, examples=80)
@given(
    stream=any_stream,
    steps=newton,
    sampling=sampling,
    ridge=st.sampled_from([0.05, 1.0]),
    most=st.sampled_from([1, 6, 55]),
)
def test_pros_n_kons_and_its_kin__are_the_poster_s_algorithm(
    name, carry, stream, steps, sampling, ridge, most
):
    # From A = αI again with the old weights a small α overshoots, and rounding grows with it.
    if carry == "weights":
        steps = {**steps, "alpha": max(steps["alpha"], 1.0)}
    Phi, reference, options = pros_n_kons(
        stream, np.float64, steps, sampling, ridge, name, carry, most
    )
    small = 1e-8 if carry == "weights" else 1e-9
    model = assert_agree(name, stream, options, reference, Phi, small)
    columns = {"inclusion_probability": reference.probabilities, "included": reference.included}
    table = assert_recorded(name, stream, options, **columns)
    assert table.column("restarts")[-1].as_py() == reference.restarts
    embedded = model.features(stream.given)
    projected = np.array([reference.embedded(phi) for phi in Phi])
    np.testing.assert_allclose(
        embedded @ embedded.T, projected @ projected.T, rtol=0, atol=1e-9 * (Phi**2).sum(1).max()
    )


# Forecasters that are ridge regressions: KAWV and PKAWV -------------------------------------------

ridges = st.sampled_from([0.1, 1.0, 5.0])


@each(STREAMS | KERNEL | {"truncated", "φ = 0", "a repeated row"})
@given(any_stream, ridges)
def test_kawv__is_the_solution_of_the_whole_system(stream, alpha):
    reference = Kawv(alpha=alpha, clip=stream.clip)
    options = {"alpha": alpha, **stream.common, **stream.kernel}
    assert_agree("KAWV", stream, options, reference, stream.phi())


@each(
    STREAMS
    | KERNEL
    | POINTS
    | SAMPLING
    | {"truncated", "φ = 0", "past rows gain a coordinate", "a row to predict would join"},
    examples=60,
)
@given(any_stream, ridges, sampling, st.sampled_from([0.05, 1.0]))
def test_pkawv__is_the_minimiser_in_the_span_of_kors_s_dictionary(stream, alpha, sampling, ridge):
    Phi = stream.phi()
    kors = Kors(Phi.shape[1], Phi.dtype, ridge=ridge, **sampling)
    reference = Pkawv(kors=kors, alpha=alpha, clip=stream.clip)
    options = {"alpha": alpha, "ridge": ridge, **sampling, **stream.common, **stream.kernel}
    model = assert_agree("PKAWV", stream, options, reference, Phi)
    columns = {"inclusion_probability": reference.probabilities, "included": reference.included}
    assert_recorded("PKAWV", stream, options, **columns)
    same = KORS(ridge, **sampling, **stream.kernel, fit_intercept=options["fit_intercept"])
    same.fit(stream.given[: len(stream.y)])
    np.testing.assert_array_equal(model.dictionary_, same.dictionary_)
    embedded = model.features(stream.given)
    taken = reference.kors.taken
    projected = reference.embedded(Phi, taken) if taken else Phi[:, :0]
    np.testing.assert_allclose(
        embedded @ embedded.T, projected @ projected.T, rtol=0, atol=1e-9 * (Phi**2).sum(1).max()
    )


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18,
    reason="this machine's long double has no more digits than a double",
)
@pytest.mark.filterwarnings("ignore:double precision")  # nearly dependent points are among them
@pytest.mark.parametrize(("alpha", "small"), [(1e-6, 1e-6), (1.0, 1e-9)])
@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-5])
def test_pkawv_of_nearly_repeated_points__has_its_digits(alpha, small, near):
    for seed in range(3):
        draw = np.random.default_rng(seed)
        base = draw.uniform(-1, 1, (6, 2))
        X = base[draw.integers(0, 6, 60)] + near * draw.standard_normal((60, 2))
        X[30:] = draw.uniform(-1, 1, (30, 2))
        y = np.sign(np.sin(5 * X[:, 0]))
        Phi = features("gaussian", X.astype(np.longdouble), 0.7, 1)
        given = {"ridge": 0.1, "beta": 3.0, "epsilon": 0.5, "estimate": "icml", "seed": seed}
        kors = Kors(Phi.shape[1], Phi.dtype, **given)
        reference = Pkawv(kors=kors, alpha=np.longdouble(alpha), clip=10.0)
        expected = np.array([reference.learn(*one) for one in zip(Phi, y, strict=True)], float)
        model = PKAWV(alpha, **given, bandwidth=0.7, clip=10.0)
        np.testing.assert_allclose(model.progressive(X, y), expected, rtol=0, atol=10 * small)
        assert model.dictionary_.tolist() == reference.points
        assert len(reference.points) > 40


# The baselines -----------------------------------------------------------------------------------


@each(
    STREAMS
    | KERNEL
    | POINTS
    | {"truncated", "the oldest leaves", "gradient 0", "φ = 0", "soft margin: error"}
    | {"soft margin: no error", "tube 0.0", "tube 0.8"}
)
@given(
    any_stream,
    st.sampled_from([0.05, 0.3, 1.0]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([1, 7, 60]),
    st.sampled_from([0.0, 0.2, 0.8]),
    st.sampled_from(["constant", "sqrt", "linear"]),
)
def test_norma__is_gradient_descent_on_functions(stream, step_size, decay, budget, nu, schedule):
    steps = {"step_size": step_size, "regularisation": decay, "budget": budget}
    steps["step_schedule"] = schedule
    reference = Norma(loss=stream.common["loss"], clip=stream.clip, nu=nu, **steps)
    assert_agree(
        "NORMA",
        stream,
        {**steps, "tube": nu, **stream.common, **stream.kernel},
        reference,
        stream.phi(),
        small=1e-7,  # a step that overshoots multiplies rounding from row to row
    )


gaussian_streams = st.one_of(
    streams(kernels=[k for k in KERNELS if k[0] == "gaussian"]),
    streams(kernels=[k for k in KERNELS if k[0] == "gaussian"]),
    wide_streams(kernels=[("gaussian", 1.0, 2)]),
)


@each(STREAMS | {"within the tube", "gradient 0", "tube 0.0"})
@given(
    gaussian_streams,
    st.sampled_from([0.05, 0.4]),
    st.sampled_from([1, 16, 33]),
    st.sampled_from([0.0, 0.1]),
    st.integers(0, 2**53),
)
def test_fogd__is_gradient_descent_on_random_features(stream, step_size, n_frequencies, tube, seed):
    Z = fourier_features(
        stream.X, frequencies(stream.X.shape[1], n_frequencies, stream.kernel["bandwidth"], seed)
    )
    reference = Fogd(Z.shape[1], loss=stream.common["loss"], step_size=step_size, tube=tube)
    options = {
        "step_size": step_size,
        "n_frequencies": n_frequencies,
        "tube": tube,
        "seed": seed,
        "bandwidth": stream.kernel["bandwidth"],
        **stream.common,
    }
    model = assert_agree("FOGD", stream, options, reference, Z)
    np.testing.assert_allclose(
        model.coef_, reference.w, rtol=0, atol=1e-9 * max(1.0, np.abs(reference.w).max())
    )
    np.testing.assert_allclose(model.features(stream.given), Z, rtol=0, atol=1e-12)


@each(
    STREAMS
    | KERNEL
    | POINTS
    | {"within the tube", "gradient 0", "φ = 0", "a step on Nyström features", "tube 0.0"}
    | {"fewer features than the rank"}
    | {f"switched, rank {rank} the budget" for rank in ("below", "equal to")}
)
@given(
    any_stream,
    st.sampled_from([0.02, 0.1]),
    st.sampled_from([1, 8, 20, 50]),
    st.sampled_from([1, 6, 50]),
    st.sampled_from([0.0, 0.1]),
)
def test_nogd__is_gradient_descent_on_points_and_then_on_their_eigenfunctions(
    stream, step_size, budget, rank, tube
):
    steps = {"step_size": step_size, "budget": budget, "rank": rank, "tube": tube}
    Phi, options = stream.phi(), {**steps, **stream.common, **stream.kernel}
    reference = Nogd(Phi.shape[1], loss=stream.common["loss"], **steps)
    model = assert_agree("NOGD", stream, options, reference, Phi)
    if reference.Q is not None:
        Z, expected = model.features(stream.given), Phi @ reference.Q.T
        np.testing.assert_allclose(
            Z @ Z.T, expected @ expected.T, rtol=0, atol=1e-9 * (Phi**2).sum(1).max()
        )


@each(
    STREAMS
    | POINTS
    | {"truncated", "gradient 0", "an old point leaves", "the new point leaves"}
    | {"of equals the oldest leaves"}
)
@given(
    gaussian_streams,
    st.sampled_from([0.02, 0.3, 2.0]),
    st.sampled_from([1, 9, 55]),
    st.sampled_from([1, 17]),
    st.integers(0, 2**53),
)
def test_dual_sgd__is_descent_with_a_budget_and_a_second_space(
    stream, regularisation, budget, n_frequencies, seed
):
    Phi = stream.phi()
    Z = fourier_features(
        stream.X, frequencies(stream.X.shape[1], n_frequencies, stream.kernel["bandwidth"], seed)
    )
    steps = {"regularisation": regularisation, "budget": budget}
    reference = DualSgd(
        Phi.shape[1], Z.shape[1], loss=stream.common["loss"], clip=stream.clip, **steps
    )
    options = {
        **steps,
        "n_frequencies": n_frequencies,
        "seed": seed,
        "bandwidth": stream.kernel["bandwidth"],
        **stream.common,
    }
    assert_agree("DualSGD", stream, options, reference, np.hstack([Phi, Z]))
