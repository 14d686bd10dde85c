"""Loops over the points of a dictionary, sixteen points side by side.

A dictionary's table is stored in panels, (panels, lines, 16): panel p holds points 16p to 16p + 15,
so that a loop over lines reads contiguous memory. A vector (panels·16,) is flat. Padding holds
zeros and is computed like points. Each point's sums are its own, over even and odd positions
separately and added at the end. Neither computing points side by side nor a larger capacity
therefore changes any number. As in `koco_stream.numerics.llvm.feature_lines`, each loop is in LLVM
instructions beside a Python loop that specifies it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from koco_stream.numerics.elementary import emit_cos_sin, emit_exp, literal_cos_sin, literal_exp
from koco_stream.numerics.llvm.registers import INT64, Lines, halved, in_two_chains
from koco_stream.types import Array

BLOCK = 16


def room_for(n: int) -> int:
    """n rounded up to a multiple of the panel size."""
    return BLOCK * ((n + BLOCK - 1) // BLOCK)


def literal_products(
    points: Array, line_of: Array, idx: Array, val: Array, n: int, out: Array, at: int
) -> float:
    """Compute the inner products out[at + p] ← xᵀx_p of the row x = (idx, val) with points p < n.

    Returns ‖x‖². Line `line_of[j]` of `points` holds feature j of every point; line 0 is all zeros,
    for features that no point has.
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


def _write(out: Array, at: int, line: Array) -> None:
    out.reshape(-1)[at : at + line.size] = line


def literal_gaussian(norms: Array, n2: float, scale: float, n: int, out: Array, at: int) -> None:
    """Replace inner products by Gaussian kernel values: for p < n, out[at + p] ← exp(−max(‖x‖² +
    ‖x_p‖² − 2·out[at + p], 0)·scale).
    """
    end = room_for(n)
    distances = np.maximum((n2 + norms[:end]) - 2.0 * out.reshape(-1)[at : at + end], 0.0)
    _write(out, at, literal_exp(distances * -scale))


