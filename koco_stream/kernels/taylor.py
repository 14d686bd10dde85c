"""Taylor features of the Gaussian kernel: exp(−‖x‖²/(2σ²)) Π_i x_i^{k_i}/(σ^{k_i} √(k_i!)) for all
multi-indices k with |k| = k_1 + … + k_d ≤ M.

Cotter, Keshet, Srebro: Explicit approximations of the Gaussian kernel (2011). The inner product of
two rows is exp(−(‖x‖² + ‖x'‖²)/(2σ²)) Σ_{m ≤ M} (xᵀx'/σ²)^m/m!: the series of the kernel up to M.

There are (d + M choose M) features, by increasing |k|. Each is an earlier one, its parent, times an
entry of the row and a factor: k = k' + e_i, where i is the last i with k_i > 0.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.kernel import Kernel, values_of
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array


class Taylor(NamedTuple):
    """The features of rows with d features.

    parents, axes (r,): the parent of each feature, and the entry i that it is multiplied by.
    factors (r,): 1/(σ√k_i). Those of the first feature, k = 0, are not used. x (d,), zeros and root
    (16,): scratch; x is all zeros but in `taylor_row`, zeros always.
    """

    parents: Array
    axes: Array
    factors: Array
    x: Array
    zeros: Array
    root: Array


def n_taylor(d: int, degree: int) -> int:
    """The number of features, (d + M choose M)."""
    return math.comb(d + degree, degree)


def taylor_features(kernel: Kernel, d: int, degree: int) -> Taylor:
    """The features up to this degree of a Gaussian kernel, for rows with d features."""
    parents, axes, powers = [0], [0], [0]
    first = 0  # feature of the degree before
    for _ in range(degree):
        end = len(parents)
        for parent in range(first, end):
            last = axes[parent]
            for i in range(last, d):
                parents.append(parent)
                axes.append(i)
                powers.append(powers[parent] + 1 if i == last else 1)
        first = end
    return Taylor(
        parents=np.array(parents, np.int64),
        axes=np.array(axes, np.int64),
        factors=math.sqrt(2.0 * kernel.scale) / np.sqrt(np.maximum(powers, 1)),
        x=np.zeros(d),
        zeros=np.zeros(BLOCK),
        root=np.zeros(BLOCK),
    )


def no_taylor() -> Taylor:
    """No features, for a learner that has others."""
    no_numbers, no_integers = np.zeros(0), np.zeros(0, np.int64)
    return Taylor(no_integers, no_integers, no_numbers, no_numbers, no_numbers, no_numbers)


@inlined
def square_norm(val: Array) -> float:
    """‖x‖² of a row."""
    total = 0.0
    for i in range(val.size):
        total += float(val[i]) * float(val[i])
    return total


@jit
def taylor_row(kernel: Kernel, of: Taylor, idx: Array, val: Array, out: Array) -> None:
    """Compute the features of the row (idx, val) into the first r numbers of `out`.

    They are all 0 for a row so far from the origin that exp(−‖x‖²/(2σ²)) is.
    """
    of.root[:] = 0.0
    values_of(kernel, of.zeros, square_norm(val), 1, of.root)
    out[0] = of.root[0]
    if out[0] == 0.0:
        out[: of.parents.size] = 0.0
        return
    for i in range(idx.size):
        of.x[idx[i]] = val[i]
    for j in range(1, of.parents.size):
        out[j] = out[of.parents[j]] * (of.x[of.axes[j]] * of.factors[j])
    for i in range(idx.size):
        of.x[idx[i]] = 0.0
