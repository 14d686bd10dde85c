"""Limits and invariances of RP-SON, FD-SON and ONS, Oja-SON on hard streams, and the losses."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import FDSON, OGD, ONS, RPSON, OjaSON
from koco_stream.losses import LOSSES, OF_REAL_LABELS, curvature_of, loss_slope, loss_value
from tests.helpers.linear_streams import stream

pytestmark = pytest.mark.filterwarnings(
    "ignore:a label"
)  # labels of ±1 beyond a small clip are among the cases


@pytest.mark.parametrize("rate", [1.0, 16.0])
def test_start_from_gradients__is_their_orthonormalisation(rate):
    X, y = stream(17, density=0.2)
    X = X[np.any(X, axis=1)]
    model = OjaSON(5, 5.0, sketch_start="gradients", sketch_rate=rate)
    model.partial_fit(X[:200], y[:200])
    np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(5), atol=1e-9)
    # Afterwards it is the reference, started from the sketch and weights found so far.
    early = OjaSON(1, 5.0, sketch_start="gradients", sketch_rate=rate).partial_fit(X[:1], y[:1])
    np.testing.assert_allclose(
        np.abs(early.sketch_[0]), np.abs(X[0]) / np.linalg.norm(X[0]), atol=1e-12
    )


def rank_limited(rank, n=300, d=15, seed=3):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d))
    X /= np.sqrt((X**2).sum(1).mean())
    return X, np.clip(X @ draw.standard_normal(d), -1, 1)


@pytest.mark.parametrize(("rank", "m"), [(1, 1), (3, 3), (4, 7)])
def test_fd_son__equals_ons_when_nothing_is_shrunk(rank, m):
    X, y = rank_limited(rank)
    np.testing.assert_allclose(
        FDSON(m, 2.0).progressive(X, y), ONS(2.0).progressive(X, y), atol=1e-9
    )


@pytest.mark.parametrize(
    "make", [lambda: RPSON(4, 2.0, seed=1), lambda: FDSON(4, 2.0), lambda: ONS(2.0)]
)
def test_rotation_of_the_features__changes_no_prediction(make):
    X, y = stream(23, density=1.0)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((X.shape[1],) * 2))[0]
    np.testing.assert_allclose(make().progressive(X @ Q, y), make().progressive(X, y), atol=1e-9)


@pytest.mark.parametrize("condition", [100, 1000])
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_rp_son__is_nearly_invariant_to_linear_maps_at_small_alpha(condition, rank, seed):
    # Labels of ±1: where the loss can fall towards 0, the first rounds, which alpha decides (S14),
    # are a large part of its mean.
    draw = np.random.default_rng(100 + seed)
    X, y = rank_limited(rank, n=5000, seed=seed)
    U, V = (np.linalg.qr(draw.standard_normal((15, 15)))[0] for _ in range(2))
    Z = X @ (U * np.geomspace(1, condition, 15) @ V)
    Z /= np.sqrt((Z**2).sum(1).mean())
    y = np.sign(y)
    losses = [
        np.mean((RPSON(5 * rank, 1e-6, seed=2).progressive(rows, y) - y) ** 2) for rows in (X, Z)
    ]
    assert abs(losses[0] - losses[1]) <= 0.05 * max(losses)


def rp_son_primal(X, y, *, R, alpha, curvature, clip):
    """Algorithm 1 with S ← S + r ĝᵀ, row t of R (n, m) being r_t, and A = αI + SᵀS solved with: for
    streams whose rows span all d dimensions; squared loss, no empty rows.
    """
    S, u, predictions = np.zeros((R.shape[1], X.shape[1])), np.zeros(X.shape[1]), []
    for x, label, r in zip(X, y, R, strict=True):
        direction = np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, x)
        w = u - np.sign(u @ x) * max(abs(u @ x) - clip, 0.0) / (x @ direction) * direction
        predictions.append(w @ x)
        g = 2.0 * (w @ x - label) * x
        S = S + np.outer(r, np.sqrt(curvature) * g)
        u = w - np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, g)
    return np.array(predictions)


@pytest.mark.parametrize("rank", [2, 3])
def test_rp_son__at_small_alpha_equals_the_primal_in_the_span_of_the_rows(rank):
    # In an orthonormal basis of the row space A is well conditioned, so the plain formula keeps its
    # digits; in d dimensions it would not.
    X, y = rank_limited(rank, n=3000)
    y = np.clip(y + np.random.default_rng(1).standard_normal(3000), -1, 1)
    basis = np.linalg.svd(X, full_matrices=False)[2][:rank]
    # Rows e_t, for which ĝ_t is −e_t, leave the random vectors in the sketch.
    probe = RPSON(5 * rank, 1.0, curvature=0.25, seed=2).partial_fit(
        scipy.sparse.eye_array(3000, format="csr"), np.ones(3000)
    )
    expected = rp_son_primal(
        X @ basis.T, y, R=-probe.sketch_.T, alpha=1e-6, curvature=0.125, clip=1.0
    )
    model = RPSON(5 * rank, 1e-6, seed=2)
    predictions = model.progressive(X, y)
    np.testing.assert_allclose(
        np.mean((predictions - y) ** 2), np.mean((expected - y) ** 2), rtol=1e-6
    )
    assert np.mean(np.abs(predictions - expected) < 1e-5) > 0.99


@pytest.mark.parametrize("learner", [OjaSON, RPSON, FDSON, ONS])
def test_badly_scaled_features__never_give_nan(learner):
    for seed in range(5):
        X, y = stream(seed, density=1.0)
        X = X * np.geomspace(1e-4, 1e4, X.shape[1])
        assert np.isfinite(learner(alpha=1.0).progressive(X, y)).all()


@pytest.mark.parametrize("rate", [1.0, 16.0, 128.0])
def test_sketch__stays_orthonormal_over_many_rounds_with_few_folds(rate):
    draw = np.random.default_rng(1)
    model = OjaSON(10, 20.0, sketch_rate=rate, sketch_start="random")
    theta = draw.standard_normal(20)
    for _ in range(10):
        X = draw.standard_normal((100_000, 20)) / np.sqrt(20)
        model.partial_fit(X, np.clip(X @ theta, -1, 1))
        np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(10), atol=1e-9)
    assert model.rounds_ == 10**6
    assert int(model._state.folds) <= 200


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("clip", [0.1, 0.5, 1.0, 3.0, 20.0])
def test_losses__slope_and_curvature(loss, clip):
    code, sigma = LOSSES[loss], curvature_of(loss, clip)
    grid = np.linspace(-clip, clip, 61)
    for y in grid[::6] if loss in OF_REAL_LABELS else (-1.0, 1.0):
        values = np.array([loss_value(code, u, y) for u in grid])
        near = np.array([loss_value(code, u + 1e-6, y) for u in grid])
        slope = np.array([loss_slope(code, u, y) for u in grid])
        assert (
            np.abs((near - values) / 1e-6 - slope) <= 1e-4 * (1 + np.abs(slope)) + (loss == "hinge")
        ).all()
        step = slope[:, None] * (grid[None, :] - grid[:, None])
        # Assumption 2 of Luo et al.
        room = values[None, :] - values[:, None] - step - sigma / 2 * step**2
        assert room.min() >= -1e-12 * (1 + np.abs(step).max())


def test_second_process__compiles_nothing_and_a_changed_helper_is_compiled_anew(tmp_path):
    import os
    import shutil
    import subprocess
    import sys
    from pathlib import Path

    import koco_stream

    shutil.copytree(
        Path(koco_stream.__file__).parent,
        tmp_path / "koco_stream",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    code = (
        "import koco_stream, numpy as np; from koco_stream.learners.scan import scan_rows;p ="
        " koco_stream.OGD(0.1).progressive(np.ones((3, 2)), np.ones(3)); s ="
        " koco_stream.OGD.compiled(scan_rows, 'step', 'full').stats;"
        "print(p.tolist(), sum(s.cache_hits.values()),"
        " sum(s.cache_misses.values()))"
    )

    def run():
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "KOCO_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        predictions, hits, misses = done.stdout.rsplit(" ", 2)
        return predictions, int(hits), int(misses)

    first, second = run(), run()
    assert first[1:] == (0, 1)
    assert second == (first[0], 1, 0)
    helper = tmp_path / "koco_stream" / "losses.py"
    helper.write_text(
        helper.read_text().replace("return 2.0 * (y_hat - y)", "return 3.0 * (y_hat - y)")
    )
    changed = run()
    assert changed[1:] == (0, 1)
    assert changed[0] != first[0]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 8),
    condition=st.sampled_from([1.0, 10.0, 100.0]),
    loss=st.sampled_from(["squared", "half_squared", "logistic"]),
    projection=st.sampled_from(["weights", "prediction"]),
)
def test_ons__without_a_ridge_predicts_the_same_from_rows_that_were_mapped(
    seed, d, condition, loss, projection
):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((120, d))
    X[[3, 50]], X[7] = 0.0, X[1] - 2.0 * X[2]  # empty rows, and one in the span of two others
    y = np.where(draw.random(120) < 0.5, -1.0, 1.0)
    U, V = (np.linalg.qr(draw.standard_normal((d, d)))[0] for _ in range(2))
    M = U * np.geomspace(1.0, condition, d) @ V
    case = {"alpha": 0.0, "loss": loss, "projection": projection, "clip": 1.5}
    one, other = ONS(**case), ONS(**case)
    np.testing.assert_allclose(
        one.progressive(X, y), other.progressive(X @ M, y), atol=1e-6 * condition
    )
    np.testing.assert_allclose(
        other.coef_ @ M.T, one.coef_, atol=1e-5 * condition * max(1.0, np.abs(one.coef_).max())
    )


def test_ons__without_a_ridge_is_its_limit_once_the_rows_span_the_space():
    # The first rounds of a small ridge are those of the rows' angles; they differ. From then on
    # both forget how they began.
    X, y = stream(31, n=2000, d=5, density=1.0, noise=1.0)
    small, none = ONS(1e-9).progressive(X, y), ONS(0.0).progressive(X, y)
    assert np.abs(np.mean((small - y) ** 2) - np.mean((none - y) ** 2)) < 0.02
    assert np.abs(small[-200:] - none[-200:]).max() < 0.05


@pytest.mark.parametrize("learner", [OGD, ONS, OjaSON, RPSON, FDSON])
def test_projection__of_the_prediction_leaves_the_weights_alone(learner):
    # After rows that are far outside, both forms predict the bound; only the projected weights have
    # been moved to it.
    X = np.array([[1.0, 0.0], [10.0, 0.0], [1.0, 0.0]])
    kept, moved = (
        learner(1.0, projection=p) if learner is OGD else learner(alpha=1.0, projection=p)
        for p in ("prediction", "weights")
    )
    for model in (kept, moved):
        model.partial_fit(X[:1], [0.5])
    before = kept.coef_.copy()
    assert (before == moved.coef_).all()
    assert (
        kept.progressive(X[1:2], [1.0]) == moved.progressive(X[1:2], [1.0]) == [1.0]
    )  # no slope there: nothing is learnt
    assert (kept.coef_ == before).all()
    assert abs(moved.coef_[0] * 10.0) == pytest.approx(1.0)
