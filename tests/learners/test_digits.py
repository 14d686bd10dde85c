"""Features of unlike scale: a prediction has the digits that it shows, as the recursion in long
double says, or the learner says that it diverged. There is no third case.
"""

import lzma

import numpy as np
import pytest

import koco_stream
from koco_stream.learners import LEARNERS
from koco_stream.losses import MOST_CLIPS
from tests.learners.linear.test_literal_linear import projections
from tests.oracles import first_order
from tests.oracles.kernel_learners import (
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
from tests.oracles.matrix_steps import MatrixSteps
from tests.oracles.ridge import Kawv, Pkawv
from tests.oracles.sketched_newton import (
    BufferedFrequentDirections,
    FullMatrix,
    Oja,
    RandomProjection,
    sketched_newton,
)

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.skipif(
        np.finfo(np.longdouble).eps > 1e-18,
        reason="this machine's long double has no more digits than a double",
    ),
]
LD = np.longdouble
SMALL = 1e-6  # of the clip
TABLES, ROWS = 40, 60
KINDS = 8
MILD = 4  # the kind with scales from 0.1 to 10
# A kind, with scales from 10⁻³ to 10³, on which sketches with known eigenvectors have fewer digits,
# since their eigenvectors are right to the rounding of the largest eigenvalue (docs/errata.md, S23)
UNLIKE = 6
OF_EIGENVECTORS = ("RFDSON", "SAdaGrad", "AdaFD")
SIGMA = curvatures["squared"](1.0)
KERNELS = ("gaussian", "linear")
MOST_LOST = 0.08  # the share of longer runs with large steps that lose digits and do not say it


def table(number, n_rows=ROWS):
    """The rows (n, d) and labels of a table, and its kind: how its columns are scaled."""
    draw, kind, d = np.random.default_rng(number), number % KINDS, 4
    X = draw.standard_normal((n_rows, d))
    match number // KINDS:
        case 1:
            X = np.abs(X) + draw.choice([0, 1, 3])  # all columns alike
        case 2:
            X *= draw.random(X.shape) < 0.5  # sparse
        case 3:
            X = np.cumsum(X, axis=1)  # correlated
        case 4:
            X = X.round(1)  # some rows' columns equal
    y = np.where(X @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n_rows) > 0, 1.0, -1.0)
    exponents = [
        draw.uniform(-8, 8, d),
        np.full(d, draw.integers(-8, 9)),
        draw.uniform(0, 8, d),
        draw.uniform(-8, 0, d),
        draw.uniform(-1, 1, d),
        draw.uniform(-2, 2, d),
        draw.uniform(-3, 3, d),
        draw.uniform(0, 4, d),
    ]
    return X * 10.0 ** exponents[kind], y, kind


def newton(X, y, sketch, alpha):
    """Predictions of the literal sketched Newton step in long double."""
    return sketched_newton(
        X, y, sketch, alpha=alpha, curvature=SIGMA, clip=1.0, slope=slopes["squared"], dtype=LD
    )[0]


def in_units(X):
    """Columns divided by the power of two of their first value, which changes no digit."""
    first = np.array([column[np.flatnonzero(column)[0]] for column in X.T])
    return X * 2.0 ** -np.frexp(first)[1]


def linear(name, X, y):
    """Predictions of a linear learner's reference in long double."""
    common = {"clip": 1.0, "slope": slopes["squared"], "dtype": LD}
    match name:
        case "OGD":
            return first_order.ogd(X, y, step_size=0.1, **common)[0]
        case "AdaGrad":
            return first_order.adagrad(X, y, step_size=0.1, **common)[0]
        case "NAG":
            return first_order.nag(X, y, step_size=0.1, **common)[0]
        case "FTRLProximal":
            own = {"damping": 1.0, "l1": 0.1, "l2": 0.0}
            return first_order.ftrl_proximal(X, y, step_size=0.1, **own, **common)[0]
        case "ONS":
            return newton(X, y, FullMatrix(), 1.0)
        case "ONS without a ridge":
            # no map of the features changes its predictions
            return newton(in_units(X), y, FullMatrix(), 0.0)
        case "OjaSON":
            return newton(X, y, Oja(2, 1.0), 1.0)
        case "FDSON":
            return newton(X, y, BufferedFrequentDirections(2), 1.0)
        case "RPSON":
            return newton(X, y, RandomProjection(projections(2, 0, len(X))), 1.0)
        case "RFDSON":
            own = {"size": 2, "growth": 0.5, "floor": 1.0, "curvature": SIGMA}
            steps = MatrixSteps(name, projection="weights", **own, **common)
            return steps.run(X, y).predictions
        case "SAdaGrad":
            own = {"size": 2, "growth": 1.0}
            return MatrixSteps(name, step_size=0.1, **own, **common).run(X, y).predictions
        case "AdaFD":
            own = {"size": 2, "floor": 1.0}
            return MatrixSteps(name, step_size=0.1, **own, **common).run(X, y).predictions
    raise ValueError(name)


