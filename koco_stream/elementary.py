"""exp of our own: branch-free, so that eight are computed side by side, and the same bits on every machine.

x = n·ln 2 + r with |r| ≤ ½ ln 2, in two parts of ln 2 so that r keeps its digits (Cody and Waite, 1980); e^r by its series up to r¹³,
whose rest is below 4e-18; 2ⁿ by its bits. Relative error below 1.5e-16. Below −708 the result is 0, above 709 infinity: there are no
subnormal numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.linalg import Array

LOWEST, HIGHEST = -708.0, 709.0
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 32 significant bits: n times it is exact
SHIFT = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to a whole number, which then lies in the low bits
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
    """The instructions for e^x of a vector register."""
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
