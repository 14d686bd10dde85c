"""KORS, PROS-N-KONS, CON-KONS and B-KONS against literal references, given the coins that the
record reports.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import BKONS, CONKONS, KORS, PROSNKONS, Batch
from tests.helpers.kernel_streams import named, slopes, stream
from tests.oracles.kernel import (
    con_kons_weights,
    feature_map,
    gram,
    independent,
    kors_estimates,
    pros_n_kons,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:a label"
)  # labels of ±1 beyond a small clip are among the cases

LEARNERS = {"pros": PROSNKONS, "con": CONKONS, "b": BKONS}


kernels = st.sampled_from(
    [("gaussian", 1.0), ("gaussian", 0.4), ("polynomial", None), ("linear", None)]
)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kernel=kernels,
    ridge=st.sampled_from([0.1, 1.0, 5.0]),
    beta=st.sampled_from([0.5, 1.0, 4.0]),
    epsilon=st.sampled_from([0.1, 0.5, 1.0]),
    estimate=st.sampled_from(["icml", "poster"]),
    density=st.sampled_from([0.3, 1.0]),
)
def test_kors__inclusion_probability_equals_the_estimate_from_scratch(
    seed, kernel, ridge, beta, epsilon, estimate, density
):
    X, _ = stream(seed, n=80, density=density)
    ours, theirs = named(*kernel)
    model = KORS(ridge, beta=beta, epsilon=epsilon, estimate=estimate, seed=seed, **ours)
    table = model.record(X)
    p, z = (table.column(name).to_numpy() for name in ("inclusion_probability", "included"))
    expected = kors_estimates(
        feature_map(theirs["kernel"], X, theirs["bandwidth"]),
        ridge=ridge,
        epsilon=epsilon,
        beta=beta,
        estimate=estimate,
        included=z,
        probabilities=p,
    )[1]
    np.testing.assert_allclose(p, expected, atol=1e-9)
    np.testing.assert_array_equal(model.dictionary_, np.flatnonzero(z))
    np.testing.assert_allclose(model.weights_, 1.0 / p[z], rtol=1e-14)
    np.testing.assert_array_equal(table.column("dictionary_size").to_numpy(), np.cumsum(z))


def rounds_until_ill_conditioned(X, included, kernel, bandwidth, most=1e12):
    """How many rounds there are before the condition number of K_I passes `most`. Left out are
    repeated points, and for kernels of finite rank points in the span of others: their pivots are
    zero but for rounding, and never near the 1e-12 that decides.
    """
    K = gram(kernel, X, X, bandwidth)
    joined = np.flatnonzero(included)
    low, high = (
        0,
        len(joined) + 1,
    )  # the first so many points are sound; the condition number grows with the points
    while high - low > 1:
        middle = (low + high) // 2
        points = joined[:middle]
        chosen = (
            np.unique(X[points], axis=0, return_index=True)[1]
            if kernel == "gaussian"
            else independent(K[np.ix_(points, points)])
        )
        points = points[chosen]
        low, high = (
            (middle, high) if np.linalg.cond(K[np.ix_(points, points)]) < most else (low, middle)
        )
    return len(X) if low == len(joined) else joined[low] + 1


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    variant=st.sampled_from(sorted(LEARNERS)),
    kernel=kernels,
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
    clip=st.sampled_from([0.3, 1.0, 3.0]),
    loss=st.sampled_from(sorted(slopes)),
    beta=st.sampled_from([1.0, 3.0]),
    density=st.sampled_from([0.3, 1.0]),
)
def test_predictions__equal_eigendecompositions_and_dense_solves(
    seed, variant, kernel, alpha, clip, loss, beta, density
):
    X, y = stream(seed, n=120, density=density)
    y = y * min(clip, 1.0) if loss == "squared" else np.where(y >= 0, 1.0, -1.0)
    ours, theirs = named(*kernel)
    more = {"max_dictionary": 9} if variant == "b" else {}
    model = LEARNERS[variant](
        alpha, beta=beta, clip=clip, loss=loss, curvature=0.2, seed=seed, **ours, **more
    )
    table = model.record(X, y)
    expected, _ = pros_n_kons(
        X,
        y,
        alpha=alpha,
        curvature=0.2,
        clip=clip,
        slope=slopes[loss],
        included=table.column("included").to_numpy(),
        variant=variant,
        **theirs,
        **more,
    )
    sound = rounds_until_ill_conditioned(X, table.column("included").to_numpy(), **theirs)
    np.testing.assert_allclose(
        table.column("prediction").to_numpy()[:sound], expected[:sound], atol=1e-8
    )


def test_reference_cases__clip_repeat_and_restart_often():
    X, y = stream(0)
    table = PROSNKONS(0.1, beta=3.0, clip=0.3, curvature=0.2, bandwidth=0.4).record(X, y * 0.3)
    assert 0.02 < (np.abs(table.column("prediction").to_numpy()) >= 0.3).mean() < 0.95
    assert table.column("restarts")[-1].as_py() > 10
    joined = X[table.column("included").to_numpy()]
    assert len(np.unique(joined, axis=0)) < len(joined)  # a repeated point joined


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_b_kons__is_pros_n_kons_to_the_bit_until_its_dictionary_is_full(loss):
    X, y = stream(7, n=600)
    y = y if loss == "squared" else np.where(y >= 0, 1.0, -1.0)
    whole = PROSNKONS(bandwidth=0.5, loss=loss, seed=3)
    table = whole.record(X, y)
    limit = len(whole.dictionary_) // 2
    full = np.flatnonzero(table.column("dictionary_size").to_numpy() >= limit)[0]
    limited = BKONS(bandwidth=0.5, loss=loss, seed=3, max_dictionary=limit)
    assert (
        limited.progressive(X, y)[: full + 1].tobytes()
        == table.column("prediction").to_numpy()[: full + 1].tobytes()
    )
    assert len(limited.dictionary_) == limit
    unlimited = BKONS(bandwidth=0.5, loss=loss, seed=3, max_dictionary=10_000).progressive(X, y)
    assert unlimited.tobytes() == table.column("prediction").to_numpy().tobytes()


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kernel=kernels,
    alpha=st.sampled_from([1.0, 3.0, 10.0]),
    clip=st.sampled_from([0.3, 1.0, 3.0]),
    loss=st.sampled_from(sorted(slopes)),
    beta=st.sampled_from([1.0, 3.0]),
)
def test_con_kons_that_carries_weights_only__equals_newton_steps_on_functions(
    seed, kernel, alpha, clip, loss, beta
):
    # With α below 1 the steps from A = αI overshoot again and again, and rounding grows from round
    # to round.
    X, y = stream(seed, n=100)
    y = y * min(clip, 1.0) if loss == "squared" else np.where(y >= 0, 1.0, -1.0)
    ours, theirs = named(*kernel)
    given = {"beta": beta, "clip": clip, "loss": loss, "curvature": 0.2, "seed": seed, **ours}
    included = KORS(beta=beta, seed=seed, **ours).record(X).column("included").to_numpy()
    sound = rounds_until_ill_conditioned(
        X, included, **theirs, most=1e6
    )  # least squares tell these apart from repeated points
    model = CONKONS(alpha, carry="weights", **given)
    predictions = model.progressive(X[:sound], y[:sound])
    Phi = feature_map(theirs["kernel"], X, theirs["bandwidth"])
    expected, f, size = con_kons_weights(
        Phi[:sound],
        y[:sound],
        alpha=alpha,
        curvature=0.2,
        clip=clip,
        slope=slopes[loss],
        included=included,
    )
    np.testing.assert_allclose(predictions, expected, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), np.clip(Phi @ f, -clip, clip), atol=1e-8)
    assert len(model.dictionary_) == size
    omega = model._state.a[2, :size]  # the weights, in orthonormal coordinates
    np.testing.assert_allclose(np.linalg.norm(omega), np.linalg.norm(f), atol=1e-8)
    np.testing.assert_allclose(model.features(X[:sound]) @ omega, Phi[:sound] @ f, atol=1e-8)


def test_carry__tells_two_learners_apart_and_both_from_pros_n_kons():
    X, y = stream(2)
    both, weights, none = (
        learner(bandwidth=0.5, curvature=0.2, **more).progressive(X, y)
        for learner, more in ((CONKONS, {}), (CONKONS, {"carry": "weights"}), (PROSNKONS, {}))
    )
    joined = np.flatnonzero(KORS(bandwidth=0.5).record(X).column("included").to_numpy())
    until = joined[1] + 1  # the first point finds neither weights nor past gradients
    assert both[:until].tobytes() == weights[:until].tobytes() == none[:until].tobytes()
    assert (none[joined[joined + 1 < len(X)] + 1] == 0.0).all()
    assert (
        weights[until] == both[until] != 0.0
    )  # the weights are carried; the matrix is of the next step
    assert np.abs(weights - both).max() > 0.01
    explicit = CONKONS(bandwidth=0.5, curvature=0.2, carry="both").progressive(X, y)
    assert explicit.tobytes() == both.tobytes()


def test_features__are_orthonormal_coordinates_of_the_dictionary():
    X, y = stream(3)
    model = PROSNKONS(bandwidth=0.5).partial_fit(X, y)
    points = X[model.dictionary_]
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / (2 * 0.5**2))
    embedded = model.features(points)
    np.testing.assert_allclose(embedded @ embedded.T, K, atol=1e-8)


def test_growth__changes_no_number():
    # A dictionary that outgrows its room twice, in one call and in many.
    X, y = stream(5, n=900, d=6, repeats=0.0)
    arguments = {"bandwidth": 0.3, "ridge": 0.05, "beta": 2.0}
    whole, model = PROSNKONS(**arguments).progressive(X, y), PROSNKONS(**arguments)
    assert (
        np.concatenate(
            [model.progressive(X[t : t + 7], y[t : t + 7]) for t in range(0, 900, 7)]
        ).tobytes()
        == whole.tobytes()
    )
    assert len(model.dictionary_) > 112


def test_batch__is_the_best_in_the_span_of_the_final_dictionary():
    X, y = stream(9, n=300)
    model = CONKONS(bandwidth=0.7).partial_fit(X, y)
    batch = Batch(model, alpha=0.5).fit(X, y)
    K, points = (
        np.exp(-((A[:, None] - X[model.dictionary_][None]) ** 2).sum(-1) / (2 * 0.7**2))
        for A in (X, X[model.dictionary_])
    )
    coefficients = np.linalg.lstsq(K.T @ K + 0.5 * points, K.T @ y, rcond=None)[0]
    np.testing.assert_allclose(batch.predict(X), np.clip(K @ coefficients, -1, 1), atol=1e-5)
    assert batch.mean_loss_ < np.mean((CONKONS(bandwidth=0.7).progressive(X, y) - y) ** 2)
