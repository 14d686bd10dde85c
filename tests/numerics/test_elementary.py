"""exp, sin and cos against long double."""

import numpy as np
import pytest

from koco_stream.numerics.instructions.elementary import HIGHEST, LOWEST, cos_sin, exp
from koco_stream.numerics.instructions.registers import Registers

NUMPY = Registers(8)


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
    cosines, sines = cos_sin(NUMPY, x)
    assert np.abs(cosines - np.cos(x.astype(np.longdouble))).max() < error
    assert np.abs(sines - np.sin(x.astype(np.longdouble))).max() < error


def test_sin_and_cos__of_what_is_no_angle():
    with np.errstate(invalid="ignore"):
        cosines, sines = cos_sin(NUMPY, np.array([1e300, -np.inf, np.nan, 0.0]))
    np.testing.assert_array_equal(cosines, [1.0, np.nan, np.nan, 1.0])
    np.testing.assert_array_equal(sines, [0.0, np.nan, np.nan, 0.0])


def test_exp__is_within_a_rounding_of_the_true_value():
    draw = np.random.default_rng(0)
    near = [draw.uniform(-1, 1, 100_000), -np.geomspace(1e-300, 1, 1000)]
    x = np.concatenate([draw.uniform(LOWEST, HIGHEST, 100_000), *near])
    true = np.exp(x.astype(np.longdouble))
    assert np.abs((exp(NUMPY, x) - true) / true).max() < 1.5e-16
    np.testing.assert_array_equal(
        exp(NUMPY, np.array([0.0, -0.0, -709.0, 710.0])), [1.0, 1.0, 0.0, np.inf]
    )
