"""The kernel learners' references against each other: the same numbers by ways that share nothing
but the problem.
"""

import numpy as np
import pytest

from tests.bench.numpy_pros import numpy_pros
from tests.oracles.kernel import (
    beyond,
    budgeted_ogd,
    eigen_map,
    feature_map,
    fogd,
    gram,
    independent,
    insensitive,
    kons_primal,
    kors_estimates,
    lemma_4_literal,
    lemma_4_with_coin,
    nogd,
    norma,
    project,
    pros_n_kons,
    sketched_kons,
    squared_slope,
)
from tests.oracles.linear import ogd_dense, ons_dense, slopes

KERNELS = ["linear", "quadratic", "gaussian"]


def stream(seed=0, n=120, d=3, repeated=()):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1.0, 1.0, (n, d))
    for t in repeated:
        X[t] = X[t - 1]
    y = np.clip(
        np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.2 * draw.standard_normal(n), -0.9, 0.9
    )
    return X, y


def coins_of(n, rate, seed=1):
    return np.random.default_rng(seed).random(n) < rate


def cholesky_form(K, y, *, alpha, curvature, clip, slope, coins):
    """K4: one lower-triangular factor that grows by a row when a point joins."""
    n = len(K)
    c, scale = np.zeros(n), np.zeros(n)
    joined, L, s, predictions = [], np.zeros((0, 0)), np.zeros(0), []
    for t in range(n):
        v = scale[joined] * K[joined, t]
        w = np.linalg.solve(L, v)
        y_breve = (K[t, :t] @ c[:t] - w @ s) / alpha
        q = (K[t, t] - w @ w) / alpha
        h = beyond(y_breve, clip)
        predictions.append(y_breve - h)
        g = slope(predictions[t], y[t])
        c[t] = coins[t] * curvature * g * g * predictions[t] - g - (h / q if h else 0.0)
        s = s + w * c[t]
        scale[t] = g * np.sqrt(curvature)
        if coins[t]:
            row = np.linalg.solve(L, scale[joined] * K[joined, t] * scale[t])
            corner = np.sqrt(scale[t] ** 2 * K[t, t] + alpha - row @ row)
            q_t = scale[t] * (K[t, : t + 1] @ c[: t + 1])
            s = np.append(s, (q_t - row @ s) / corner)
            L = np.block([[L, np.zeros((len(joined), 1))], [row[None, :], np.array([[corner]])]])
            joined.append(t)
    return np.array(predictions)


@pytest.mark.parametrize("kernel", KERNELS)
def test_features_have_the_kernel_as_inner_product(kernel):
    X, _ = stream()
    Phi = feature_map(kernel, X, 1.3)
    np.testing.assert_allclose(Phi @ Phi.T, gram(kernel, X, X, 1.3), atol=1e-12)


def test_the_quadratic_kernel_has_all_monomials():
    assert feature_map("quadratic", np.ones((1, 3))).shape == (1, 10)


def test_kons_with_the_linear_kernel_is_the_online_newton_step():
    X, y = stream(n=200)
    given = {"alpha": 2.0, "curvature": 0.125, "clip": 0.4}
    for loss, slope in slopes.items():
        labels = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
        ours, _ = kons_primal(feature_map("linear", X), labels, slope=slope, **given)
        np.testing.assert_allclose(ours, ons_dense(X, labels, slope=slope, **given), atol=1e-12)


def test_kons_without_coins_is_projected_gradient_descent():
    X, y = stream(n=200)
    ours, _ = kons_primal(X, y, alpha=4.0, curvature=0.5, clip=0.3, coins=np.zeros(200))
    np.testing.assert_allclose(ours, ogd_dense(X, y, step_size=0.25, clip=0.3), atol=1e-12)


