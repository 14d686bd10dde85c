"""Loops over the points of a dictionary, sixteen points side by side.

A table (panels, rows, 16) has points 16p to 16p + 15 in panel p; a vector (panels·16,) is flat.
Padding is zero and computed like points. Each point has its own sums, over even and odd positions,
so neither the loop's width nor the capacity changes any number. `n` points are computed, rounded up
to panels.
"""

import math
from typing import Any

from koco_stream.numerics.instructions.elementary import cos_sin, exp, log1p
from koco_stream.numerics.instructions.registers import Registers, instruction, total

BLOCK = 16
HALF = 8
# The share of ‖x‖² + ‖z‖² below which ‖x − z‖², as a difference of these, has too few digits: a
# Gaussian kernel value would be wrong by about 10⁻¹².
CLOSE = 1e-4
CHUNK = 128  # rows of a panel and of a tile that stay in the processor's first cache


def room_for(n: Any) -> Any:
    """n rounded up to whole panels."""
    return (n + BLOCK - 1) & -BLOCK


def row(panels: Any, first: Any, j: Any) -> Any:
    """The place of row j in the panel that begins with point `first`."""
    return first * panels.shape[1] + j * BLOCK


@instruction("float64", BLOCK)
def inner_products(
    e: Registers, points: Any, line_of: Any, idx: Any, val: Any, n: Any, out: Any, at: Any
) -> Any:
    """out[at + p] ← xᵀx_p of the row x = (idx, val) with points p < n; returns ‖x‖².

    Row `line_of[j]` of `points` holds feature j; row 0 is zeros.
    """
    for first in e.loop(n, BLOCK):
        sums = e.variables(e.zeros(), e.zeros())
        for i, k in e.pairs(idx.size):
            j = e.number(line_of, e.number(idx, i))
            sums[k] = sums[k] + e.load(points, row(points, first, j)) * e.number(val, i)
        e.store(sums[0] + sums[1], out, at + first)
    squares = e.variables(0.0, 0.0)
    for i, k in e.pairs(idx.size):
        squares[k] = squares[k] + e.number(val, i) * e.number(val, i)
    return squares[0] + squares[1]


@instruction("void", BLOCK)
def add_lines(
    e: Registers, table: Any, lines: Any, val: Any, begin: Any, end: Any, n: Any, sums: Any
) -> None:
    """sums[i mod 2, p] += table[lines[i − begin], p]·val[i] for begin ≤ i < end, begin even."""
    for first in e.loop(n, BLOCK):
        totals = e.variables(e.load(sums, 0, first), e.load(sums, 1, first))
        for i, k in e.pairs(end, begin):
            numbers = e.load(table, e.number(lines, i - begin), first)
            totals[k] = e.fma(numbers, e.number(val, i), totals[k])
        e.store(totals[0], sums, 0, first)
        e.store(totals[1], sums, 1, first)


@instruction("boolean", BLOCK)
def gaussian(e: Registers, norms: Any, n2: Any, scale: Any, n: Any, out: Any, at: Any) -> Any:
    """out[at + p] ← exp(−D·scale) with D = ‖x‖² + ‖x_p‖² − 2·out[at + p], for p < n.

    It is NaN where D has lost its digits, below CLOSE·(‖x‖² + ‖x_p‖²). Returns whether any is.
    """
    near = e.variables(False)
    for first in e.loop(n, BLOCK):
        sums = e.load(norms, first) + n2
        distances = sums - e.load(out, at + first) * 2.0
        far = sums * CLOSE <= distances
        near[0] = near[0] | e.any(far ^ True)
        e.store(exp(e, e.select(far, distances, math.nan) * -scale), out, at + first)
    return near[0]


@instruction("float64", 1)
def exponential(e: Registers, x: Any) -> Any:
    """e^x, as `gaussian` computes it."""
    return exp(e, x)


@instruction("void", HALF)
def exponentials(e: Registers, x: Any, n: Any) -> None:
    """x[p] ← e^x[p] for p < n."""
    for first in e.loop(n, HALF):
        e.store(exp(e, e.load(x, first)), x, first)


@instruction("void", HALF)
def logarithms(e: Registers, x: Any, at: Any, n: Any) -> None:
    """x[at + p] ← log(1 + x[at + p]) for p < n, of numbers from 0 to 1."""
    for first in e.loop(n, HALF):
        e.store(log1p(e, e.load(x, at + first)), x, at + first)


@instruction("void", BLOCK)
def apply(e: Registers, matrix: Any, x: Any, n: Any, out: Any, rows: Any) -> None:
    """out[p] ← Σ_j M[p, j]·x[j] over j < n, for p < `rows`."""
    for first in e.loop(rows, BLOCK):
        sums = e.variables(e.zeros(), e.zeros())
        for j, k in e.pairs(n):
            sums[k] = sums[k] + e.load(matrix, row(matrix, first, j)) * e.number(x, j)
        e.store(sums[0] + sums[1], out, first)


@instruction("void", BLOCK)
def substitute(e: Registers, L: Any, begin: Any, n: Any, right: Any, out: Any) -> None:
    """Solve Lx = `right` into `out` from point `begin` on, with which a panel begins.

    L is lower triangular, with the reciprocals of its diagonal. Unlike a product with the inverse,
    this is exact within rounding of L, however ill-conditioned.
    """
    for first in e.loop(n, BLOCK, begin):
        x = e.variables(e.load(right, first))
        for j in e.loop(first):
            x[0] = e.fma(e.load(L, row(L, first, j)), -e.number(out, j), x[0])
        rest = x[0]
        for i in range(BLOCK):
            column = row(L, first, first + i)
            number = rest[i] * e.number(L, column + i)
            e.store(number, out, first + i)
            rest = e.fma(e.load(L, column), -number, rest)


