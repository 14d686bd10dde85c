"""The hand-written instructions equal the literal loops that they stand for, to the bit."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.numerics.compiler import jit_with
from koco_stream.numerics.llvm import feature_lines, point_panels


def call(*arguments):
    return instruction(*arguments)  # noqa: F821  # `compiled` binds the name


@cache
def compiled(instruction):
    name = f"{instruction.literal.__module__.split('.')[-1]}_{instruction.literal.__name__}"
    return jit_with(call, name, instruction=instruction)


def check(instruction, *arguments):
    """Both get copies of the arguments, in which an array that was given twice is still one."""
    ours, literal = deepcopy(arguments), deepcopy(arguments)
    assert compiled(instruction)(*ours) == instruction.literal(*literal)
    for a, b in zip(ours, literal, strict=True):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(0, 9), single=st.booleans())
def test_feature_lines(columns, seed, size, single):
    draw = np.random.default_rng(seed)
    lanes = feature_lines.lanes_for(columns)
    W, d = len(lanes), 30
    table, a = draw.standard_normal((d, W)), draw.standard_normal((6 + W) * W)
    idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
    val = draw.standard_normal(size).astype(np.float32 if single else np.float64)
    n = int(draw.integers(0, W + 1))
    check(feature_lines.gather, table, lanes, idx, val, a, 0)
    check(feature_lines.line_dot, a, lanes, 0, W)
    check(feature_lines.substitute, a, lanes, n, 6 * W, 2 * W, 3 * W, 4 * W)
    check(feature_lines.combine, a, lanes, n, 6 * W, table, W, a, 2 * W)


@pytest.mark.parametrize("columns", [1, 5, 11, 20])
@pytest.mark.parametrize("back", [False, True])
def test_running_sums__leave_out_the_place_itself(columns, back):
    lanes = feature_lines.lanes_for(columns)
    W = len(lanes)
    a = np.random.default_rng(columns).standard_normal(3 * W)
    feature_lines.running_sums(a, lanes, 0, W, 2 * W, back)
    line = a[:W] * a[W : 2 * W]
    so_far = np.cumsum(line[::-1])[::-1] if back else np.cumsum(line)
    np.testing.assert_allclose(a[2 * W :], so_far - line, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 16, 17, 45])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_point_panels(n, kind):
    draw, room = np.random.default_rng(n), 48
    points, line_of = draw.standard_normal((3, 9, 16)), draw.integers(0, 9, 20).astype(np.int32)
    idx = np.sort(draw.choice(20, 7, replace=False)).astype(np.int32)
    val, matrix = draw.standard_normal(7).astype(kind), draw.standard_normal((3, room, 16))
    out = np.zeros((2, room))
    out[:, :n] = draw.standard_normal((2, n))
    check(point_panels.products, points, line_of, idx, val, n, out, room)
    check(point_panels.apply, matrix, True, n, out, room, out, 0)
    check(point_panels.apply, matrix, False, n, out, room, out, 0)
    check(point_panels.dot, out, 0, out, room, n)


@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 7), (2, 8), (4, 3), (6, 7)])
def test_accumulate(first, end):
    draw = np.random.default_rng(end)
    tile, c = draw.standard_normal((9, 16)), draw.standard_normal((2, 9))
    check(point_panels.accumulate, tile, first, end, c, 9, np.ones((2, 2, 16)), 32)


def test_aligned_zeros__begin_at_a_cache_line():
    for rows in (1, 3, 1000):
        table = feature_lines.aligned_zeros(rows, 12)
        assert table.ctypes.data % 64 == 0
        assert table.shape == (rows, 12)
        assert not table.any()
