"""The loops that dominate the time of a linear learner, with lines in vector registers.

A table is (d, width), so all numbers of one feature are contiguous in memory, in one line. `gather`
sums x_j·table[j] over a row's features and `scatter` adds x_j·coefficient to table[j]; a learner's
cost depends on the row only in these two. The other loops work on small matrices of such lines. The
entries of a line are independent outputs, so computing them side by side does not change any
number. Compiled from Python, the sums would be in memory. All loops are therefore LLVM
instructions, each beside a Python loop that specifies it, which tests use and which runs without
the compiler.

All sums have fixed orders that reduce waiting for additions: `gather` and `combine` sum even and
odd positions separately; `times` adds the halves of a line until one number is left. The compiler
takes the line width from the length of a tuple, which is a compile-time constant.

A learner stores its small vectors in one flat array `a`, and a vector is given by its offset. With
one base and constant offsets the compiler knows that they do not overlap.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from koco_stream.numerics.llvm.registers import INT32, INT64, Lines, halved, in_two_chains
from koco_stream.types import Array


def lanes_for(columns: int) -> tuple[int, ...]:
    """A tuple whose length is the line width of a table with `columns` columns.

    The width is rounded up to a multiple of four, a vector register. The padding stays zero.
    """
    return (0,) * (4 * ((columns + 3) // 4))


def aligned_zeros(rows: int, width: int) -> Array:
    """A zero float64 matrix (rows, width), aligned to the processor's cache lines."""
    raw = np.zeros(rows * width + 8)
    first = (-raw.ctypes.data % 64) // 8
    return raw[first : first + rows * width].reshape(rows, width)


def literal_gather(table: Array, lanes: Any, idx: Array, val: Array, a: Array, out: int) -> float:
    """Compute a[out:] ← Σ_i val[i]·table[idx[i]]; returns Σ_i val[i]².

    Even and odd positions are summed separately, each in order, then added.
    """
    width = len(lanes)
    sums, squares = np.zeros((2, width)), [0.0, 0.0]
    for i in range(idx.size):
        v = np.float64(val[i])
        sums[i % 2] += table[idx[i]] * v
        squares[i % 2] += v * v
    a[out : out + width] = sums[0] + sums[1]
    return float(squares[0] + squares[1])


def literal_scatter(
    table: Array, lanes: Any, idx: Array, val: Array, a: Array, coefficient: int
) -> None:
    """Add val[i]·a[coefficient:] to table[idx[i]] for each entry i of a row."""
    for i in range(idx.size):
        table[idx[i]] += a[coefficient : coefficient + len(lanes)] * np.float64(val[i])


def literal_times(a: Array, lanes: Any, matrix: int, vector: int, out: int) -> None:
    """The product a[out:] ← M v of the square matrix at a[matrix:] and the vector at a[vector:]."""
    width = len(lanes)
    for i in range(width):
        line = a[matrix + i * width : matrix + (i + 1) * width] * a[vector : vector + width]
        a[out + i] = halved([line[k : k + 8] for k in range(0, width, 8)])


def literal_dot(a: Array, lanes: Any, x: int, y: int) -> float:
    """The dot product Σ_i x_i y_i of the lines at a[x:] and a[y:]."""
    width = len(lanes)
    line = a[x : x + width] * a[y : y + width]
    return halved([line[k : k + 8] for k in range(0, width, 8)])


def literal_dot3(a: Array, lanes: Any, x: int, y: int, z: int) -> float:
    """The sum Σ_i x_i y_i z_i over the lines at a[x:], a[y:] and a[z:]."""
    width = len(lanes)
    line = a[x : x + width] * a[y : y + width] * a[z : z + width]
    return halved([line[k : k + 8] for k in range(0, width, 8)])


def literal_sums_before(a: Array, lanes: Any, x: int, y: int, out: int) -> None:
    """Exclusive prefix sums a[out + i] ← Σ_{j<i} x_j y_j. Each register sums pairs, then fours,
    then eights; then the totals of earlier registers are added.
    """
    width = len(lanes)
    line = a[x : x + width] * a[y : y + width]
    carry = 0.0
    for first in range(0, width, 8):
        register = line[first : first + 8]
        for shift in (1, 2, 4)[: register.size.bit_length() - 1]:
            register = register + np.append(np.zeros(shift), register[:-shift])
        a[out + first : out + first + register.size] = np.append(0.0, register[:-1]) + carry
        carry = carry + register[-1]


