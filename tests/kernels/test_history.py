"""The blocks of sixteen rows that KONS, Sketched-KONS and NORMA read: right to the bit, and at a
cost that does not grow with d.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import koco_stream
from koco_stream.kernels import earlier_rows as history
from koco_stream.kernels.kernel import KERNELS, gaussian_kernel
from koco_stream.streams.rows import as_rows

LEARNERS = {
    "KONS": {"curvature": 0.3},
    "SketchedKONS": {"curvature": 0.3, "beta": 1.0, "sampling_floor": 0.3},
    "NORMA": {"budget": 12, "step_size": 0.3},
}


def sparse_stream(seed, n=100, d=5000, most=9):
    """Rows of 0 to `most` non-zeros: half of the features are among forty that many rows share."""
    draw = np.random.default_rng(seed)
    X = sparse.lil_matrix((n, d))
    for t in range(n):
        size = draw.integers(0, most + 1)
        ids = np.where(
            draw.random(size) < 0.5, draw.integers(0, 40, size), draw.integers(0, d, size)
        )
        X[t, np.unique(ids)] = draw.standard_normal(np.unique(ids).size)
    return X.tocsr(), np.where(draw.random(n) < 0.5, -1.0, 1.0)


def inner_product(past, row):
    """Of two sparse rows, over the non-zeros of the first: those at even places, those at odd
    places, then the two sums together.
    """
    other = dict(zip(row.indices, row.data, strict=True))
    sums = [0.0, 0.0]
    for place, (j, value) in enumerate(zip(past.indices, past.data, strict=True)):
        sums[place % 2] += other.get(j, 0.0) * value
    return sums[0] + sums[1]


@pytest.mark.parametrize("seed", range(3))
def test_tile__has_the_literal_inner_products_to_the_bit(seed):
    X, _ = sparse_stream(seed)
    rows = as_rows(X)
    kernel = gaussian_kernel(1.0)._replace(kind=KERNELS["linear"])
    seen = history.with_room(history.no_rows(), rows.n_rows, rows.values.size)
    tile, own = np.zeros((rows.n_rows, 16)), np.zeros(16)
    block = history.block_of(rows)
    for first in range(0, rows.n_rows, 16):
        count = min(16, rows.n_rows - first)
        history.load_block(block, rows, first, first + count)
        history.remember(seen, rows, block)
        history.fill_tile(
            kernel, seen, block, 0, 0, tile, own, np.zeros((1, rows.n_rows)), np.zeros((1, 2, 16))
        )
        for r in range(count):
            expected = [inner_product(X[s], X[first + r]) for s in range(first + count)]
            np.testing.assert_array_equal(tile[: first + count, r], expected)
            assert own[r] == inner_product(X[first + r], X[first + r])
        history.clear_block(block, rows)


def test_block__is_cleared_where_its_rows_wrote_and_nowhere_else():
    # What is planted at features that no row has stands for all that lies between: work over all d
    # features would wipe it away.
    X, _ = sparse_stream(4)
    rows = as_rows(X)
    unused = np.setdiff1d(np.arange(rows.n_features), rows.indices)
    block = history.block_of(rows)
    block.line_of[unused] = -7
    for first in range(0, rows.n_rows, 16):
        count = min(16, rows.n_rows - first)
        history.load_block(block, rows, first, first + count)
        used = np.unique(X[first : first + count].indices)
        assert sorted(block.line_of[used]) == list(range(1, used.size + 1))
        assert np.count_nonzero(block.line_of > 0) == used.size
        history.clear_block(block, rows)
        assert not block.line_of[np.unique(rows.indices)].any()
        assert (block.line_of[unused] == -7).all()
        assert not block.features.any()
        assert int(block.n) == 0


def test_block__of_full_rows_is_cleared():
    rows = as_rows(np.random.default_rng(5).random((40, 6)))
    assert rows.index_stride == 0
    block = history.block_of(rows)
    for first in (0, 16, 32):
        history.load_block(block, rows, first, min(first + 16, 40))
        assert block.line_of[:6].all()
        history.clear_block(block, rows)
        assert not block.line_of.any()
        assert not block.features.any()


@pytest.mark.parametrize("name", LEARNERS)
def test_wide_rows__one_call_and_calls_of_a_row_give_the_same_bits(name):
    X, y = sparse_stream(6)
    narrow, _ = sparse_stream(7, d=90)
    make = getattr(koco_stream, name)
    whole = make(bandwidth=2.0, clip=2.0, **LEARNERS[name])
    single = make(bandwidth=2.0, clip=2.0, **LEARNERS[name])
    # Of another d: what one call leaves behind must not reach the next.
    other = make(bandwidth=2.0, clip=2.0, **LEARNERS[name])
    at_once = whole.progressive(X, y)
    one_by_one = []
    for t in range(X.shape[0]):
        one_by_one.append(single.progressive(X[t], y[t : t + 1]))
        other.progressive(narrow[t], y[t : t + 1])
        other.predict(narrow[:20])
    assert np.concatenate(one_by_one).tobytes() == at_once.tobytes()
    assert single.predict(X).tobytes() == whole.predict(X).tobytes()
    assert np.unique(at_once).size > 50


@pytest.mark.parametrize("name", LEARNERS)
def test_a_call__allocates_nothing_of_the_size_of_d(name):
    # The first call makes the one table of size d. 4·d bytes are 8 MB here, a line of features for
    # each would be 256 MB.
    X, y = sparse_stream(8, n=40, d=2_000_000)
    model = getattr(koco_stream, name)(bandwidth=2.0, clip=2.0, **LEARNERS[name])
    model.progressive(X[:20], y[:20])
    tracemalloc.start()
    try:
        model.progressive(X[20:], y[20:])
        model.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        history._free.clear()  # 8 MB that no other test needs
    assert peak < 1_000_000


def test_an_error_in_a_call__leaves_nothing_behind(monkeypatch):
    X, y = sparse_stream(9)
    expected = koco_stream.NORMA(bandwidth=2.0).progressive(X, y)

    def fails(*given):
        raise KeyboardInterrupt

    interrupted = koco_stream.NORMA(bandwidth=2.0)
    with monkeypatch.context() as patched:
        patched.setattr("koco_stream.learners.shared_kernel_scan.fill_tile", fails)
        with pytest.raises(KeyboardInterrupt):
            interrupted.progressive(X, y)
    assert koco_stream.NORMA(bandwidth=2.0).progressive(X, y).tobytes() == expected.tobytes()