def test_the_projection_is_the_nearest_point_of_the_slab():
    draw = np.random.default_rng(0)
    B = draw.standard_normal((4, 4))
    A, u, phi = B @ B.T + np.eye(4), 3.0 * draw.standard_normal(4), draw.standard_normal(4)
    w = project(u, phi, A, 0.1)
    assert abs(phi @ w) == pytest.approx(0.1)
    for _ in range(200):
        v = draw.standard_normal(4)
        v = v - (phi @ v) / (phi @ phi) * phi  # along the slab's face
        other = w + v
        assert (u - w) @ A @ (u - w) <= (u - other) @ A @ (u - other) + 1e-12


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clip", [0.3, 1.0])
@pytest.mark.parametrize("loss", list(slopes))
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_dual_forms_are_the_primal(kernel, clip, loss, rate):
    X, y = stream(seed=3)
    if loss != "squared":
        y = np.where(y > 0, 1.0, -1.0)
    coins, K = coins_of(len(y), rate), gram(kernel, X, X, 0.8)
    given = {"alpha": 0.5, "curvature": 0.2, "clip": clip, "slope": slopes[loss], "coins": coins}
    primal, g = kons_primal(feature_map(kernel, X, 0.8), y, **given)
    np.testing.assert_allclose(cholesky_form(K, y, **given), primal, atol=1e-10)
    assert loss == "squared_hinge" or np.abs(g).min() > 1e-6
    if np.abs(g).min() > 1e-6:  # the lemma divides by ġ²
        np.testing.assert_allclose(lemma_4_with_coin(K, y, **given), primal, atol=1e-8)
        if rate == 1.0:
            np.testing.assert_allclose(lemma_4_literal(K, y, **given), primal, atol=1e-8)


def test_lemma_4_needs_the_coin():
    X, y = stream(seed=5)
    K, given = (
        gram("gaussian", X, X, 0.8),
        {"alpha": 0.5, "curvature": 0.2, "clip": 1.0, "coins": coins_of(len(y), 0.5)},
    )
    primal, _ = kons_primal(feature_map("gaussian", X, 0.8), y, **given)
    assert np.abs(lemma_4_literal(K, y, **given) - primal).max() > 0.05
    np.testing.assert_allclose(lemma_4_with_coin(K, y, **given), primal, atol=1e-9)


def test_kons_is_follow_the_leader_of_its_own_surrogate():
    """Without projections w_{t+1} minimises α/2|w|² + Σ (g_sᵀw + η/2 (g_sᵀ(w − w_s))²): no
    recursion at all.
    """
    X, y = stream(seed=2, n=60)
    Phi = feature_map("quadratic", X)
    predictions, g = kons_primal(Phi, y, alpha=0.7, curvature=0.3, clip=np.inf)
    for t in (1, 10, 59):
        G = g[:t, None] * Phi[:t]
        A = 0.7 * np.eye(Phi.shape[1]) + 0.3 * G.T @ G
        w = np.linalg.solve(A, G.T @ (0.3 * g[:t] * predictions[:t] - 1.0))
        assert Phi[t] @ w == pytest.approx(predictions[t], abs=1e-11)


@pytest.mark.parametrize(("estimate", "factor"), [("icml", 1.5), ("poster", 0.5)])
def test_kors_in_feature_space_is_its_kernel_formula(estimate, factor):
    X, _ = stream(n=80)
    included, K, ridge = coins_of(80, 0.3), gram("gaussian", X, X, 0.9), 0.6
    tau, p = kors_estimates(
        feature_map("gaussian", X, 0.9),
        ridge=ridge,
        epsilon=0.5,
        beta=2.0,
        estimate=estimate,
        included=included,
    )
    for t in range(80):
        known = [*np.flatnonzero(included[:t]), t]
        S = np.diag([*np.sqrt(1.0 / p[known[:-1]]), 1.0])
        k = S @ K[known, t]
        expected = (
            factor
            / ridge
            * (
                K[t, t]
                - k
                @ np.linalg.solve(S @ K[np.ix_(known, known)] @ S + ridge * np.eye(len(known)), k)
            )
        )
        assert tau[t] == pytest.approx(expected, abs=1e-12)
        assert p[t] == min(2.0 * tau[t], 1.0)


def test_kors_that_includes_everything_with_certainty_has_the_exact_leverage():
    X, _ = stream(n=50)
    Phi = feature_map("quadratic", X)
    tau, p = kors_estimates(
        Phi, ridge=1.0, epsilon=0.0, beta=1e9, estimate="icml", included=np.ones(50, bool)
    )
    assert (p == 1.0).all()
    for t in (0, 7, 49):
        K = Phi[: t + 1] @ Phi[: t + 1].T
        assert tau[t] == pytest.approx(np.diag(K @ np.linalg.inv(K + np.eye(t + 1)))[-1])