def literal_sums_after(a: Array, lanes: Any, x: int, y: int, out: int) -> None:
    """Exclusive suffix sums a[out + i] ← Σ_{j>i} x_j y_j, like `sums_before` from the end."""
    width = len(lanes)
    line = a[x : x + width] * a[y : y + width]
    carry = 0.0
    for first in reversed(range(0, width, 8)):
        register = line[first : first + 8]
        for shift in (1, 2, 4)[: register.size.bit_length() - 1]:
            register = register + np.append(register[shift:], np.zeros(shift))
        a[out + first : out + first + register.size] = np.append(register[1:], 0.0) + carry
        carry = carry + register[0]


def literal_substitute(
    a: Array, lanes: Any, n: int, matrix: int, keep: int, take: int, q: int
) -> None:
    """Replace row i of the matrix M at a[matrix:] by keep_i·M_i − take_i·Σ_{j<i} q_j M_j, where the
    sum is over the old rows, for the first n rows.
    """
    width = len(lanes)
    r = np.zeros(width)
    for i in range(n):
        line = a[matrix + i * width : matrix + (i + 1) * width]
        old = line.copy()
        line[:] = a[keep + i] * old - a[take + i] * r
        r += a[q + i] * old


def literal_add_outer(a: Array, lanes: Any, n: int, matrix: int, left: int, right: int) -> None:
    """The rank-one update M_i += left_i·right of the first n rows of the matrix at a[matrix:]."""
    width = len(lanes)
    for i in range(n):
        a[matrix + i * width : matrix + (i + 1) * width] += a[left + i] * a[right : right + width]


def literal_combine(
    a: Array, lanes: Any, n: int, matrix: int, x: Array, factors: int, b: Array, out: int
) -> None:
    """The sum b[out:] ← Σ_k x[factors + k]·M_k over the first n rows of the matrix at a[matrix:].
    Even and odd rows are summed separately, then added.
    """
    width = len(lanes)
    sums = np.zeros((2, width))
    for k in range(n):
        sums[k % 2] += x.reshape(-1)[factors + k] * a[matrix + k * width : matrix + (k + 1) * width]
    b[out : out + width] = sums[0] + sums[1]


def literal_rotate(a: Array, lanes: Any, first: int, second: int, c: float, s: float) -> None:
    """Rotate the lines f at a[first:] and g at a[second:] to c·f − s·g and s·f + c·g."""
    width = len(lanes)
    f, g = a[first : first + width].copy(), a[second : second + width].copy()
    a[first : first + width] = c * f - s * g
    a[second : second + width] = s * f + c * g


