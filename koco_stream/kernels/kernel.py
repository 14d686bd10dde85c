"""The kernels: gaussian exp(−‖x − x'‖²/(2·bandwidth²)), polynomial (xᵀx' + 1)^degree, linear xᵀx'.

Values are computed from inner products and square norms, for many rows at once. Squared distances
that are small beside the norms lose their digits so: they are summed over the features instead, so
that a Gaussian kernel is right wherever the origin is.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.point_panels import exponential, gaussian
from koco_stream.types import Array

GAUSSIAN, POLYNOMIAL, LINEAR = range(3)
KERNELS = {"gaussian": GAUSSIAN, "polynomial": POLYNOMIAL, "linear": LINEAR}


class Kernel(NamedTuple):
    """A kernel for compiled code.

    kind: its code. scale: 1/(2·bandwidth²) of a Gaussian kernel. degree: of a polynomial one.
    """

    kind: int
    scale: float
    degree: int


def gaussian_kernel(bandwidth: float) -> Kernel:
    """The Gaussian kernel of this bandwidth.

    If the bandwidth's square underflows, the kernel of rows that differ is 0.
    """
    square = 2.0 * bandwidth * bandwidth
    return Kernel(GAUSSIAN, 1.0 / square if square > 1e-300 else 1e300, 1)


class Others(NamedTuple):
    """The rows of one side of kernel values: row p has the feature numbers and values from
    `begin[p]` to before `end[p]`, and the square norm `norms[p]`.
    """

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
    """Replace the inner products out[p] = xᵀx_p by kernel values k(x, x_p) for first ≤ p < n, where
    x = (idx, val) has the square norm n2. Those before `first` have any values after it.
    """
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
    """Compute the Gaussian kernel values that norms leave too few digits: they are NaN in `out`."""
    for p in range(first, n):
        if math.isnan(out[p]):
            own = slice(others.begin[p], others.end[p])
            distance = squared_distance(idx, val, others.indices[own], others.values[own])
            out[p] = exponential(-scale * distance)


@jit
def squared_distance(idx: Array, val: Array, others: Array, values: Array) -> float:
    """‖x − z‖² of the rows x = (idx, val) and z = (others, values), in order of the features."""
    total, k = 0.0, 0
    for i in range(idx.size):
        while k < others.size and others[k] < idx[i]:
            total += values[k] * values[k]
            k += 1
        difference = np.float64(val[i])
        if k < others.size and others[k] == idx[i]:
            difference -= values[k]
            k += 1
        total += difference * difference
    for i in range(k, others.size):
        total += values[i] * values[i]
    return total


@inlined
def value_at_itself(kernel: Kernel, n2: float) -> float:
    """k(x, x) for a row with square norm n2, by the same operations as `values_of`."""
    if kernel.kind == GAUSSIAN:
        return 1.0
    return n2 if kernel.kind == LINEAR else whole_power(n2 + 1.0, kernel.degree)


@inlined
def whole_power(base: float, degree: int) -> float:
    """base^degree for an integer degree ≥ 1, by repeated multiplication."""
    power = base
    for _ in range(degree - 1):
        power *= base
    return power