def of_kernel(name, kernel, X, y):
    """Predictions of a kernel learner's reference in long double; None if a decision hung on
    rounding.
    """
    q = LEARNERS[name]().get_params()
    Phi = features(kernel, X.astype(LD), 1.0, 2)
    D = Phi.shape[1]
    steps = {"loss": "squared", "alpha": 1.0, "clip": 1.0, "decreasing": False}
    if name in ("FOGD", "DualSGD"):
        z = fourier_features(X.astype(LD), frequencies(X.shape[1], q["n_frequencies"], 1.0, 0))
    match name:
        case "KONS":
            reference = Kons(D, LD, curvature=SIGMA, **steps)
        case "KAWV":
            reference = Kawv(alpha=1.0, clip=1.0)
        case "PKAWV":
            sampling = {key: q[key] for key in ("ridge", "epsilon", "beta", "estimate", "seed")}
            reference = Pkawv(kors=Kors(D, LD, **sampling), alpha=1.0, clip=1.0)
        case "SketchedKONS" | "PROSNKONS" | "CONKONS" | "BKONS":
            sampling = {key: q[key] for key in ("epsilon", "beta", "estimate", "seed")}
            most = q.get("max_dictionary") or np.inf
            ridge = q.get("ridge", 1.0)
            kors = Kors(D, LD, ridge=ridge, most=most, **sampling)
            if name == "SketchedKONS":
                floor = q["sampling_floor"]
                reference = Kons(D, LD, kors=kors, floor=floor, curvature=SIGMA, **steps)
            else:
                carry = q.get("carry", "none")
                reference = ProsNKons(D, LD, kors=kors, carry=carry, curvature=SIGMA / 2, **steps)
        case "NONSALD":
            dictionary = Ald(D, LD, threshold=q["threshold"])
            reference = ProsNKons(D, LD, kors=dictionary, carry="both", curvature=1 / 8, **steps)
        case "NORMA":
            own = {key: q[key] for key in ("step_size", "regularisation", "budget")}
            reference = Norma(loss="squared", clip=1.0, nu=0.0, **own)
        case "NOGD":
            own = {"step_size": q["step_size"], "tube": q["tube"], "rank": q["rank"]}
            reference = Nogd(D, loss="squared", budget=2 * ROWS, **own)
        case "FOGD":
            reference = Fogd(z.shape[1], loss="squared", step_size=q["step_size"], tube=q["tube"])
            Phi = z
        case "DualSGD":
            own = {key: q[key] for key in ("regularisation", "budget")}
            reference = DualSgd(D, z.shape[1], loss="squared", clip=1.0, **own)
            Phi = np.hstack([Phi, z])
        case _:
            raise ValueError(name)
    found = np.array([reference.learn(phi, label) for phi, label in zip(Phi, y, strict=True)])
    return found if reference.is_clear() else None


def judged(model, X, y, expected):
    """Whether the learner diverged on a table; if not, its predictions have the digits."""
    try:
        found = model.progressive(X, y)
    except FloatingPointError:
        return True
    scale = np.maximum.accumulate(np.maximum(np.abs(expected), 1.0))
    worst = float((np.abs(found - expected) / scale).max())
    assert worst <= SMALL, worst
    return False


def check(make, reference, left_out=None):
    """Judge a learner on all tables, but for those of the kind that is left out: it diverges on
    none of mild scales.
    """
    diverged = compared = 0
    for number in range(TABLES):
        X, y, kind = table(number)
        if kind == left_out:
            continue
        expected = reference(X, y)
        if expected is not None:
            compared += 1
            here = judged(make(), X, y, expected)
            assert not (here and kind == MILD)
            diverged += here
    assert compared >= TABLES * 2 / 5
    return diverged, compared


