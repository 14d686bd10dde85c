"""`precision = "single"`: the numbers of each feature are rounded when they are stored; all else is
as in double precision.

That compiled code rounds as the Python code does, to the bit, is in ../test_uncompiled.py.
"""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import koco_stream
from koco_stream import OjaSON
from koco_stream.learners import LEARNERS, StreamSize
from koco_stream.learners.several import advance_states
from koco_stream.learners.shared_lines import laid_side_by_side
from koco_stream.numerics.llvm.feature_lines import feature_table
from koco_stream.streams.inputs import as_rows
from tests.helpers.linear_streams import stream
from tests.oracles import first_order
from tests.oracles.losses import slopes

pytestmark = pytest.mark.one_python

ORACLES = {"OGD": first_order.ogd, "AdaGrad": first_order.adagrad}
M = {"sketch_size": 5}  # with the diagonal or without, lines are equally long: compiled once
SKETCHED = {
    "OjaSON": [M, M | {"sketch_start": "random"}, M | {"sketch_rate": 16.0, "diagonal": True}],
    "RPSON": [M, M | {"diagonal": "updated"}],
    "FDSON": [M, M | {"diagonal": True}],
}
CASES = [
    ("OGD", {}),
    ("OGD", {"step_schedule": "sqrt"}),
    ("AdaGrad", {}),
    ("NAG", {}),
    ("FTRLProximal", {}),
    ("FTRLProximal", {"l1": 1.0, "damping": 0.0}),
    *((name, q) for name, qs in SKETCHED.items() for q in qs),
]


def single_table(model):
    """The one array of a learner's state that is in single precision."""
    (table,) = [array for array in model._state if getattr(array, "dtype", None) == np.float32]
    return table


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("name", "more"),
    [("OGD", {}), ("OGD", {"step_schedule": "sqrt"}), ("AdaGrad", {})],
    ids=["OGD", "OGD-sqrt", "AdaGrad"],
)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), exponent=st.integers(-4, 4))
def test_first_order__is_the_algorithm_as_written_with_each_number_rounded(
    name, more, loss, seed, exponent
):
    X, y = stream(seed, n=80)
    X, y = 10.0**exponent * X, np.sign(y) + (y == 0)
    step_size = 0.3 * (10.0 ** (-2 * exponent) if name == "OGD" else 10.0**-exponent)
    model = getattr(koco_stream, name)(step_size, loss=loss, precision="single", **more)
    predictions = model.progressive(X, y)
    same = {"step_size": step_size, "clip": 1.0, "slope": slopes[loss], **more}
    expected, weights = ORACLES[name](X, y, stored=np.float32, **same)
    # the sums of a row run in another order, so a number may round to its neighbour
    np.testing.assert_allclose(predictions, expected, rtol=0, atol=2e-6)
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-5, atol=1e-5 * np.abs(weights).max())
    assert (model.coef_ == model.coef_.astype(np.float32)).all()
    exact, _ = ORACLES[name](X, y, **same)
    assert not np.array_equal(exact, expected)  # the rounding is seen


@pytest.mark.parametrize(("name", "given_"), CASES, ids=str)
def test_single_precision__predicts_as_double_within_its_rounding(name, given_):
    X, y = stream(3, n=2000)
    learner = getattr(koco_stream, name)
    double, single = (learner(**given_, precision=p) for p in ("double", "single"))
    expected, predictions = double.progressive(X, y), single.progressive(X, y)
    np.testing.assert_allclose(predictions, expected, rtol=0, atol=1e-3)
    assert 0 < np.abs(predictions - expected).max()
    np.testing.assert_allclose(single.predict(X), double.predict(X), rtol=0, atol=1e-3)
    assert (
        single_table(single).nbytes
        < 0.75
        * feature_table(
            20, single_table(single).shape[1] if single_table(single).ndim > 1 else 4, single=False
        ).nbytes
    )


@pytest.mark.parametrize(("name", "given_"), CASES, ids=str)
def test_single_precision__continues_to_the_bit_from_a_file_and_in_any_parts(
    name, given_, tmp_path
):
    X, y = stream(4, n=200)
    learner = getattr(koco_stream, name)
    whole = learner(**given_, precision="single").progressive(X, y)
    parts = learner(**given_, precision="single")
    first = parts.progressive(X[:77], y[:77])
    parts.save(tmp_path / "model")
    again = koco_stream.load(tmp_path / "model")
    assert single_table(again).tobytes() == single_table(parts).tobytes()
    assert np.concatenate([first, again.progressive(X[77:], y[77:])]).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", ORACLES)
