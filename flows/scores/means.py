"""Means of scores that do not depend on the order in which scores are added.

A mean is that of the exact sum, in 12 significant digits. So scores that are equal but for the last
bits of their computation are equal wherever they are compared.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from koco_stream.types import Array

DIGITS = 12  # significant digits of what is compared
KNOWN = 15  # of a sum; more of them depend on how its terms have been rounded
LEAST, MOST = 1e-290, 1e308  # smaller and larger numbers stay as they are
EXACT = 22  # larger powers of ten, and negative ones, are no doubles
TENS = np.array([float(f"1e{k}") for k in range(-300, 309)])


def rounded(values: ArrayLike, sizes: ArrayLike | None = None, *, digits: int = DIGITS) -> Array:
    """The doubles nearest to numbers in the significant digits of `sizes`, by default their own."""
    given = np.asarray(values, dtype=float)
    size = np.abs(given if sizes is None else np.asarray(sizes, dtype=float))
    usable = np.isfinite(given) & (size > LEAST) & (size < MOST)
    places = digits - 1 - np.floor(np.log10(np.where(usable, size, 1.0))).astype(int)
    steps = np.rint(np.where(usable, given, 0.0) * TENS[places + 300])
    found = np.where(usable, steps / TENS[places + 300], given)
    odd = usable & ((places < 0) | (places > EXACT))
    decimals = zip(steps[odd], places[odd], strict=True)
    found[odd] = [float(f"{step:.0f}e{-place}") for step, place in decimals]
    return found + 0.0  # no zero has a sign


def exact_means(rows: Iterable[Sequence[float] | Array]) -> Array:
    """Means of rows, with differences as exact as the numbers; infinite if empty or not finite."""
    found = []
    for row in rows:
        n, whole = len(row), min(row, default=0.0) >= 0.0  # no number is negative
        try:
            size = (math.fsum(row) if whole else math.fsum(map(abs, row))) / n if n else math.inf
        except OverflowError:
            n, row = 1, [value / n for value in row]
            size = math.fsum(map(abs, row))
            whole = False
        known = size < math.inf  # it may be NaN
        total = size if whole else math.fsum(row) / n if known else math.inf
        found.append((total, size) if known else (math.inf, math.inf))
    return rounded(*np.array(found).reshape(-1, 2).T, digits=KNOWN)


def means(rows: Iterable[Sequence[float] | Array]) -> Array:
    """Mean of each row of numbers, rounded: what is compared and shown."""
    return rounded(exact_means(rows))


def mean(values: Iterable[float]) -> float | None:
    return known_of(means([list(values)]))[0]


def differences_of(ones: Array, others: Array) -> pa.Array:
    """How far means are above others: 0 where they are equal, null where one is not finite."""
    found = rounded(ones - others, np.maximum(np.abs(ones), np.abs(others)))
    return pa.array(known_of(found), pa.float64())


def known_of(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def deviations(rows: Sequence[Sequence[float]]) -> Array:
    """Sample standard deviation of each row, rounded; infinite where its mean is, and for one."""
    exact = exact_means(rows)
    found = [
        math.hypot(*sorted(value - mean for value in row)) / math.sqrt(len(row) - 1)
        if len(row) > 1
        else math.inf
        for row, mean in zip(rows, exact.tolist(), strict=True)
    ]
    return rounded(found, exact)


def of_lists(numbers: Callable[[list[list[float]]], Array], lists: pa.ChunkedArray) -> pa.Array:
    """`means` or `deviations` of lists, for DuckDB; null where they are not finite."""
    ends = np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy()).tolist()
    flat = pc.list_flatten(lists)
    if flat.null_count == len(flat):
        return pa.nulls(len(ends), pa.float64())
    values = flat.to_numpy().tolist()  # a null is NaN
    rows = [values[first:last] for first, last in zip([0, *ends], ends, strict=False)]
    return pa.array(known_of(numbers(rows)), pa.float64())
