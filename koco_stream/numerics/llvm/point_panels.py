"""Loops over the points of a dictionary, sixteen points side by side.

A table (panels, lines, 16) has points 16p to 16p + 15 in panel p; a vector (panels·16,) is flat.
Padding is zero and computed like points. Each point has its own sums, over even and odd positions,
so neither the loop's width nor the capacity changes any number. Each instruction stands beside the
Python loop that specifies it.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.numerics.llvm.elementary import (
    emit_cos_sin,
    emit_exp,
    literal_cos_sin,
    literal_exp,
)
from koco_stream.numerics.llvm.registers import (
    DOUBLE,
    INT32,
    INT64,
    Line,
    Lines,
    Memory,
    cgutils,
    halved,
    instruction,
    literal_fused,
)
from koco_stream.types import Array

BLOCK = 16
HALF = 8
# The share of ‖x‖² + ‖z‖² below which ‖x − z‖², as a difference of these, has too few digits: a
# Gaussian kernel value would be wrong by about 10⁻¹².
CLOSE = 1e-4
CHUNK = 128  # lines of a panel and of a tile that stay in the processor's first cache


def room_for(n: int) -> int:
    """n rounded up to whole panels."""
    return BLOCK * ((n + BLOCK - 1) // BLOCK)


def _write(out: Array, at: int, line: Array) -> None:
    out.reshape(-1)[at : at + line.size] = line


def literal_products(
    points: Array, line_of: Array, idx: Array, val: Array, n: int, out: Array, at: int
) -> float:
    """out[at + p] ← xᵀx_p of the row x = (idx, val) with points p < n; returns ‖x‖².

    Line `line_of[j]` of `points` holds feature j; line 0 is zeros.
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


@instruction("float64", literal_products, BLOCK)
def products(
    e: Lines, points: Any, line_of: Any, idx: Any, val: Any, n: Any, out: Any, at: Any
) -> Any:
    """Emit `literal_products`."""
    with e.loop(n, BLOCK) as first:

        def term(i: Any) -> Line:
            line = _line_at(points, first, line_of.number(idx.number(i)))
            return e.load(line) * val.number(i)

        e.store(e.sum_of(idx.size, term), out.at(at, first))

    def square(i: Any) -> Line:
        v = val.number(i)
        return Line(e.b, [e.b.fmul(v, v)])

    return e.sum_of(idx.size, square, Line(e.b, [DOUBLE(0.0)])).registers[0]


def literal_add_lines(
    table: Array, lines: Array, val: Array, begin: int, end: int, n: int, sums: Array
) -> None:
    """sums[i mod 2, p] += table[lines[i − begin], p]·val[i] for begin ≤ i < end, begin even."""
    room = room_for(n)
    for i in range(begin, end):
        line = table[lines[i - begin], :room].astype(np.float64)
        sums[i % 2, :room] = literal_fused(line, np.float64(val[i]), sums[i % 2, :room])


@instruction("void", literal_add_lines, BLOCK)
def add_lines(
    e: Lines, table: Any, lines: Any, val: Any, begin: Any, end: Any, n: Any, sums: Any
) -> None:
    """Emit `literal_add_lines`."""
    with e.loop(n, BLOCK) as first:

        def with_term(total: Line, i: Any) -> Line:
            line = e.b.mul(lines.number(e.b.sub(i, begin)), table.shape[1])
            return e.load(table.at(line, first)).fused(val.number(i), total)

        addresses = sums.at(first), sums.at(sums.shape[1], first)
        started = e.load(addresses[0]), e.load(addresses[1])
        even, odd = e.two_sums(end, started, with_term, begin)
        e.store(even, addresses[0])
        e.store(odd, addresses[1])


def literal_fetch(line_of: Array, idx: Array) -> None:
    """Have the processor fetch line_of[j] for all features j."""


@instruction("void", literal_fetch, 1)
def fetch(e: Lines, line_of: Any, idx: Any) -> None:
    """Emit `literal_fetch`."""
    with e.loop(idx.size) as i:
        e.prefetch(line_of.at(idx.number(i)))


def _line_at(panels: Memory, first: Any, j: Any) -> Any:
    return panels.at(panels.b.mul(first, panels.shape[-2]), panels.b.mul(j, INT64(BLOCK)))


