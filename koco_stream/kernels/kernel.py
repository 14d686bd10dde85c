"""The kernels: gaussian exp(−‖x − x'‖²/(2·bandwidth²)), polynomial (xᵀx' + 1)^degree, linear xᵀx'.

Values come from inner products and square norms. Where squared distances would lose their digits
so, they are summed over the features.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import exponential, gaussian
from koco_stream.types import Array

GAUSSIAN, POLYNOMIAL, LINEAR = range(3)
KERNELS = {"gaussian": GAUSSIAN, "polynomial": POLYNOMIAL, "linear": LINEAR}


class Kernel(NamedTuple):
    """A kernel for compiled code: its code, 1/(2·bandwidth²), and its degree."""

    kind: int
    scale: float
    degree: int


def gaussian_kernel(bandwidth: float) -> Kernel:
    """The Gaussian kernel; if bandwidth² underflows, that of rows that differ is 0."""
    square = 2.0 * bandwidth * bandwidth
    return Kernel(GAUSSIAN, 1.0 / square if square > 1e-300 else 1e300, 1)


class Others(NamedTuple):
    """The other rows: row p has entries `begin[p]` to before `end[p]`, and ‖x_p‖² in `norms`."""

    begin: Array
    end: Array
    indices: Array
    values: Array
    norms: Array


@inlined
def values_of(
    kernel: Kernel,
    others: Others,
    idx: Array,
    val: Array,
    n2: float,
    first: int,
    n: int,
    out: Array,
) -> None:
    """Replace out[p] = xᵀx_p by k(x, x_p) for first ≤ p < n; earlier entries become undefined."""
    if kernel.kind == GAUSSIAN:
        if gaussian(others.norms, n2, kernel.scale, n, out, 0):
            measure_close(kernel.scale, others, idx, val, first, n, out)
    elif kernel.kind == POLYNOMIAL:
        for p in range(n):
            out[p] = whole_power(out[p] + 1.0, kernel.degree)


@jit
def measure_close(
    scale: float, others: Others, idx: Array, val: Array, first: int, n: int, out: Array
) -> None:
    """Compute by their distances the Gaussian kernel values that are NaN in `out`."""
    for p in range(first, n):
        if math.isnan(out[p]):
            own = slice(others.begin[p], others.end[p])
            distance = squared_distance(idx, val, others.indices[own], others.values[own])
            out[p] = exponential(-scale * distance)


@jit
def squared_distance(idx: Array, val: Array, others: Array, values: Array) -> float:
    """‖x − z‖² of x = (idx, val) and z = (others, values)."""
    total, i, k = 0.0, 0, 0
    while i < idx.size or k < others.size:
        in_x = k == others.size or (i < idx.size and idx[i] <= others[k])
        in_z = i == idx.size or (k < others.size and others[k] <= idx[i])
        difference = (np.float64(val[i]) if in_x else 0.0) - (values[k] if in_z else 0.0)
        total += difference * difference
        i += in_x
        k += in_z
    return total


@inlined
def value_at_itself(kernel: Kernel, n2: float) -> float:
    """k(x, x) for ‖x‖² = n2, by the operations of `values_of`."""
    if kernel.kind == GAUSSIAN:
        return 1.0
    return n2 if kernel.kind == LINEAR else whole_power(n2 + 1.0, kernel.degree)


@inlined
def whole_power(base: float, degree: int) -> float:
    """base^degree for an integer degree ≥ 1."""
    power = base
    for _ in range(degree - 1):
        power *= base
    return power
