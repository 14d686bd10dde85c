"""Random Fourier features of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).

They are cos uᵀx and sin uᵀx with u ~ N(0, I/bandwidth²) (Rahimi and Recht, 2007). With n
frequencies, Σ (cos uᵀx cos uᵀx' + sin uᵀx sin uᵀx')/n has the kernel as its mean.
"""

import numpy as np

from koco_stream.kernels.dictionary import panels
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.point_panels import BLOCK, products, room_for, waves
from koco_stream.numerics.random import normal
from koco_stream.types import Array

# Line numbers in a learner's table for the current row: uᵀx, cos uᵀx, sin uᵀx.
PROJECTIONS, COSINES, SINES = range(3)


def frequencies(d: int, n: int, bandwidth: float, seed: int) -> Array:
    """The frequencies u_1, …, u_n as a read-only table (n/16, d, 16).

    They depend only on the seed, so they are never saved.

    Entry j of u_i depends neither on d nor on n: fewer frequencies are a prefix of more.
    """
    table = panels(room_for(n), d)
    _draw(table, n, 1.0 / bandwidth, np.uint64(seed))
    table.flags.writeable = False
    return table


FARTHEST = 1e7  # bandwidths: beyond, cosines have fewer than eight digits


@jit
def _draw(table: Array, n: int, scale: float, seed: int) -> None:
    for i in range(n):
        for j in range(table.shape[1]):
            table[i // BLOCK, j, i % BLOCK] = scale * normal(seed, (i << 32) + j)


def numbers_to(n: int) -> Array:
    """0, …, n − 1 as read-only int32: the features' lines in a table with one line per feature."""
    numbers = np.arange(n, dtype=np.int32)
    numbers.flags.writeable = False
    return numbers


@inlined
def too_far(n2: float, bandwidth: float) -> bool:
    """Whether the cosines of a row of square norm n2 have lost too many digits.

    The error of a cosine is that of its argument, which is of the order of ‖x‖/bandwidth.
    """
    return n2 > FARTHEST * FARTHEST * bandwidth * bandwidth


@inlined
def fourier_row(table: Array, line_of: Array, idx: Array, val: Array, n: int, out: Array) -> None:
    """Compute the projections uᵀx, their cosines and sines for the row x = (idx, val).

    They are written to the lines PROJECTIONS, COSINES and SINES of `out` (lines, room), with zeros
    beyond n.
    """
    room = out.shape[1]
    products(table, line_of, idx, val, n, out, PROJECTIONS * room)
    waves(out, PROJECTIONS * room, n, COSINES * room, SINES * room)


def fourier_floats(d: int, n: int) -> int:
    """The size of n frequencies for d features and of three lines, in 8-byte numbers."""
    return room_for(n) * (d + 3) + d // 2 + 16
