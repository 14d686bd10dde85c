"""The kernels: gaussian exp(−‖x − x'‖²/(2·bandwidth²)), polynomial (xᵀx' + 1)^degree, linear xᵀx'.

Values come from inner products and square norms, for all points of a dictionary at once.
"""

from typing import NamedTuple

from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.elementary import exp
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array

GAUSSIAN, POLYNOMIAL, LINEAR = range(3)
KERNELS = {"gaussian": GAUSSIAN, "polynomial": POLYNOMIAL, "linear": LINEAR}


class Kernel(NamedTuple):
    """kind: its code. scale: 1/(2·bandwidth²) of a Gaussian. degree: of a polynomial."""

    kind: int
    scale: float
    degree: int


def gaussian_kernel(bandwidth: float) -> Kernel:
    """The Gaussian kernel of this bandwidth; one too small to be squared makes all rows but equal
    ones orthogonal.
    """
    square = 2.0 * bandwidth * bandwidth
    return Kernel(GAUSSIAN, 1.0 / square if square > 1e-300 else 1e300, 1)


@inlined
def values_of(kernel: Kernel, norms: Array, n2: float, n: int, out: Array) -> None:
    """out[p]: from xᵀx_p to k(x, x_p), for p < n, where n2 = ‖x‖² and norms (room,) are the
    ‖x_p‖².
    """
    if kernel.kind == GAUSSIAN:
        # To the end of a panel, so that all are computed side by side.
        for p in range(BLOCK * ((n + BLOCK - 1) // BLOCK)):
            distance = (n2 + norms[p]) - 2.0 * out[p]
            distance = 0.0 if distance < 0.0 else distance
            out[p] = exp(distance * -kernel.scale)
    elif kernel.kind == POLYNOMIAL:
        for p in range(n):
            out[p] = whole_power(out[p] + 1.0, kernel.degree)


@inlined
def value_at_itself(kernel: Kernel, n2: float) -> float:
    """k(x, x), by the same operations as `values_of`."""
    if kernel.kind == GAUSSIAN:
        return 1.0
    if kernel.kind == LINEAR:
        return n2
    return whole_power(n2 + 1.0, kernel.degree)


@inlined
def whole_power(base: float, degree: int) -> float:
    """base^degree for a degree from 1, by one multiplication after the other."""
    power = base
    for _ in range(degree - 1):
        power *= base
    return power
