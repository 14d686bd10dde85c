"""The hand-written instructions are the same in LLVM and in NumPy, to the bit."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.numerics.compiler import jit_with
from koco_stream.numerics.instructions import feature_rows as lines
from koco_stream.numerics.instructions import first_order, secular
from koco_stream.numerics.instructions import point_panels as panels
from koco_stream.numerics.instructions.registers import Registers


def call(*arguments):
    return instruction(*arguments)  # noqa: F821  # `compiled` binds the name


@cache
def compiled(module, name):
    """The instruction, called from compiled code."""
    file = module.__name__.split(".")[-1]
    return jit_with(call, f"{file}_{name}", instruction=getattr(module, name))


def check(module, name, *arguments):
    """Both get copies of the arguments, in which an array that was given twice is still one.
    Returns ours.
    """
    ours, plain, instruction = deepcopy(arguments), deepcopy(arguments), getattr(module, name)
    assert compiled(module, name)(*ours) == getattr(instruction, "py_func", instruction)(*plain)
    for a, b in zip(ours, plain, strict=True):
        assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes()
    return ours


def test_a_product_and_its_sum_are_rounded_once():
    """(1 + u)(1 − u) − 1 = −u², which is lost if the product is rounded: here and in the compiled
    loops, which are compared with it.
    """
    u = 2.0**-40
    assert Registers(1).fma(1.0 + u, 1.0 - u, -1.0) == -(u * u) != (1.0 + u) * (1.0 - u) - 1.0
    table, change = np.full((1, 4), -1.0), np.full(4, 1.0 + u)
    idx, val = np.zeros(1, np.int32), np.array([1.0 - u])
    compiled(lines, "scatter")(table, (0,) * 4, idx, val, change)
    assert (table == -(u * u)).all()


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(0, 9), single=st.booleans())
def test_feature_rows(columns, seed, size, single):
    draw, width = np.random.default_rng(seed), lines.shape_for(columns)
    W, d = len(width), 30
    table, a = lines.aligned_zeros(d, W), draw.standard_normal((6 + W) * W)
    table[:] = draw.standard_normal(table.shape)
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val = draw.standard_normal(size).astype(np.float32 if single else np.float64)
    n = int(draw.integers(0, W + 1))
    check(lines, "gather", table, width, idx, val, a)
    epochs = table.copy()
    epochs[:, -1] = draw.choice([0.0, 1.0, 2.0], p=[0.2, 0.7, 0.1], size=d)
    check(lines, "gather_current", epochs, width, idx, val, a, 1)
    a[6 * W - 1] = 0.0
    used = np.zeros(size + 3, np.int32)
    check(lines, "scatter_first", epochs, width, idx, val, a[5 * W :], 7, used, 2)
    check(lines, "scatter", table, width, idx, val, a[5 * W :])
    nothing, below_zero = np.zeros(W), np.full_like(table, -0.0)  # which + 0 would be 0
    after = check(lines, "scatter", below_zero, width, idx, val, nothing)[0]
    assert np.signbit(after).all()
    x, y, z, out, matrix = a[:W], a[W : 2 * W], a[2 * W :], a[3 * W : 4 * W], a[6 * W :]
    check(lines, "times", matrix, x, out, width)
    check(lines, "line_dot", x, y, width)
    check(lines, "line_dot3", x, y, z, width)
    check(lines, "sums_before", x, y, out, width)
    check(lines, "sums_after", x, y, out, width)
    check(lines, "substitute", matrix, n, x, y, z, width)
    check(lines, "add_outer", matrix, n, x, y, width)
    check(lines, "combine", matrix, n, table[1], out, width)
    check(lines, "rotate", y, out, 0.6, 0.8, width)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), size=st.integers(0, 13), single=st.booleans(), tiny=st.booleans()
)
def test_first_order(seed, size, single, tiny):
    """With squares that vanish, accumulators that are still 0, and slopes of 0."""
    draw, d = np.random.default_rng(seed), 30
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val = draw.standard_normal(size).astype(np.float32 if single else np.float64)
    val *= val.dtype.type((1e-30 if single else 1e-200) if tiny else 1.0)
    wG = draw.random((d, 2)) * (draw.random((d, 2)) < 0.5)
    slope = draw.standard_normal() * (draw.random() < 0.7)
    check(lines, "over_roots", wG, 1, idx, val, 0.1, np.zeros(size))
    check(first_order, "adagrad_row", wG, idx, val, slope, 0.3)


@pytest.mark.parametrize("n", [0, 1, 16, 17, 45])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_point_panels(n, kind):
    draw, room = np.random.default_rng(n), 48
    points, line_of = draw.standard_normal((3, 9, 16)), draw.integers(0, 9, 20).astype(np.int32)
    idx = np.sort(draw.choice(20, 7, replace=False)).astype(np.int32)
    val, matrix = draw.standard_normal(7).astype(kind), draw.standard_normal((3, room, 16))
    out = np.zeros((2, room))
    out[:, :n] = draw.standard_normal((2, n))
    check(panels, "inner_products", points, line_of, idx, val, n, out, room)
    norms = draw.random(room)
    out[1, :n:3] = (norms[:n:3] + 2.5) / 2.0  # distances of 0 and of less, by rounding
    check(panels, "gaussian", norms, 2.5, 0.3, n, out, room)
    check(panels, "exponential", -0.3 * n)
    check(panels, "apply", matrix, out[1], n, out[0], n)
    check(panels, "add_scaled", 0.7, out, room, out, 0, n)
    check(panels, "panel_dot", out, 0, out, room, n)
    check(panels, "weighted_size", out[0], out[1], norms, n)
    check(panels, "times_transposed", matrix, n, out[1], out[0])
    check(panels, "update_factor", matrix, n, out[1], norms, out[0])


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 7), (6, 7), (16, 32)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_add_lines(begin, end, kind):
    draw = np.random.default_rng(end)
    table, lines = draw.standard_normal((9, 48)), draw.integers(0, 9, 16).astype(np.int32)
    val, sums = draw.standard_normal(33).astype(kind), draw.standard_normal((2, 48))
    levels = draw.integers(-(2**15), 2**15, table.shape).astype(np.int16)
    for n in (1, 16, 45):
        check(panels, "add_lines", table, lines, val, begin, end, n, sums)
        check(panels, "add_lines", levels, lines, val, begin, end, n, sums)
    check(panels, "fetch", draw.integers(0, 9, 40).astype(np.int16), lines)


def in_panels(dense, room):
    """A lower triangular matrix (n, n) in panels, with the reciprocals of its diagonal."""
    n, entries = len(dense), np.zeros((room, room))
    entries[:n, :n] = np.tril(dense, -1) + np.diag(1.0 / np.diag(dense))
    return np.ascontiguousarray(entries.reshape(-1, 16, room).transpose(0, 2, 1))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 45, 160])
def test_substitution__solves_and_a_tile_is_each_of_its_columns(n):
    """Also over more lines than are computed at once."""
    draw, room = np.random.default_rng(n), panels.room_for(n) + 16
    dense = np.tril(draw.standard_normal((n, n)) / (n + 1), -1) + np.diag(1.0 + draw.random(n))
    L, tile = in_panels(dense, room), draw.standard_normal((room, 16))
    tile[n:] = 0.0
    *_, solved = check(panels, "substitute_tile", L, n, tile)
    np.testing.assert_allclose(dense @ solved[:n], tile[:n], atol=1e-12)
    for r, begin in ((0, 0), (15, 0), (7, 16 * (n // 16))):
        right, out = (np.ascontiguousarray(one[:, r]) for one in (tile, solved))
        out[begin:] = 7.0
        *_, one = check(panels, "substitute", L, begin, n, right, out)
        assert one[:n].tobytes() == np.ascontiguousarray(solved[:n, r]).tobytes()
        assert (one[panels.room_for(n) :] == 7.0).all()


@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 7), (2, 8), (4, 3), (6, 7)])
def test_accumulate(first, end):
    draw = np.random.default_rng(end)
    tile, c = draw.standard_normal((9, 16)), draw.standard_normal((2, 9))
    check(panels, "accumulate", tile, first, end, c, 9, np.ones((2, 2, 16)), 32)


@pytest.mark.parametrize("n", [0, 1, 16, 45])
def test_waves__have_zeros_in_spare_places(n):
    x = np.zeros((3, 48))
    x[0] = np.random.default_rng(n).standard_normal(48) * 10.0 ** np.arange(-20, 28)
    ours, *_ = check(panels, "waves", x, 0, n, 48, 96)
    assert not ours[1:, n:].any()


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_aligned_zeros__begin_at_a_cache_line(rows):
    table = lines.aligned_zeros(rows, 12)
    assert table.ctypes.data % 64 == 0
    np.testing.assert_array_equal(table, np.zeros((rows, 12)))


@pytest.mark.parametrize("values", ["plain", "graded", "equal", "zero"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 21])
def test_secular(n, values):
    """The stages of a rank-one change, in their order; also where eigenvalues that are equal make
    infinities and what is no number.
    """
    draw, W = np.random.default_rng(n), secular.AT_ONCE * -(-n // secular.AT_ONCE)
    d, z, squares, roots, lengths = W, 2 * W, 3 * W, 4 * W, (4 + secular.ROOT_LINES) * W
    vectors, room = lengths + W, (n + secular.LINES_AT_ONCE - 1) * W
    lines, out = vectors + room, vectors + 2 * room
    a = np.zeros(out + room)
    plain = np.sort(draw.random(n))[::-1]
    a[d : d + n] = {
        "plain": plain,
        "graded": np.sort(10.0 ** -draw.uniform(0, 12, n))[::-1],
        "equal": np.round(2.0 * plain),
        "zero": 0.0 * plain,
    }[values]
    a[z : z + n] = draw.standard_normal(n) * (draw.random(n) < 0.8)
    a[lines : lines + n * W] = draw.standard_normal(n * W)
    a, *_ = check(secular, "squared", a, W, z, squares)
    total = compiled(secular, "squared")(a, W, z, squares)
    for first in range(0, n, secular.AT_ONCE):
        a, *_ = check(secular, "secular_start", a, W, d, squares, n, 2.0 * total, roots, first)
        for _ in range(12):
            a, *_ = check(secular, "secular_step", a, W, d, squares, n, roots, first)
    for first in range(0, n, secular.AT_ONCE):
        a, *_ = check(secular, "secular_columns", a, W, d, z, n, roots, vectors, lengths, first)
    for first in range(0, n, secular.AT_ONCE):
        a, *_ = check(secular, "secular_values", a, W, d, z, n, roots, lengths, first)
    for first in range(0, W, secular.AT_ONCE):
        a, *_ = check(secular, "turned", a, W, n, vectors, lengths, lines, out, first)
