"""The hand-written instructions are the same in LLVM and in NumPy, to the bit, and right beside
plain sums in long double.
"""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.numerics import rank_one
from koco_stream.numerics.compiler import jit_with
from koco_stream.numerics.instructions import feature_rows, first_order, point_panels
from koco_stream.numerics.instructions.registers import Registers

MODULES = feature_rows, first_order, point_panels
LONG = np.longdouble
RESULT = -1  # the place of what an instruction returns, behind its arguments


def call(*arguments):
    return instruction(*arguments)  # noqa: F821  # `compiled` binds the name


@cache
def compiled(module, name):
    """The instruction, called from compiled code."""
    file = module.__name__.split(".")[-1]
    return jit_with(call, f"{file}_{name}", instruction=getattr(module, name))


def check(module, name, *arguments):
    """Both get copies of the arguments, in which an array that was given twice is still one.
    Returns ours, and what the instruction returned.
    """
    ours, plain, instruction = deepcopy(arguments), deepcopy(arguments), getattr(module, name)
    result = compiled(module, name)(*ours)
    assert result == getattr(instruction, "py_func", instruction)(*plain)
    for a, b in zip(ours, plain, strict=True):
        assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes()
    return *ours, result


def of_feature_rows(draw, kind, columns):
    """Each instruction's name and arguments, and what is in them afterwards, in long double."""
    shape, d, size = feature_rows.shape_for(columns), 30, int(draw.integers(0, 20))
    W, n = len(shape), int(draw.integers(0, len(shape) + 1))
    table = feature_rows.aligned_zeros(d, W)
    table[:] = draw.standard_normal(table.shape)
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val, out = draw.standard_normal(size).astype(kind), np.zeros(W)
    x, y, z = draw.standard_normal((3, W))
    M = draw.standard_normal((W, W))
    X, Y, Z, V, rows = (a.astype(LONG) for a in (x, y, z, val, table))
    gathered, added = V @ rows[idx], rows.copy()
    added[idx] += np.outer(V, x)
    yield "gather", (table, shape, idx, val, out), {4: gathered, RESULT: V @ V}
    yield "scatter", (table, shape, idx, val, x), {0: added}
    table[:, -1] = draw.choice([0.0, 1.0, 2.0], p=[0.2, 0.7, 0.1], size=d)
    last, count = table[idx, -1], int(draw.integers(0, 3))
    gathered[-1], added[idx, -1] = (last == 0.0).sum(), 7.0
    current = {4: gathered, RESULT: -1.0 if (last == 2.0).any() else V @ V}
    yield "gather_current", (table, shape, idx, val, out, 1), current
    used = np.zeros(size + 3, np.int32)
    first = {0: added * (added[:, -1:] == 7.0) + table * (added[:, -1:] != 7.0)}
    first[RESULT] = count + (last == 0.0).sum()
    yield "scatter_first", (table, shape, idx, val, x, 7, used, count), first
    squares = np.abs(table) * (table > 0.0)
    roots = np.sqrt(np.where(squares[idx, 0] == 0.0, 0.1, squares[idx, 0]).astype(LONG))
    yield "over_roots", (squares, 0, idx, val, 0.1, np.zeros(size)), {5: V / roots}
    yield "times", (M, x, out, shape), {2: M @ X}
    yield "line_dot", (x, y, shape), {RESULT: X @ Y}
    yield "line_dot3", (x, y, z, shape), {RESULT: X @ (Y * Z)}
    before = np.append(LONG(0.0), np.cumsum(X * Y))
    yield "sums_before", (x, y, out, shape), {2: before[:-1]}
    yield "sums_after", (x, y, out, shape), {2: X @ Y - before[1:]}
    q = np.tril(np.tile(Z, (n, 1)), -1)[:, :n] if n else np.zeros((0, 0))
    new = M.astype(LONG)
    new[:n] = X[:n, None] * M[:n] - Y[:n, None] * (q @ M[:n])
    yield "substitute", (M, n, x, y, z, shape), {0: new}
    outer = M.astype(LONG)
    outer[:n] += np.outer(X[:n], Y)
    yield "add_outer", (M, n, x, y, shape), {0: outer}
    yield "combine", (M, n, x, out, shape), {3: X[:n] @ M[:n]}
    f, g = LONG(0.6) * X - LONG(0.8) * Y, LONG(0.8) * X + LONG(0.6) * Y
    yield "rotate", (x, y, 0.6, 0.8, shape), {0: f, 1: g}


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_feature_rows(columns, kind, seed):
    for name, arguments, exact in of_feature_rows(np.random.default_rng(seed), kind, columns):
        found = check(feature_rows, name, *arguments)
        for at, numbers in exact.items():
            np.testing.assert_allclose(found[at], numbers, rtol=1e-13, atol=1e-13, err_msg=name)


def flat(panels, n):
    """The first n points of panels, a matrix (rows, n) in long double."""
    return panels.transpose(1, 0, 2).reshape(panels.shape[1], -1)[:, :n].astype(LONG)