@pytest.mark.parametrize("estimate", ["icml", "poster"])
def test_sketched_kons_is_kons_with_the_coins_of_kors(estimate):
    X, y = stream(seed=8, n=200)
    Phi, uniforms = feature_map("gaussian", X, 1.0), np.random.default_rng(3).random(200)
    given, kors = (
        {"alpha": 0.7, "curvature": 0.125, "clip": 0.5},
        {"beta": 2.0, "epsilon": 0.4, "estimate": estimate},
    )
    predictions, p, in_kors, in_sketch = sketched_kons(
        Phi, y, sampling_floor=0.2, uniforms=uniforms, **kors, **given
    )
    expected, g = kons_primal(Phi, y, coins=in_sketch, **given)
    np.testing.assert_allclose(predictions, expected, atol=1e-10)
    _, estimated = kors_estimates(
        np.sqrt(0.125) * g[:, None] * Phi, ridge=0.7, included=in_kors, **kors
    )
    np.testing.assert_allclose(p, estimated, atol=1e-10)
    assert (in_sketch >= in_kors).all()
    assert in_sketch.sum() > in_kors.sum() > 3
    fed, *_ = sketched_kons(
        Phi, y, sampling_floor=0.0, uniforms=None, feed_back=(in_kors, in_sketch), **kors, **given
    )
    np.testing.assert_array_equal(fed, predictions)
    everything, *_ = sketched_kons(Phi, y, sampling_floor=1.0, uniforms=uniforms, **kors, **given)
    np.testing.assert_allclose(everything, kons_primal(Phi, y, **given)[0], atol=1e-10)


def in_function_space(Phi, y, *, alpha, curvature, clip, slope, included, carry):
    """PROS-N-KONS (or, with `carry`, CON-KONS) with no embedding: projections of features onto the
    dictionary's span.

    w, g and A live in the whole feature space; A is α outside the span, so nothing needs mapping
    when it grows.
    """
    D = Phi.shape[1]
    A, w, g, P, predictions = alpha * np.eye(D), np.zeros(D), np.zeros(D), np.zeros((D, D)), []
    for t in range(len(y)):
        restart = t > 0 and included[t - 1]
        if restart:
            rows = Phi[:t][included[:t]]
            P = np.linalg.pinv(rows, rcond=1e-10) @ rows
        phi = P @ Phi[t]
        if restart and not carry:
            A, w = alpha * np.eye(D), np.zeros(D)
        else:
            w = project(w - np.linalg.solve(A, g), phi, A, clip)
        predictions.append(phi @ w)
        g = slope(predictions[t], y[t]) * phi
        A = A + curvature * np.outer(g, g)
    return np.array(predictions)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clip", [0.3, np.inf])
@pytest.mark.parametrize("loss", list(slopes))
@pytest.mark.parametrize("variant", ["pros", "con"])
def test_the_embedding_is_the_projection_in_function_space(kernel, clip, loss, variant):
    X, y = stream(seed=4, n=140, d=4, repeated=(20, 21, 60))
    if loss != "squared":
        y = np.where(y > 0, 1.0, -1.0)
    included = coins_of(140, 0.08)
    included[[19, 20, 21, 60]] = (
        True  # a point accepted three times, and points in successive rounds
    )
    given = {
        "alpha": 0.8,
        "curvature": 0.2,
        "clip": clip,
        "slope": slopes[loss],
        "included": included,
    }
    ours, dictionary = pros_n_kons(X, y, kernel=kernel, bandwidth=0.9, variant=variant, **given)
    expected = in_function_space(feature_map(kernel, X, 0.9), y, carry=variant == "con", **given)
    np.testing.assert_allclose(ours, expected, atol=1e-8)
    assert dictionary == list(np.flatnonzero(included))


