"""The loops over the points of a dictionary, sixteen side by side.

What belongs to a dictionary of n points lies in arrays whose last axis is the points, with room for a multiple of sixteen of them; spare
places hold zeros and are computed along. Each point's sums are its own, in two chains (even and odd places, added at the end), so
computing points side by side changes no number, nor does room for more. As in `koco_stream.lanes`, each loop is written in LLVM's
instructions beside the literal one that says what it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from koco_stream.elementary import emit_exp, literal_exp
from koco_stream.lanes import INT32, INT64, _Lines
from koco_stream.linalg import Array

BLOCK = 16


def room_for(n: int) -> int:
    """n rounded up to a multiple of a block."""
    return BLOCK * ((n + BLOCK - 1) // BLOCK)


def literal_products(lines: Array, line_of: Array, idx: Array, val: Array, n: int, out: Array, at: int) -> float:
    """out[at + p] ← xᵀx_p for the points p < n and the row x = (idx, val); returns ‖x‖².

    `lines` (lines, room): line `line_of[j]` holds feature j of every point; line 0 is zero, for features that no point has.
    """
    sums, squares = np.zeros((2, room_for(n))), [0.0, 0.0]
    for i in range(idx.size):
        v = np.float64(val[i])
        sums[i % 2] += lines[line_of[idx[i]], : room_for(n)] * v
        squares[i % 2] += v * v
    out.reshape(-1)[at : at + room_for(n)] = sums[0] + sums[1]
    return float(squares[0] + squares[1])


def literal_gaussian(norms: Array, n2: float, scale: float, n: int, out: Array, at: int) -> None:
    """out[at + p] ← exp(−max(‖x‖² + ‖x_p‖² − 2·out[at + p], 0)·scale) for p < n: inner products become Gaussian kernel values."""
    end = room_for(n)
    flat = out.reshape(-1)
    distances = np.maximum((n2 + norms[:end]) - 2.0 * flat[at : at + end], 0.0)
    flat[at : at + end] = literal_exp(distances * -scale)


def literal_apply(matrix: Array, lower: bool, n: int, x: Array, at: int, out: Array, to: int) -> None:
    """out[to + p] ← Σ_j M[j, p]·x[at + j] over j < n, or over j up to the end of p's block if M is `lower` (zero for j > p).

    M (room, room) is kept by columns: line j is what x_j is multiplied by.
    """
    for first in range(0, n, BLOCK):
        sums = np.zeros((2, BLOCK))
        for j in range(min(n, first + BLOCK) if lower else n):
            sums[j % 2] += matrix[j, first : first + BLOCK] * x.reshape(-1)[at + j]
        out.reshape(-1)[to + first : to + first + BLOCK] = sums[0] + sums[1]


def literal_subtract_outer(matrix: Array, n: int, factor: float, v: Array, at: int) -> None:
    """M[j, p] −= (factor·v[at + j])·v[at + p] for all j, p < n."""
    line = v.reshape(-1)[at : at + room_for(n)]
    for j in range(n):
        matrix[j, : room_for(n)] -= (factor * line[j]) * line


class _Place:
    """An array argument and what the loops need of it: its data and the length of its last axis."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, k: int) -> None:
        array = context.make_array(signature.args[k])(context, builder, args[k])
        self.data = array.data
        self.stride = cgutils.unpack_tuple(builder, array.shape)[-1]
        self.size = cgutils.unpack_tuple(builder, array.shape)[0]


def _in_two_chains(builder: Any, lines: _Lines, count: Any, term: Any) -> list[Any]:
    """Σ_i term(i), a line each, even and odd i apart."""
    sums = lines.zeros(), lines.zeros()
    pairs = builder.and_(count, INT64(-2))
    with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(2)) as (i, _):
        for chain in (0, 1):
            lines.set(sums[chain], lines.add(lines.get(sums[chain]), term(builder.add(i, INT64(chain)))))
    with builder.if_then(builder.icmp_signed("!=", pairs, count)):
        lines.set(sums[0], lines.add(lines.get(sums[0]), term(pairs)))
    return lines.add(lines.get(sums[0]), lines.get(sums[1]))


def _value(builder: Any, data: Any, i: Any) -> Any:
    value = builder.load(builder.gep(data, [i]))
    return value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())