def literal_gaussian(norms: Array, n2: float, scale: float, n: int, out: Array, at: int) -> bool:
    """out[at + p] ← exp(−D·scale) with D = ‖x‖² + ‖x_p‖² − 2·out[at + p], for p < n.

    It is NaN where D has lost its digits, below CLOSE·(‖x‖² + ‖x_p‖²). Returns whether any is.
    """
    end = room_for(n)
    sums = n2 + norms[:end]
    distances = sums - 2.0 * out.reshape(-1)[at : at + end]
    far = sums * CLOSE <= distances
    _write(out, at, literal_exp(np.where(far, distances, np.nan) * -scale))
    return not far.all()


@instruction("boolean", literal_gaussian, BLOCK)
def gaussian(e: Lines, norms: Any, n2: Any, scale: Any, n: Any, out: Any, at: Any) -> Any:
    """Emit `literal_gaussian`."""
    negative, nothing = e.b.fneg(scale), e.zeros() + math.nan
    all_far = cgutils.alloca_once_value(e.b, INT64(-1))
    with e.loop(n, BLOCK) as first:
        address = out.at(at, first)
        sums = e.load(norms.at(first)) + n2
        distances = sums - e.load(address) * 2.0
        far = (sums * CLOSE).at_most(distances)
        for register in far.registers:
            bits = e.b.bitcast(register, ir.IntType(register.type.count))
            e.b.store(e.b.and_(e.b.load(all_far), e.b.sext(bits, INT64)), all_far)
        e.store(emit_exp(distances.where(far, nothing) * negative), address)
    return e.b.icmp_signed("!=", e.b.load(all_far), INT64(-1))


def literal_exponential(x: float) -> float:
    """e^x, as `gaussian` computes it."""
    return float(literal_exp(np.array([x]))[0])


@instruction("float64", literal_exponential, 1)
def exponential(e: Lines, x: Any) -> Any:
    """Emit `literal_exponential`."""
    (value,) = emit_exp(e.zeros() + x).registers
    return e.b.extract_element(value, INT32(0))