def test_pros_n_kons_predicts_0_before_its_first_point_and_on_each_restart():
    X, y = stream(n=100)
    included = coins_of(100, 0.1)
    predictions, _ = pros_n_kons(
        X,
        y,
        kernel="gaussian",
        bandwidth=1.0,
        alpha=1.0,
        curvature=0.1,
        clip=1.0,
        included=included,
    )
    zeros = np.zeros(100, bool)
    zeros[1:] = included[:-1]
    zeros[: np.flatnonzero(included)[0] + 1] = True
    np.testing.assert_array_equal(predictions == 0.0, zeros)


def test_pros_n_kons_that_includes_every_row_never_leaves_0_and_con_kons_learns():
    X, y = stream(n=40)
    given = {
        "kernel": "linear",
        "alpha": 1.0,
        "curvature": 0.1,
        "clip": np.inf,
        "included": np.ones(40, bool),
    }
    assert not pros_n_kons(X, y, **given)[0].any()
    carried, _ = pros_n_kons(X, y, variant="con", **given)
    assert np.abs(carried[4:]).min() > 0.0


@pytest.mark.parametrize("variant", ["pros", "con"])
def test_once_the_dictionary_spans_the_space_it_is_kons(variant):
    X, y = stream(n=150, d=2)
    included = np.zeros(150, bool)
    included[:6] = True  # 6 monomials
    given = {"alpha": 0.5, "curvature": 0.1, "clip": 0.6}
    ours, _ = pros_n_kons(X, y, kernel="quadratic", included=included, variant=variant, **given)
    if variant == "pros":
        expected, _ = kons_primal(feature_map("quadratic", X[6:]), y[6:], **given)
        np.testing.assert_allclose(ours[6:], expected, atol=1e-8)
    included[:] = False
    X[0] = 0.0  # nothing but the constant
    X[1:7] = X[7:13]
    included[:7] = True
    y[:7] = 0.0  # predictions are 0 so far: nothing is learnt from labels of 0
    ours, _ = pros_n_kons(X, y, kernel="quadratic", included=included, variant=variant, **given)
    expected, _ = kons_primal(feature_map("quadratic", X), y, **given)
    np.testing.assert_allclose(ours, expected, atol=1e-8)


def test_b_kons_is_pros_n_kons_until_it_is_full_and_then_keeps_learning():
    X, y = stream(n=150)
    included = coins_of(150, 0.1)
    accepted = np.flatnonzero(included)
    given = {"kernel": "gaussian", "bandwidth": 1.0, "alpha": 1.0, "curvature": 0.1, "clip": 1.0}
    pros, _ = pros_n_kons(X, y, included=included, **given)
    b, dictionary = pros_n_kons(X, y, included=included, variant="b", max_dictionary=5, **given)
    assert dictionary == list(accepted[:5])
    first_difference = accepted[5] + 1  # the round in which the sixth point would have entered
    np.testing.assert_array_equal(b[:first_difference], pros[:first_difference])
    assert (b[first_difference:] != 0.0).all()
    only_five = included.copy()
    only_five[accepted[5:]] = False
    np.testing.assert_array_equal(b, pros_n_kons(X, y, included=only_five, **given)[0])


def test_any_orthonormal_basis_gives_the_same_predictions():
    """L⁻¹k and Σ⁻¹Uᵀk differ by a rotation, which the Newton step does not see."""
    X, y = stream(n=90)
    points = X[:8]
    K, k = gram("gaussian", points, points, 1.0), gram("gaussian", points, X, 1.0)
    by_cholesky, by_eigen = np.linalg.solve(np.linalg.cholesky(K), k).T, (eigen_map(K) @ k).T
    np.testing.assert_allclose(by_cholesky @ by_cholesky.T, by_eigen @ by_eigen.T, atol=1e-9)
    given = {"alpha": 0.5, "curvature": 0.2, "clip": 0.5}
    np.testing.assert_allclose(
        kons_primal(by_cholesky, y, **given)[0], kons_primal(by_eigen, y, **given)[0], atol=1e-9
    )


