"""PKAWV over Taylor features against ridge regression that is solved anew in every round."""

import numpy as np
import pytest

import koco_stream
from koco_stream import KAWV, PKAWV, WrongInput
from koco_stream.learners.spec import StreamSize
from tests.kernels.test_taylor import literal

pytestmark = [pytest.mark.one_python, pytest.mark.filterwarnings("ignore:a label")]
TAYLOR = {"dictionary": "taylor"}


def stream(d, n=60):
    draw = np.random.default_rng(d)
    X = draw.standard_normal((n, d))
    X[7], X[9] = 0.0, X[2]
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * draw.standard_normal(n)


def ridge(phi, y, alpha, clip):
    """ŷ_t = φ_tᵀA_t⁻¹ Σ_{s<t} y_sφ_s with A_t = αI + Σ_{s≤t} φ_sφ_sᵀ."""
    found = []
    for t in range(len(y)):
        A = alpha * np.eye(phi.shape[1]) + phi[: t + 1].T @ phi[: t + 1]
        found.append(phi[t] @ np.linalg.solve(A, phi[:t].T @ y[:t]))
    return np.clip(found, -clip, clip)


@pytest.mark.parametrize(("d", "degree"), [(1, 6), (2, 6), (3, 4), (5, 3), (1, 20)])
@pytest.mark.parametrize(("alpha", "clip"), [(0.01, 10.0), (1.0, 0.2)])
@pytest.mark.parametrize("intercept", [False, True])
def test_predictions__are_those_of_the_ridge_solved_anew(d, degree, alpha, clip, intercept):
    d -= intercept and d == 5
    X, y = stream(d)
    full = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    phi = np.array([literal(x, 1.5, degree) for x in full])
    model = PKAWV(
        alpha, bandwidth=1.5, clip=clip, fit_intercept=intercept, **TAYLOR, taylor_degree=degree
    )
    expected = ridge(phi, y, alpha, clip)
    assert (abs(expected) == clip).any() == (clip < 1.0)
    np.testing.assert_allclose(model.progressive(X[:50], y[:50]), expected[:50], rtol=0, atol=1e-9)
    predicted = [ridge(np.vstack([phi[:50], one]), y[:51], alpha, clip)[-1] for one in phi[50:]]
    np.testing.assert_allclose(model.predict(X[50:]), predicted, rtol=0, atol=1e-9)
    embedded = model.features(X)
    assert embedded.shape == phi.shape
    np.testing.assert_allclose(embedded @ embedded.T, phi @ phi.T, rtol=0, atol=1e-12)
    assert model.dictionary_.size == 0


@pytest.mark.parametrize(("degree", "near"), [(6, 1e-2), (12, 1e-6), (20, 1e-12)])
def test_predictions__are_kawv_s_up_to_the_truncation_of_the_series(degree, near):
    X, y = stream(3)
    exact = KAWV(bandwidth=2.0).progressive(X, y)
    found = PKAWV(bandwidth=2.0, **TAYLOR, taylor_degree=degree).progressive(X, y)
    np.testing.assert_allclose(found, exact, rtol=0, atol=near)


def test_pieces_a_saved_model_and_another_seed__give_the_same_bits(tmp_path):
    X, y = stream(3)
    whole = PKAWV(**TAYLOR).progressive(X, y)
    model, found = PKAWV(**TAYLOR, seed=7, beta=9.0, ridge=0.01, epsilon=0.1), []
    for first in range(0, 60, 7):
        found.extend(model.progressive(X[first : first + 7], y[first : first + 7]))
        model.predict(X)
        model.save(tmp_path / "model")
        model = koco_stream.load(tmp_path / "model")
    np.testing.assert_array_equal(found, whole)
    recorded = PKAWV(**TAYLOR).record(X, y)
    np.testing.assert_array_equal(recorded["prediction"].to_numpy(), whole)


def test_what_cannot_be__is_refused_with_a_remedy():
    X, y = stream(6)
    with pytest.raises(WrongInput, match=r"at most 5 features, and these have 6 .*fewer features"):
        PKAWV(**TAYLOR).fit(X, y)
    with pytest.raises(WrongInput, match=r"have 6 \(an intercept counts\)"):
        PKAWV(**TAYLOR, fit_intercept=True).fit(X[:, :5], y)
    with pytest.raises(WrongInput, match=r"makes 4368 Taylor features of 5.*4096.*smaller"):
        PKAWV(**TAYLOR, taylor_degree=11).fit(X[:, :5], y)
    for kernel in ("polynomial", "linear"):
        with pytest.raises(WrongInput, match=f"gaussian kernel only, not for the {kernel} one"):
            PKAWV(**TAYLOR, kernel=kernel).fit(X[:, :2], y)
    with pytest.raises(FloatingPointError, match="larger alpha"):
        PKAWV(1e-9, **TAYLOR).fit(X[:, :2], y)


def test_nothing_is_random_and_kors_s_parameters_do_not_matter():
    q = PKAWV.complete(TAYLOR)
    assert not PKAWV.stochastic(q)
    assert PKAWV.sampling(q) is None
    assert {"ridge", "beta", "epsilon", "estimate"} < PKAWV.irrelevant(q)
    usual = PKAWV.complete({})
    assert PKAWV.stochastic(usual)
    assert "taylor_degree" in PKAWV.irrelevant(usual)
    assert PKAWV.identifying(usual)["dictionary"] == "kors"
    identity = PKAWV.identifying(q)
    assert identity["dictionary"] == "taylor"
    size = StreamSize(1000, 3, 3.0)
    assert PKAWV.cost(identity, size) == PKAWV.cost(q, size)
    assert PKAWV.sampling(PKAWV.identifying(usual)) == PKAWV.sampling(usual)


@pytest.mark.parametrize("d", [2, 5])
def test_cost__has_the_memory_of_the_inverse(d):
    model = PKAWV(**TAYLOR).fit(*stream(d, 10))
    held = sum(array.size for array in (*model._state.taylor.features, *model._state.taylor[1:]))
    floats = PKAWV.cost(PKAWV.complete(TAYLOR), StreamSize(1000, d, float(d))).floats
    assert held <= floats <= 1.1 * held + 4096