def literal_apply(matrix: Array, n: int, x: Array, at: int, out: Array, to: int) -> None:
    """out[to + p] ← Σ_j M[p, j]·x[at + j] over j < n."""
    for panel in range(room_for(n) // BLOCK):
        sums = np.zeros((2, BLOCK))
        for j in range(n):
            sums[j % 2] += matrix[panel, j] * x.reshape(-1)[at + j]
        _write(out, to + panel * BLOCK, sums[0] + sums[1])


@instruction("void", literal_apply, BLOCK)
def apply(e: Lines, matrix: Any, n: Any, x: Any, at: Any, out: Any, to: Any) -> None:
    """Emit `literal_apply`."""
    with e.loop(n, BLOCK) as first:

        def term(j: Any) -> Line:
            return e.load(_line_at(matrix, first, j)) * x.number(at, j)

        e.store(e.sum_of(n, term), out.at(to, first))


def literal_substitute(L: Array, begin: int, n: int, right: Array, out: Array) -> None:
    """Solve Lx = `right` into `out` from point `begin` on, with which a panel begins.

    L is lower triangular, with the reciprocals of its diagonal. Unlike a product with the inverse,
    this is exact within rounding of L, however ill-conditioned.
    """
    for first in range(begin, room_for(n), BLOCK):
        panel, x = L[first // BLOCK], right[first : first + BLOCK].copy()
        for j in range(first):
            x = literal_fused(panel[j], -out[j], x)
        for i in range(BLOCK):
            out[first + i] = x[i] * panel[first + i, i]
            x = literal_fused(panel[first + i], -out[first + i], x)


@instruction("void", literal_substitute, BLOCK)
def substitute(e: Lines, L: Any, begin: Any, n: Any, right: Any, out: Any) -> None:
    """Emit `literal_substitute`."""
    with e.loop(n, BLOCK, begin) as first:
        x = e.variable(e.load(right.at(first)))
        with e.loop(first) as j:
            x.set(e.load(_line_at(L, first, j)).fused(e.b.fneg(out.number(j)), x.get()))
        rest = x.get()
        for i in range(BLOCK):
            line = _line_at(L, first, e.b.add(first, INT64(i)))
            number = e.b.extract_element(rest.registers[i // HALF], INT32(i % HALF))
            number = e.b.fmul(number, e.b.load(e.b.gep(line, [INT64(i)])))
            e.b.store(number, out.at(first, INT64(i)))
            rest = e.load(line).fused(e.b.fneg(number), rest)


def literal_substitute_tile(L: Array, n: int, tile: Array) -> None:
    """Solve LX = `tile` (room, 16) in place, each column as `literal_substitute` does."""
    for i in range(room_for(n)):
        for j in range(i):
            tile[i] = literal_fused(tile[j], -L[i // BLOCK, j, i % BLOCK], tile[i])
        tile[i] *= L[i // BLOCK, i, i % BLOCK]


@instruction("void", literal_substitute_tile, HALF)
def substitute_tile(e: Lines, L: Any, n: Any, tile: Any) -> None:
    """Emit `literal_substitute_tile`, in cached tiles of 8 × 8."""

    def half_line(point: Any, half: int) -> Any:
        return tile.at(e.line_at(e.b.mul(point, INT64(2))), INT64(half))

    def entry(first: Any, j: Any, row: int) -> Any:
        return e.b.load(e.b.gep(_line_at(L, first, j), [INT64(row)]))

    with e.loop(n, BLOCK) as first:
        points = [e.b.add(first, INT64(row)) for row in range(BLOCK)]
        with e.loop(first, CHUNK) as begin:
            stop = _least(e, e.b.add(begin, INT64(CHUNK)), first)
            for half in (0, HALF):
                for group in (0, HALF):
                    rows = range(group, group + HALF)
                    sums = {row: e.variable(e.load(half_line(points[row], half))) for row in rows}
                    with e.loop(stop, start=begin) as j:
                        x = e.load(half_line(j, half))
                        for row, total in sums.items():
                            total.set(x.fused(e.b.fneg(entry(first, j, row)), total.get()))
                    for row, total in sums.items():
                        e.store(total.get(), half_line(points[row], half))
        for half in (0, HALF):
            lines = [e.load(half_line(point, half)) for point in points]
            for i, point in enumerate(points):
                lines[i] = lines[i] * entry(first, point, i)
                e.store(lines[i], half_line(point, half))
                for row in range(i + 1, BLOCK):
                    negative = e.b.fneg(entry(first, point, row))
                    lines[row] = lines[i].fused(negative, lines[row])


def _least(e: Lines, x: Any, y: Any) -> Any:
    return e.b.select(e.b.icmp_signed("<", x, y), x, y)


def literal_times_transposed(U: Array, n: int, x: Array, out: Array) -> None:
    """out[p] ← Σ_j U[j, p]·x[j]; the panels' line p is column p of the upper triangular U."""
    for p in range(room_for(n)):
        sums = np.zeros(BLOCK)
        for first in range(0, p + 1, BLOCK):
            sums = literal_fused(U[first // BLOCK, p], x[first : first + BLOCK], sums)
        out[p] = halved(sums)


@instruction("void", literal_times_transposed, BLOCK)
def times_transposed(e: Lines, U: Any, n: Any, x: Any, out: Any) -> None:
    """Emit `literal_times_transposed`."""
    with e.loop(n, BLOCK) as begin, e.loop(e.b.add(begin, INT64(BLOCK)), 1, begin) as p:
        sums = e.variable(e.zeros())
        with e.loop(e.b.add(p, INT64(1)), BLOCK) as first:
            line = e.load(_line_at(U, first, p))
            sums.set(line.fused(e.load(x.at(first)), sums.get()))
        e.b.store(sums.get().total(), out.at(p))


def literal_update_factor(U: Array, n: int, v: Array, taken: Array, out: Array) -> None:
    """out ← Uv, U upper triangular; column p loses `taken`[p] times the product before it."""
    for panel in range(room_for(n) // BLOCK):
        total = np.zeros(BLOCK)
        for p in range(panel * BLOCK, n):
            line = U[panel, p].copy()
            U[panel, p] = literal_fused(total, -taken[p], line)
            total = literal_fused(line, v[p], total)
        _write(out, panel * BLOCK, total)


@instruction("void", literal_update_factor, BLOCK)
def update_factor(e: Lines, U: Any, n: Any, v: Any, taken: Any, out: Any) -> None:
    """Emit `literal_update_factor`."""
    with e.loop(n, BLOCK) as first:
        total = e.variable(e.zeros())
        with e.loop(n, 1, first) as p:
            address = _line_at(U, first, p)
            line, before = e.load(address), total.get()
            e.store(before.fused(e.b.fneg(taken.number(p)), line), address)
            total.set(line.fused(v.number(p), before))
        e.store(total.get(), out.at(first))


def literal_panel_dot(x: Array, at: int, y: Array, to: int, n: int) -> float:
    """Σ_p x[at + p]·y[to + p] over p < n."""
    sums = np.zeros(BLOCK)
    for first in range(0, n, BLOCK):
        sums += (
            x.reshape(-1)[at + first : at + first + BLOCK]
            * y.reshape(-1)[to + first : to + first + BLOCK]
        )
    return halved(sums)


@instruction("float64", literal_panel_dot, BLOCK)
def panel_dot(e: Lines, x: Any, at: Any, y: Any, to: Any, n: Any) -> Any:
    """Emit `literal_panel_dot`."""
    sums = e.variable(e.zeros())
    with e.loop(n, BLOCK) as first:
        sums.set(sums.get() + e.load(x.at(at, first)) * e.load(y.at(to, first)))
    return sums.get().total()


def literal_weighted_size(x: Array, y: Array, weights: Array, n: int) -> float:
    """Σ_p |x[p]·y[p]|·weights[p] over p < n."""
    sums = np.zeros(BLOCK)
    for first in range(0, n, BLOCK):
        line = slice(first, first + BLOCK)
        sums += np.abs(x[line] * y[line]) * weights[line]
    return halved(sums)


@instruction("float64", literal_weighted_size, BLOCK)
def weighted_size(e: Lines, x: Any, y: Any, weights: Any, n: Any) -> Any:
    """Emit `literal_weighted_size`."""
    sums = e.variable(e.zeros())
    with e.loop(n, BLOCK) as first:
        sizes = (e.load(x.at(first)) * e.load(y.at(first))).absolute()
        sums.set(sums.get() + sizes * e.load(weights.at(first)))
    return sums.get().total()


def literal_add_scaled(factor: float, x: Array, at: int, y: Array, to: int, n: int) -> None:
    """y[to + p] += factor·x[at + p] for p < n."""
    end = room_for(n)
    y.reshape(-1)[to : to + end] += factor * x.reshape(-1)[at : at + end]


@instruction("void", literal_add_scaled, BLOCK)
def add_scaled(e: Lines, factor: Any, x: Any, at: Any, y: Any, to: Any, n: Any) -> None:
    """Emit `literal_add_scaled`."""
    with e.loop(n, BLOCK) as first:
        address = y.at(to, first)
        e.store(e.load(address) + e.load(x.at(at, first)) * factor, address)


def literal_accumulate(
    tile: Array, first: int, end: int, c: Array, at: int, sums: Array, to: int
) -> None:
    """sums[to + 16·(s mod 2) + r] += c[at + s]·tile[s, r] for first ≤ s < end, first even."""
    flat = sums.reshape(-1)
    for s in range(first, end):
        start = to + BLOCK * (s % 2)
        flat[start : start + BLOCK] += tile[s] * c.reshape(-1)[at + s]


@instruction("void", literal_accumulate, BLOCK)
def accumulate(
    e: Lines, tile: Any, first: Any, end: Any, c: Any, at: Any, sums: Any, to: Any
) -> None:
    """Emit `literal_accumulate`."""

    def with_term(total: Line, s: Any) -> Line:
        return total + e.load(tile.at(e.line_at(s))) * c.number(at, s)

    end = e.b.select(e.b.icmp_signed("<", end, first), first, end)
    addresses = sums.at(to), sums.at(to, INT64(BLOCK))
    started = e.load(addresses[0]), e.load(addresses[1])
    even, odd = e.two_sums(end, started, with_term, first)
    e.store(even, addresses[0])
    e.store(odd, addresses[1])


def literal_waves(x: Array, at: int, n: int, cosines: int, sines: int) -> None:
    """x[cosines + p] ← cos x[at + p], and x[sines + p] ← sin x[at + p]."""
    end = room_for(n)
    for to, line in zip(
        (cosines, sines), literal_cos_sin(x.reshape(-1)[at : at + end]), strict=True
    ):
        _write(x, to, np.where(np.arange(end) < n, line, 0.0))


@instruction("void", literal_waves, BLOCK)
def waves(e: Lines, x: Any, at: Any, n: Any, cosines: Any, sines: Any) -> None:
    """Emit `literal_waves`."""
    with e.loop(n, BLOCK) as first:
        cos_x, sin_x = emit_cos_sin(e.load(x.at(at, first)))
        e.store(cos_x, x.at(cosines, first))
        e.store(sin_x, x.at(sines, first))
    end = e.b.and_(e.b.add(n, INT64(BLOCK - 1)), INT64(-BLOCK))  # `room_for`
    for to in (cosines, sines):
        with e.loop(end, start=n) as p:
            e.b.store(DOUBLE(0.0), x.at(to, p))
