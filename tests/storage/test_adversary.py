"""Section 6's adversary: the rows it gives, and the numbers its docstring promises."""

import numpy as np
import pytest

from koco_stream import ONS
from koco_stream.streams.manifest import load_manifest
from koco_stream.theory import (
    curvature_term,
    effective_dimension,
    gradient_term,
    log_det,
    newton_regret_bound,
    online_effective_dimension,
    online_leverage_scores,
)
from storage.generated.generators import prepare_synthetic
from storage.generated.tables import adversary


def rows_of(table):
    return table.values.reshape(table.n_rows, -1), table.labels


def test_rows__are_one_unit_vector_and_labels_alternate_from_minus_c():
    X, y = rows_of(adversary(clip=2.5, n_rows=7, n_features=4))
    assert (X == X[0]).all()
    assert np.linalg.norm(X[0]) == pytest.approx(1.0)
    assert y.tolist() == [-2.5, 2.5, -2.5, 2.5, -2.5, 2.5, -2.5]


def test_prepared__is_a_regression_set_though_its_labels_are_two(tmp_path):
    prepare_synthetic(tmp_path, "adversary", {"n_rows": 6})
    manifest = load_manifest(tmp_path, "adversary,n_rows=6")
    assert (manifest.task, manifest.classes, manifest.n_features) == ("regression", [], 1)
    assert prepare_synthetic(tmp_path, "adversary", {"n_rows": 6}) == manifest


@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize("n_rows", [200, 201])
def test_closed_forms(n_rows, alpha):
    X, y = rows_of(adversary(clip=2.0, n_rows=n_rows, n_features=3))
    K, t = X @ X.T, np.arange(1, n_rows + 1)
    np.testing.assert_allclose(online_leverage_scores(K, alpha), 1 / (t + alpha), rtol=1e-9)
    assert online_effective_dimension(K, alpha) == pytest.approx((1 / (t + alpha)).sum())
    assert effective_dimension(K, alpha) == pytest.approx(n_rows / (n_rows + alpha))
    assert log_det(K, alpha) == pytest.approx(np.log1p(n_rows / alpha))
    best = y.mean()
    assert best == pytest.approx(0.0 if n_rows % 2 == 0 else -2.0 / n_rows)
    assert ((y - best) ** 2).sum() == pytest.approx(
        n_rows * 4.0 - (0.0 if n_rows % 2 == 0 else 4.0 / n_rows)
    )


def test_online_newton__has_the_stated_terms_and_the_printed_middle_one_is_below_them():
    T, C, alpha = 400, 2.0, 1.0
    sigma = 1 / (8 * C * C)
    X, y = rows_of(adversary(clip=C, n_rows=T))
    predictions = ONS(alpha, clip=C).progressive(X, y)
    slopes = 2 * (predictions - y)
    eta = np.full(T, sigma)
    R_G = gradient_term(X @ X.T, slopes, eta, alpha)
    assert R_G == pytest.approx((slopes**2 / (alpha + sigma * np.cumsum(slopes**2))).sum())
    assert curvature_term(predictions, np.zeros(T), slopes, eta, sigma) == 0.0
    regret = ((predictions - y) ** 2).sum() - T * C * C
    assert 0 < regret <= newton_regret_bound(alpha, 0.0, R_G) <= 4 * C * C * np.log1p(2 * T / alpha)
    printed = (C * C / (C * C * sigma * np.arange(1, T + 1) + alpha)).sum()
    assert printed < R_G