def of_point_panels(draw, kind, n):
    """As `of_feature_rows`, for n points; exact values are of these."""
    room, end = 48, int(draw.integers(0, 10))
    points, line_of = draw.standard_normal((3, 9, 16)), draw.integers(0, 9, 20).astype(np.int32)
    idx = np.sort(draw.choice(20, 7, replace=False)).astype(np.int32)
    val, matrix = draw.standard_normal(7).astype(kind), draw.standard_normal((3, room, 16))
    x, y, norms, out = np.zeros((4, room))
    x[:n], y[:n] = draw.standard_normal((2, n))
    norms[:] = draw.random(room)
    V, X, Y, M = val.astype(LONG), x[:n].astype(LONG), y[:n].astype(LONG), flat(matrix, n)
    dots = V @ flat(points, n)[line_of[idx]]
    yield "inner_products", (points, line_of, idx, val, n, out, 0), {5: dots, RESULT: V @ V}
    yield "apply", (matrix, x, n, out, n), {3: X @ M[:n]}
    yield "add_scaled", (0.7, x, 0, y, 0, n), {3: Y + 0.7 * X}
    yield "panel_dot", (x, 0, y, 0, n), {RESULT: X @ Y}
    yield "weighted_size", (x, y, norms, n), {RESULT: np.abs(X * Y) @ norms[:n]}
    # U[j, p] is in row p of the panels, at point j; in an update, in row j at point p.
    upper = np.triu(draw.standard_normal((room, room)))
    in_rows = np.ascontiguousarray(upper.reshape(3, 16, room).transpose(0, 2, 1))
    yield "times_transposed", (in_rows, n, x, out), {3: X @ upper[:n, :n]}
    yield "update_factor", (in_rows, n, x, norms, out), {4: upper[:n, :n] @ X}
    distances = norms[:n] + 2.5 - 2.0 * Y
    far = {4: np.exp(-0.3 * np.where(distances < 1e-4 * (norms[:n] + 2.5), np.nan, distances))}
    yield "gaussian", (norms, 2.5, 0.3, n, y, 0), far
    near = y.copy()
    near[:n:3] = (norms[:n:3] + 2.5) / 2.0  # distances of 0 and of less, by rounding
    yield "gaussian", (norms, 2.5, 0.3, n, near, 0), {RESULT: n > 0}
    yield "exponential", (-0.3 * n,), {RESULT: np.exp(LONG(-0.3 * n))}
    tile, sums, first = points[0], np.ones((2, 16)), 2 * int(draw.integers(0, 3))
    added = np.ones((2, 16), LONG)
    for s in range(first, end):
        added[s % 2] += LONG(x[s]) * tile[s % 9]
    tiles = np.concatenate([tile, tile])
    yield "accumulate", (tiles, first, end, x, 0, sums, 0), {5: added}
    table, sums = draw.standard_normal((9, room)), draw.standard_normal((2, room))
    for levels in (table, np.rint(100.0 * table).astype(np.int16)):
        added = sums.astype(LONG)
        for i in range(first, 7):
            added[i % 2, :n] += LONG(val[i]) * levels[line_of[i - first], :n]
        yield "add_lines", (levels, line_of, val, first, 7, n, sums), {6: added[:, :n]}


@pytest.mark.parametrize("n", [0, 1, 16, 17, 45])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_point_panels(n, kind, seed):
    for name, arguments, exact in of_point_panels(np.random.default_rng(seed), kind, n):
        found = check(point_panels, name, *arguments)
        for at, numbers in exact.items():
            ours = found[at][..., :n] if np.shape(found[at])[-1:] == (48,) else found[at]
            np.testing.assert_allclose(ours, numbers, rtol=1e-12, atol=1e-12, err_msg=name)


def test_instructions__are_all_compared():
    """But for those that other tests have."""
    draw = np.random.default_rng(0)
    compared = {name for name, *_ in of_feature_rows(draw, np.float64, 3)}
    compared |= {name for name, *_ in of_point_panels(draw, np.float64, 3)}
    compared |= {"adagrad_row", "substitute", "substitute_tile", "waves"}
    written = {
        name
        for module in MODULES
        for name, one in vars(module).items()
        if hasattr(getattr(one, "py_func", one), "__wrapped__")
    }
    assert written == compared


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(0, 13), tiny=st.booleans())
def test_adagrad_row(kind, seed, size, tiny):
    """With squares that vanish, accumulators that are still 0, and slopes of 0."""
    draw, d = np.random.default_rng(seed), 30
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val = draw.standard_normal(size).astype(kind)
    val *= kind((1e-30 if kind is np.float32 else 1e-200) if tiny else 1.0)
    wG = draw.random((d, 2)) * (draw.random((d, 2)) < 0.5)
    slope = draw.standard_normal() * (draw.random() < 0.7)
    found, *_ = check(first_order, "adagrad_row", wG, idx, val, slope, 0.3)
    w, G = wG[idx].astype(LONG).T
    g = LONG(slope) * val
    G = G + np.where(np.abs(g) < 1e-150, 0.0, g * g)  # what double precision has of it
    step = np.divide(LONG(0.3) * g, np.sqrt(G), out=np.zeros_like(g), where=G > 0.0)
    np.testing.assert_allclose(found[idx], np.stack([w - step, G], axis=1), rtol=1e-13, atol=1e-14)


