"""The instructions of koco_stream.numerics.rank_one, for eight roots or columns at a time.

Root i of the secular equation 1 + Σ_j z_j²/(d_j − λ) = 0, d decreasing, lies between d_i and
d_{i−1}. It is kept as λ = origin + τ with the nearer pole as origin, so that d_j − λ keeps its
digits.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.numerics.llvm.registers import (
    DOUBLE,
    INT64,
    Line,
    Lines,
    halved,
    instruction,
    literal_fused,
)
from koco_stream.types import Array

AT_ONCE = 8
LINES_AT_ONCE = 4
EPSILON = 2.0**-52
NEARLY = 1e-6  # a root is exact after the next step of interpolation, which cubes what it is off

# The lines of the roots: origins; the two poles beside a root and τ, from its origin on; between
# what τ is known to be.
ORIGIN, LEFT, RIGHT, TAU, LOW, HIGH, ROOT_LINES = range(7)


def eight(a: Array, first: int) -> Array:
    """Eight numbers, as a view."""
    return a[first : first + AT_ONCE]


def _counted(e: Lines, first: Any) -> Line:
    kind = ir.VectorType(DOUBLE, AT_ONCE)
    counts = Line(e.b, [ir.Constant(kind, [float(k) for k in range(AT_ONCE)])])
    return counts + e.b.sitofp(first, DOUBLE)


def literal_squared(a: Array, W: int, z: int, out: int) -> float:
    """a[out:] ← z_j²; returns their sum."""
    sums = np.zeros(AT_ONCE)
    for first in range(0, W, AT_ONCE):
        line = eight(a, z + first)
        eight(a, out + first)[:] = line * line
        sums = sums + line * line
    return halved(sums)


@instruction("float64", literal_squared, AT_ONCE)
def squared(e: Lines, a: Any, W: Any, z: Any, out: Any) -> Any:
    """Emit `literal_squared`."""
    sums = e.variable(e.zeros())
    with e.loop(W, AT_ONCE) as first:
        line = e.load(a.at(z, first))
        e.store(line * line, a.at(out, first))
        sums.set(sums.get() + line * line)
    return sums.get().total()


def literal_secular_start(
    a: Array, W: int, d: int, squares: int, n: int, total: float, roots: int, first: int
) -> None:
    """Start eight roots as if all poles but their own two added what they add in the middle.

    The first root is less than `total` above d_0.
    """
    number, pole = first + np.arange(AT_ONCE), eight(a, d + first)
    own, other = (eight(a, squares + k) for k in (first, first - 1))
    next_pole, is_first = eight(a, d + first - 1), number == 0
    with np.errstate(all="ignore"):
        gap, other = np.where(is_first, total, next_pole - pole), np.where(is_first, 0.0, other)
        middle, rest = gap * 0.5, np.ones(AT_ONCE)
        for j in range(n):
            term = a[squares + j] / (a[d + j] - pole - middle)
            rest = rest + np.where((number == j) | (number == j + 1), 0.0, term)
        to_left = np.where(is_first, True, 0.0 <= rest + (other - own) / middle)
        weight, signed = np.where(to_left, own, other), np.where(to_left, rest, 0.0 - rest)
        b = signed * gap + own + other
        square = b * b - signed * weight * gap * 4.0
        root = np.sqrt(np.where(0.0 < square, square, 0.0))
        size = np.where(0.0 < b, weight * gap * 2.0 / (b + root), (b - root) * 0.5 / signed)
        most = np.where(is_first, gap, middle)
        size = np.where((0.0 < size) & (size < most), size, most * 0.5)
    values = {
        ORIGIN: np.where(to_left, pole, next_pole),
        LEFT: np.where(to_left, 0.0, 0.0 - gap),
        RIGHT: np.where(to_left, gap, 0.0),
        TAU: np.where(to_left, size, 0.0 - size),
        LOW: np.where(to_left, 0.0, 0.0 - most),
        HIGH: np.where(to_left, most, 0.0),
    }
    for k, line in values.items():
        eight(a, roots + k * W + first)[:] = line


@instruction("void", literal_secular_start, AT_ONCE)
def secular_start(
    e: Lines, a: Any, W: Any, d: Any, squares: Any, n: Any, total: Any, roots: Any, first: Any
) -> None:
    """Emit `literal_secular_start`."""
    number, zero, before = _counted(e, first), e.zeros(), e.b.sub(first, INT64(1))
    pole, next_pole = e.load(a.at(d, first)), e.load(a.at(d, before))
    own, other = e.load(a.at(squares, first)), e.load(a.at(squares, before))
    is_first = number.equal(zero)
    gap, other = (zero + total).where(is_first, next_pole - pole), zero.where(is_first, other)
    middle, total_rest = gap * 0.5, e.variable(zero + 1.0)
    with e.loop(n) as j:
        term = (zero + a.number(squares, j)) / (zero + a.number(d, j) - pole - middle)
        at = e.b.sitofp(j, DOUBLE)
        beside = number.equal(zero + at), number.equal(zero + e.b.fadd(at, DOUBLE(1.0)))
        part = zero.where(beside[0], zero.where(beside[1], term))
        total_rest.set(total_rest.get() + part)
    rest = total_rest.get()
    to_left = is_first.either(zero.at_most(rest + (other - own) / middle))
    weight, signed = own.where(to_left, other), rest.where(to_left, zero - rest)
    b = signed * gap + own + other
    square = b * b - signed * weight * gap * 4.0
    root = square.where_positive(square).roots()
    positive, negative = weight * gap * 2.0 / (b + root), (b - root) * 0.5 / signed
    size, most = positive.where(zero.less(b), negative), gap.where(is_first, middle)
    size = size.where(zero.less(size).both(size.less(most)), most * 0.5)
    values = {
        ORIGIN: pole.where(to_left, next_pole),
        LEFT: zero.where(to_left, zero - gap),
        RIGHT: gap.where(to_left, zero),
        TAU: size.where(to_left, zero - size),
        LOW: zero.where(to_left, zero - most),
        HIGH: most.where(to_left, zero),
    }
    for k, line in values.items():
        e.store(line, a.at(roots, e.b.mul(W, INT64(k)), first))


def literal_secular_step(
    a: Array, W: int, d: int, squares: int, n: int, roots: int, first: int
) -> bool:
    """Improve eight roots by Gragg's rational interpolation, or by halving their bounds.

    Returns whether one is not exact yet.
    """
    origin, left, right, tau, low, high = (
        eight(a, roots + k * W + first) for k in range(ROOT_LINES)
    )
    number, f = first + np.arange(AT_ONCE), np.ones(AT_ONCE)
    size, slope, bend = np.ones(AT_ONCE), np.zeros(AT_ONCE), np.zeros(AT_ONCE)
    with np.errstate(all="ignore"):
        for j in range(n):
            inverse = 1.0 / (a[d + j] - origin - tau)
            term = inverse * a[squares + j]
            f, size = f + term, size + np.abs(term)
            term = term * inverse
            slope, bend = slope + term, literal_fused(term, inverse, bend)
        inexact = ((size * (n * EPSILON) < np.abs(f)) | (f != f)) & (number < n)
        far = (size * NEARLY < np.abs(f)) | (f != f)
        low[:], high[:] = np.where(f < 0.0, tau, low), np.where(f < 0.0, high, tau)
        # f(λ + η) ≈ c + s/(left − η) + S/(right − η), with f's value and first two derivatives.
        to_left, to_right = left - tau, right - tau
        s = to_left * (bend * to_right - slope) / (to_right - to_left)
        c = f - to_left * s - to_right * (slope - s)
        product = to_left * to_right
        b = product * f
        half = (to_left + to_right) * f - product * slope
        square = half * half - b * c * 4.0
        root = np.sqrt(np.where(0.0 < square, square, 0.0))
        new = np.where(half < 0.0, (half - root) / (c * 2.0), b * 2.0 / (half + root)) + tau
        inside = (low < new) & (new < high)
        new = np.where(inside, new, np.where(far, (low + high) * 0.5, tau))
        tau[:] = np.where(inexact, new, tau)
    return bool((inexact & far).any())


@instruction("boolean", literal_secular_step, AT_ONCE)
def secular_step(
    e: Lines, a: Any, W: Any, d: Any, squares: Any, n: Any, roots: Any, first: Any
) -> Any:
    """Emit `literal_secular_step`."""
    at = [a.at(roots, e.b.mul(W, INT64(k)), first) for k in range(ROOT_LINES)]
    origin, left, right, tau, low, high = (e.load(pointer) for pointer in at)
    zero = e.zeros()
    sums = [e.variable(zero + begin) for begin in (1.0, 1.0, 0.0, 0.0)]
    with e.loop(n) as j:
        f, size, slope, bend = (total.get() for total in sums)
        inverse = (zero + a.number(d, j) - origin - tau).inverted()
        term = inverse * a.number(squares, j)
        steep = term * inverse
        parts = f + term, size + term.absolute(), slope + steep, steep.fused(inverse, bend)
        for total, part in zip(sums, parts, strict=True):
            total.set(part)
    f, size, slope, bend = (total.get() for total in sums)
    count = e.b.sitofp(n, DOUBLE)
    inexact = (size * e.b.fmul(count, DOUBLE(EPSILON))).less(f.absolute())
    inexact = inexact.either(f.unequal(f)).both(_counted(e, first).less(zero + count))
    far = (size * NEARLY).less(f.absolute()).either(f.unequal(f))
    negative = f.less(zero)
    low, high = tau.where(negative, low), high.where(negative, tau)
    to_left, to_right = left - tau, right - tau
    s = to_left * (bend * to_right - slope) / (to_right - to_left)
    c = f - to_left * s - to_right * (slope - s)
    product = to_left * to_right
    b = product * f
    half = (to_left + to_right) * f - product * slope
    square = half * half - b * c * 4.0
    root = square.where_positive(square).roots()
    minus, plus = (half - root) / (c * 2.0), b * 2.0 / (half + root)
    new = minus.where(half.less(zero), plus) + tau
    inside = low.less(new).both(new.less(high))
    new = new.where(inside, ((low + high) * 0.5).where(far, tau))
    for line, k in ((low, LOW), (high, HIGH), (new.where(inexact, tau), TAU)):
        e.store(line, at[k])
    return inexact.both(far).any()


def literal_secular_columns(
    a: Array, W: int, d: int, z: int, n: int, roots: int, out: int, sums: int, first: int
) -> None:
    """Eight columns of the eigenvectors ẑ_j/(d_j − λ_i), line i for root i.

    These are the exact roots for ẑ (Gu and Eisenstat), so the lines are orthogonal. Their squares
    are added to sums[i].
    """
    own, weights = eight(a, d + first), eight(a, z + first)
    number, product = first + np.arange(AT_ONCE), np.ones(AT_ONCE)
    with np.errstate(all="ignore"):
        for i in range(n):
            apart = own - a[roots + ORIGIN * W + i] - a[roots + TAU * W + i]
            eight(a, out + i * W + first)[:] = apart
            product = product * np.where(number == i, 0.0 - apart, apart / (own - a[d + i]))
        size = np.sqrt(np.abs(product))
        estimate = np.where(weights < 0.0, 0.0 - size, size)
        for i in range(n):
            line = eight(a, out + i * W + first)
            line[:] = np.where(weights == 0.0, 0.0, estimate / line)
            a[sums + i] += halved(line * line)


@instruction("void", literal_secular_columns, AT_ONCE)
def secular_columns(
    e: Lines, a: Any, W: Any, d: Any, z: Any, n: Any, roots: Any, out: Any, sums: Any, first: Any
) -> None:
    """Emit `literal_secular_columns`."""
    own, weights = e.load(a.at(d, first)), e.load(a.at(z, first))
    number, zero = _counted(e, first), e.zeros()
    product = e.variable(zero + 1.0)
    tau = e.b.mul(W, INT64(TAU))
    with e.loop(n) as i:
        apart = own - a.number(roots, i) - a.number(roots, tau, i)
        e.store(apart, a.at(out, e.b.mul(i, W), first))
        is_own = number.equal(zero + e.b.sitofp(i, DOUBLE))
        ratio = (zero - apart).where(is_own, apart / (own - a.number(d, i)))
        product.set(product.get() * ratio)
    size = product.get().absolute().roots()
    estimate, untouched = (zero - size).where(weights.less(zero), size), weights.equal(zero)
    with e.loop(n) as i:
        address = a.at(out, e.b.mul(i, W), first)
        line = zero.where(untouched, estimate / e.load(address))
        e.store(line, address)
        at = a.at(sums, i)
        e.b.store(e.b.fadd(e.b.load(at), (line * line).total()), at)


def literal_secular_values(
    a: Array, W: int, d: int, z: int, n: int, roots: int, sums: int, first: int
) -> None:
    """Eight roots go to d, z in the eigenvectors' basis to z, and their scales to sums."""
    number, at = first + np.arange(AT_ONCE), slice(first, first + AT_ONCE)
    origin, tau = a[roots:][at], a[roots + TAU * W :][at]
    with np.errstate(all="ignore"):
        scale = 1.0 / np.sqrt(a[sums:][at])
        values = origin + tau + a[sums:][at] * 0.0
    a[d:][at] = np.where(number < n, values, a[d:][at])
    a[z:][at] = np.where(number < n, 0.0 - scale, 0.0)
    a[sums:][at] = scale