class _Row(Lines):
    """Emitted access to a sparse row and the table lines of its features."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        super().__init__(builder, len(signature.args[1]))
        self.table, self.idx, self.val, a = (
            context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2, 3, 4)
        )
        self.size = cgutils.unpack_tuple(builder, self.idx.shape)[0]
        self.other = builder.gep(a.data, [args[5]])

    def at(self, i: Any) -> tuple[Any, Any]:
        """The pointer to the line of feature idx[i], and val[i] as a double."""
        j = self.b.sext(self.b.load(self.b.gep(self.idx.data, [i])), INT64)
        value = self.b.load(self.b.gep(self.val.data, [i]))
        if value.type != ir.DoubleType():
            value = self.b.fpext(value, ir.DoubleType())
        return self.b.gep(self.table.data, [self.b.mul(j, INT64(self.width))]), value


@intrinsic
def _gather(
    typing_context: Any, table: Any, lanes: Any, idx: Any, val: Any, a: Any, out: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _Row(context, builder, signature, args)
        sums = row.zeros(), row.zeros()
        squares = [cgutils.alloca_once_value(builder, ir.DoubleType()(0.0)) for _ in sums]

        def add(i: Any, chain: int) -> None:
            line, value = row.at(i)
            builder.store(
                builder.fadd(builder.load(squares[chain]), builder.fmul(value, value)),
                squares[chain],
            )
            row.set(
                sums[chain],
                row.add(row.get(sums[chain]), row.multiply(row.load(line), row.spread(value))),
            )

        pairs = builder.and_(row.size, INT64(-2))
        with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(2)) as (i, _):
            add(i, 0)
            add(builder.add(i, INT64(1)), 1)
        with builder.if_then(builder.icmp_signed("!=", pairs, row.size)):
            add(pairs, 0)
        row.store(row.add(row.get(sums[0]), row.get(sums[1])), row.other)
        return builder.fadd(*(builder.load(square) for square in squares))

    return types.float64(table, lanes, idx, val, a, types.int64), emit


@intrinsic
def _scatter(
    typing_context: Any, table: Any, lanes: Any, idx: Any, val: Any, a: Any, coefficient: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _Row(context, builder, signature, args)
        coefficients = row.load(row.other)
        with cgutils.for_range(builder, row.size) as loop:
            line, value = row.at(loop.index)
            row.store(row.add(row.load(line), row.multiply(coefficients, row.spread(value))), line)
        return context.get_dummy_value()

    return types.void(table, lanes, idx, val, a, types.int64), emit


@intrinsic
def _times(typing_context: Any, a: Any, lanes: Any, matrix: Any, vector: Any, out: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Lines(builder, len(signature.args[1]))
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        right = lines.load(builder.gep(base, [args[3]]))

        def put(first: Any, n: int) -> None:
            """The products of n rows from `first` on, stored as one register, which is read again
            faster than n numbers.
            """
            place = builder.add(args[2], builder.mul(first, INT64(lines.width)))
            rows = [
                lines.load(builder.gep(base, [builder.add(place, INT64(k * lines.width))]))
                for k in range(n)
            ]
            register = lines.totals([lines.multiply(row, right) for row in rows])
            at = builder.gep(base, [builder.add(args[4], first)])
            builder.store(register, builder.bitcast(at, lines.vector(n).as_pointer())).align = 8

        with cgutils.for_range_slice(builder, INT64(0), INT64(lines.width // 8 * 8), INT64(8)) as (
            first,
            _,
        ):
            put(first, 8)
        if lines.width % 8:
            put(INT64(lines.width - 4), 4)
        return context.get_dummy_value()

    return types.void(a, lanes, *(types.int64,) * 3), emit


def _loaded(
    context: Any, builder: Any, signature: Any, args: Any, vectors: int
) -> tuple[Lines, Any, list[Any]]:
    """The emitter, the base of `a`, and the product of the first `vectors` lines among the
    arguments.
    """
    lines = Lines(builder, len(signature.args[1]))
    base = context.make_array(signature.args[0])(context, builder, args[0]).data
    product = lines.load(builder.gep(base, [args[2]]))
    for k in range(3, 2 + vectors):
        product = lines.multiply(product, lines.load(builder.gep(base, [args[k]])))
    return lines, base, product


@intrinsic
def _dot(typing_context: Any, a: Any, lanes: Any, x: Any, y: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines, _, product = _loaded(context, builder, signature, args, 2)
        return lines.total(product)

    return types.float64(a, lanes, *(types.int64,) * 2), emit


@intrinsic
def _dot3(typing_context: Any, a: Any, lanes: Any, x: Any, y: Any, z: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines, _, product = _loaded(context, builder, signature, args, 3)
        return lines.total(product)

    return types.float64(a, lanes, *(types.int64,) * 3), emit


@intrinsic
def _sums_before(typing_context: Any, a: Any, lanes: Any, x: Any, y: Any, out: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines, base, product = _loaded(context, builder, signature, args, 2)
        lines.store(lines.running(product, back=False), builder.gep(base, [args[4]]))
        return context.get_dummy_value()

    return types.void(a, lanes, *(types.int64,) * 3), emit


@intrinsic
def _sums_after(typing_context: Any, a: Any, lanes: Any, x: Any, y: Any, out: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines, base, product = _loaded(context, builder, signature, args, 2)
        lines.store(lines.running(product, back=True), builder.gep(base, [args[4]]))
        return context.get_dummy_value()

    return types.void(a, lanes, *(types.int64,) * 3), emit


@intrinsic
def _substitute(
    typing_context: Any, a: Any, lanes: Any, n: Any, matrix: Any, keep: Any, take: Any, q: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Lines(builder, len(signature.args[1]))
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        r = lines.zeros()
        with cgutils.for_range(builder, args[2]) as loop:
            keep_i, take_i, q_i = (
                lines.spread(builder.load(builder.gep(base, [builder.add(at, loop.index)])))
                for at in args[4:7]
            )
            place = builder.gep(
                base, [builder.add(args[3], builder.mul(loop.index, INT64(lines.width)))]
            )
            old = lines.load(place)
            lines.store(
                lines.subtract(lines.multiply(keep_i, old), lines.multiply(take_i, lines.get(r))),
                place,
            )
            lines.set(r, lines.add(lines.get(r), lines.multiply(q_i, old)))
        return context.get_dummy_value()

    return types.void(a, lanes, *(types.int64,) * 5), emit


@intrinsic
def _add_outer(
    typing_context: Any, a: Any, lanes: Any, n: Any, matrix: Any, left: Any, right: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Lines(builder, len(signature.args[1]))
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        line = lines.load(builder.gep(base, [args[5]]))
        with cgutils.for_range(builder, args[2]) as loop:
            factor = lines.spread(
                builder.load(builder.gep(base, [builder.add(args[4], loop.index)]))
            )
            place = builder.gep(
                base, [builder.add(args[3], builder.mul(loop.index, INT64(lines.width)))]
            )
            lines.store(lines.add(lines.load(place), lines.multiply(factor, line)), place)
        return context.get_dummy_value()

    return types.void(a, lanes, *(types.int64,) * 4), emit


@intrinsic
def _combine(
    typing_context: Any,
    a: Any,
    lanes: Any,
    n: Any,
    matrix: Any,
    x: Any,
    factors: Any,
    b: Any,
    out: Any,
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Lines(builder, len(signature.args[1]))
        base, factor, result = (
            context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 4, 6)
        )

        def term(k: Any) -> list[Any]:
            line = lines.load(
                builder.gep(base, [builder.add(args[3], builder.mul(k, INT64(lines.width)))])
            )
            return lines.multiply(
                lines.spread(builder.load(builder.gep(factor, [builder.add(args[5], k)]))), line
            )

        lines.store(in_two_chains(builder, lines, args[2], term), builder.gep(result, [args[7]]))
        return context.get_dummy_value()

    return types.void(a, lanes, types.int64, types.int64, x, types.int64, b, types.int64), emit


@intrinsic
def _rotate(
    typing_context: Any, a: Any, lanes: Any, first: Any, second: Any, c: Any, s: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Lines(builder, len(signature.args[1]))
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        places = [builder.gep(base, [args[k]]) for k in (2, 3)]
        f, g = (lines.load(place) for place in places)
        c, s = (lines.spread(args[k]) for k in (4, 5))
        lines.store(lines.subtract(lines.multiply(c, f), lines.multiply(s, g)), places[0])
        lines.store(lines.add(lines.multiply(s, f), lines.multiply(c, g)), places[1])
        return context.get_dummy_value()

    return types.void(a, lanes, types.int64, types.int64, types.float64, types.float64), emit


def literal_prefetch(table: Array, lanes: Any, j: int) -> None:
    """Prefetch line j of a table into the processor's cache. Changes no data."""


