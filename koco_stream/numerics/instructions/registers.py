"""What an instruction is written with: numbers side by side in the processor's registers.

An instruction is one function. Its first argument is a `Registers`, of which every loop, load,
store and function of numbers is a method; the operators of numbers are Python's. NumPy runs it,
with the class that is here. LLVM emits the same operations in the same order, so the bits are the
same (koco_stream.numerics.instructions.llvm).
"""

import ctypes
from collections.abc import Callable, Iterable
from functools import reduce, update_wrapper
from inspect import signature
from operator import add
from typing import Any

import numpy as np

from koco_stream.numerics.compiler import intrinsic

_fma = ctypes.CDLL(None).fma
_fma.restype, _fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
fused = np.frompyfunc(_fma, 3, 1)
EIGHT = 8  # numbers of a register, but for the last


def place(array: Any, index: tuple[Any, ...]) -> Any:
    """An element's place in the flat array."""
    return np.ravel_multi_index(index, array.shape) if len(index) > 1 else index[0]


class Registers:
    """`width` numbers side by side: registers of eight, then one of four if some are left.

    Elements of an array are named by all their indices, or by their place in the flat array. They
    are widened to 64 bits.
    """

    sqrt = staticmethod(np.sqrt)
    abs = staticmethod(np.abs)

    def __init__(self, width: int) -> None:
        self.width = width

    def number(self, array: Any, *index: Any) -> Any:
        """One element."""
        value = array.reshape(-1)[place(array, index)]
        return int(value) if array.dtype.kind in "iu" else np.float64(value)

    def load(self, array: Any, *index: Any) -> Any:
        """`width` elements, from one on."""
        first = place(array, index)
        return array.reshape(-1)[first : first + self.width].astype(np.float64)

    def store(self, numbers: Any, array: Any, *index: Any) -> None:
        """Write a number or several, from an element on."""
        first = place(array, index)
        array.reshape(-1)[first : first + np.size(numbers)] = numbers

    def loop(self, end: Any, step: int = 1, start: Any = 0) -> Iterable[Any]:
        """A range."""
        return range(start, end, step)

    def pairs(self, end: Any, start: Any = 0) -> Iterable[tuple[Any, int]]:
        """(i, 0) and (i, 1) in turn for start ≤ i < end, of which two sums are made."""
        return ((i, (i - start) % 2) for i in range(start, end))

    def when(self, condition: Any) -> Iterable[Any]:
        """A loop that runs once if the condition holds."""
        return range(int(condition))

    def variables(self, *numbers: Any) -> Any:
        """Numbers that change: `x[k]` is assigned to, and never changed in place."""
        return list(numbers)

    def zeros(self) -> Any:
        """`width` zeros."""
        return np.zeros(self.width)

    def joined(self, numbers: list[Any]) -> Any:
        """Single numbers, side by side in a register."""
        return np.array(numbers)

    def float(self, integer: Any) -> Any:
        """An integer as a floating-point number."""
        return np.float64(integer)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """xy + z, rounded once."""
        return np.float64(fused(x, y, z))

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """The numbers x where the condition holds, else y."""
        return np.where(condition, x, y)[()]

    def any(self, conditions: Any) -> Any:
        """Whether one holds."""
        return np.any(conditions)

    def bits(self, x: Any) -> Any:
        """The 64 bits of floating-point numbers, as integers."""
        return np.float64(x).view(np.int64)

    def of_bits(self, bits: Any) -> Any:
        """The floating-point numbers of 64 bits."""
        return np.int64(bits).view(np.float64)

    def parts(self, x: Any) -> list[Any]:
        """The numbers of each register."""
        return [x[k : k + EIGHT] for k in range(0, x.size, EIGHT)]

    def chosen(self, x: Any, y: Any, places: Iterable[int]) -> Any:
        """Some numbers of the registers x and y, a register; those of y are behind those of x."""
        return np.concatenate([x, y])[list(places)]


def folded(e: Registers, x: Any) -> Any:
    """The sums of a register's halves."""
    half = x.size // 2
    return e.chosen(x, x, range(half)) + e.chosen(x, x, range(half, x.size))


def four_sums(e: Registers, x: Any) -> Any:
    """Registers of eight are added in order and folded, and the one of four is added."""
    *eights, last = e.parts(x)
    if last.size == EIGHT:
        return folded(e, reduce(add, [*eights, last]))
    return folded(e, reduce(add, eights)) + last if eights else last


def total(e: Registers, x: Any) -> Any:
    """The sum: four sums, folded to two and to one."""
    pair = folded(e, four_sums(e, x))
    return pair[0] + pair[1]


def totals(e: Registers, rows: list[Any]) -> Any:
    """`total` of four or eight, side by side."""
    sums = [four_sums(e, row) for row in rows]
    for low, high in (([0, 1, 4, 5], [2, 3, 6, 7]), ([0, 2, 4, 6], [1, 3, 5, 7])):
        pairs = zip(sums[::2], sums[1::2], strict=True)
        sums = [e.chosen(x, y, low) + e.chosen(x, y, high) for x, y in pairs]
    return sums[0] if len(sums) == 1 else e.chosen(sums[0], sums[1], range(EIGHT))


def store_running_sums(e: Registers, x: Any, out: Any, sign: int) -> None:
    """out[i] ← the sum of x before i, or after it if `sign` is −1."""

    def moved(numbers: Any, by: int) -> Any:
        n = numbers.size
        return e.chosen(
            numbers, numbers * 0.0, [k - by if 0 <= k - by < n else n for k in range(n)]
        )

    carry: Any = 0.0
    for k, sums in list(enumerate(e.parts(x)))[::sign]:
        for by in (1, 2, 4)[: sums.size.bit_length() - 1]:
            sums = sums + moved(sums, sign * by)
        e.store(moved(sums, sign) + carry, out, EIGHT * k)
        carry = sums[(sums.size - 1) * (sign > 0)] + carry


def instruction(result: str, width: int = 0) -> Callable[[Callable[..., Any]], Any]:
    """Decorate an instruction's text, so that compiled code and Python can call it.

    The registers have `width` numbers, or as many as the first tuple among the arguments is long.
    `result` is the compiler's name of the result's type.
    """

    def decorate(text: Callable[..., Any]) -> Any:
        def plain(*arguments: Any) -> Any:
            numbers = width or next(len(x) for x in arguments if isinstance(x, tuple))
            given = [np.float64(x) if isinstance(x, float) else x for x in arguments]
            with np.errstate(all="ignore"):
                return text(Registers(numbers), *given)

        def typed(typing_context: Any, *given: Any) -> Any:
            from koco_stream.numerics.instructions.llvm import emitted

            return emitted(text, result, width, given)

        typed.__signature__ = signature(text)  # type: ignore[attr-defined]  # numba reads it
        return intrinsic(typed, update_wrapper(plain, text))

    return decorate