@instruction("void", HALF)
def substitute_tile(e: Registers, L: Any, n: Any, tile: Any) -> None:
    """Solve LX = `tile` (room, 16) in place, each column as `substitute` does, 8 × 8 at a time."""

    def entry(first: Any, j: Any, i: int) -> Any:
        return e.number(L, row(L, first, j) + i)

    for first in e.loop(n, BLOCK):
        for begin in e.loop(first, CHUNK):
            stop = e.select(begin + CHUNK < first, begin + CHUNK, first)
            for half in (0, HALF):
                for group in (0, HALF):
                    points = range(group, group + HALF)
                    sums = e.variables(*(e.load(tile, first + i, half) for i in points))
                    for j in e.loop(stop, start=begin):
                        x = e.load(tile, j, half)
                        for k, i in enumerate(points):
                            sums[k] = e.fma(x, -entry(first, j, i), sums[k])
                    for k, i in enumerate(points):
                        e.store(sums[k], tile, first + i, half)
        for half in (0, HALF):
            rows = [e.load(tile, first + i, half) for i in range(BLOCK)]
            for i in range(BLOCK):
                rows[i] = rows[i] * entry(first, first + i, i)
                e.store(rows[i], tile, first + i, half)
                for k in range(i + 1, BLOCK):
                    rows[k] = e.fma(rows[i], -entry(first, first + i, k), rows[k])


@instruction("void", BLOCK)
def times_transposed(e: Registers, U: Any, n: Any, x: Any, out: Any) -> None:
    """out[p] ← Σ_j U[j, p]·x[j]; the panels' row p is column p of the upper triangular U."""
    for begin in e.loop(n, BLOCK):
        for p in e.loop(begin + BLOCK, start=begin):
            sums = e.variables(e.zeros())
            for first in e.loop(p + 1, BLOCK):
                sums[0] = e.fma(e.load(U, row(U, first, p)), e.load(x, first), sums[0])
            e.store(total(e, sums[0]), out, p)


@instruction("void", BLOCK)
def update_factor(e: Registers, U: Any, n: Any, v: Any, taken: Any, out: Any) -> None:
    """out ← Uv, U upper triangular; column p loses `taken`[p] times the product before it."""
    for first in e.loop(n, BLOCK):
        total = e.variables(e.zeros())
        for p in e.loop(n, start=first):
            column, before = e.load(U, row(U, first, p)), total[0]
            e.store(e.fma(before, -e.number(taken, p), column), U, row(U, first, p))
            total[0] = e.fma(column, e.number(v, p), before)
        e.store(total[0], out, first)


@instruction("float64", BLOCK)
def panel_dot(e: Registers, x: Any, at: Any, y: Any, to: Any, n: Any) -> Any:
    """Σ_p x[at + p]·y[to + p] over p < n."""
    sums = e.variables(e.zeros())
    for first in e.loop(n, BLOCK):
        sums[0] = sums[0] + e.load(x, at + first) * e.load(y, to + first)
    return total(e, sums[0])


@instruction("float64", BLOCK)
def weighted_size(e: Registers, x: Any, y: Any, weights: Any, n: Any) -> Any:
    """Σ_p |x[p]·y[p]|·weights[p] over p < n."""
    sums = e.variables(e.zeros())
    for first in e.loop(n, BLOCK):
        size = e.abs(e.load(x, first) * e.load(y, first))
        sums[0] = sums[0] + size * e.load(weights, first)
    return total(e, sums[0])


@instruction("void", BLOCK)
def add_scaled(e: Registers, factor: Any, x: Any, at: Any, y: Any, to: Any, n: Any) -> None:
    """y[to + p] += factor·x[at + p] for p < n."""
    for first in e.loop(n, BLOCK):
        e.store(e.load(y, to + first) + e.load(x, at + first) * factor, y, to + first)


@instruction("void", BLOCK)
def accumulate(
    e: Registers, tile: Any, first: Any, end: Any, c: Any, at: Any, sums: Any, to: Any
) -> None:
    """sums[to + 16·(s mod 2) + r] += c[at + s]·tile[s, r] for first ≤ s < end, first even."""
    totals = e.variables(e.load(sums, to), e.load(sums, to + BLOCK))
    for s, k in e.pairs(e.select(end < first, first, end), first):
        totals[k] = totals[k] + e.load(tile, s, 0) * e.number(c, at + s)
    e.store(totals[0], sums, to)
    e.store(totals[1], sums, to + BLOCK)


@instruction("void", BLOCK)
def waves(e: Registers, x: Any, at: Any, n: Any, cosines: Any, sines: Any) -> None:
    """x[cosines + p] ← cos x[at + p], and x[sines + p] ← sin x[at + p]; 0 from n on."""
    for first in e.loop(n, BLOCK):
        cos_x, sin_x = cos_sin(e, e.load(x, at + first))
        e.store(cos_x, x, cosines + first)
        e.store(sin_x, x, sines + first)
    for p in e.loop(room_for(n), start=n):
        e.store(0.0, x, cosines + p)
        e.store(0.0, x, sines + p)
