"""The blocks of sixteen rows that KONS, Sketched-KONS, KAWV and NORMA read: the same bits
whatever a call left behind, and at a cost that does not grow with d.
"""

import tracemalloc
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

import koco_stream
from koco_stream.kernels import earlier_rows as history

LEARNERS = {
    "KONS": {"curvature": 0.3},
    "SketchedKONS": {"curvature": 0.3, "beta": 1.0, "sampling_floor": 0.3},
    "KAWV": {},
    "NORMA": {"budget": 12, "step_size": 0.3},
}


def make(name):
    return getattr(koco_stream, name)(bandwidth=2.0, clip=2.0, **LEARNERS[name])


def sparse_stream(seed, n=100, d=5000):
    """Rows of about five non-zeros: half of them at forty features that many rows share."""
    draw = np.random.default_rng(seed)
    shared, others = (
        sparse.random_array(
            (n, width), density=2.5 / width, random_state=draw, data_sampler=draw.standard_normal
        )
        for width in (40, d - 40)
    )
    return sparse.csr_array(sparse.hstack([shared, others])), draw.choice([-1.0, 1.0], n)


@pytest.mark.parametrize("form", ["wide", "full"])
@pytest.mark.parametrize("name", LEARNERS)
def test_rows__in_calls_of_any_size_and_without_unused_features_give_the_same_bits(name, form):
    """Whole tiles, rows one by one, and tiles that are too short to share a reading of the factor.
    Another learner is given rows of another d meanwhile: what a call leaves behind must not reach
    the next.
    """
    X, y = sparse_stream(6)
    if form == "full":
        X = np.random.default_rng(5).standard_normal((100, 6))
    (narrow, _), whole, without, other = sparse_stream(7, d=90), make(name), make(name), make(name)
    at_once, predicted = whole.progressive(X, y), whole.predict(X)
    for ends in (range(1, 101), range(4, 101, 3), (16, 17, 48, 50, 100)):
        model, found = make(name), []
        for first, end in pairwise((0, *ends)):
            found.append(model.progressive(X[first:end], y[first:end]))
            other.progressive(narrow[first:end], y[first:end])
            other.predict(narrow[:20])
        assert np.concatenate(found).tobytes() == at_once.tobytes()
        assert model.predict(X).tobytes() == predicted.tobytes()
    alone = np.concatenate([whole.predict(X[[t]]) for t in range(100)])
    assert alone.tobytes() == predicted.tobytes()
    assert without.progressive(X[:, np.unique(X.nonzero()[1])], y).tobytes() == at_once.tobytes()
    assert np.unique(at_once).size > 50


@pytest.mark.parametrize("name", LEARNERS)
def test_a_call__allocates_and_clears_nothing_of_the_size_of_d(name):
    # The first call makes the one table of size d. 4·d bytes are 4 MB here, a line of features for
    # each would be 128 MB.
    X, y = sparse_stream(8, n=40, d=1_000_000)
    model, used = make(name), np.unique(X.indices)
    model.progressive(X[:20], y[:20])
    table = history._free[-1]
    # What is planted at features that no row has stands for all that lies between: work over all d
    # features would wipe it away.
    unused = np.ones(table.size, bool)
    unused[used] = False
    table[unused] = -7
    tracemalloc.start()
    try:
        model.progressive(X[20:], y[20:])
        model.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        history._free.clear()  # 4 MB that no other test needs
    assert peak < 800_000
    assert (table[unused] == -7).all()
    assert not table[used].any()


def test_an_error_in_a_call__leaves_nothing_behind():
    X, y = sparse_stream(9)
    expected, interrupted = make("NORMA").progressive(X, y), make("NORMA")
    fails = patch(
        "koco_stream.learners.kernel.shared_kernel_scan.fill_tile", side_effect=KeyboardInterrupt
    )
    with fails, pytest.raises(KeyboardInterrupt):
        interrupted.progressive(X, y)
    assert make("NORMA").progressive(X, y).tobytes() == expected.tobytes()
