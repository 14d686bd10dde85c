"""Small linear algebra in a fixed order, for the compiled learners.

Every sum here is taken in one order, whatever the machine, so a run's numbers depend on nothing but the run. Speed comes from
computing several outputs side by side ("lanes"), never from splitting one sum.

A row is sparse: `idx` (s,) int32, its feature numbers in increasing order, and `val` (s,), its values. Tables indexed by
feature keep what belongs to one feature together: `table` is (d, width), and a row of it is a line of memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from koco_stream._jit import jit

Array = np.ndarray[Any, np.dtype[Any]]


def lanes_for(sketch_size: int) -> tuple[int, ...]:
    """A tuple whose length is the width of a table with `sketch_size` columns and one for the weights.

    The compiler sees the length of a tuple as a constant and unrolls the loops over it. Widths are rounded up to multiples
    of four, a vector register; the spare columns stay zero and change no number.
    """
    if sketch_size == 0:
        return (0,)
    return (0,) * (4 * ((sketch_size + 4) // 4))


@jit
def gather(table: Array, lanes: Any, idx: Array, val: Array, out: Array) -> float:
    """out ← tableᵀx, lane by lane, over the row's features in order; returns ‖x‖²."""
    width = len(lanes)
    n2 = 0.0
    if width % 4 == 0:
        for k in range(0, width, 4):
            a = b = c = d = 0.0
            for i in range(idx.size):
                j, v = idx[i], np.float64(val[i])
                a += table[j, k] * v
                b += table[j, k + 1] * v
                c += table[j, k + 2] * v
                d += table[j, k + 3] * v
            out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d
        for i in range(idx.size):
            v = np.float64(val[i])
            n2 += v * v
    else:
        for k in range(width):
            a = 0.0
            for i in range(idx.size):
                a += table[idx[i], k] * np.float64(val[i])
            out[k] = a
        for i in range(idx.size):
            v = np.float64(val[i])
            n2 += v * v
    return n2


@jit
def scatter(table: Array, lanes: Any, idx: Array, val: Array, coefficient: Array) -> None:
    """table[j] ← table[j] + x_j·coefficient for the row's features j."""
    width = len(lanes)
    for i in range(idx.size):
        j, v = idx[i], np.float64(val[i])
        for k in range(width):
            table[j, k] += coefficient[k] * v


@jit
def orthonormalise(table: Array, m: int) -> None:
    """Gram–Schmidt of the first m columns of `table` (d, width) in order; a column that vanishes becomes zero."""
    d = table.shape[0]
    dots = np.empty(m)
    for i in range(m):
        for k in range(i + 1):
            dots[k] = 0.0
        for j in range(d):
            v = table[j, i]
            for k in range(i + 1):
                dots[k] += table[j, k] * v
        original = dots[i]
        n2 = 0.0
        for j in range(d):
            v = table[j, i]
            for k in range(i):
                v -= dots[k] * table[j, k]
            table[j, i] = v
            n2 += v * v
        scale = 1.0 / math.sqrt(n2) if n2 > 1e-24 * original else 0.0
        for j in range(d):
            table[j, i] *= scale


@jit
def product(left: Array, right: Array, out: Array) -> None:
    """out ← left·right for matrices (n, k) and (k, m), each entry summed in order."""
    for i in range(left.shape[0]):
        out[i, :] = 0.0
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                out[i, j] += left[i, k] * right[k, j]
