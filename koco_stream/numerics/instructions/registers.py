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


def place(array: Any, index: tuple[Any, ...]) -> Any:
    """An element's place in the flat array."""
    return np.ravel_multi_index(index, array.shape) if len(index) > 1 else index[0]


class Registers:
    """`width` numbers side by side: registers of eight, then one of four if some are left.

    Elements of an array are named by all their indices, or by their place in the flat array. They
    are widened to 64 bits.
    """

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

    def prefetch(self, array: Any, *index: Any) -> None:
        """Have the processor fetch `width` elements."""

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

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """xy + z, rounded once."""
        return np.float64(fused(x, y, z))

    def sqrt(self, x: Any) -> Any:
        """√x."""
        return np.sqrt(x)

    def abs(self, x: Any) -> Any:
        """|x|."""
        return np.abs(x)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """The numbers x where the condition holds, else y."""
        return np.where(condition, x, y)[()]

    def any(self, conditions: Any) -> Any:
        """Whether one holds."""
        return np.any(conditions)

    def all(self, conditions: Any) -> Any:
        """Whether all hold."""
        return np.all(conditions)

    def bits(self, x: Any) -> Any:
        """The 64 bits of floating-point numbers, as integers."""
        return np.float64(x).view(np.int64)

    def of_bits(self, bits: Any) -> Any:
        """The floating-point numbers of 64 bits."""
        return np.int64(bits).view(np.float64)

    def total(self, x: Any) -> Any:
        """The sum: registers in order, then eights folded to fours, twos and one."""
        whole = x.size // 8 * 8
        fours = [x[whole:]] if x.size > whole else []
        if whole:
            eight = reduce(add, x[:whole].reshape(-1, 8))
            fours.insert(0, eight[:4] + eight[4:])
        four = reduce(add, fours)
        pair = four[:2] + four[2:]
        return pair[0] + pair[1]

    def totals(self, each: list[Any]) -> Any:
        """The sums of four or of eight, side by side."""
        return np.array([self.total(x) for x in each])


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
