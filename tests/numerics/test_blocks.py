"""The loops over a dictionary's points against the literal ones, bit for bit, and exp, sin and cos
against long double.
"""

import numpy as np
import pytest

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.elementary import HIGHEST, LOWEST, literal_cos_sin, literal_exp
from koco_stream.numerics.llvm import point_panels as blocks


@jit
def products(points, line_of, idx, val, n, out, at):
    return blocks.products(points, line_of, idx, val, n, out, at)


@jit
def gaussian(norms, n2, scale, n, out, at):
    blocks.gaussian(norms, n2, scale, n, out, at)


@jit
def apply(matrix, lower, n, x, at, out, to):
    blocks.apply(matrix, lower, n, x, at, out, to)


@jit
def subtract_outer(matrix, n, factor, v, at):
    blocks.subtract_outer(matrix, n, factor, v, at)


@jit
def dot(x, at, y, to, n):
    return blocks.dot(x, at, y, to, n)


@jit
def add_scaled(factor, x, at, y, to, n):
    blocks.add_scaled(factor, x, at, y, to, n)


@jit
def accumulate(tile, first, end, c, at, sums, to):
    blocks.accumulate(tile, first, end, c, at, sums, to)


@pytest.mark.parametrize(("first", "end"), [(0, 0), (0, 7), (2, 8), (4, 3), (6, 7)])
def test_accumulate__gives_the_bits_of_the_literal_one(first, end):
    draw = np.random.default_rng(end)
    tile, c = draw.standard_normal((9, 16)), draw.standard_normal((2, 9))
    ours, literal = np.ones((2, 2, 16)), np.ones((2, 2, 16))
    accumulate(tile, first, end, c, 9, ours, 32)
    blocks.literal_accumulate(tile, first, end, c, 9, literal, 32)
    assert ours.tobytes() == literal.tobytes()


@jit
def waves(x, at, n, cosines, sines):
    blocks.waves(x, at, n, cosines, sines)


@pytest.mark.parametrize("n", [0, 1, 16, 17, 45])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_loops__give_the_bits_of_the_literal_ones(n, kind):
    draw = np.random.default_rng(n)
    room = 48
    points = draw.standard_normal((room // 16, 9, 16))
    line_of = draw.integers(0, 9, 20).astype(np.int32)
    idx = np.sort(draw.choice(20, 7, replace=False)).astype(np.int32)
    val = draw.standard_normal(7).astype(kind)
    norms, matrix = draw.random(room), draw.standard_normal((room // 16, room, 16))
    ours, literal = (np.zeros((2, room)) for _ in range(2))

    n2 = products(points, line_of, idx, val, n, ours, room)
    assert n2 == blocks.literal_products(points, line_of, idx, val, n, literal, room)
    gaussian(norms, n2, 0.3, n, ours, room)
    blocks.literal_gaussian(norms, n2, 0.3, n, literal, room)
    assert ours.tobytes() == literal.tobytes()
    for lower in (True, False):
        apply(matrix, lower, n, ours, room, ours, 0)
        blocks.literal_apply(matrix, lower, n, literal, room, literal, 0)
        assert ours.tobytes() == literal.tobytes()
    add_scaled(0.7, ours, room, ours, 0, n)
    blocks.literal_add_scaled(0.7, literal, room, literal, 0, n)
    assert ours.tobytes() == literal.tobytes()
    assert dot(ours, 0, ours, room, n) == blocks.literal_dot(literal, 0, literal, room, n)
    other = matrix.copy()
    subtract_outer(matrix, n, 0.7, ours, 0)
    blocks.literal_subtract_outer(other, n, 0.7, literal, 0)
    assert matrix.tobytes() == other.tobytes()


@pytest.mark.parametrize("n", [0, 1, 16, 45])
def test_waves__give_the_bits_of_the_literal_ones_and_zeros_in_spare_places(n):
    ours = np.zeros((3, 48))
    ours[0] = np.random.default_rng(n).standard_normal(48) * 10.0 ** np.arange(-20, 28)
    literal = ours.copy()
    waves(ours, 0, n, 48, 96)
    blocks.literal_waves(literal, 0, n, 48, 96)
    assert ours.tobytes() == literal.tobytes()
    assert not ours[1:, n:].any()


@pytest.mark.parametrize(
    ("size", "error"),
    [(1e-3, 1.2e-16), (1.0, 1.8e-16), (1e2, 2e-16), (1e5, 2.2e-16), (1e6, 2.2e-16), (1e9, 1e-6)],
)
def test_sin_and_cos__are_within_a_rounding_of_the_true_values(size, error):
    draw = np.random.default_rng(0)
    near = np.rint(draw.uniform(-size, size, 20_000)) * (np.pi / 2)
    x = np.concatenate(
        [draw.uniform(-size, size, 100_000), near[np.abs(near) <= size], [0.0, -0.0]]
    )
    cosines, sines = literal_cos_sin(x)
    assert np.abs(cosines - np.cos(x.astype(np.longdouble))).max() < error
    assert np.abs(sines - np.sin(x.astype(np.longdouble))).max() < error


def test_sin_and_cos__of_what_is_no_angle():
    cosines, sines = literal_cos_sin(np.array([1e300, -np.inf, np.nan, 0.0]))
    np.testing.assert_array_equal(cosines, [1.0, 1.0, np.nan, 1.0])
    np.testing.assert_array_equal(sines, [0.0, 0.0, np.nan, 0.0])


def test_exp__is_within_a_rounding_of_the_true_value():
    draw = np.random.default_rng(0)
    x = np.concatenate(
        [
            draw.uniform(LOWEST, HIGHEST, 100_000),
            draw.uniform(-1, 1, 100_000),
            -np.geomspace(1e-300, 1, 1000),
        ]
    )
    true = np.exp(x.astype(np.longdouble))
    assert np.abs((literal_exp(x) - true) / true).max() < 1.5e-16
    np.testing.assert_array_equal(
        literal_exp(np.array([0.0, -0.0, -709.0, 710.0])), [1.0, 1.0, 0.0, np.inf]
    )
