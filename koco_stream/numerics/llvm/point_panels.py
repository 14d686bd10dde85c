"""Loops over the points of a dictionary, sixteen points side by side.

A dictionary's table is stored in panels, (panels, lines, 16): panel p holds points 16p to 16p + 15,
so that a loop over lines reads contiguous memory. A vector (panels·16,) is flat. Padding holds
zeros and is computed like points. Each point's sums are its own, over even and odd positions
separately and added at the end. Neither computing points side by side nor a larger capacity
therefore changes any number.

As in `koco_stream.numerics.llvm.feature_lines`, sums are hand-written LLVM instructions, each
beside the Python loop that specifies it. `add_scaled` and `subtract_outer` are plain loops, which
were as fast.
"""

from typing import Any

import numpy as np
from numba import types

from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.registers import (
    DOUBLE,
    INT64,
    Line,
    Lines,
    Memory,
    Variable,
    emitted_by,
    halved,
    in_two_chains,
    steps,
)
from koco_stream.types import Array

BLOCK = 16


def room_for(n: int) -> int:
    """n rounded up to a multiple of the panel size."""
    return BLOCK * ((n + BLOCK - 1) // BLOCK)


def _write(out: Array, at: int, line: Array) -> None:
    out.reshape(-1)[at : at + line.size] = line


def _panel_line(b: Any, table: Memory, first: Any, j: Any) -> Line:
    """Line j of the panel that begins at point `first`."""
    place = b.add(b.mul(first, table.panel_lines), b.mul(j, INT64(BLOCK)))
    return Lines(b, BLOCK).load(table, place)


def _products(
    b: Any, points: Any, line_of: Any, idx: Any, val: Any, n: Any, out: Any, at: Any
) -> Any:
    wide = Lines(b, BLOCK)
    with steps(b, n, BLOCK) as first:

        def term(i: Any) -> Line:
            line = _panel_line(b, points, first, line_of.number(idx.number(i)))
            return line * wide.spread(val.number(i))

        even, odd = in_two_chains(idx.size, term, wide.zeros(), wide.zeros())
        wide.store(even + odd, out, b.add(at, first))

    def square(i: Any) -> Line:
        value = val.number(i)
        return Line(b, [b.fmul(value, value)])

    zero = Line(b, [DOUBLE(0.0)])
    even, odd = in_two_chains(idx.size, square, zero, zero)
    return (even + odd).values[0]


@emitted_by(_products, types.float64)
def products(
    points: Array, line_of: Array, idx: Array, val: Array, n: int, out: Array, at: int
) -> float:
    """Compute the inner products out[at + p] ← xᵀx_p of the row x = (idx, val) with the points p <
    n; returns ‖x‖².

    Line `line_of[j]` of `points` holds feature j of every point. Line 0 is all zeros, for features
    that no point has.
    """
    squares = [0.0, 0.0]
    for i in range(idx.size):
        squares[i % 2] += np.float64(val[i]) * np.float64(val[i])
    for panel in range(room_for(n) // BLOCK):
        sums = np.zeros((2, BLOCK))
        for i in range(idx.size):
            sums[i % 2] += points[panel, line_of[idx[i]]] * np.float64(val[i])
        _write(out, at + panel * BLOCK, sums[0] + sums[1])
    return float(squares[0] + squares[1])


def _apply(b: Any, matrix: Any, lower: Any, n: Any, x: Any, at: Any, out: Any, to: Any) -> None:
    wide = Lines(b, BLOCK)
    with steps(b, n, BLOCK) as first:
        end = b.add(first, INT64(BLOCK))
        end = b.select(b.icmp_signed("<", end, n), end, n)

        def term(j: Any) -> Line:
            return _panel_line(b, matrix, first, j) * wide.spread(x.number(b.add(at, j)))

        count = b.select(lower, end, n)
        even, odd = in_two_chains(count, term, wide.zeros(), wide.zeros())
        wide.store(even + odd, out, b.add(to, first))


@emitted_by(_apply)
def apply(matrix: Array, lower: bool, n: int, x: Array, at: int, out: Array, to: int) -> None:
    """The matrix-vector product out[to + p] ← Σ_j M[p, j]·x[at + j] over j < n.

    If M is `lower` triangular, the sum ends with p's panel.

    Line j of a panel of `matrix` (panels, room, 16) holds the entries that are multiplied by x_j.
    """
    for panel in range(room_for(n) // BLOCK):
        sums = np.zeros((2, BLOCK))
        for j in range(min(n, (panel + 1) * BLOCK) if lower else n):
            sums[j % 2] += matrix[panel, j] * x.reshape(-1)[at + j]
        _write(out, to + panel * BLOCK, sums[0] + sums[1])


def _dot(b: Any, x: Any, at: Any, y: Any, to: Any, n: Any) -> Any:
    wide = Lines(b, BLOCK)
    sums = Variable(wide.zeros())
    with steps(b, n, BLOCK) as first:
        left, right = wide.load(x, b.add(at, first)), wide.load(y, b.add(to, first))
        sums.set(sums.get() + left * right)
    return sums.get().total()


@emitted_by(_dot, types.float64)
def dot(x: Array, at: int, y: Array, to: int, n: int) -> float:
    """The dot product Σ_p x[at + p]·y[to + p] over p < n, in sixteen sums, then added pairwise."""
    sums = np.zeros(BLOCK)
    for first in range(0, n, BLOCK):
        sums += (
            x.reshape(-1)[at + first : at + first + BLOCK]
            * y.reshape(-1)[to + first : to + first + BLOCK]
        )
    return halved([sums[:8], sums[8:]])


def _accumulate(
    b: Any, tile: Any, first: Any, end: Any, c: Any, at: Any, sums: Any, to: Any
) -> None:
    wide = Lines(b, BLOCK)
    count = b.sub(end, first)
    count = b.select(b.icmp_signed("<", count, INT64(0)), INT64(0), count)

    def term(i: Any) -> Line:
        s = b.add(first, i)
        return wide.load(tile, wide.row(s, INT64(0))) * wide.spread(c.number(b.add(at, s)))

    places = to, b.add(to, INT64(BLOCK))
    chains = in_two_chains(count, term, *(wide.load(sums, place) for place in places))
    for place, chain in zip(places, chains, strict=True):
        wide.store(chain, sums, place)


@emitted_by(_accumulate)
def accumulate(tile: Array, first: int, end: int, c: Array, at: int, sums: Array, to: int) -> None:
    """Add coefficient-weighted kernel values of past rows first ≤ s < end, in order.

    sums[to + 16·(s mod 2) + r] += c[at + s]·tile[s, r]. `first` is even; `tile` is (rows, 16).
    """
    flat = sums.reshape(-1)
    for s in range(first, end):
        place = to + BLOCK * (s % 2)
        flat[place : place + BLOCK] += tile[s] * c.reshape(-1)[at + s]


@inlined
def add_scaled(factor: float, x: Array, at: int, y: Array, to: int, n: int) -> None:
    """Add a multiple of a vector: y[to + p] += factor·x[at + p] for p < n."""
    for p in range(BLOCK * ((n + BLOCK - 1) // BLOCK)):
        y.flat[to + p] += factor * x.flat[at + p]


@inlined
def subtract_outer(matrix: Array, n: int, factor: float, v: Array, at: int) -> None:
    """The rank-one update M[p, j] −= (factor·v[at + j])·v[at + p] for all p, j < n."""
    for panel in range((n + BLOCK - 1) // BLOCK):
        for j in range(n):
            scaled = factor * v.flat[at + j]
            for p in range(BLOCK):
                matrix[panel, j, p] -= scaled * v.flat[at + panel * BLOCK + p]