def test_repeated_points_add_no_coordinate_and_small_pivots_do():
    X, _ = stream(n=6, repeated=(2, 4))
    K = gram("gaussian", X, X, 1.0)
    assert independent(K) == [0, 1, 3, 5]
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values.max()
    assert kept.sum() == 4
    k = gram("gaussian", X, stream(seed=9)[0], 1.0)
    pseudo = (vectors[:, kept] / np.sqrt(values[kept])).T @ k
    chosen = independent(K)
    ours = eigen_map(K[np.ix_(chosen, chosen)]) @ k[chosen]
    np.testing.assert_allclose(pseudo.T @ pseudo, ours.T @ ours, atol=1e-10)
    near = np.array(
        [[0.0], [1e-3], [2e-3]]
    )  # pivots 1, 1e-6 and 2e-12: all are kept, and an eigenvalue rule would drop one
    K = gram("gaussian", near, near, 1.0)
    assert independent(K) == [0, 1, 2]
    assert np.linalg.eigvalsh(K)[0] < 1e-12 * np.linalg.eigvalsh(K)[-1]
    assert independent(gram("gaussian", near / 10, near / 10, 1.0)) == [0, 1]
    assert independent(gram("linear", np.zeros((2, 3)), np.zeros((2, 3)))) == []


def test_norma_is_stochastic_gradient_descent_on_the_regularised_loss():
    X, y = stream(n=80)
    Phi, K = feature_map("gaussian", X, 0.7), gram("gaussian", X, X, 0.7)
    ours, _ = norma(K, y, step_size=0.3, regularisation=0.1)
    w = np.zeros(Phi.shape[1])
    for t in range(80):
        assert Phi[t] @ w == pytest.approx(ours[t], abs=1e-12)
        w = w - 0.3 * ((Phi[t] @ w - y[t]) * Phi[t] + 0.1 * w)


def test_norma_truncates_to_the_last_terms():
    X, y = stream(n=80)
    K = gram("gaussian", X, X, 0.7)
    ours, _ = norma(K, y, step_size=0.3, regularisation=0.1, budget=5)
    alpha = 0.3 * (y - ours)
    for t in range(80):
        window = np.arange(max(0, t - 5), t)
        expected = np.sum(alpha[window] * 0.97 ** (t - 1 - window) * K[window, t])
        assert ours[t] == pytest.approx(expected, abs=1e-12)


def test_norma_s_margin_and_tube_go_where_nu_says():
    X, y = stream(n=600)
    labels, K = np.where(y > 0, 1.0, -1.0), gram("gaussian", X, X, 0.7)
    predictions, rho = norma(
        K, labels, step_size=0.02, regularisation=0.01, loss="soft_margin", nu=0.3, margin=0.5
    )
    errors = labels * predictions <= rho
    assert errors.mean() == pytest.approx(
        0.3 - (rho[-1] - rho[0]) / 0.02 / 600, abs=2e-3
    )  # the sum of its moves
    assert errors[300:].mean() == pytest.approx(0.3, abs=0.05)
    predictions, tube = norma(
        K, y, step_size=0.02, regularisation=0.01, loss="tube", nu=0.3, margin=0.1
    )
    assert (np.abs(y - predictions) > tube)[300:].mean() == pytest.approx(0.3, abs=0.05)


def test_windows_of_rounds_and_of_points_differ_only_where_slopes_are_zero():
    X, y = stream(n=60)
    K = gram("gaussian", X, X, 0.7)
    given = {"step_size": 0.3, "regularisation": 0.1, "budget": 5}
    np.testing.assert_array_equal(norma(K, y, **given)[0], norma(K, y, window="rounds", **given)[0])
    given["slope"] = insensitive(squared_slope, 0.3)
    assert np.abs(norma(K, y, **given)[0] - norma(K, y, window="rounds", **given)[0]).max() > 0.01


def test_budgeted_ogd_is_norma_that_drops_the_oldest():
    X, y = stream(n=60)
    K = gram("gaussian", X, X, 0.7)
    slope = insensitive(squared_slope, 0.1)
    given = {"step_size": 0.2, "regularisation": 0.05, "budget": 7, "slope": slope}
    np.testing.assert_allclose(budgeted_ogd(K, y, **given), norma(K, y, **given)[0], atol=1e-13)
    removed = np.random.default_rng(0).integers(0, 7, 60)
    assert np.isfinite(budgeted_ogd(K, y, removed=removed, **given)).all()


