"""Gaussian kernel values do not depend on where the origin is, nor on the way in which they are
computed.
"""

import numpy as np
import pytest
import scipy.sparse

import koco_stream
from koco_stream.kernels import earlier_rows, past_rows
from koco_stream.kernels.dictionary import add_point, grown, kernel_row, lacks_room, no_points
from koco_stream.kernels.kernel import gaussian_kernel
from koco_stream.numerics.compiler import jit
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.rows import row

FAR = 1e6
LEARNERS = {
    "KONS": {"curvature": 0.3},
    "SketchedKONS": {"curvature": 0.3, "sampling_floor": 0.3},
    **{name: {"ridge": 0.1} for name in ("PROSNKONS", "CONKONS", "PKAWV", "KORS")},
    "BKONS": {"max_dictionary": 9},
    "NONSALD": {},
    "KAWV": {},
    "NORMA": {"budget": 12, "step_size": 0.3},
    "NOGD": {"budget": 12, "rank": 5, "step_size": 0.3},
}


def table(form, far, n=70):
    """Rows whose offset changes no digit of their differences; some are nearly or quite equal."""
    draw = np.random.default_rng(5)
    X = draw.integers(-1024, 1025, (n, 6)) / 1024.0
    X[40:] = X[draw.integers(0, 40, n - 40)]
    X[55:, 0] += 2.0**-20
    X += far * (draw.random(6) < 0.7) if form == "mixed" else far
    if form == "sparse":
        X[draw.random((n, 6)) < 0.4] = 0.0
    return scipy.sparse.csr_array(X) if form == "sparse" else X


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("form", ["dense", "mixed"])
def test_predictions__do_not_see_an_offset(name, form):
    y = np.sin(np.arange(70.0))
    near, far = (getattr(koco_stream, name)(bandwidth=0.7, **LEARNERS[name]) for _ in range(2))
    tables = [model.record(table(form, at), y) for model, at in ((near, 0.0), (far, FAR))]
    for column in {"prediction", "inclusion_probability"} & set(tables[0].column_names):
        expected, found = (one.column(column).to_numpy() for one in tables)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert not hasattr(far, "dictionary_") or (far.dictionary_ == near.dictionary_).all()


@jit
def one_row(kernel, points, rows, t, k):
    """The values of row t with the points, of which it is one afterwards."""
    idx, val = row(rows, t)
    _, n2 = kernel_row(kernel, points, idx, val, k)
    add_point(points, idx, val, n2, t)


def of_points(kernel, rows):
    """K (n, n), below the diagonal, by the dictionary."""
    n, points = rows.n_rows, no_points(rows.n_features)
    K = np.zeros((n, n + 16))
    for t in range(n):
        s = int(rows.indptr[t + 1] - rows.indptr[t])
        while lacks_room_of(points, s):
            points = grown(points, s)
        one_row(kernel, points, rows, t, K[t])
    return np.tril(K[:, :n], -1)


@jit
def lacks_room_of(points, s):
    return lacks_room(points, s)


def of_tiles(kernel, rows, cuts):
    """The same by tiles of calls of these sizes."""
    n, K = rows.n_rows, np.zeros((rows.n_rows, rows.n_rows))
    history, tile, first = earlier_rows.no_rows(), np.zeros((n, 16)), 0
    for size in cuts:
        part = rows._replace(indptr=rows.indptr[first : first + size + 1])
        block = earlier_rows.block_of(part)
        history = earlier_rows.with_room(history, size, int(rows.indptr[-1]))
        for begin in range(0, size, 16):
            before, no_runs = int(history.n), np.zeros((0, n))
            earlier_rows.fill_tile(
                kernel, history, block, part, begin, True, 0,
                tile, np.zeros(16), no_runs, np.zeros((0, 2, 16)),
            )  # fmt: skip
            for t in range(before, int(history.n)):
                K[t, :t] = tile[:t, t - before]
        earlier_rows.clear_block(block)
        first += size
    return K


def of_past(kernel, X):
    """The same by the past rows of PKAWV."""
    K, past = np.zeros((len(X), len(X))), past_rows.no_past(6)
    for t, x in enumerate(X):
        idx = np.flatnonzero(x).astype(np.int32)
        val = x[idx]
        past = past_rows.more_past(past, idx.size, 48)
        n2 = float(val @ val)
        past_rows.kernel_values(past, kernel, idx, val, n2)
        K[t, :t] = past.z[:t]
        append_past(past, idx, val, n2)
    return K


@jit
def append_past(past, idx, val, n2):
    past_rows.append(past, idx, val, n2, past.z, 0, 0.0)


@pytest.mark.parametrize("form", ["dense", "mixed", "sparse"])
def test_values__are_right_and_the_same_by_any_way(form):
    X, kernel = table(form, FAR), gaussian_kernel(0.7)
    rows, dense = as_rows(X), X.toarray() if form == "sparse" else X
    exact = dense.astype(np.longdouble)
    squares = ((exact[:, None] - exact[None]) ** 2).sum(-1)
    expected = np.tril(np.exp(-squares / (2 * np.longdouble(0.7) ** 2)), -1).astype(float)
    points = of_points(kernel, rows)
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-9)
    assert (points[np.tril(squares == 0, -1)] == 1.0).all()
    for cuts in ([70], [1] * 70, [5, 31, 1, 16, 17]):
        assert of_tiles(kernel, rows, cuts).tobytes() == points.tobytes()
    assert of_past(kernel, dense).tobytes() == points.tobytes()