@intrinsic
def _products(typing_context: Any, lines: Any, line_of: Any, idx: Any, val: Any, n: Any, out: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table, line_of, idx, val, out = (_Place(context, builder, signature, args, k) for k in (0, 1, 2, 3, 5))
        wide = _Lines(builder, BLOCK)

        with cgutils.for_range_slice(builder, INT64(0), args[4], INT64(BLOCK)) as (first, _):

            def term(i: Any) -> list[Any]:
                j = builder.sext(builder.load(builder.gep(idx.data, [i])), INT64)
                line = builder.sext(builder.load(builder.gep(line_of.data, [j])), INT64)
                place = builder.gep(table.data, [builder.add(builder.mul(line, table.stride), first)])
                return wide.multiply(wide.load(place), wide.spread(_value(builder, val.data, i)))

            total = _in_two_chains(builder, wide, idx.size, term)
            wide.store(total, builder.gep(out.data, [builder.add(args[6], first)]))

        squares = [cgutils.alloca_once_value(builder, ir.DoubleType()(0.0)) for _ in range(2)]

        def square(i: Any, chain: int) -> None:
            value = _value(builder, val.data, i)
            builder.store(builder.fadd(builder.load(squares[chain]), builder.fmul(value, value)), squares[chain])

        pairs = builder.and_(idx.size, INT64(-2))
        with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(2)) as (i, _):
            square(i, 0)
            square(builder.add(i, INT64(1)), 1)
        with builder.if_then(builder.icmp_signed("!=", pairs, idx.size)):
            square(pairs, 0)
        return builder.fadd(*(builder.load(s) for s in squares))

    return types.float64(lines, line_of, idx, val, types.int64, out, types.int64), emit


@intrinsic
def _gaussian(typing_context: Any, norms: Any, n2: Any, scale: Any, n: Any, out: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        norms, out = (_Place(context, builder, signature, args, k) for k in (0, 4))
        wide = _Lines(builder, BLOCK)
        n2, two, zero = wide.spread(args[1]), wide.spread(ir.DoubleType()(2.0)), wide.spread(ir.DoubleType()(0.0))
        scale = wide.spread(builder.fneg(args[2]))
        with cgutils.for_range_slice(builder, INT64(0), args[3], INT64(BLOCK)) as (first, _):
            place = builder.gep(out.data, [builder.add(args[5], first)])
            squares = wide.add(n2, wide.load(builder.gep(norms.data, [first])))
            distances = wide.subtract(squares, wide.multiply(two, wide.load(place)))
            distances = [
                builder.select(builder.fcmp_ordered("<", x, z), z, x) for x, z in zip(distances, zero, strict=True)
            ]
            wide.store([emit_exp(builder, x) for x in wide.multiply(distances, scale)], place)
        return context.get_dummy_value()

    return types.void(norms, types.float64, types.float64, types.int64, out, types.int64), emit


@intrinsic
def _apply(typing_context: Any, matrix: Any, lower: Any, n: Any, x: Any, at: Any, out: Any, to: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix, x, out = (_Place(context, builder, signature, args, k) for k in (0, 3, 5))
        wide = _Lines(builder, BLOCK)
        vector = builder.gep(x.data, [args[4]])
        with cgutils.for_range_slice(builder, INT64(0), args[2], INT64(BLOCK)) as (first, _):
            end = builder.add(first, INT64(BLOCK))
            end = builder.select(builder.icmp_signed("<", end, args[2]), end, args[2])
            count = builder.select(args[1], end, args[2])

            def term(j: Any) -> list[Any]:
                place = builder.gep(matrix.data, [builder.add(builder.mul(j, matrix.stride), first)])
                return wide.multiply(wide.load(place), wide.spread(builder.load(builder.gep(vector, [j]))))

            total = _in_two_chains(builder, wide, count, term)
            wide.store(total, builder.gep(out.data, [builder.add(args[6], first)]))
        return context.get_dummy_value()

    return types.void(matrix, types.boolean, types.int64, x, types.int64, out, types.int64), emit


@intrinsic
def _subtract_outer(typing_context: Any, matrix: Any, n: Any, factor: Any, v: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix, v = (_Place(context, builder, signature, args, k) for k in (0, 3))
        wide = _Lines(builder, BLOCK)
        vector = builder.gep(v.data, [args[4]])
        with cgutils.for_range_slice(builder, INT64(0), args[1], INT64(BLOCK)) as (first, _):
            line = wide.load(builder.gep(vector, [first]))
            with cgutils.for_range(builder, args[1]) as loop:
                factor = wide.spread(builder.fmul(args[2], builder.load(builder.gep(vector, [loop.index]))))
                place = builder.gep(matrix.data, [builder.add(builder.mul(loop.index, matrix.stride), first)])
                wide.store(wide.subtract(wide.load(place), wide.multiply(factor, line)), place)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.float64, v, types.int64), emit


products = literal_products if config.DISABLE_JIT else _products
gaussian = literal_gaussian if config.DISABLE_JIT else _gaussian
apply = literal_apply if config.DISABLE_JIT else _apply
subtract_outer = literal_subtract_outer if config.DISABLE_JIT else _subtract_outer
