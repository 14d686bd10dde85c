"""Whether a row is as learners want it, told beside the row's own work: several numbers at once.

The last numbers of a row are looked at together with some before them, a second time, so that none
is looked at by itself, as a compiler does with those that do not fill a register.
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


def literal_plain_row(idx: Array, val: Array, n_features: int, numbered: int) -> bool:
    """Whether the values are finite and not 0 and, unless `numbered` is 0, the feature numbers
    increase and lie within [0, n_features).
    """
    size = np.abs(val)
    plain = ((size > 0.0) & (size < np.inf)).all()
    inside = (idx[:1] >= 0).all() and (idx[-1:] < n_features).all()
    return bool(plain and (not numbered or (inside and (idx[1:] > idx[:-1]).all())))


@instruction(types.boolean, literal_plain_row, width=AT_ONCE)
def plain_row(e: Lines, idx: Any, val: Any, n_features: Any, numbered: Any) -> Any:
    """The instructions of `literal_plain_row`."""
    b = e.b

    def not_plain(first: Any, n: int) -> Any:
        # The bits of a number without its sign, less 1, are an integer: the largest of 0, since it
        # is unsigned, and too large of infinity and NaN.
        bits = b.bitcast(val.numbers(first, n), ir.VectorType(INT64, n))
        ones, most = (ir.Constant(bits.type, [x] * n) for x in (1, LEAST_WRONG))
        return b.icmp_unsigned(">=", b.sub(b.shl(bits, ones), ones), most)

    def falling(first: Any, n: int) -> Any:
        here, following = (_integers(b, idx, b.add(first, INT64(k)), n) for k in (0, 1))
        return b.icmp_signed(">=", here, following)

    wrong = cgutils.alloca_once_value(b, _found(e, val.size, not_plain))
    some = b.icmp_signed(">", idx.size, INT64(0))
    with b.if_then(b.and_(some, b.icmp_signed("!=", numbered, INT64(0)))):
        last = b.sub(idx.size, INT64(1))
        below = b.icmp_signed("<", idx.number(INT64(0)), INT64(0))
        above = b.icmp_signed(">=", idx.number(last), n_features)
        b.store(b.or_(b.load(wrong), b.or_(b.or_(below, above), _found(e, last, falling))), wrong)
    return b.not_(b.load(wrong))


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
