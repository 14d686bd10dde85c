"""exp, sin and cos of our own: branch-free, so that the compiler computes several side by side, and
the same bits on every machine.

exp: x = n·ln 2 + r with |r| ≤ ½ ln 2, in two parts of ln 2 so that r keeps its digits (Cody and
Waite, 1980); e^r by its series up to r¹³, whose rest is below 4e-18; 2ⁿ by its bits. Relative error
below 1.5e-16. Below −708 the result is 0, above 709 infinity: there are no subnormal numbers.

sin and cos: x = n·π/2 + r with |r| ≤ π/4, in three parts of π/2; both series of r, to r¹⁷ and r¹⁶,
whose rests are below 2e-18; the last two bits of n say which of them is which, and their signs.
Absolute error below 2.2e-16 up to 1e6, where n times the first two parts is exact; beyond, about
1e-16·x; above 1e12 every angle is taken as 0.
"""

import math
from typing import Any

import numpy as np

from koco_stream.numerics.compiler import inlined

LOWEST, HIGHEST = -708.0, 709.0
LOG2_E = 1.4426950408889634
# ln 2 in two parts. The first has 32 significant bits, so that its product with n is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# 1.5·2⁵². Adding it rounds to an integer, which is then in the low bits.
SHIFT = 6755399441055744.0
TWO_OVER_PI = 0.6366197723675814
# π/2 in three parts, the first two of which have 33 significant bits.
QUARTER = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
LARGEST_ANGLE = 1e12
SIN_SERIES = tuple((-1.0) ** (k // 2) / math.factorial(k) for k in range(17, 2, -2))
COS_SERIES = tuple((-1.0) ** (k // 2) / math.factorial(k) for k in range(16, 3, -2))
EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))


@inlined
def exp(x: float) -> float:
    """The exponential function e^x."""
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    series = EXP_SERIES[0]
    for k in range(1, len(EXP_SERIES)):
        series = series * r + EXP_SERIES[k]
    power = _number((_bits(shifted) << 52) + (1023 << 52))
    result = (1.0 + (r + (r * r) * series)) * power
    result = 0.0 if x < LOWEST else result
    return math.inf if x > HIGHEST else result


@inlined
def cos_sin(x: float) -> tuple[float, float]:
    """The cosine and the sine of x."""
    x = 0.0 if abs(x) > LARGEST_ANGLE else x
    shifted = x * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    r = ((x - n * QUARTER[0]) - n * QUARTER[1]) - n * QUARTER[2]
    square = r * r
    sine, cosine = SIN_SERIES[0], COS_SERIES[0]
    for k in range(1, len(SIN_SERIES)):
        sine = sine * square + SIN_SERIES[k]
    for k in range(1, len(COS_SERIES)):
        cosine = cosine * square + COS_SERIES[k]
    sine = r + (r * square) * sine
    cosine = (1.0 - 0.5 * square) + (square * square) * cosine
    quadrant = _bits(shifted)
    odd = (quadrant & 1) == 1
    cos_x, sin_x = (sine, cosine) if odd else (cosine, sine)
    return (
        _number(_bits(cos_x) ^ (((quadrant + 1) & 2) << 62)),
        _number(_bits(sin_x) ^ ((quadrant & 2) << 62)),
    )


@inlined
def _bits(x: float) -> Any:
    return np.float64(x).view(np.int64)


@inlined
def _number(bits: Any) -> Any:
    return np.int64(bits).view(np.float64)
