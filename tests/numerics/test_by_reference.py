"""What a compiled function is given by reference has the fields of the tuple, and costs one
argument; the compiler must not read fields before they are written.
"""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import config

from koco_stream.numerics.by_reference import by_reference
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.reference_type import Reference


class Inner(NamedTuple):
    counts: np.ndarray
    scale: float


class Outer(NamedTuple):
    flag: bool
    w: np.ndarray
    inner: Inner
    shape: tuple[int, ...]
    size: int


class Other(NamedTuple):  # as `Inner`, with other names
    numbers: np.ndarray
    factor: float


@jit
def called(x, by):
    """Reads all fields, some of them after it has changed an array."""
    before = x.size + len(x.shape) + x.shape[1] + x.inner.scale
    x.w[0] += by
    x.inner.counts[()] += 1
    return before + x.w[0] + (100.0 if x.flag else 0.0) + x.inner.counts[()] + counted(x.inner)


@jit
def counted(inner):
    return 1000.0 * inner.counts[()]


def outer() -> Outer:
    return Outer(True, np.arange(3.0), Inner(np.zeros((), np.int64), 0.25), (7, 8, 9), 5)


@jit
def reads_here(x):
    given = by_reference(x)
    return given.w[0] + given.inner.counts[()]


def test_by_reference__fields_are_read_after_they_were_written_where_functions_are_inlined():
    for k in range(20):
        x = outer()
        x.w[0] = k
        assert reads_here(x) == k


@jit
def first_of(x):
    return first(by_reference(x))


@jit
def first(x):
    return x.numbers[()] + x.factor


@jit
def first_of_inner(x):
    return counted(by_reference(x))


def test_by_reference__tuples_of_like_types_keep_their_own_names():
    count = np.full((), 3, np.int64)
    assert first_of(Other(count, 0.5)) == 3.5
    assert first_of_inner(Inner(count, 0.5)) == 3000.0


@jit
def twice(x):
    return 2.0 * by_reference(x)


def test_by_reference__other_values_stay_as_they_are():
    assert twice(3.0) == 6.0


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_by_reference__is_one_argument_of_a_call():
    function = numba.njit(called.py_func)  # not from the cache, which has no types of calls

    @numba.njit
    def caller(x):
        return function(by_reference(x), 1.0)

    x = outer()
    for rounds in range(1, 20):  # with numba's runtime, which counts references to arrays
        caller(x)
        assert x.w[0] == x.inner.counts == rounds
    assert list(function.overloads) == [(Reference(numba.typeof(outer())), numba.float64)]