def test_a_product_and_its_sum_are_rounded_once():
    """(1 + u)(1 − u) − 1 = −u², which is lost if the product is rounded."""
    u = 2.0**-40
    assert Registers(1).fma(1.0 + u, 1.0 - u, -1.0) == -(u * u) != (1.0 + u) * (1.0 - u) - 1.0
    table, change = np.full((1, 4), -1.0), np.full(4, 1.0 + u)
    idx, val = np.zeros(1, np.int32), np.array([1.0 - u])
    table, *_ = check(feature_rows, "scatter", table, (0,) * 4, idx, val, change)
    assert (table == -(u * u)).all()


def test_scatter__of_nothing_changes_no_sign():
    idx, val, table = np.arange(3, dtype=np.int32), np.ones(3), np.full((3, 8), -0.0)
    after, *_ = check(feature_rows, "scatter", table, (0,) * 8, idx, val, np.zeros(8))
    assert np.signbit(after).all()  # −0 + 0 would be 0


def in_panels(dense, room):
    """A lower triangular matrix (n, n) in panels, with the reciprocals of its diagonal."""
    n, entries = len(dense), np.zeros((room, room))
    entries[:n, :n] = np.tril(dense, -1) + np.diag(1.0 / np.diag(dense))
    return np.ascontiguousarray(entries.reshape(-1, 16, room).transpose(0, 2, 1))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 45, 160])
def test_substitution__solves_and_a_tile_is_each_of_its_columns(n):
    """Also over more lines than are computed at once."""
    draw, room = np.random.default_rng(n), point_panels.room_for(n) + 16
    dense = np.tril(draw.standard_normal((n, n)) / (n + 1), -1) + np.diag(1.0 + draw.random(n))
    L, tile = in_panels(dense, room), draw.standard_normal((room, 16))
    tile[n:] = 0.0
    *_, solved, _ = check(point_panels, "substitute_tile", L, n, tile)
    np.testing.assert_allclose(dense @ solved[:n], tile[:n], atol=1e-12)
    for r, begin in ((0, 0), (15, 0), (7, 16 * (n // 16))):
        right, out = (np.ascontiguousarray(one[:, r]) for one in (tile, solved))
        out[begin:] = 7.0
        *_, one, _ = check(point_panels, "substitute", L, begin, n, right, out)
        assert one[:n].tobytes() == np.ascontiguousarray(solved[:n, r]).tobytes()
        assert (one[point_panels.room_for(n) :] == 7.0).all()


@pytest.mark.parametrize("n", [0, 1, 16, 45])
def test_waves__have_zeros_in_spare_places(n):
    x = np.zeros((3, 48))
    x[0] = np.random.default_rng(n).standard_normal(48) * 10.0 ** np.arange(-20, 28)
    ours, *_ = check(point_panels, "waves", x, 0, n, 48, 96)
    assert not ours[1:, n:].any()


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_aligned_zeros__begin_at_a_cache_line(rows):
    table = feature_rows.aligned_zeros(rows, 12)
    assert table.ctypes.data % 64 == 0
    np.testing.assert_array_equal(table, np.zeros((rows, 12)))


@pytest.mark.parametrize("values", ["plain", "graded", "equal", "zero"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 21])
def test_rank_one(n, values):
    """The stages of a rank-one change; also where eigenvalues that are equal make infinities and
    what is no number.
    """
    draw, W, rounding = np.random.default_rng(n), 8 * -(-n // 8), n * rank_one.EPSILON
    d, z, roots = np.zeros(W), np.zeros(W), draw.standard_normal((rank_one.scratch_rows(n), W))
    plain = np.sort(draw.random(n))[::-1]
    d[:n] = {
        "plain": plain,
        "graded": np.sort(10.0 ** -draw.uniform(0, 12, n))[::-1],
        "equal": np.round(2.0 * plain),
        "zero": 0.0 * plain,
    }[values]
    z[:n] = draw.standard_normal(n) * (draw.random(n) < 0.8)
    *_, roots, _, _ = check(rank_one, "first_step", d, z, n, rounding, roots, 0)
    for _ in range(12):
        *_, roots, _, _ = check(rank_one, "next_step", d, z, n, rounding, roots, 0)
    out, rows = np.zeros((n + 3, W)), draw.standard_normal((n, W))
    *_, vectors, _ = check(rank_one, "eigenvectors", d, z, n, roots, out)
    check(rank_one, "combined", vectors, rows, n, out)
