"""What hand-written instructions promise beside the numbers of the learners that have them, which
are the literal ones, and the same in LLVM and in NumPy.
"""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest

from koco_stream.numerics.compiler import jit_with
from koco_stream.numerics.instructions import feature_rows, point_panels
from koco_stream.numerics.instructions.registers import Registers

LONG = np.longdouble


def call(*arguments):
    return instruction(*arguments)  # noqa: F821  # `compiled` binds the name


@cache
def compiled(module, name):
    """The instruction, called from compiled code."""
    file = module.__name__.split(".")[-1]
    return jit_with(call, f"{file}_{name}", instruction=getattr(module, name))


def check(module, name, *arguments):
    """Compiled code and NumPy change copies of the arguments to the same bits, and return the same.
    Returns ours, and what was returned.
    """
    ours, plain, instruction = deepcopy(arguments), deepcopy(arguments), getattr(module, name)
    result = compiled(module, name)(*ours)
    assert result == getattr(instruction, "py_func", instruction)(*plain)
    for a, b in zip(ours, plain, strict=True):
        assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes()
    return *ours, result


def along_a_row(draw, columns):
    """By name, the arguments of instructions of rows of so many columns, which of them changes (−1:
    what is returned), and to what, in long double.
    """
    shape, n = feature_rows.shape_for(columns), columns - 1
    W, size = len(shape), 9
    idx = np.sort(draw.choice(12, size, replace=False)).astype(np.int32)
    (x, y, z), val, out = draw.standard_normal((3, W)), draw.standard_normal(size), np.zeros(W)
    M, table = draw.standard_normal((W, W)), draw.standard_normal((12, W))
    X, Y, V = x.astype(LONG), y.astype(LONG), val.astype(LONG)
    before = np.append(LONG(0.0), np.cumsum(X * Y))
    added, outer = table.astype(LONG), M.astype(LONG)
    added[idx] += np.outer(V, X)
    outer[:n] += np.outer(X[:n], Y)
    return {
        "gather": ((table, shape, idx, val, out), 4, V @ table[idx]),
        "scatter": ((table, shape, idx, val, x), 0, added),
        "times": ((M, x, out, shape), 2, M @ X),
        "line_dot": ((x, y, shape), -1, X @ Y),
        "line_dot3": ((x, y, z, shape), -1, X @ (Y * z)),
        "sums_before": ((x, y, out, shape), 2, before[:-1]),
        "sums_after": ((x, y, out, shape), 2, X @ Y - before[1:]),
        "add_outer": ((M, n, x, y, shape), 0, outer),
        "combine": ((M, n, x, out, shape), 3, X[:n] @ M[:n]),
    }


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
def test_sums_along_a_row__are_right_in_any_number_of_registers(columns):
    """The learners' own tests have sketches of one or two."""
    for name, (given, at, exact) in along_a_row(np.random.default_rng(columns), columns).items():
        found = check(feature_rows, name, *given)[at]
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-13, err_msg=name)


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


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_aligned_zeros__begin_at_a_cache_line(rows):
    table = feature_rows.aligned_zeros(rows, 12)
    assert table.ctypes.data % 64 == 0
    np.testing.assert_array_equal(table, np.zeros((rows, 12)))
