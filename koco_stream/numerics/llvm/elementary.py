"""exp, sin and cos without branches, so that they vectorise, with the same bits on every machine.

exp: x = n·ln 2 + r in two terms of ln 2 (Cody and Waite, 1980), with a relative error below
1.5e-16. Below −708 the result is 0, above 709 infinity.

sin and cos: x = n·π/2 + r in three terms of π/2, with an absolute error below 2.2e-16 up to 1e6,
and about 1e-16·x beyond. Angles above 1e12 are taken as 0.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.numerics.llvm.registers import Line
from koco_stream.types import Array

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


def polynomial(x: Any, coefficients: list[float]) -> Any:
    """A polynomial of an array or `Line`, its highest coefficient first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def exp_factors(x: Any) -> tuple[Any, Any]:
    """e^x as mantissa·2ⁿ; n stands in the lowest bits of a double."""
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return r + r * r * polynomial(r, SERIES) + 1.0, shifted


def literal_exp(x: Array) -> Array:
    """e^x elementwise."""
    mantissa, shifted = exp_factors(x)
    power = (shifted.view(np.int64) << np.int64(52)) + np.int64(1023 << 52)
    result = np.where(x < LOWEST, 0.0, mantissa * power.view(np.float64))
    return np.where(x > HIGHEST, np.inf, result)


def filled(register: Any, value: float) -> Any:
    """A register like this one, with `value` everywhere."""
    kind = ir.IntType(64) if isinstance(value, int) else ir.DoubleType()
    return ir.Constant(ir.VectorType(kind, register.type.count), [value] * register.type.count)


def emit_exp(line: Line) -> Line:
    """Emit `literal_exp`."""
    b = line.b

    def joined(x: Any, mantissa: Any, shifted: Any) -> Any:
        bits = b.shl(b.bitcast(shifted, filled(x, 0).type), filled(x, 52))
        power = b.bitcast(b.add(bits, filled(x, 1023 << 52)), x.type)
        low = b.fcmp_ordered("<", x, filled(x, LOWEST))
        high = b.fcmp_ordered(">", x, filled(x, HIGHEST))
        result = b.select(low, filled(x, 0.0), b.fmul(mantissa, power))
        return b.select(high, filled(x, math.inf), result)

    lines = (each.registers for each in exp_factors(line))
    return Line(b, [joined(*registers) for registers in zip(line.registers, *lines, strict=True)])


def cos_sin_of_rest(x: Any) -> tuple[Any, Any, Any]:
    """cos r and sin r for x = n·π/2 + r; n stands in the lowest bits of a double."""
    shifted = x * TWO_OVER_PI + SHIFT
    r, n = x, shifted - SHIFT
    for term in QUARTER:
        r = r - n * term
    square = r * r
    cosines = square * -0.5 + 1.0 + square * square * polynomial(square, COS_SERIES)
    return cosines, r + r * square * polynomial(square, SIN_SERIES), shifted


def literal_cos_sin(x: Array) -> tuple[Array, Array]:
    """(cos x, sin x) elementwise."""
    cosines, sines, shifted = cos_sin_of_rest(np.where(np.abs(x) > LARGEST_ANGLE, x * 0.0, x))
    quadrant = shifted.view(np.int64)
    odd = (quadrant & 1) == 1
    sin_x = np.where(odd, cosines, sines).view(np.int64) ^ ((quadrant & 2) << 62)
    cos_x = np.where(odd, sines, cosines).view(np.int64) ^ (((quadrant + 1) & 2) << 62)
    return cos_x.view(np.float64), sin_x.view(np.float64)


def emit_cos_sin(line: Line) -> tuple[Line, Line]:
    """Emit `literal_cos_sin`."""
    b = line.b

    def within(x: Any) -> Any:
        size = b.bitcast(b.and_(b.bitcast(x, filled(x, 0).type), filled(x, (1 << 63) - 1)), x.type)
        large = b.fcmp_ordered(">", size, filled(x, LARGEST_ANGLE))
        return b.select(large, b.fmul(x, filled(x, 0.0)), x)

    def signed(value: Any, quadrant: Any) -> Any:
        sign = b.shl(b.and_(quadrant, filled(value, 2)), filled(value, 62))
        return b.bitcast(b.xor(b.bitcast(value, sign.type), sign), value.type)

    def turned(cosine: Any, sine: Any, shifted: Any) -> tuple[Any, Any]:
        quadrant, one = b.bitcast(shifted, filled(shifted, 0).type), filled(shifted, 1)
        odd = b.icmp_signed("==", b.and_(quadrant, one), one)
        cos_x = signed(b.select(odd, sine, cosine), b.add(quadrant, one))
        return cos_x, signed(b.select(odd, cosine, sine), quadrant)

    lines = cos_sin_of_rest(Line(b, [within(x) for x in line.registers]))
    pairs = [turned(*each) for each in zip(*(each.registers for each in lines), strict=True)]
    return Line(b, [pair[0] for pair in pairs]), Line(b, [pair[1] for pair in pairs])