def literal_apply(
    matrix: Array, lower: bool, n: int, x: Array, at: int, out: Array, to: int
) -> None:
    """The product out[to + p] ← Σ_j M[p, j]·x[at + j] over j < n; if M is `lower` triangular, the
    sum ends with p's panel.

    Line j of a panel of `matrix` (panels, room, 16) holds the entries that are multiplied by x_j.
    """
    for panel in range(room_for(n) // BLOCK):
        sums = np.zeros((2, BLOCK))
        for j in range(min(n, (panel + 1) * BLOCK) if lower else n):
            sums[j % 2] += matrix[panel, j] * x.reshape(-1)[at + j]
        _write(out, to + panel * BLOCK, sums[0] + sums[1])


def literal_subtract_outer(matrix: Array, n: int, factor: float, v: Array, at: int) -> None:
    """The rank-one update M[p, j] −= (factor·v[at + j])·v[at + p] for all p, j < n."""
    flat = v.reshape(-1)
    for panel in range(room_for(n) // BLOCK):
        line = flat[at + panel * BLOCK : at + (panel + 1) * BLOCK]
        for j in range(n):
            matrix[panel, j] -= (factor * flat[at + j]) * line


def literal_dot(x: Array, at: int, y: Array, to: int, n: int) -> float:
    """The dot product Σ_p x[at + p]·y[to + p] over p < n, in sixteen sums, then added pairwise."""
    sums = np.zeros(BLOCK)
    for first in range(0, n, BLOCK):
        sums += (
            x.reshape(-1)[at + first : at + first + BLOCK]
            * y.reshape(-1)[to + first : to + first + BLOCK]
        )
    return halved([sums[:8], sums[8:]])


def literal_add_scaled(factor: float, x: Array, at: int, y: Array, to: int, n: int) -> None:
    """Add a multiple of a vector: y[to + p] += factor·x[at + p] for p < n."""
    end = room_for(n)
    y.reshape(-1)[to : to + end] += factor * x.reshape(-1)[at : at + end]


def literal_accumulate(
    tile: Array, first: int, end: int, c: Array, at: int, sums: Array, to: int
) -> None:
    """Add coefficient-weighted kernel values: sums[to + 16·(s mod 2) + r] += c[at + s]·tile[s, r]
    for first ≤ s < end in order. `first` is even; `tile` is (rows, 16).
    """
    flat = sums.reshape(-1)
    for s in range(first, end):
        place = to + BLOCK * (s % 2)
        flat[place : place + BLOCK] += tile[s] * c.reshape(-1)[at + s]


def literal_waves(x: Array, at: int, n: int, cosines: int, sines: int) -> None:
    """Compute x[cosines + p] ← cos x[at + p] and x[sines + p] ← sin x[at + p] for p < n, and set
    the padding to zero.
    """
    end = room_for(n)
    for to, line in zip(
        (cosines, sines), literal_cos_sin(x.reshape(-1)[at : at + end]), strict=True
    ):
        _write(x, to, np.where(np.arange(end) < n, line, 0.0))


class _Place:
    """An array argument of emitted code: its data, the length of its first axis, and the lines of a
    panel.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, k: int) -> None:
        array = context.make_array(signature.args[k])(context, builder, args[k])
        self.data = array.data
        shape = cgutils.unpack_tuple(builder, array.shape)
        self.size = shape[0]
        self.lines = shape[-2] if len(shape) > 1 else None
        self.builder = builder

    def line(self, first: Any, j: Any) -> Any:
        """The pointer to line j of the panel that begins at point `first`."""
        b = self.builder
        return b.gep(self.data, [b.add(b.mul(first, self.lines), b.mul(j, INT64(BLOCK)))])


def _value(builder: Any, data: Any, i: Any) -> Any:
    value = builder.load(builder.gep(data, [i]))
    return value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())


@intrinsic
def _products(
    typing_context: Any, points: Any, line_of: Any, idx: Any, val: Any, n: Any, out: Any, at: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, line_of, idx, val, out = (
            _Place(context, builder, signature, args, k) for k in (0, 1, 2, 3, 5)
        )
        wide = Lines(builder, BLOCK)

        with cgutils.for_range_slice(builder, INT64(0), args[4], INT64(BLOCK)) as (first, _):

            def term(i: Any) -> list[Any]:
                j = builder.sext(builder.load(builder.gep(idx.data, [i])), INT64)
                line = builder.sext(builder.load(builder.gep(line_of.data, [j])), INT64)
                return wide.multiply(
                    wide.load(table.line(first, line)), wide.spread(_value(builder, val.data, i))
                )

            total = in_two_chains(builder, wide, idx.size, term)
            wide.store(total, builder.gep(out.data, [builder.add(args[6], first)]))

        squares = [cgutils.alloca_once_value(builder, ir.DoubleType()(0.0)) for _ in range(2)]

        def square(i: Any, chain: int) -> None:
            value = _value(builder, val.data, i)
            builder.store(
                builder.fadd(builder.load(squares[chain]), builder.fmul(value, value)),
                squares[chain],
            )

        pairs = builder.and_(idx.size, INT64(-2))
        with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(2)) as (i, _):
            square(i, 0)
            square(builder.add(i, INT64(1)), 1)
        with builder.if_then(builder.icmp_signed("!=", pairs, idx.size)):
            square(pairs, 0)
        return builder.fadd(*(builder.load(s) for s in squares))

    return types.float64(points, line_of, idx, val, types.int64, out, types.int64), emit


@intrinsic
def _gaussian(
    typing_context: Any, norms: Any, n2: Any, scale: Any, n: Any, out: Any, at: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        norms, out = (_Place(context, builder, signature, args, k) for k in (0, 4))
        wide = Lines(builder, BLOCK)
        n2, two, zero = (
            wide.spread(args[1]),
            wide.spread(ir.DoubleType()(2.0)),
            wide.spread(ir.DoubleType()(0.0)),
        )
        scale = wide.spread(builder.fneg(args[2]))
        with cgutils.for_range_slice(builder, INT64(0), args[3], INT64(BLOCK)) as (first, _):
            place = builder.gep(out.data, [builder.add(args[5], first)])
            squares = wide.add(n2, wide.load(builder.gep(norms.data, [first])))
            distances = wide.subtract(squares, wide.multiply(two, wide.load(place)))
            distances = [
                builder.select(builder.fcmp_ordered("<", x, z), z, x)
                for x, z in zip(distances, zero, strict=True)
            ]
            wide.store([emit_exp(builder, x) for x in wide.multiply(distances, scale)], place)
        return context.get_dummy_value()

    return types.void(norms, types.float64, types.float64, types.int64, out, types.int64), emit


@intrinsic
def _apply(
    typing_context: Any, matrix: Any, lower: Any, n: Any, x: Any, at: Any, out: Any, to: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix, x, out = (_Place(context, builder, signature, args, k) for k in (0, 3, 5))
        wide = Lines(builder, BLOCK)
        vector = builder.gep(x.data, [args[4]])
        with cgutils.for_range_slice(builder, INT64(0), args[2], INT64(BLOCK)) as (first, _):
            end = builder.add(first, INT64(BLOCK))
            end = builder.select(builder.icmp_signed("<", end, args[2]), end, args[2])
            count = builder.select(args[1], end, args[2])

            def term(j: Any) -> list[Any]:
                return wide.multiply(
                    wide.load(matrix.line(first, j)),
                    wide.spread(builder.load(builder.gep(vector, [j]))),
                )

            total = in_two_chains(builder, wide, count, term)
            wide.store(total, builder.gep(out.data, [builder.add(args[6], first)]))
        return context.get_dummy_value()

    return types.void(matrix, types.boolean, types.int64, x, types.int64, out, types.int64), emit


@intrinsic
def _subtract_outer(typing_context: Any, matrix: Any, n: Any, factor: Any, v: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix, v = (_Place(context, builder, signature, args, k) for k in (0, 3))
        wide = Lines(builder, BLOCK)
        vector = builder.gep(v.data, [args[4]])
        with cgutils.for_range_slice(builder, INT64(0), args[1], INT64(BLOCK)) as (first, _):
            line = wide.load(builder.gep(vector, [first]))
            with cgutils.for_range(builder, args[1]) as loop:
                factor = wide.spread(
                    builder.fmul(args[2], builder.load(builder.gep(vector, [loop.index])))
                )
                place = matrix.line(first, loop.index)
                wide.store(wide.subtract(wide.load(place), wide.multiply(factor, line)), place)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.float64, v, types.int64), emit


@intrinsic
def _dot(typing_context: Any, x: Any, at: Any, y: Any, to: Any, n: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (_Place(context, builder, signature, args, k) for k in (0, 2))
        wide = Lines(builder, BLOCK)
        sums = wide.zeros()
        with cgutils.for_range_slice(builder, INT64(0), args[4], INT64(BLOCK)) as (first, _):
            left = wide.load(builder.gep(x.data, [builder.add(args[1], first)]))
            right = wide.load(builder.gep(y.data, [builder.add(args[3], first)]))
            wide.set(sums, wide.add(wide.get(sums), wide.multiply(left, right)))
        return wide.total(wide.get(sums))

    return types.float64(x, types.int64, y, types.int64, types.int64), emit


@intrinsic
def _add_scaled(typing_context: Any, factor: Any, x: Any, at: Any, y: Any, to: Any, n: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (_Place(context, builder, signature, args, k) for k in (1, 3))
        wide = Lines(builder, BLOCK)
        factor = wide.spread(args[0])
        with cgutils.for_range_slice(builder, INT64(0), args[5], INT64(BLOCK)) as (first, _):
            left = wide.load(builder.gep(x.data, [builder.add(args[2], first)]))
            place = builder.gep(y.data, [builder.add(args[4], first)])
            wide.store(wide.add(wide.load(place), wide.multiply(factor, left)), place)
        return context.get_dummy_value()

    return types.void(types.float64, x, types.int64, y, types.int64, types.int64), emit


@intrinsic
def _accumulate(
    typing_context: Any, tile: Any, first: Any, end: Any, c: Any, at: Any, sums: Any, to: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile, c, sums = (_Place(context, builder, signature, args, k) for k in (0, 3, 5))
        wide = Lines(builder, BLOCK)
        places = [builder.gep(sums.data, [builder.add(args[6], INT64(k * BLOCK))]) for k in (0, 1)]
        held = wide.zeros(), wide.zeros()
        for place, variables in zip(places, held, strict=True):
            wide.set(variables, wide.load(place))
        vector = builder.gep(c.data, [args[4]])

        def add(s: Any, chain: int) -> None:
            factor = wide.spread(builder.load(builder.gep(vector, [s])))
            line = wide.load(builder.gep(tile.data, [builder.mul(s, INT64(BLOCK))]))
            wide.set(held[chain], wide.add(wide.get(held[chain]), wide.multiply(line, factor)))

        count = builder.sub(args[2], args[1])
        count = builder.select(builder.icmp_signed("<", count, INT64(0)), INT64(0), count)
        pairs = builder.add(args[1], builder.and_(count, INT64(-2)))
        with cgutils.for_range_slice(builder, args[1], pairs, INT64(2)) as (s, _):
            add(s, 0)
            add(builder.add(s, INT64(1)), 1)
        with builder.if_then(builder.icmp_signed("!=", pairs, builder.add(args[1], count))):
            add(pairs, 0)
        for place, variables in zip(places, held, strict=True):
            wide.store(wide.get(variables), place)
        return context.get_dummy_value()

    return types.void(tile, types.int64, types.int64, c, types.int64, sums, types.int64), emit


@intrinsic
def _waves(typing_context: Any, x: Any, at: Any, n: Any, cosines: Any, sines: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = _Place(context, builder, signature, args, 0)
        wide = Lines(builder, BLOCK)
        with cgutils.for_range_slice(builder, INT64(0), args[2], INT64(BLOCK)) as (first, _):
            line = wide.load(builder.gep(x.data, [builder.add(args[1], first)]))
            pairs = [emit_cos_sin(builder, register) for register in line]
            for to, values in zip(args[3:5], zip(*pairs, strict=True), strict=True):
                wide.store(list(values), builder.gep(x.data, [builder.add(to, first)]))
        end = builder.and_(builder.add(args[2], INT64(BLOCK - 1)), INT64(-BLOCK))
        for to in args[3:5]:
            with cgutils.for_range_slice(builder, args[2], end, INT64(1)) as (p, _):
                builder.store(ir.DoubleType()(0.0), builder.gep(x.data, [builder.add(to, p)]))
        return context.get_dummy_value()

    return types.void(x, *(types.int64,) * 4), emit


products = literal_products if config.DISABLE_JIT else _products
gaussian = literal_gaussian if config.DISABLE_JIT else _gaussian
apply = literal_apply if config.DISABLE_JIT else _apply
accumulate = literal_accumulate if config.DISABLE_JIT else _accumulate
dot = literal_dot if config.DISABLE_JIT else _dot
add_scaled = literal_add_scaled if config.DISABLE_JIT else _add_scaled
subtract_outer = literal_subtract_outer if config.DISABLE_JIT else _subtract_outer
waves = literal_waves if config.DISABLE_JIT else _waves
