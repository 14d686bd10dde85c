"""The loops in the compiler's instructions equal the literal loops beside them, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.llvm import feature_lines as lanes

compiled = {}


@jit
def all_of_them(table, width, idx, val, a, n, W):
    n2 = lanes.gather(table, width, idx, val, a, 0)
    lanes.times(a, width, 6 * W, 0, W)
    n2 += lanes.dot(a, width, 0, W) + lanes.dot3(a, width, 0, W, 2 * W)
    lanes.sums_before(a, width, W, 4 * W, 2 * W)
    lanes.sums_after(a, width, W, 4 * W, 3 * W)
    lanes.substitute(a, width, n, 6 * W, 2 * W, 3 * W, 4 * W)
    lanes.add_outer(a, width, n, 6 * W, 3 * W, W)
    lanes.combine(a, width, n, 6 * W, table, W, a, 2 * W)
    lanes.rotate(a, width, 2 * W, 3 * W, 0.6, 0.8)
    lanes.scatter(table, width, idx, val, a, 5 * W)
    return n2


def literally(table, width, idx, val, a, n, W):
    n2 = lanes.literal_gather(table, width, idx, val, a, 0)
    lanes.literal_times(a, width, 6 * W, 0, W)
    n2 += lanes.literal_dot(a, width, 0, W) + lanes.literal_dot3(a, width, 0, W, 2 * W)
    lanes.literal_sums_before(a, width, W, 4 * W, 2 * W)
    lanes.literal_sums_after(a, width, W, 4 * W, 3 * W)
    lanes.literal_substitute(a, width, n, 6 * W, 2 * W, 3 * W, 4 * W)
    lanes.literal_add_outer(a, width, n, 6 * W, 3 * W, W)
    lanes.literal_combine(a, width, n, 6 * W, table, W, a, 2 * W)
    lanes.literal_rotate(a, width, 2 * W, 3 * W, 0.6, 0.8)
    lanes.literal_scatter(table, width, idx, val, a, 5 * W)
    return n2


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(0, 9), single=st.booleans())
def test_compiled__equals_literal_bit_for_bit(columns, seed, size, single):
    draw = np.random.default_rng(seed)
    width = lanes.lanes_for(columns)
    W, d = len(width), 30
    table = draw.standard_normal((d, W))
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val = draw.standard_normal(size).astype(np.float32 if single else np.float64)
    a = draw.standard_normal((6 + W) * W)
    n = int(draw.integers(0, W + 1))
    again, b = table.copy(), a.copy()
    assert all_of_them(table, width, idx, val, a, n, W) == literally(
        again, width, idx, val, b, n, W
    )
    assert table.tobytes() == again.tobytes()
    assert a.tobytes() == b.tobytes()


def test_aligned_zeros__begin_at_a_cache_line():
    for rows in (1, 3, 1000):
        table = lanes.aligned_zeros(rows, 12)
        assert table.ctypes.data % 64 == 0
        assert table.shape == (rows, 12)
        assert not table.any()