@intrinsic
def _prefetch(typing_context: Any, table: Any, lanes: Any, j: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        width = len(signature.args[1])
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        ask = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32]),
            "llvm.prefetch.p0i8",
        )
        for first in range(0, width, 8):  # a line of the processor's cache holds eight
            place = builder.gep(
                base, [builder.add(builder.mul(args[2], INT64(width)), INT64(first))]
            )
            builder.call(ask, [builder.bitcast(place, byte), INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(table, lanes, types.int64), emit


gather = literal_gather if config.DISABLE_JIT else _gather
scatter = literal_scatter if config.DISABLE_JIT else _scatter
times = literal_times if config.DISABLE_JIT else _times
dot = literal_dot if config.DISABLE_JIT else _dot
dot3 = literal_dot3 if config.DISABLE_JIT else _dot3
sums_before = literal_sums_before if config.DISABLE_JIT else _sums_before
sums_after = literal_sums_after if config.DISABLE_JIT else _sums_after
substitute = literal_substitute if config.DISABLE_JIT else _substitute
add_outer = literal_add_outer if config.DISABLE_JIT else _add_outer
combine = literal_combine if config.DISABLE_JIT else _combine
rotate = literal_rotate if config.DISABLE_JIT else _rotate
prefetch = literal_prefetch if config.DISABLE_JIT else _prefetch
