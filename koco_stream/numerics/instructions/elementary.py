"""exp, log1p, sin, cos without branches, so that they vectorise, with the same bits everywhere.

exp: x = n·ln 2 + r in two terms of ln 2 (Cody and Waite, 1980), with a relative error below
1.5e-16. Below −708 the result is 0, above 709 infinity.

log1p: log(1 + x) = 2·artanh(x/(2 + x)) for x in [0, 1], with a relative error below 4e-16.

sin and cos: x = n·π/2 + r in three terms of π/2, with an absolute error below 2.2e-16 up to 1e6,
and about 1e-16·x beyond. Angles above 1e12 are taken as 0.
"""

import math
from typing import Any

from koco_stream.numerics.instructions.registers import Registers

LOWEST, HIGHEST = -708.0, 709.0
LOG2_E = 1.4426950408889634
# ln 2 as a sum of two. The first has 32 significant bits, so that its product with n is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 1.5 * 2.0**52  # adding it rounds to an integer, which is then in the low bits
TWO_OVER_PI = 0.6366197723675814
# π/2 as a sum of three, the first two of which have 33 significant bits.
QUARTER = [1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21]
LARGEST_ANGLE = 1e12
SIN_SERIES = [(-1.0) ** (k // 2) / math.factorial(k) for k in range(17, 2, -2)]
COS_SERIES = [(-1.0) ** (k // 2) / math.factorial(k) for k in range(16, 3, -2)]
SERIES = [1.0 / math.factorial(k) for k in range(13, 1, -1)]
ARTANH_SERIES = [1.0 / k for k in range(33, 2, -2)]


def polynomial(x: Any, coefficients: list[float]) -> Any:
    """A polynomial, its highest coefficient first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def exp(e: Registers, x: Any) -> Any:
    """e^x of each number."""
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    mantissa = r + r * r * polynomial(r, SERIES) + 1.0
    power = e.of_bits((e.bits(shifted) << 52) + (1023 << 52))
    return e.select(x > HIGHEST, math.inf, e.select(x < LOWEST, 0.0, mantissa * power))


def log1p(e: Registers, x: Any) -> Any:
    """log(1 + x) of each number from 0 to 1."""
    s = x / (x + 2.0)
    square = s * s
    return (s + s * square * polynomial(square, ARTANH_SERIES)) * 2.0


def cos_sin(e: Registers, x: Any) -> tuple[Any, Any]:
    """(cos x, sin x) of each number."""
    r = e.select(e.abs(x) > LARGEST_ANGLE, x * 0.0, x)
    shifted = r * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    for term in QUARTER:
        r = r - n * term
    square = r * r
    cosines = square * -0.5 + 1.0 + square * square * polynomial(square, COS_SERIES)
    sines = r + r * square * polynomial(square, SIN_SERIES)
    quadrant = e.bits(shifted)
    odd = (quadrant & 1) == 1
    cos_x = e.bits(e.select(odd, sines, cosines)) ^ (((quadrant + 1) & 2) << 62)
    sin_x = e.bits(e.select(odd, cosines, sines)) ^ ((quadrant & 2) << 62)
    return e.of_bits(cos_x), e.of_bits(sin_x)