@pytest.mark.parametrize(
    ("name", "options", "some_diverge"),
    [
        ("OGD", {"step_size": 0.1}, True),
        ("AdaGrad", {"step_size": 0.1}, False),
        ("NAG", {"step_size": 0.1}, False),
        ("FTRLProximal", {"step_size": 0.1, "l1": 0.1}, False),
        ("ONS", {}, True),
        ("ONS without a ridge", {"alpha": 0.0}, False),
        ("OjaSON", {"sketch_size": 2}, True),
        ("FDSON", {"sketch_size": 2}, True),
        ("RPSON", {"sketch_size": 2}, True),
        ("RFDSON", {"sketch_size": 2, "alpha": 1.0}, True),
        ("SAdaGrad", {"sketch_size": 2, "step_size": 0.1}, True),
        ("AdaFD", {"sketch_size": 2, "step_size": 0.1}, True),
    ],
)
def test_linear_learners__have_their_digits_or_diverge(name, options, some_diverge):
    learner = LEARNERS[name.split()[0]]
    left_out = UNLIKE if name in OF_EIGENVECTORS else None
    diverged, compared = check(
        lambda: learner(**options), lambda X, y: linear(name, X, y), left_out
    )
    assert 0 < diverged < compared if some_diverge else diverged == 0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "name",
    [
        "KONS",
        "SketchedKONS",
        "PROSNKONS",
        "CONKONS",
        "BKONS",
        "KAWV",
        "PKAWV",
        "NONSALD",
        "NORMA",
        "NOGD",
    ],
)
def test_kernel_learners__have_their_digits_or_diverge(name, kernel):
    more = {"budget": 2 * ROWS} if name == "NOGD" else {}
    diverged, _ = check(
        lambda: LEARNERS[name](kernel=kernel, **more), lambda X, y: of_kernel(name, kernel, X, y)
    )
    assert (diverged > 0) == (kernel == "linear")


@pytest.mark.parametrize("name", ["FOGD", "DualSGD"])
def test_random_features__have_their_digits_or_diverge(name):
    diverged, _ = check(LEARNERS[name], lambda X, y: of_kernel(name, "gaussian", X, y))
    assert diverged > 0


@pytest.mark.soak
@pytest.mark.parametrize("name", ["OGD", "AdaGrad", "OjaSON"])
def test_long_streams_and_large_steps__seldom_lose_digits_unsaid(name):
    """Rounding grows from round to round where each step overshoots its own label, and no single
    round shows it. The share of such runs is what the documentation says.
    """
    common = {"clip": 1.0, "slope": slopes["squared"], "dtype": LD}
    lost = 0
    for step in (0.01, 0.1, 1.0, 10.0):
        for number in range(TABLES):
            X, y, _ = table(number, 400)
            match name:
                case "OGD":
                    options = {"step_size": step}
                    expected = first_order.ogd(X, y, step_size=step, **common)[0]
                case "AdaGrad":
                    options = {"step_size": step}
                    expected = first_order.adagrad(X, y, step_size=step, **common)[0]
                case _:
                    options = {"sketch_size": 2, "alpha": step}
                    expected = newton(X, y, Oja(2, 1.0), step)
            try:
                judged(LEARNERS[name](**options), X, y, expected)
            except AssertionError:
                lost += 1
    assert lost <= MOST_LOST * 4 * TABLES


@pytest.mark.data
@pytest.mark.parametrize("name", ["OGD", "AdaGrad", "ONS", "ONS without a ridge", "OjaSON"])
def test_real_table_as_it_is__too(name, data_folder):
    with lzma.open(data_folder / "cpusmall" / "cpu.small.csv.xz", "rt") as text:
        rows = np.array([line.split(",") for line in text.read().split()[1:121]], float)
    X, y = rows[:, :-1], np.where(rows[:, -1] > np.median(rows[:, -1]), 1.0, -1.0)
    assert np.abs(X).max() > 1e5
    options = {"step_size": 0.1} if name in ("OGD", "AdaGrad") else {}
    options = {"alpha": 0.0} if "ridge" in name else options
    options |= {"sketch_size": 2} if name == "OjaSON" else {}
    judged(LEARNERS[name.split()[0]](**options), X, y, linear(name, X, y))


def test_step_that_loses_digits__is_told_with_the_remedy():
    X, y = np.array([[1e8, 1.0]] * 3), np.ones(3)
    with pytest.raises(FloatingPointError, match=r"row 0 is nan.*digits are lost; scale"):
        koco_stream.OjaSON(1).progressive(X, y)
    least = 2 * (1e16 + 1) / MOST_CLIPS
    assert np.isfinite(koco_stream.OjaSON(1, alpha=1.01 * least).progressive(X, y)).all()
    with pytest.raises(FloatingPointError):
        koco_stream.OjaSON(1, alpha=0.99 * least).progressive(X, y)
