"""Whether rows are as learners want them, told several numbers at once.

The last values are looked at together with some before them, a second time, so that none is looked
at by itself, as a compiler does with those that do not fill a register.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from koco_stream.numerics.llvm.registers import INT32, INT64, Lines, Memory, instruction
from koco_stream.types import Array

AT_ONCE = 8
TRUTH = ir.IntType(1)
LEAST_WRONG = 2 * 0x7FF0_0000_0000_0000 - 1  # twice the bits of infinity, less 1


def literal_plain_values(val: Array) -> bool:
    """Whether all values are finite and not 0."""
    size = np.abs(val)
    return bool(((size > 0.0) & (size < np.inf)).all())


@instruction(types.boolean, literal_plain_values, width=AT_ONCE)
def plain_values(e: Lines, val: Any) -> Any:
    """The instructions of `literal_plain_values`."""
    b = e.b

    def not_plain(first: Any, n: int) -> Any:
        # The bits of a number without its sign, less 1, are an integer: the largest of 0, since it
        # is unsigned, and too large of infinity and NaN.
        bits = b.bitcast(val.numbers(first, n), ir.VectorType(INT64, n))
        ones, most = (ir.Constant(bits.type, [x] * n) for x in (1, LEAST_WRONG))
        return b.icmp_unsigned(">=", b.sub(b.shl(bits, ones), ones), most)

    return b.not_(_found(e, val.size, not_plain))


def literal_falls(idx: Array) -> int:
    """How many numbers are not above the number before them."""
    return int((idx[1:] <= idx[:-1]).sum())


@instruction(types.int64, literal_falls, width=2 * AT_ONCE)
def falls(e: Lines, idx: Any) -> Any:
    """The instructions of `literal_falls`."""
    b = e.b

    def counted(first: Any, last: Any, n: int) -> Any:
        kind = ir.VectorType(idx.data.type.pointee, n)
        count = cgutils.alloca_once_value(b, ir.Constant(kind, [0] * n))
        with e.loop(first, last, n) as i:
            here, following = (_integers(b, idx, b.add(i, INT64(k)), n) for k in (0, 1))
            fallen = b.sext(b.icmp_signed(">=", here, following), kind)  # −1 where it is true
            b.store(b.sub(b.load(count), fallen), count)
        total, found = INT64(0), b.load(count)
        for k in range(n):
            one = b.extract_element(found, INT32(k))
            total = b.add(total, one if one.type == INT64 else b.sext(one, INT64))
        return total

    some = b.icmp_signed(">", idx.size, INT64(0))
    pairs = b.select(some, b.sub(idx.size, INT64(1)), INT64(0))
    many = b.and_(pairs, INT64(-e.width))
    return b.add(counted(INT64(0), many, e.width), counted(many, pairs, 1))


def _integers(b: Any, array: Memory, first: Any, n: int) -> Any:
    """The n integers from `first` on, as a register."""
    address = array.at(first)
    vector = ir.VectorType(address.type.pointee, n)
    value = b.load(b.bitcast(address, vector.as_pointer()))
    value.align = 4
    return value


def _found(e: Lines, size: Any, test: Callable[[Any, int], Any]) -> Any:
    """Whether `test` is true of a position below `size`; test(first, n) tells it of n positions."""
    b = e.b
    many, one = (ir.Constant(ir.VectorType(TRUTH, n), [0] * n) for n in (e.width, 1))
    found, single = (cgutils.alloca_once_value(b, zeros) for zeros in (many, one))
    with b.if_else(b.icmp_signed(">=", size, INT64(e.width))) as (enough, few):
        with enough:
            last = b.sub(size, INT64(e.width))
            with e.loop(INT64(0), last, e.width) as first:
                b.store(b.or_(b.load(found), test(first, e.width)), found)
            b.store(b.or_(b.load(found), test(last, e.width)), found)
        with few, e.loop(INT64(0), size) as first:
            b.store(b.or_(b.load(single), test(first, 1)), single)
    whole = ir.IntType(e.width)
    of_many = b.icmp_unsigned("!=", b.bitcast(b.load(found), whole), whole(0))
    return b.or_(of_many, b.extract_element(b.load(single), INT32(0)))
