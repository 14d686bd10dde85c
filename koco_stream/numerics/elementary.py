"""exp, sin and cos without branches, so that they vectorise, with the same bits on every machine.

exp: x = n·ln 2 + r with |r| ≤ ½ ln 2, in two parts of ln 2 so that r keeps its digits (Cody and
Waite, 1980); e^r by its series up to r¹³, whose rest is below 4e-18; 2ⁿ by its bits. Relative error
below 1.5e-16. Below −708 the result is 0, above 709 infinity: there are no subnormal numbers.

sin and cos: x = n·π/2 + r with |r| ≤ π/4, in three parts of π/2; both series of r, to r¹⁷ and r¹⁶,
whose rests are below 2e-18; the last two bits of n tell which series is which, and their signs.
Absolute error below 2.2e-16 up to 1e6, where n times the first two parts is exact; beyond, about
1e-16·x; above 1e12 every angle is taken as 0.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.types import Array

LOWEST, HIGHEST = -708.0, 709.0
LOG2_E = 1.4426950408889634
# ln 2 in two parts. The first has 32 significant bits, so that its product with n is exact.
LN2_HIGH, LN2_LOW = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
# 1.5·2⁵². Adding it rounds to an integer, which is then in the low bits.
SHIFT = 6755399441055744.0
TWO_OVER_PI = 0.6366197723675814
# π/2 in three parts, the first two of which have 33 significant bits.
QUARTER = [1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21]
LARGEST_ANGLE = 1e12
SIN_SERIES = [(-1.0) ** (k // 2) / math.factorial(k) for k in range(17, 2, -2)]
COS_SERIES = [(-1.0) ** (k // 2) / math.factorial(k) for k in range(16, 3, -2)]
SERIES = [1.0 / math.factorial(k) for k in range(13, 1, -1)]


def literal_exp(x: Array) -> Array:
    """e^x elementwise, by the same operations in the same order as `emit_exp`."""
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    series = np.full_like(x, SERIES[0])
    for coefficient in SERIES[1:]:
        series = series * r + coefficient
    mantissa = 1.0 + (r + (r * r) * series)
    power = (shifted.view(np.int64) << np.int64(52)) + np.int64(1023 << 52)
    result = np.where(x < LOWEST, 0.0, mantissa * power.view(np.float64))
    return np.where(x > HIGHEST, np.inf, result)


def emit_exp(b: Any, x: Any) -> Any:
    """Emit the instructions that compute e^x for each lane of a vector register."""
    lanes = x.type.count
    integers = ir.VectorType(ir.IntType(64), lanes)

    def all_of(value: float) -> Any:
        return ir.Constant(x.type, [value] * lanes)

    shifted = b.fadd(b.fmul(x, all_of(LOG2_E)), all_of(SHIFT))
    n = b.fsub(shifted, all_of(SHIFT))
    r = b.fsub(b.fsub(x, b.fmul(n, all_of(LN2_HIGH))), b.fmul(n, all_of(LN2_LOW)))
    series = all_of(SERIES[0])
    for coefficient in SERIES[1:]:
        series = b.fadd(b.fmul(series, r), all_of(coefficient))
    mantissa = b.fadd(all_of(1.0), b.fadd(r, b.fmul(b.fmul(r, r), series)))
    bits = b.shl(b.bitcast(shifted, integers), ir.Constant(integers, [52] * lanes))
    power = b.bitcast(b.add(bits, ir.Constant(integers, [1023 << 52] * lanes)), x.type)
    result = b.select(b.fcmp_ordered("<", x, all_of(LOWEST)), all_of(0.0), b.fmul(mantissa, power))
    return b.select(b.fcmp_ordered(">", x, all_of(HIGHEST)), all_of(math.inf), result)


def literal_cos_sin(x: Array) -> tuple[Array, Array]:
    """(cos x, sin x) elementwise, by the same operations in the same order as `emit_cos_sin`."""
    beyond = np.abs(x) > LARGEST_ANGLE
    x = np.where(beyond, 0.0, x)
    shifted = x * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    r = ((x - n * QUARTER[0]) - n * QUARTER[1]) - n * QUARTER[2]
    square = r * r
    sines, cosines = np.full_like(x, SIN_SERIES[0]), np.full_like(x, COS_SERIES[0])
    for coefficient in SIN_SERIES[1:]:
        sines = sines * square + coefficient
    for coefficient in COS_SERIES[1:]:
        cosines = cosines * square + coefficient
    sines = r + (r * square) * sines
    cosines = (1.0 - 0.5 * square) + (square * square) * cosines
    quadrant = shifted.view(np.int64)
    odd = (quadrant & 1) == 1
    sin_x = (np.where(odd, cosines, sines).view(np.int64) ^ ((quadrant & 2) << 62)).view(np.float64)
    cos_x = (np.where(odd, sines, cosines).view(np.int64) ^ (((quadrant + 1) & 2) << 62)).view(
        np.float64
    )
    return cos_x, sin_x


def emit_cos_sin(b: Any, x: Any) -> tuple[Any, Any]:
    """Emit the instructions that compute cos x and sin x for each lane of a vector register."""
    lanes = x.type.count
    integers = ir.VectorType(ir.IntType(64), lanes)

    def all_of(value: float) -> Any:
        return ir.Constant(x.type, [value] * lanes)

    def whole(value: int) -> Any:
        return ir.Constant(integers, [value] * lanes)

    def series(coefficients: list[float]) -> Any:
        total = all_of(coefficients[0])
        for coefficient in coefficients[1:]:
            total = b.fadd(b.fmul(total, square), all_of(coefficient))
        return total

    def signed(value: Any, quadrants: Any) -> Any:
        sign = b.shl(b.and_(quadrants, whole(2)), whole(62))
        return b.bitcast(b.xor(b.bitcast(value, integers), sign), x.type)

    size = b.bitcast(b.and_(b.bitcast(x, integers), whole((1 << 63) - 1)), x.type)
    x = b.select(b.fcmp_ordered(">", size, all_of(LARGEST_ANGLE)), all_of(0.0), x)
    shifted = b.fadd(b.fmul(x, all_of(TWO_OVER_PI)), all_of(SHIFT))
    n = b.fsub(shifted, all_of(SHIFT))
    r = x
    for part in QUARTER:
        r = b.fsub(r, b.fmul(n, all_of(part)))
    square = b.fmul(r, r)
    sines = b.fadd(r, b.fmul(b.fmul(r, square), series(SIN_SERIES)))
    one_less = b.fsub(all_of(1.0), b.fmul(all_of(0.5), square))
    cosines = b.fadd(one_less, b.fmul(b.fmul(square, square), series(COS_SERIES)))
    quadrant = b.bitcast(shifted, integers)
    odd = b.icmp_signed("==", b.and_(quadrant, whole(1)), whole(1))
    return signed(b.select(odd, sines, cosines), b.add(quadrant, whole(1))), signed(
        b.select(odd, cosines, sines), quadrant
    )
