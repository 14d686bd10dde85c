"""Features of unlike scale: a prediction has the digits that it shows, as the recursion in long
double says.
"""

import lzma

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from tests.oracles import first_order
from tests.oracles.losses import curvatures, slopes
from tests.oracles.sketched_newton import FullMatrix, Oja, sketched_newton

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.filterwarnings("ignore:double precision"),
    pytest.mark.skipif(
        np.finfo(np.longdouble).eps > 1e-18,
        reason="this machine's long double has no more digits than a double",
    ),
]
LD = np.longdouble
SMALL = 1e-6  # of the clip
TABLES, ROWS = 40, 60
KINDS = 8
SIGMA = curvatures["squared"](1.0)
MOST_LOST = 0.08  # the share of longer runs with large steps that lose digits and do not say it


def table(number, n_rows=ROWS):
    """The rows (n, d) and labels of a table, whose number says how its columns are scaled."""
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
    return X * 10.0 ** exponents[kind], y


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
    raise ValueError(name)


def assert_has_digits(model, X, y, expected):
    """The predictions on a table have six digits, unless rounds are counted as doubtful."""
    found = model.progressive(X, y)
    scale = np.maximum.accumulate(np.maximum(np.abs(expected), 1.0))
    worst = float((np.abs(found - expected) / scale).max())
    assert worst <= SMALL or getattr(model._state, "doubtful_rounds", 0), worst


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AdaGrad", {"step_size": 0.1}),
        ("NAG", {"step_size": 0.1}),
        ("FTRLProximal", {"step_size": 0.1, "l1": 0.1}),
        ("ONS without a ridge", {"alpha": 0.0}),
    ],
)
def test_learners_that_scale_features_themselves__have_their_digits(name, options):
    for number in range(TABLES):
        X, y = table(number)
        assert_has_digits(LEARNERS[name.split()[0]](**options), X, y, linear(name, X, y))


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
            X, y = table(number, 400)
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
                assert_has_digits(LEARNERS[name](**options), X, y, expected)
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
    assert_has_digits(LEARNERS[name.split()[0]](**options), X, y, linear(name, X, y))