def test_fogd_is_gradient_descent_in_its_features_and_near_kernel_gradient_descent():
    X, y = stream(n=100)
    frequencies = np.random.default_rng(0).standard_normal((20_000, 3)) / 0.8
    K = gram("gaussian", X, X, 0.8)
    slope = insensitive(squared_slope, 0.1)
    ours = fogd(X, y, frequencies=frequencies, step_size=0.1, slope=slope)
    exact, _ = norma(K, y, step_size=0.1, regularisation=0.0, slope=slope)
    assert np.abs(ours - exact).max() < 0.05
    np.testing.assert_allclose(
        fogd(X, y, frequencies=frequencies, step_size=0.1 / 20_000, slope=slope, scaled=False),
        ours,
        atol=1e-9,
    )


@pytest.mark.parametrize("switch", ["when_full", "next_update"])
def test_nogd_is_kernel_gradient_descent_first_and_then_gradient_descent_in_the_points_span(switch):
    X, y = stream(n=100)
    K, slope = gram("gaussian", X, X, 0.8), insensitive(squared_slope, 0.1)
    ours = nogd(K, y, step_size=0.2, budget=10, rank=10, slope=slope, switch=switch)
    whole, _ = norma(K, y, step_size=0.2, regularisation=0.0, slope=slope)
    held = np.flatnonzero([slope(p, label) != 0.0 for p, label in zip(whole, y, strict=True)])
    np.testing.assert_allclose(ours[: held[9] + 1], whole[: held[9] + 1], atol=1e-12)
    Phi = feature_map("gaussian", X, 0.8)  # with the rank full nothing is lost in changing over
    rows = Phi[held[:10]]
    P, w = np.linalg.pinv(rows) @ rows, np.zeros(100)
    for t in range(100):
        assert Phi[t] @ P @ w == pytest.approx(ours[t], abs=1e-8)
        w = w - 0.2 * slope(ours[t], y[t]) * (P @ Phi[t])


def test_nogd_of_low_rank_keeps_the_greatest_eigenvectors():
    X, y = stream(n=60)
    K = gram("gaussian", X, X, 2.0)
    low, full = (nogd(K, y, step_size=0.2, budget=10, rank=rank) for rank in (2, 10))
    assert np.abs(low - full).max() > 1e-3
    values, V = np.linalg.eigh(K[:10, :10])
    alpha = -0.2 * squared_slope(low[:10], y[:10])
    top = V[:, -2:]
    expected = (
        (alpha @ (top @ top.T)) @ (top @ top.T) @ K[:10, 10]
    )  # αVVᵀ, and k seen through the same two directions
    assert low[10] == pytest.approx(expected, abs=1e-10)
    assert values[0] > 0.0


@pytest.mark.parametrize("inverses", [False, True])
@pytest.mark.parametrize("estimate", ["icml", "poster"])
def test_the_bench_s_numpy_peer_is_the_literal_algorithm(inverses, estimate):
    X, y = stream(seed=6, n=250, d=4)
    draw = np.random.default_rng(1)
    X[30:60] = X[draw.integers(0, 30, 30)]  # some accepted points are repetitions
    coins = draw.random(250)
    given = {"alpha": 0.7, "curvature": 0.2, "clip": 0.5, "bandwidth": 0.9}
    kors = {"ridge": 0.3, "beta": 2.0, "epsilon": 0.5, "estimate": estimate}
    ours, dictionary = numpy_pros(X, y, coins=coins, inverses=inverses, **kors, **given)
    included = np.isin(np.arange(250), dictionary)
    _, p = kors_estimates(feature_map("gaussian", X, 0.9), included=included, **kors)
    np.testing.assert_array_equal(included, coins < p)
    expected, rows = pros_n_kons(X, y, kernel="gaussian", included=included, **given)
    assert rows == dictionary
    assert 5 < included.sum() < 245
    assert len(independent(gram("gaussian", X[rows], X[rows], 0.9))) < len(rows)
    np.testing.assert_allclose(ours, expected, atol=1e-8)
