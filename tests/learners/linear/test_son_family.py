"""Limits and invariances of RP-SON, FD-SON and ONS, Oja-SON on hard streams, and the losses."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import ONS, RPSON, OjaSON
from koco_stream.losses import LOSSES, OF_REAL_LABELS, curvature_of, loss_slope, loss_value
from tests.helpers.linear_streams import projections
from tests.helpers.project import ROOT, environment
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import RandomProjection, sketched_newton

pytestmark = pytest.mark.filterwarnings(
    "ignore:a label"
)  # labels of ±1 beyond a small clip are among the cases


def test_start_from_gradients__keeps_the_sketch_orthonormal_on_rows_that_are_nearly_alike():
    # Each row that starts multiplies what V lacks of orthonormality: without a fold the sketch of
    # such a stream was lost in ten rounds.
    draw = np.random.default_rng(0)
    X = draw.random(13) + 0.02 * np.geomspace(1, 0.1, 13) * draw.standard_normal((3000, 13))
    model = OjaSON(6, 0.0625)
    assert np.isfinite(model.progressive(X, draw.random(3000))).all()
    np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(6), atol=1e-9)


def rank_limited(rank, n, d=15, seed=3):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d))
    X /= np.sqrt((X**2).sum(1).mean())
    return X, np.clip(X @ draw.standard_normal(d), -1, 1)


def linear_map(draw, d, condition):
    """A random matrix (d, d) with this condition number."""
    U, V = (np.linalg.qr(draw.standard_normal((d, d)))[0] for _ in range(2))
    return U * np.geomspace(1.0, condition, d) @ V


@pytest.mark.long  # compiled for other widths
@pytest.mark.parametrize("rank", [2, 3])
def test_rp_son__at_small_alpha_equals_the_primal_in_the_span_of_the_rows(rank):
    # In an orthonormal basis of the row space A is well conditioned, so the reference keeps its
    # digits; in d dimensions it would not.
    X, y = rank_limited(rank, n=3000)
    y = np.clip(y + np.random.default_rng(1).standard_normal(3000), -1, 1)
    basis = np.linalg.svd(X, full_matrices=False)[2][:rank]
    sketch = RandomProjection(projections(5 * rank, 2, 3000))
    given = {"alpha": 1e-5, "curvature": 0.125, "clip": 1.0, "slope": slopes["squared"]}
    expected = sketched_newton(X @ basis.T, y, sketch, **given)[0]
    predictions = RPSON(5 * rank, 1e-5, seed=2).progressive(X, y)
    losses = [np.mean((found - y) ** 2) for found in (predictions, expected)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert np.mean(np.abs(predictions - expected) < 1e-5) > 0.99


@pytest.mark.long
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
    code, sigma, grid = LOSSES[loss], curvature_of(loss, clip), np.linspace(-clip, clip, 61)
    for y in grid[::6] if loss in OF_REAL_LABELS else (-1.0, 1.0):
        values = np.array([loss_value(code, u, y) for u in grid])
        near = np.array([loss_value(code, u + 1e-6, y) for u in grid])
        slope = np.array([loss_slope(code, u, y) for u in grid])
        error = np.abs((near - values) / 1e-6 - slope)
        assert (error <= 1e-4 * (1 + np.abs(slope)) + (loss == "hinge")).all()
        step = slope[:, None] * (grid[None, :] - grid[:, None])
        # Assumption 2 of Luo et al.
        room = values[None, :] - values[:, None] - step - sigma / 2 * step**2
        assert room.min() >= -1e-12 * (1 + np.abs(step).max())


OF_A_PROCESS = """
import koco_stream, numpy as np
from koco_stream.learners.scan import scan_rows
print(koco_stream.OGD(0.1).progressive(np.ones((3, 2)), np.ones(3)).tolist())
found = koco_stream.OGD.compiled(scan_rows, "step", "full").stats
print(sum(found.cache_hits.values()), sum(found.cache_misses.values()))
"""


def test_second_process__compiles_nothing_and_a_changed_helper_is_compiled_anew(tmp_path):
    library, cache = tmp_path / "koco_stream", tmp_path / "cache"
    shutil.copytree(ROOT / "koco_stream", library, ignore=shutil.ignore_patterns("__pycache__"))

    def run():
        """(predictions, what came from the cache and what was compiled)."""
        words = [sys.executable, "-c", OF_A_PROCESS]
        env = environment(PYTHONPATH=str(tmp_path), KOCO_CACHE=str(cache))
        return subprocess.check_output(words, cwd=tmp_path, env=env, text=True).splitlines()

    (first, compiled), again = run(), run()
    assert compiled == "0 1"
    assert again == [first, "1 0"]
    for unused in ("engine/cohort.py", "learners/linear/ons.py", "learners/__init__.py"):
        with (library / unused).open("a") as file:
            file.write("# a comment\n")
    assert run() == [first, "1 0"]
    helper = (library / "losses.py").read_text()
    (library / "losses.py").write_text(helper.replace("return 2.0 * rest", "return 3.0 * rest"))
    other, compiled = run()
    assert compiled == "0 1"
    assert other != first


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
    y, M = draw.choice([-1.0, 1.0], 120), linear_map(draw, d, condition)
    one, other = (ONS(0.0, loss=loss, projection=projection, clip=1.5) for _ in range(2))
    np.testing.assert_allclose(
        one.progressive(X, y), other.progressive(X @ M, y), atol=1e-6 * condition
    )
    np.testing.assert_allclose(
        other.coef_ @ M.T, one.coef_, atol=1e-5 * condition * max(1.0, np.abs(one.coef_).max())
    )
