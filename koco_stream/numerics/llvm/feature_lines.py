"""The loops that dominate the time of a linear learner.

A table is (d, width), so all numbers of one feature are contiguous in memory, in one line. `gather`
sums x_j·table[j] over a row's features and `scatter` adds x_j·coefficient to table[j]; a learner's
cost depends on the row only in these two. The other loops work on small matrices of such lines. The
entries of a line are independent outputs, so computing them side by side does not change any
number.

`gather`, `line_dot`, `substitute` and `combine` keep their sums in registers, by hand-written LLVM
instructions, each beside the Python loop that specifies it. The others are plain loops, because
hand-written instructions made no learner more than 5 % faster.

All sums have fixed orders that reduce waiting for additions: `gather` and `combine` sum even and
odd positions separately and add the two at the end; `line_dot` adds the halves of a line until one
number is left. The compiler takes the line width from the length of a tuple, which is a
compile-time constant.

A learner stores its small vectors in one flat array `a`, and a vector is given by its offset. With
one base and constant offsets the compiler knows that they do not overlap.
"""

from typing import Any

import numpy as np
from numba import types

from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.registers import (
    DOUBLE,
    INT64,
    Line,
    Variable,
    emitted_by,
    halved,
    in_two_chains,
    steps,
)
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


def _gather(b: Any, table: Any, lanes: Any, idx: Any, val: Any, a: Any, out: Any) -> Any:
    def term(i: Any) -> Line:
        value = val.number(i)
        product = lanes.load(table, lanes.row(idx.number(i), INT64(0))) * lanes.spread(value)
        return Line(b, [*product.values, b.fmul(value, value)])

    zero = Line(b, [*lanes.zeros().values, DOUBLE(0.0)])
    even, odd = in_two_chains(idx.size, term, zero, zero)
    *line, norm2 = (even + odd).values
    lanes.store(Line(b, line), a, out)
    return norm2


@emitted_by(_gather, types.float64)
def gather(table: Array, lanes: Any, idx: Array, val: Array, a: Array, out: int) -> float:
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


@inlined
def scatter(table: Array, lanes: Any, idx: Array, val: Array, a: Array, coefficient: int) -> None:
    """Add val[i]·a[coefficient:] to table[idx[i]] for each entry i of a row."""
    for i in range(idx.size):
        j, v = idx[i], np.float64(val[i])
        for k in range(len(lanes)):
            table[j, k] += a[coefficient + k] * v


def _line_dot(b: Any, a: Any, lanes: Any, x: Any, y: Any) -> Any:
    return (lanes.load(a, x) * lanes.load(a, y)).total()


@emitted_by(_line_dot, types.float64)
def line_dot(a: Array, lanes: Any, x: int, y: int) -> float:
    """The dot product Σ_i x_i y_i of the lines at a[x:] and a[y:]."""
    width = len(lanes)
    line = a[x : x + width] * a[y : y + width]
    return halved([line[k : k + 8] for k in range(0, width, 8)])


@inlined
def times(a: Array, lanes: Any, matrix: int, vector: int, out: int) -> None:
    """The product a[out:] ← M v of the (width, width) matrix at a[matrix:] and the vector at
    a[vector:].
    """
    width = len(lanes)
    for i in range(width):
        a[out + i] = line_dot(a, lanes, matrix + i * width, vector)


@inlined
def running_sums(a: Array, lanes: Any, x: int, y: int, out: int, back: bool) -> None:
    """Exclusive prefix sums a[out + i] ← Σ x_j y_j over j < i, or suffix sums over j > i if `back`.

    Each register sums pairs, then fours, then eights; then the totals of earlier registers are
    added.
    """
    width = len(lanes)
    for k in range(width):
        a[out + k] = a[x + k] * a[y + k]
    carry, registers = 0.0, (width + 7) // 8
    for r in range(registers):
        first = 8 * (registers - 1 - r if back else r)
        n = min(8, width - first)
        start, step = (out + first + n - 1, -1) if back else (out + first, 1)
        for shift in (1, 2, 4):
            for k in range(n - 1, shift - 1, -1):
                a[start + k * step] += a[start + (k - shift) * step]
        whole = a[start + (n - 1) * step]
        for k in range(n - 1, 0, -1):
            a[start + k * step] = a[start + (k - 1) * step] + carry
        a[start] = carry
        carry += whole


def _substitute(
    b: Any, a: Any, lanes: Any, n: Any, matrix: Any, keep: Any, take: Any, q: Any
) -> None:
    r = Variable(lanes.zeros())
    with steps(b, n) as i:
        keep_i, take_i, q_i = (lanes.spread(a.number(b.add(at, i))) for at in (keep, take, q))
        place = lanes.row(i, matrix)
        old = lanes.load(a, place)
        lanes.store(keep_i * old - take_i * r.get(), a, place)
        r.set(r.get() + q_i * old)


@emitted_by(_substitute)
def substitute(a: Array, lanes: Any, n: int, matrix: int, keep: int, take: int, q: int) -> None:
    """Replace row i of the matrix M at a[matrix:] by keep_i·M_i − take_i·Σ_{j<i} q_j M_j.

    The sum is over the old rows, for the first n rows.
    """
    width = len(lanes)
    r = np.zeros(width)
    for i in range(n):
        line = a[matrix + i * width : matrix + (i + 1) * width]
        old = line.copy()
        line[:] = a[keep + i] * old - a[take + i] * r
        r += a[q + i] * old


@inlined
def add_outer(a: Array, lanes: Any, n: int, matrix: int, left: int, right: int) -> None:
    """The rank-one update M_i += left_i·right of the first n rows of the matrix at a[matrix:]."""
    width = len(lanes)
    for i in range(n):
        factor = a[left + i]
        for k in range(width):
            a[matrix + i * width + k] += factor * a[right + k]


def _combine(
    b: Any, a: Any, lanes: Any, n: Any, matrix: Any, x: Any, factors: Any, result: Any, out: Any
) -> None:
    def term(k: Any) -> Line:
        factor: Line = lanes.spread(x.number(b.add(factors, k)))
        return factor * lanes.load(a, lanes.row(k, matrix))

    even, odd = in_two_chains(n, term, lanes.zeros(), lanes.zeros())
    lanes.store(even + odd, result, out)


@emitted_by(_combine)
def combine(
    a: Array, lanes: Any, n: int, matrix: int, x: Array, factors: int, result: Array, out: int
) -> None:
    """The sum result[out:] ← Σ_k x[factors + k]·M_k over the first n rows of the matrix at
    a[matrix:].

    Even and odd rows are summed separately, then added.
    """
    width = len(lanes)
    sums = np.zeros((2, width))
    for k in range(n):
        sums[k % 2] += x.reshape(-1)[factors + k] * a[matrix + k * width : matrix + (k + 1) * width]
    result[out : out + width] = sums[0] + sums[1]


@inlined
def rotate(a: Array, lanes: Any, first: int, second: int, c: float, s: float) -> None:
    """Rotate the lines f at a[first:] and g at a[second:] to c·f − s·g and s·f + c·g."""
    for k in range(len(lanes)):
        f, g = a[first + k], a[second + k]
        a[first + k] = c * f - s * g
        a[second + k] = s * f + c * g
