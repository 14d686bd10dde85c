"""The loops that dominate the time of a linear learner, with lines in vector registers.

A table is (d, width), a line of memory for each feature. Only `gather` and `scatter` depend on the
row; the others work on small vectors and matrices. The tuple `shape` is as long as a line. An array
may be longer, or flat: only where it starts counts. Each instruction stands beside the Python loop
that specifies it and its sums' order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.numerics.compiler import intrinsic
from koco_stream.numerics.llvm.registers import (
    CACHE_LINE,
    DOUBLE,
    INT32,
    INT64,
    Line,
    Lines,
    called,
    cgutils,
    halved,
    instruction,
    literal_fused,
    shuffled,
    spread,
    types,
)
from koco_stream.types import Array

PAIR = ir.VectorType(DOUBLE, 2)


def shape_for(columns: int) -> tuple[int, ...]:
    """A tuple as long as a table's line: `columns` rounded up to fours."""
    return (0,) * (4 * ((columns + 3) // 4))


def aligned_zeros(rows: int, width: int, kind: Any = np.float64) -> Array:
    """A zero matrix (rows, width), aligned to cache lines."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(rows * width + CACHE_LINE // size, kind)
    first = (-raw.ctypes.data % CACHE_LINE) // size
    return raw[first : first + rows * width].reshape(rows, width)


def _row_at(typing_context: Any, a: Any, first: Any, shape: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        array.data = builder.gep(array.data, [args[1]])
        array.nitems = INT64(len(signature.args[2]))
        array.shape = cgutils.pack_array(builder, [array.nitems])
        return array._getvalue()

    return a(a, types.int64, shape), emit


def first_of(a: Array, shape: Any) -> Array:
    """The first numbers of an array, a line of them."""
    return a.reshape(-1)[: len(shape)]


# The line at a[first:], as a view. The compiler knows that two of one array do not overlap if their
# offsets are constants.
row_at = intrinsic(_row_at, lambda a, first, shape: a[first : first + len(shape)])


def rows_of(matrix: Array, n: int, shape: Any) -> Array:
    """The first n lines of a matrix, which may be flat, as a view."""
    return matrix.reshape(-1)[: n * len(shape)].reshape(n, len(shape))


def literal_gather(table: Array, shape: Any, idx: Array, val: Array, out: Array) -> float:
    """out ← Σ_i val[i]·table[idx[i]]; returns Σ_i val[i]²."""
    width = len(shape)
    sums, squares = np.zeros((2, width)), [0.0, 0.0]
    for i in range(idx.size):
        v = np.float64(val[i])
        sums[i % 2] = literal_fused(table[idx[i], :width], v, sums[i % 2])
        squares[i % 2] = literal_fused(v, v, squares[i % 2])
    first_of(out, shape)[:] = sums[0] + sums[1]
    return float(squares[0] + squares[1])


@instruction("float64", literal_gather)
def gather(e: Lines, table: Any, shape: Any, idx: Any, val: Any, out: Any) -> Any:
    """Emit `literal_gather`."""
    line, (squares,) = _gathered(e, table, idx, val)
    e.store(line, out.data)
    return squares


def _gathered(
    e: Lines,
    table: Any,
    idx: Any,
    val: Any,
    asked: Callable[[Any], list[Any]] = lambda j: [],
    answers: Sequence[Any] = (),
) -> tuple[Line, list[Any]]:
    n = len(e.registers)

    def with_term(sums: Line, i: Any) -> Line:
        v, j = val.number(i), idx.number(i)
        line, squares = Line(e.b, sums.registers[:n]), sums.registers[n]
        return Line(
            e.b,
            [
                *e.load(table.line(j)).fused(v, line).registers,
                called(e.b, "llvm.fma", v, v, squares),
                *map(e.b.fadd, sums.registers[n + 1 :], asked(j)),
            ],
        )

    begin = Line(e.b, [*e.zeros().registers, DOUBLE(0.0), *answers])
    even, odd = e.two_sums(idx.size, (begin, begin), with_term)
    sums = (even + odd).registers
    return Line(e.b, sums[:n]), sums[n:]


def literal_gather_current(
    table: Array, shape: Any, idx: Array, val: Array, out: Array, epoch: int
) -> float:
    """`gather` of lines whose last number is `epoch`, or 0 if they are unused.

    Returns −1 if a line has another. The last number of `out` counts unused lines.
    """
    n2, last = literal_gather(table, shape, idx, val, out), table[idx, -1]
    out[len(shape) - 1] = (last == 0.0).sum()
    return -1.0 if ((last != 0.0) & (last != epoch)).any() else n2


@instruction("float64", literal_gather_current)
def gather_current(
    e: Lines, table: Any, shape: Any, idx: Any, val: Any, out: Any, epoch: Any
) -> Any:
    """Emit `literal_gather_current`, without a branch that new features would mislead."""
    # In one comparison: whether the last number is another than the epoch, and than 0.
    current = e.b.insert_element(PAIR([0.0, 0.0]), e.b.sitofp(epoch, DOUBLE), INT32(0))

    def asked(j: Any) -> list[Any]:
        last = spread(e.b, table.number(table.last(j)), 2)
        return [
            e.b.select(e.b.fcmp_unordered("!=", last, current), PAIR([1.0, 1.0]), PAIR([0.0, 0.0]))
        ]

    line, (squares, different) = _gathered(e, table, idx, val, asked, [PAIR([0.0, 0.0])])
    others, used = (e.b.extract_element(different, INT32(k)) for k in (0, 1))
    unused = e.b.fsub(e.b.sitofp(idx.size, DOUBLE), used)
    e.store(line, out.data)
    e.b.store(unused, out.at(INT64(e.width - 1)))
    return e.b.select(e.b.fcmp_ordered("==", others, unused), squares, DOUBLE(-1.0))


def literal_scatter(table: Array, shape: Any, idx: Array, val: Array, coefficients: Array) -> None:
    """table[idx[i]] += val[i]·coefficients, unless all are 0."""
    own = first_of(coefficients, shape)
    for i in range(idx.size if own.any() else 0):
        line = first_of(table[idx[i]], shape)
        line[:] = literal_fused(own, np.float64(val[i]), line)


@instruction("void", literal_scatter)
def scatter(e: Lines, table: Any, shape: Any, idx: Any, val: Any, coefficients: Any) -> None:
    """Emit `literal_scatter`."""
    own = e.load(coefficients.data)
    with e.b.if_then(own.unequal(0.0).any()), e.loop(idx.size) as i:
        address = table.line(idx.number(i))
        e.store(own.fused(val.number(i), e.load(address)), address)


def literal_scatter_first(
    table: Array,
    shape: Any,
    idx: Array,
    val: Array,
    coefficients: Array,
    epoch: int,
    used: Array,
    count: int,
) -> int:
    """`scatter` that makes `epoch` the last number of the lines; returns the new count.

    Lines where it was 0 are put in `used` from `count` on, with room for one more.
    """
    literal_scatter(table, shape, idx, val, coefficients)
    for j in idx:
        used[count] = j
        count += bool(table[j, -1] == 0.0)
        table[j, -1] = epoch
    return count


@instruction("int64", literal_scatter_first)
def scatter_first(
    e: Lines,
    table: Any,
    shape: Any,
    idx: Any,
    val: Any,
    coefficients: Any,
    epoch: Any,
    used: Any,
    count: Any,
) -> Any:
    """Emit `literal_scatter_first`."""
    own, at = e.load(coefficients.data), cgutils.alloca_once_value(e.b, count)
    kind = table.data.type.pointee
    current = e.b.sitofp(epoch, kind)
    with e.loop(idx.size) as i:
        j = idx.number(i)
        address, last = table.line(j), table.at(table.last(j))
        e.b.store(e.b.trunc(j, INT32), used.at(e.b.load(at)))
        new = e.b.fcmp_ordered("==", e.b.load(last), kind(0.0))
        e.b.store(e.b.add(e.b.load(at), e.b.zext(new, INT64)), at)
        e.store(own.fused(val.number(i), e.load(address)), address)
        e.b.store(current, last)
    return e.b.load(at)


def literal_over_roots(
    table: Array, column: int, idx: Array, val: Array, unused: float, out: Array
) -> None:
    """out[i] ← val[i]/√table[idx[i], column]; a 0 in the table stands for `unused`."""
    for i in range(idx.size):
        number = np.float64(table[idx[i], column])
        out[i] = np.float64(val[i]) / np.sqrt(unused if number == 0.0 else number)


@instruction("void", literal_over_roots, width=8)
def over_roots(
    e: Lines, table: Any, column: Any, idx: Any, val: Any, unused: Any, out: Any
) -> None:
    """Emit `literal_over_roots`."""

    def divide(first: Any, n: int) -> None:
        numbers = ir.Constant(ir.VectorType(DOUBLE, n), ir.Undefined)
        for k in range(n):
            at = e.b.add(e.b.mul(idx.number(first, INT64(k)), table.shape[1]), column)
            numbers = e.b.insert_element(numbers, table.number(at), INT32(k))
        found, several = Line(e.b, [numbers]), Lines(e.b, n)
        instead = Line(e.b, [spread(e.b, unused, n)])
        roots = instead.where(found.equal(0.0), found).roots()
        several.store(Line(e.b, [val.numbers(first, n)]) / roots, out.at(first))

    many = e.b.and_(idx.size, INT64(-e.width))
    with e.loop(many, e.width) as first:
        divide(first, e.width)
    with e.loop(idx.size, start=many) as first:
        divide(first, 1)


def literal_times(matrix: Array, vector: Array, out: Array, shape: Any) -> None:
    """out ← M v of a square matrix."""
    for i, row in enumerate(rows_of(matrix, len(shape), shape)):
        out[i] = halved(row * first_of(vector, shape))


@instruction("void", literal_times)
def times(e: Lines, matrix: Any, vector: Any, out: Any, shape: Any) -> None:
    """Emit `literal_times`."""
    right = e.load(vector.data)

    def put(first: Any, n: int) -> None:
        start = e.line_at(first)
        rows = [e.load(matrix.at(start, INT64(k * e.width))) * right for k in range(n)]
        address = e.b.bitcast(out.at(first), ir.VectorType(DOUBLE, n).as_pointer())
        e.b.store(_totals(e.b, rows), address).align = 8

    with e.loop(INT64(e.width // 8 * 8), 8) as first:
        put(first, 8)
    if e.width % 8:
        put(INT64(e.width - 4), 4)


def _totals(b: Any, rows: list[Line]) -> Any:
    sums = [row.four() for row in rows]
    for low, high in (([0, 1, 4, 5], [2, 3, 6, 7]), ([0, 2, 4, 6], [1, 3, 5, 7])):
        sums = [
            b.fadd(shuffled(b, x, y, low), shuffled(b, x, y, high))
            for x, y in zip(sums[::2], sums[1::2], strict=True)
        ]
    return sums[0] if len(sums) == 1 else shuffled(b, sums[0], sums[1], range(8))


def literal_line_dot(x: Array, y: Array, shape: Any) -> float:
    """Σ_i x_i y_i of two lines."""
    return halved(first_of(x, shape) * first_of(y, shape))


@instruction("float64", literal_line_dot)
def line_dot(e: Lines, x: Any, y: Any, shape: Any) -> Any:
    """Emit `literal_line_dot`."""
    return (e.load(x.data) * e.load(y.data)).total()


def literal_line_dot3(x: Array, y: Array, z: Array, shape: Any) -> float:
    """Σ_i x_i y_i z_i of three lines."""
    return halved(first_of(x, shape) * first_of(y, shape) * first_of(z, shape))


@instruction("float64", literal_line_dot3)
def line_dot3(e: Lines, x: Any, y: Any, z: Any, shape: Any) -> Any:
    """Emit `literal_line_dot3`."""
    return (e.load(x.data) * e.load(y.data) * e.load(z.data)).total()


def literal_sums_before(x: Array, y: Array, out: Array, shape: Any) -> None:
    """Exclusive prefix sums out[i] ← Σ_{j<i} x_j y_j."""
    line = first_of(x, shape) * first_of(y, shape)
    carry = 0.0
    for first in range(0, line.size, 8):
        register = line[first : first + 8]
        for shift in (1, 2, 4)[: register.size.bit_length() - 1]:
            register = register + np.append(np.zeros(shift), register[:-shift])
        out[first : first + register.size] = np.append(0.0, register[:-1]) + carry
        carry = carry + register[-1]


@instruction("void", literal_sums_before)
def sums_before(e: Lines, x: Any, y: Any, out: Any, shape: Any) -> None:
    """Emit `literal_sums_before`."""
    e.store((e.load(x.data) * e.load(y.data)).running(back=False), out.data)


def literal_sums_after(x: Array, y: Array, out: Array, shape: Any) -> None:
    """Exclusive suffix sums out[i] ← Σ_{j>i} x_j y_j."""
    line = first_of(x, shape) * first_of(y, shape)
    carry = 0.0
    for first in reversed(range(0, line.size, 8)):
        register = line[first : first + 8]
        for shift in (1, 2, 4)[: register.size.bit_length() - 1]:
            register = register + np.append(register[shift:], np.zeros(shift))
        out[first : first + register.size] = np.append(register[1:], 0.0) + carry
        carry = carry + register[0]


@instruction("void", literal_sums_after)
def sums_after(e: Lines, x: Any, y: Any, out: Any, shape: Any) -> None:
    """Emit `literal_sums_after`."""
    e.store((e.load(x.data) * e.load(y.data)).running(back=True), out.data)


def literal_substitute(
    matrix: Array, n: int, own: Array, earlier: Array, q: Array, shape: Any
) -> None:
    """M_i ← own_i·M_i − earlier_i·Σ_{j<i} q_j M_j over the old first n rows."""
    r = np.zeros(len(shape))
    for i, row in enumerate(rows_of(matrix, n, shape)):
        old = row.copy()
        row[:] = literal_fused(-earlier[i], r, own[i] * old)
        r = literal_fused(q[i], old, r)


@instruction("void", literal_substitute)
def substitute(e: Lines, matrix: Any, n: Any, own: Any, earlier: Any, q: Any, shape: Any) -> None:
    """Emit `literal_substitute`."""
    r = e.variable(e.zeros())
    with e.loop(n) as i:
        own_i, earlier_i, q_i = own.number(i), earlier.number(i), q.number(i)
        address = matrix.at(e.line_at(i))
        old = e.load(address)
        e.store(r.get().fused(e.b.fneg(earlier_i), old * own_i), address)
        r.set(old.fused(q_i, r.get()))


def literal_add_outer(matrix: Array, n: int, left: Array, right: Array, shape: Any) -> None:
    """M_i += left_i·right for the first n rows of M."""
    for i, row in enumerate(rows_of(matrix, n, shape)):
        row[:] = literal_fused(left[i], first_of(right, shape), row)


@instruction("void", literal_add_outer)
def add_outer(e: Lines, matrix: Any, n: Any, left: Any, right: Any, shape: Any) -> None:
    """Emit `literal_add_outer`."""
    line = e.load(right.data)
    with e.loop(n) as i:
        factor = left.number(i)
        address = matrix.at(e.line_at(i))
        e.store(line.fused(factor, e.load(address)), address)


def literal_combine(matrix: Array, n: int, factors: Array, out: Array, shape: Any) -> None:
    """out ← Σ_k factors[k]·M_k over the first n rows of M."""
    sums = np.zeros((2, len(shape)))
    for k, row in enumerate(rows_of(matrix, n, shape)):
        sums[k % 2] = literal_fused(row, factors[k], sums[k % 2])
    first_of(out, shape)[:] = sums[0] + sums[1]


@instruction("void", literal_combine)
def combine(e: Lines, matrix: Any, n: Any, factors: Any, out: Any, shape: Any) -> None:
    """Emit `literal_combine`."""

    def with_term(total: Line, k: Any) -> Line:
        return e.load(matrix.at(e.line_at(k))).fused(factors.number(k), total)

    even, odd = e.two_sums(n, (e.zeros(), e.zeros()), with_term)
    e.store(even + odd, out.data)


def literal_rotate(first: Array, second: Array, c: float, s: float, shape: Any) -> None:
    """Rotate two lines f and g to c·f − s·g and s·f + c·g."""
    f, g = first_of(first, shape).copy(), first_of(second, shape).copy()
    first_of(first, shape)[:] = c * f - s * g
    first_of(second, shape)[:] = s * f + c * g


@instruction("void", literal_rotate)
def rotate(e: Lines, first: Any, second: Any, c: Any, s: Any, shape: Any) -> None:
    """Emit `literal_rotate`."""
    f, g = e.load(first.data), e.load(second.data)
    e.store(f * c - g * s, first.data)
    e.store(f * s + g * c, second.data)
