"""Features of unlike scale: a prediction has the digits that it shows, as the recursion in long
double says.
"""

import lzma

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from tests.oracles.linear_learners import Reference, options_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:double precision"),
    pytest.mark.skipif(
        np.finfo(np.longdouble).eps > 1e-18,
        reason="this machine's long double has no more digits than a double",
    ),
]
SMALL = 1e-6  # of the clip
TABLES, ROWS = 40, 60
KINDS = 8
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


def assert_has_digits(model, X, y, expected):
    """The predictions on a table have six digits, unless rounds are counted as doubtful."""
    found = model.progressive(X, y)
    scale = np.maximum.accumulate(np.maximum(np.abs(expected), 1.0))
    worst = float((np.abs(found - expected) / scale).max())
    assert worst <= SMALL or getattr(model._state, "doubtful_rounds", 0), worst


def expected_of(name, options, X, y):
    """Predictions of the learner's reference in long double."""
    if name == "ONS" and not options["alpha"]:
        X = in_units(X)  # no map of the features changes its predictions
    return Reference(name, options_of(name, options), X, y).run(np.longdouble).predictions


def in_units(X):
    """Columns divided by the power of two of their first value, which changes no digit."""
    first = np.array([column[np.flatnonzero(column)[0]] for column in X.T])
    return X * 2.0 ** -np.frexp(first)[1]


def test_ons_without_a_ridge__has_its_digits():
    options = {"alpha": 0.0}
    for number in range(TABLES):
        X, y = table(number)
        assert_has_digits(LEARNERS["ONS"](**options), X, y, expected_of("ONS", options, X, y))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "of_step"), [("OGD", "step_size"), ("AdaGrad", "step_size"), ("OjaSON", "alpha")]
)
def test_long_streams_and_large_steps__seldom_lose_digits_unsaid(name, of_step):
    """Rounding grows from round to round where each step overshoots its own label, and no single
    round shows it. The share of such runs is what the documentation says.
    """
    lost = 0
    for step in (0.01, 0.1, 1.0, 10.0):
        options = {of_step: step} | ({"sketch_size": 2} if name == "OjaSON" else {})
        for number in range(TABLES):
            X, y = table(number, 400)
            try:
                model = LEARNERS[name](**options)
                assert_has_digits(model, X, y, expected_of(name, options, X, y))
            except AssertionError:
                lost += 1
    assert lost <= MOST_LOST * 4 * TABLES


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("OGD", {"step_size": 0.1}),
        ("AdaGrad", {"step_size": 0.1}),
        ("ONS", {"alpha": 1.0}),
        ("ONS", {"alpha": 0.0}),
        ("OjaSON", {"sketch_size": 3}),
    ],
)
def test_real_table_as_it_is__too(name, options, data_folder):
    with lzma.open(data_folder / "cpusmall" / "cpu.small.csv.xz", "rt") as text:
        rows = np.array([line.split(",") for line in text.read().split()[1:121]], float)
    X, y = rows[:, :-1], np.where(rows[:, -1] > np.median(rows[:, -1]), 1.0, -1.0)
    assert np.abs(X).max() > 1e5
    assert_has_digits(LEARNERS[name](**options), X, y, expected_of(name, options, X, y))