def test_states_side_by_side__have_the_bits_of_states_alone(name):
    X, y = stream(5, n=150)
    rows, learner = as_rows(scipy.sparse.csr_array(X)), LEARNERS[name]
    params = [
        learner.to_params(learner.complete({"step_size": step, "precision": "single"}))
        for step in np.geomspace(0.01, 1, 9)
    ]
    states = laid_side_by_side([learner.init(p, 20, 0) for p in params])
    predictions = np.empty((9, 150))
    advance_states([learner] * 9, params, states, rows, np.tile(y, (9, 1)), predictions)
    for p, (mine,), found in zip(params, states, predictions, strict=True):
        expected = np.empty(150)
        (alone,), _ = learner.advance(p, learner.init(p, 20, 0), rows, y, expected)
        assert found.tobytes() == expected.tobytes()
        assert mine.dtype == np.float32
        assert mine.tobytes() == alone.tobytes()


@pytest.mark.parametrize("start", ["gradients", "random"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_oja_sketch__stays_orthonormal_to_single_precision(start, scale):
    draw = np.random.default_rng(1)
    alpha, theta = 20.0 * scale**2, draw.standard_normal(20)
    model = OjaSON(5, alpha, sketch_rate=16.0, sketch_start=start, precision="single")
    for _ in range(3):
        X = scale * draw.standard_normal((50_000, 20)) / np.sqrt(20)
        model.partial_fit(X, np.clip(X @ theta / scale, -1, 1))
        np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(5), atol=2e-3)


@pytest.mark.parametrize("width", [4, 8, 12, 20, 24, 40, 68])
def test_lines__of_a_single_table_are_in_no_more_lines_of_the_cache_than_their_size_needs(width):
    table = feature_table(50, width, single=True)
    begins = table.ctypes.data + table.strides[0] * np.arange(50)
    touched = (begins + 4 * width - 1) // 64 - begins // 64 + 1
    assert (touched == -(-4 * width // 64)).all()


@pytest.mark.parametrize("name", ["OGD", "AdaGrad", "NAG", "FTRLProximal", *SKETCHED])
def test_precision__is_in_a_runs_identity_only_if_it_is_single(name):
    learner = LEARNERS[name]
    single, double = (learner.complete({"precision": p}) for p in ("single", "double"))
    assert "precision" not in learner.identifying(double)
    assert learner.identifying(single)["precision"] == "single"
    size = StreamSize(1000, 10**6, 100.0)
    held = [learner.cost(q, size).floats for q in (double, single)]
    assert held[1] <= held[0]


OUTSIDE = {
    "values that are too large": (1e20, 1.0),
    "values that are too small": (1e-30, 1.0),
    "gradients that are too large": (1.0, 1e20),
}


@pytest.mark.filterwarnings("ignore:a label")
@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize(("name", "given_"), CASES, ids=str)
def test_numbers_that_single_precision_cannot_hold__end_the_run(name, given_, outside):
    if name == "OGD" and "gradients" in outside:
        pytest.skip("OGD keeps nothing of the gradients' size")
    scale, labels = OUTSIDE[outside]
    X, y = stream(6, n=50)
    model = getattr(koco_stream, name)(**given_, precision="single", clip=labels)
    with pytest.raises(FloatingPointError, match='take precision = "double", or scale'):
        model.progressive(scale * X, labels * y)


@pytest.mark.parametrize("projection", ["weights", "prediction"])
@pytest.mark.parametrize("name", ["OGD", "AdaGrad", "RPSON"])
def test_infinite_product__is_no_prediction(name, projection):
    """With one feature it is infinite, not NaN, and would be held within the clip."""
    own = {"step_size": 1e38} if name != "RPSON" else {"sketch_size": 5, "alpha": 1e-38}
    own |= {"projection": projection} if name != "AdaGrad" else {}
    model = getattr(koco_stream, name)(**own, precision="single", clip=1e30)
    X, y = np.full((60, 1), 3.0), np.resize([1e12, 9e12], 60)
    with pytest.raises(FloatingPointError, match="diverged"):
        model.progressive(X, y)


@pytest.mark.parametrize(("name", "given_"), CASES, ids=str)
def test_empty_rows_and_tiny_values_beside_others__are_learnt_from(name, given_):
    X, y = stream(7, n=60)
    X[X.any(1), 3] = 1e-30
    assert not X.any(1).all()
    model = getattr(koco_stream, name)(**given_, precision="single")
    assert np.isfinite(model.progressive(X, y)).all()
    assert model.rounds_ == 60
