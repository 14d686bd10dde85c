"""The kernels: gaussian exp(−‖x − x'‖²/(2·bandwidth²)), polynomial (xᵀx' + 1)^degree, linear xᵀx'.

Values are computed from inner products and square norms, for all points of a dictionary at once.
"""

from typing import NamedTuple

from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import gaussian
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


@inlined
def values_of(kernel: Kernel, norms: Array, n2: float, n: int, out: Array) -> None:
    """Replace the inner products out[p] = xᵀx_p by kernel values k(x, x_p) for p < n.

    n2 is ‖x‖², and norms (room,) are ‖x_p‖².
    """
    if kernel.kind == GAUSSIAN:
        gaussian(norms, n2, kernel.scale, n, out, 0)
    elif kernel.kind == POLYNOMIAL:
        for p in range(n):
            out[p] = whole_power(out[p] + 1.0, kernel.degree)


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
