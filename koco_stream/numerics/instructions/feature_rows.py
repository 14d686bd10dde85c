"""The loops that dominate the time of a linear learner, with rows of numbers in registers.

A table (d, width) has a row for each feature. Only `gather` and `scatter` depend on the stream's
row; the others work on small vectors and square matrices. The tuple `shape` is as long as a row. An
array may be longer, or flat: only where it starts counts.
"""

from typing import Any

import numpy as np

from koco_stream.numerics.compiler import intrinsic
from koco_stream.numerics.instructions.registers import (
    EIGHT,
    Registers,
    instruction,
    store_running_sums,
    total,
    totals,
)
from koco_stream.types import Array

CACHE_LINE = 64  # bytes of a line of the processor's cache
FOUR = 4


def shape_for(columns: int) -> tuple[int, ...]:
    """A tuple as long as a table's row: `columns` rounded up to fours."""
    return (0,) * (FOUR * ((columns + FOUR - 1) // FOUR))


def aligned_zeros(rows: int, width: int, kind: Any = np.float64) -> Array:
    """A zero matrix (rows, width), aligned to cache lines."""
    size = np.dtype(kind).itemsize
    raw = np.zeros(rows * width + CACHE_LINE // size, kind)
    first = (-raw.ctypes.data % CACHE_LINE) // size
    return raw[first : first + rows * width].reshape(rows, width)


def _row_at(typing_context: Any, a: Any, k: Any, shape: Any) -> Any:
    from koco_stream.numerics.instructions.llvm import view

    return view(a, shape)


# An array from row k on, as a view; its last dimension is as long as `shape`.
row_at = intrinsic(_row_at, lambda a, k, shape: a.reshape(-1)[k * len(shape) :])


def _named_rows(typing_context: Any, kind: Any, a: Any, shape: Any) -> Any:
    from koco_stream.numerics.instructions.llvm import views

    return views(kind, a, shape)


# Row k of `a` (k, width) as field k of the named tuple `kind`: it costs nothing, and the compiler
# knows that the rows do not overlap.
named_rows = intrinsic(_named_rows, lambda kind, a, shape: kind(*a))


def sums_of_row(e: Registers, table: Any, idx: Any, val: Any, current: Any) -> tuple[Any, Any, Any]:
    """Σ_i val[i]·table[idx[i]], Σ_i val[i]², and how many rows do not end with either `current`."""
    sums, squares = e.variables(e.zeros(), e.zeros()), e.variables(0.0, 0.0)
    others = e.variables(e.joined([0.0, 0.0]), e.joined([0.0, 0.0]))
    for i, k in e.pairs(idx.size):
        j, v = e.number(idx, i), e.number(val, i)
        sums[k] = e.fma(e.load(table, j, 0), v, sums[k])
        squares[k] = e.fma(v, v, squares[k])
        last = e.number(table, j, table.shape[1] - 1)
        others[k] = others[k] + e.select(e.joined([last, last]) != current, 1.0, 0.0)
    return sums[0] + sums[1], squares[0] + squares[1], others[0] + others[1]


@instruction("float64")
def gather(e: Registers, table: Any, shape: Any, idx: Any, val: Any, out: Any) -> Any:
    """out ← Σ_i val[i]·table[idx[i]]; returns Σ_i val[i]²."""
    row, squares, _ = sums_of_row(e, table, idx, val, 0.0)
    e.store(row, out, 0)
    return squares


@instruction("float64")
def gather_current(
    e: Registers, table: Any, shape: Any, idx: Any, val: Any, out: Any, epoch: Any
) -> Any:
    """`gather` of rows whose last number is `epoch`, or 0 if they are unused.

    Returns −1 if a row has another. The last number of `out` counts unused rows. There is no
    branch that new features would mislead.
    """
    current = e.joined([e.float(epoch), 0.0])
    row, squares, others = sums_of_row(e, table, idx, val, current)
    unused = e.float(idx.size) - others[1]
    e.store(row, out, 0)
    e.store(unused, out, e.width - 1)
    return e.select(others[0] == unused, squares, -1.0)


@instruction("void")
def scatter(e: Registers, table: Any, shape: Any, idx: Any, val: Any, coefficients: Any) -> None:
    """table[idx[i]] += val[i]·coefficients, unless all are 0."""
    own = e.load(coefficients, 0)
    for _ in e.when(e.any(own != 0.0)):
        for i in e.loop(idx.size):
            j = e.number(idx, i)
            e.store(e.fma(own, e.number(val, i), e.load(table, j, 0)), table, j, 0)


@instruction("int64")
def scatter_first(
    e: Registers,
    table: Any,
    shape: Any,
    idx: Any,
    val: Any,
    coefficients: Any,
    epoch: Any,
    used: Any,
    count: Any,
) -> Any:
    """`scatter` that makes `epoch` the last number of the rows; returns the new count.

    Rows where it was 0 are put in `used` from `count` on, with room for one more.
    """
    own, at = e.load(coefficients, 0), e.variables(count)
    for i in e.loop(idx.size):
        j = e.number(idx, i)
        unused = e.number(table, j, table.shape[1] - 1) == 0.0
        e.store(j, used, at[0])
        at[0] = at[0] + e.select(unused, 1, 0)
        e.store(e.fma(own, e.number(val, i), e.load(table, j, 0)), table, j, 0)
        e.store(e.float(epoch), table, j, table.shape[1] - 1)
    return at[0]


@instruction("void", EIGHT)
def over_roots(
    e: Registers, table: Any, column: Any, idx: Any, val: Any, unused: Any, out: Any
) -> None:
    """out[i] ← val[i]/√table[idx[i], column]; a 0 in the table stands for `unused`."""

    def over(numbers: Any, found: Any) -> Any:
        return numbers / e.sqrt(e.select(found == 0.0, unused, found))

    whole = idx.size & -EIGHT
    for first in e.loop(whole, EIGHT):
        features = [e.number(idx, first + k) for k in range(EIGHT)]
        found = e.joined([e.number(table, j, column) for j in features])
        e.store(over(e.load(val, first), found), out, first)
    for i in e.loop(idx.size, start=whole):
        found = e.number(table, e.number(idx, i), column)
        e.store(over(e.number(val, i), found), out, i)


@instruction("void")
def times(e: Registers, matrix: Any, vector: Any, out: Any, shape: Any) -> None:
    """out ← M v of a square matrix."""
    right = e.load(vector, 0)

    def put(first: Any, n: int) -> None:
        rows = [e.load(matrix, first * e.width + k * e.width) * right for k in range(n)]
        e.store(totals(e, rows), out, first)

    for first in e.loop(e.width // EIGHT * EIGHT, EIGHT):
        put(first, EIGHT)
    if e.width % EIGHT:
        put(e.width - FOUR, FOUR)


@instruction("float64")
def line_dot(e: Registers, x: Any, y: Any, shape: Any) -> Any:
    """Σ_i x_i y_i of two rows."""
    return total(e, e.load(x, 0) * e.load(y, 0))


@instruction("float64")
def line_dot3(e: Registers, x: Any, y: Any, z: Any, shape: Any) -> Any:
    """Σ_i x_i y_i z_i of three rows."""
    return total(e, e.load(x, 0) * e.load(y, 0) * e.load(z, 0))


@instruction("void")
def sums_before(e: Registers, x: Any, y: Any, out: Any, shape: Any) -> None:
    """Exclusive prefix sums out[i] ← Σ_{j<i} x_j y_j."""
    store_running_sums(e, e.load(x, 0) * e.load(y, 0), out, 1)


@instruction("void")
def sums_after(e: Registers, x: Any, y: Any, out: Any, shape: Any) -> None:
    """Exclusive suffix sums out[i] ← Σ_{j>i} x_j y_j."""
    store_running_sums(e, e.load(x, 0) * e.load(y, 0), out, -1)


@instruction("void")
def substitute(
    e: Registers, matrix: Any, n: Any, own: Any, earlier: Any, q: Any, shape: Any
) -> None:
    """M_i ← own_i·M_i − earlier_i·Σ_{j<i} q_j M_j over the old first n rows."""
    sums = e.variables(e.zeros())
    for i in e.loop(n):
        old = e.load(matrix, i * e.width)
        e.store(e.fma(sums[0], -e.number(earlier, i), old * e.number(own, i)), matrix, i * e.width)
        sums[0] = e.fma(old, e.number(q, i), sums[0])


@instruction("void")
def add_outer(e: Registers, matrix: Any, n: Any, left: Any, right: Any, shape: Any) -> None:
    """M_i += left_i·right for the first n rows of M."""
    row = e.load(right, 0)
    for i in e.loop(n):
        e.store(e.fma(row, e.number(left, i), e.load(matrix, i * e.width)), matrix, i * e.width)


@instruction("void")
def combine(e: Registers, matrix: Any, n: Any, factors: Any, out: Any, shape: Any) -> None:
    """out ← Σ_k factors[k]·M_k over the first n rows of M."""
    sums = e.variables(e.zeros(), e.zeros())
    for i, k in e.pairs(n):
        sums[k] = e.fma(e.load(matrix, i * e.width), e.number(factors, i), sums[k])
    e.store(sums[0] + sums[1], out, 0)
