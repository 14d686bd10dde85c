"""A stream in Python: what a run of a sweep saw, so that the run can be made again by hand."""

import json

import numpy as np
import pytest

import flows
import koco_stream
from koco_stream import WrongInput

ORDERS = [
    {},
    {"order": "shuffled", "order_seeds": [3], "max_rows": 333},
    {"order": "shuffled-in-windows", "order_seeds": [1], "window_rows": 64},
]
LEARNERS = [
    {"name": "OjaSON", "sketch_size": 3},
    {"name": "CONKONS", "bandwidth": 2.0},
    {"name": "AdaGrad"},
]


def stream_of(store, row):
    """The stream of a row of the table `runs`."""
    names = ("dataset", "order", "order_seed", "positive_class", "max_rows", "window_rows")
    return koco_stream.stream(store, **{name: row[name] for name in names})


@pytest.fixture
def runs(small_store):
    """The runs of three learners on both datasets in three orders, as the table has them."""
    found = []
    for number, order in enumerate(ORDERS):
        spec = {
            "name": f"by-hand-{number}",
            "dataset": [
                {"name": "sparse", "positive_class": 2, **order},
                {"name": "real", **order},
            ],
            "learner": LEARNERS,
            "learner_seeds": [5],
        }
        found += flows.sweep(spec, small_store, workers=0).runs.to_pylist()
    return found


def test_every_run__is_made_again_by_hand_to_the_bit(runs, small_store):
    """In whole and in blocks of another size, the losses summed up in order are the table's."""
    assert len(runs) == 18
    for row in runs:
        seed = {} if row["learner_seed"] is None else {"seed": row["learner_seed"]}
        model = getattr(koco_stream, row["learner"])(**json.loads(row["params"]), **seed)
        X, y = stream_of(small_store, row).whole()
        record = model.record(X, y)
        losses = np.cumsum(record["loss"].to_numpy())
        assert losses[-1] / y.size == row["mean_loss"], row
        predictions = record["prediction"].to_numpy()
        if row["dataset"] == "sparse":
            assert np.mean(np.where(predictions >= 0, 1, -1) != y) == row["error_rate"]
        again = type(model)(**model.get_params())
        blocks = stream_of(small_store, row).blocks(17)
        assert np.array_equal(np.concatenate([again.progressive(*b) for b in blocks]), predictions)


def test_rows__are_a_matrix_as_the_dataset_is(small_store):
    dense, sparse = (koco_stream.stream(small_store, name) for name in ("real", "sparse"))
    assert (len(dense), dense.n_features, dense.classes) == (500, 6, ())
    assert (sparse.n_rows, sparse.n_features, sparse.classes) == (700, 40, (1.0, 2.0, 3.0))
    [(X, y)] = dense
    assert X.shape == (500, 6)
    assert np.array_equal(X, dense.whole()[0])
    assert np.array_equal(y, dense.whole()[1])
    rows = np.concatenate([X.toarray() for X, _ in sparse.blocks(9)])
    assert np.array_equal(rows, sparse.whole()[0].toarray())
    assert np.allclose(np.linalg.norm(rows, axis=1)[rows.any(axis=1)], 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"dataset": "sparce"}, "did you mean 'sparse'"),
        ({"dataset": "sparse", "order": "shufled"}, "no order 'shufled'; did you mean 'shuffled'"),
        ({"dataset": "sparse", "positive_class": 4}, "no label 4; it has 1, 2, 3"),
        ({"dataset": "real", "positive_class": 1}, "no label 1; it has real numbers"),
    ],
)
def test_wrong_name__is_refused_with_the_nearest(asked, said, small_store):
    with pytest.raises(WrongInput, match=said):
        koco_stream.stream(small_store, **asked)
