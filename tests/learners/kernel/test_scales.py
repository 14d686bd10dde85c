"""Rows of any scale: predictions of kernel learners are as good as those of the papers' formulas in
double, or their rounds are counted as doubtful.
"""

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from tests.helpers.scaled_rows import assert_right_or_said, rows
from tests.oracles.kernel_learners import factor, features, text_of

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18,
    reason="this machine's long double has no more digits than a double",
)
KERNELS = ("linear", "gaussian", "polynomial")
SAMPLING = {"seed": 3, "ridge": 0.3}
OPTIONS = {
    "KONS": {},
    "SketchedKONS": {"seed": 3, "sampling_floor": 0.2},
    "PROSNKONS": SAMPLING,
    "CONKONS": SAMPLING,
    "BKONS": {**SAMPLING, "max_dictionary": 8},
    "NONSALD": {},
    "KAWV": {},
    "PKAWV": SAMPLING,
}


def in_features(kernel, X, of_values):
    """Features (n, D) of the rows in their type; with `of_values`, from the kernel's values, which
    have the rounding of that type.
    """
    if not of_values or kernel == "gaussian":
        return features(kernel, X, 1.5, 2)
    return factor(X @ X.T if kernel == "linear" else (X @ X.T + 1) ** 2)


def literal(case, kernel, alpha, X, y, dtype, of_values=False, order=slice(None)):
    """The predictions (n,) of a learner's literal text."""
    Phi = in_features(kernel, X.astype(dtype), of_values)[:, order]
    text = text_of(case, {"alpha": alpha, **OPTIONS[case]}, Phi.shape[1], dtype)
    try:
        return np.array([text.learn(phi, label) for phi, label in zip(Phi, y, strict=True)])
    except np.linalg.LinAlgError:
        return np.full(len(y), np.nan)


@pytest.mark.filterwarnings("ignore:double precision")
@pytest.mark.parametrize("case", OPTIONS)
def test_predictions__are_as_good_as_the_formulas_in_double_or_counted_as_doubtful(case):
    def learnt(number, X, y, alpha):
        kernel = KERNELS[number % 3]
        shape = {"kernel": kernel, "bandwidth": 1.5, "degree": 2}
        model = LEARNERS[case](alpha, **OPTIONS[case], **shape)
        text = lambda *more: literal(case, kernel, alpha, X, y, *more)  # noqa: E731
        # One text in double may be right by luck.
        doubles = [
            lambda: text(float),
            lambda: text(float, False, slice(None, None, -1)),
            lambda: text(float, True),
        ]
        power = 4 if kernel == "polynomial" else 2
        return model, model.progressive(X, y), lambda: text(np.longdouble), doubles, power

    assert_right_or_said(learnt)


@pytest.mark.parametrize("case", ["PROSNKONS", "CONKONS", "NONSALD"])
def test_digits__are_kept_along_rows_that_were_learnt(case):
    """There A⁻¹ is 10¹⁰ times smaller than elsewhere."""
    X, y = rows("repeated")
    model = LEARNERS[case](1e-6, **OPTIONS[case], kernel="linear")
    expected = literal(case, "linear", 1e-6, 1e2 * X, y, np.longdouble)
    assert abs(model.progressive(1e2 * X, y) - expected).max() < 1e-8
    assert model._state.doubtful_rounds == 0


@pytest.mark.parametrize("case", ["PROSNKONS", "CONKONS", "NONSALD"])
def test_rows_in_the_span_of_some_points__teach_nothing_along_the_others(case):
    draw = np.random.default_rng(1)
    points, plane = draw.standard_normal((3, 3)), draw.standard_normal((8, 3))
    points[:2, 2] = plane[:, 2] = 0.0
    X = 1e4 * np.vstack([points, points[:2], plane, points, plane, points])
    y = draw.choice([-1.0, 1.0], len(X))
    model = LEARNERS[case](1e-2, **OPTIONS[case], kernel="linear")
    expected = literal(case, "linear", 1e-2, X, y, np.longdouble)
    assert abs(model.progressive(X, y) - expected).max() < 1e-8


@pytest.mark.parametrize("case", ["PROSNKONS", "CONKONS", "NONSALD", "PKAWV"])
def test_small_kernel_values__are_no_rounding(case):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [13.5, 1.0]])
    y = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
    found = LEARNERS[case](1.0, **OPTIONS[case], bandwidth=1.5).progressive(X, y)
    expected = literal(case, "gaussian", 1.0, X, y, np.longdouble).astype(float)
    assert 0.0 < abs(expected[-1]) < 1e-15
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=0.0)


@pytest.mark.filterwarnings("ignore:double precision")
@pytest.mark.parametrize("name", ["KONS", "KAWV", "KORS"])
@pytest.mark.parametrize(("rows", "doubtful"), [(np.eye(3), False), (np.ones((3, 1)), True)])
def test_rounds__are_doubtful_by_what_a_row_moves_and_not_by_its_length(name, rows, doubtful):
    model = LEARNERS[name](kernel="linear")
    model.progressive(1e5 * rows, np.array([1.0, -1.0, 1.0]))
    assert (model._state.doubtful_rounds > 0) == doubtful