@instruction("void", literal_secular_values, AT_ONCE)
def secular_values(
    e: Lines, a: Any, W: Any, d: Any, z: Any, n: Any, roots: Any, sums: Any, first: Any
) -> None:
    """Emit `literal_secular_values`."""
    zero, values = e.zeros(), a.at(d, first)
    there = _counted(e, first).less(zero + e.b.sitofp(n, DOUBLE))
    origin = e.load(a.at(roots, first))
    tau = e.load(a.at(roots, e.b.mul(W, INT64(TAU)), first))
    squares = e.load(a.at(sums, first))
    scale = squares.roots().inverted()
    e.store((origin + tau + squares * 0.0).where(there, e.load(values)), values)
    e.store((zero - scale).where(there, zero), a.at(z, first))
    e.store(scale, a.at(sums, first))


def literal_turned(
    a: Array, W: int, n: int, vectors: int, scales: int, lines: int, out: int, first: int
) -> None:
    """Eight columns of out_i ← scale_i·Σ_j vectors_ij·lines_j.

    Up to three lines behind the n-th are written too.
    """
    for i in range(-(-n // LINES_AT_ONCE) * LINES_AT_ONCE):
        total = np.zeros(AT_ONCE)
        for j in range(n):
            line = eight(a, lines + j * W + first)
            total = literal_fused(line, a[vectors + i * W + j], total)
        with np.errstate(all="ignore"):  # behind the n-th, scales may be infinite
            eight(a, out + i * W + first)[:] = total * a[scales + i]


@instruction("void", literal_turned, AT_ONCE)
def turned(
    e: Lines, a: Any, W: Any, n: Any, vectors: Any, scales: Any, lines: Any, out: Any, first: Any
) -> None:
    """Emit `literal_turned`."""
    with e.loop(n, LINES_AT_ONCE) as i:
        numbers = [e.b.add(i, INT64(k)) for k in range(LINES_AT_ONCE)]
        offsets = [e.b.mul(number, W) for number in numbers]
        totals = [e.variable(e.zeros()) for _ in numbers]
        with e.loop(n) as j:
            line = e.load(a.at(lines, e.b.mul(j, W), first))
            for total, offset in zip(totals, offsets, strict=True):
                total.set(line.fused(a.number(vectors, offset, j), total.get()))
        for number, total, offset in zip(numbers, totals, offsets, strict=True):
            e.store(total.get() * a.number(scales, number), a.at(out, offset, first))
