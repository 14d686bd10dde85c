"""Building blocks for hand-written LLVM instructions: arithmetic on lines of numbers in registers.

A line is split into registers of eight lanes and one of four. The order of every sum is fixed here;
`halved` is its Python specification.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from koco_stream.types import Array

INT32, INT64 = ir.IntType(32), ir.IntType(64)


def halved(registers: list[Array]) -> float:
    """The sum of a line, in its fixed order: registers of equal size in order, then eights folded
    to fours, fours to twos, twos to one.
    """
    eights = [r for r in registers if r.size == 8]
    fours = [r for r in registers if r.size == 4]
    if eights:
        total = eights[0]
        for r in eights[1:]:
            total = total + r
        fours.insert(0, total[:4] + total[4:])
    total = fours[0] if len(fours) == 1 else fours[0] + fours[1]
    pair = total[:2] + total[2:]
    return float(pair[0] + pair[1])


class Lines:
    """Emits arithmetic on lines of `width` lanes, split into registers of eight lanes and one of
    four.
    """

    def __init__(self, builder: Any, width: int) -> None:
        self.b = builder
        self.width = width
        self.registers = [(first, min(8, width - first)) for first in range(0, width, 8)]

    def vector(self, lanes: int) -> Any:
        """The LLVM type of a register with this many lanes."""
        return ir.VectorType(ir.DoubleType(), lanes)

    def zeros(self) -> list[Any]:
        """A line of variables, initialised to zero."""
        return [
            cgutils.alloca_once_value(self.b, ir.Constant(self.vector(n), [0.0] * n))
            for _, n in self.registers
        ]

    def spread(self, value: Any) -> list[Any]:
        """A line with `value` in every lane."""
        return [self._spread(value, n) for _, n in self.registers]

    def _spread(self, value: Any, lanes: int) -> Any:
        first = self.b.insert_element(
            ir.Constant(self.vector(lanes), ir.Undefined), value, INT32(0)
        )
        return self.b.shuffle_vector(
            first, first, ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes)
        )

    def load(self, pointer: Any) -> list[Any]:
        """Load the line at `pointer`, which need not be aligned."""
        loaded = [self.b.load(self._place(pointer, first, n)) for first, n in self.registers]
        for value in loaded:
            value.align = 8
        return loaded

    def store(self, line: list[Any], pointer: Any) -> None:
        """Store a line at `pointer`."""
        for value, (first, n) in zip(line, self.registers, strict=True):
            self.b.store(value, self._place(pointer, first, n)).align = 8

    def _place(self, pointer: Any, first: int, lanes: int) -> Any:
        return self.b.bitcast(self.b.gep(pointer, [INT64(first)]), self.vector(lanes).as_pointer())

    def add(self, left: list[Any], right: list[Any]) -> list[Any]:
        """The sum of two lines, lane by lane."""
        return [self.b.fadd(x, y) for x, y in zip(left, right, strict=True)]

    def subtract(self, left: list[Any], right: list[Any]) -> list[Any]:
        """The difference of two lines, lane by lane."""
        return [self.b.fsub(x, y) for x, y in zip(left, right, strict=True)]

    def multiply(self, left: list[Any], right: list[Any]) -> list[Any]:
        """The product of two lines, lane by lane."""
        return [self.b.fmul(x, y) for x, y in zip(left, right, strict=True)]

    def get(self, variables: list[Any]) -> list[Any]:
        """The current values of a line of variables."""
        return [self.b.load(v) for v in variables]

    def set(self, variables: list[Any], line: list[Any]) -> None:
        """Assign a line's values to a line of variables."""
        for value, variable in zip(line, variables, strict=True):
            self.b.store(value, variable)

    def four(self, line: list[Any]) -> Any:
        """A line's registers added until four lanes are left, in the order of `halved`."""
        eights = [value for value, (_, n) in zip(line, self.registers, strict=True) if n == 8]
        fours = [value for value, (_, n) in zip(line, self.registers, strict=True) if n == 4]
        if eights:
            total = eights[0]
            for value in eights[1:]:
                total = self.b.fadd(total, value)
            fours.insert(0, self._fold(total, 8))
        return fours[0] if len(fours) == 1 else self.b.fadd(*fours)

    def total(self, line: list[Any]) -> Any:
        """The sum of a line's lanes, in the order of `halved`."""
        pair = self._fold(self.four(line), 4)
        return self.b.fadd(
            self.b.extract_element(pair, INT32(0)), self.b.extract_element(pair, INT32(1))
        )

    def totals(self, rows: list[list[Any]]) -> Any:
        """The sums of eight or four lines in one register, each in the order of `halved`."""
        fours = [self.four(line) for line in rows]
        pairs = [
            self.b.fadd(self.shuffle(x, y, [0, 1, 4, 5]), self.shuffle(x, y, [2, 3, 6, 7]))
            for x, y in zip(fours[::2], fours[1::2], strict=True)
        ]
        sums = [
            self.b.fadd(self.shuffle(x, y, [0, 2, 4, 6]), self.shuffle(x, y, [1, 3, 5, 7]))
            for x, y in zip(pairs[::2], pairs[1::2], strict=True)
        ]
        return sums[0] if len(sums) == 1 else self.shuffle(sums[0], sums[1], list(range(8)))

    def running(self, line: list[Any], back: bool) -> list[Any]:
        """For each lane the sum of the lanes before it, or after it with `back`, in the order of
        `literal_sums_before`.
        """
        carry: Any = ir.DoubleType()(0.0)
        out = list(line)
        places = range(len(line))
        for k in reversed(places) if back else places:
            value, n = line[k], self.registers[k][1]
            for shift in (1, 2, 4)[: n.bit_length() - 1]:
                value = self.b.fadd(value, self._moved(value, n, -shift if back else shift))
            out[k] = self.b.fadd(self._moved(value, n, -1 if back else 1), self._spread(carry, n))
            carry = self.b.fadd(carry, self.b.extract_element(value, INT32(0 if back else n - 1)))
        return out

    def _moved(self, value: Any, lanes: int, by: int) -> Any:
        """A register with all lanes shifted by `by` positions and filled with zeros."""
        zeros = ir.Constant(self.vector(lanes), [0.0] * lanes)
        return self.shuffle(
            value, zeros, [k - by if 0 <= k - by < lanes else lanes for k in range(lanes)]
        )

    def shuffle(self, x: Any, y: Any, lanes: list[int]) -> Any:
        """A register with the given lanes of x followed by y."""
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT32, len(lanes)), lanes))

    def _fold(self, value: Any, lanes: int) -> Any:
        half = lanes // 2
        low, high = (self.shuffle(value, value, list(range(k, k + half))) for k in (0, half))
        return self.b.fadd(low, high)


def in_two_chains(builder: Any, lines: Lines, count: Any, term: Any) -> list[Any]:
    """The sum of the lines term(i), with even and odd i summed separately."""
    sums = lines.zeros(), lines.zeros()
    pairs = builder.and_(count, INT64(-2))
    with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(2)) as (i, _):
        for chain in (0, 1):
            lines.set(
                sums[chain], lines.add(lines.get(sums[chain]), term(builder.add(i, INT64(chain))))
            )
    with builder.if_then(builder.icmp_signed("!=", pairs, count)):
        lines.set(sums[0], lines.add(lines.get(sums[0]), term(pairs)))
    return lines.add(lines.get(sums[0]), lines.get(sums[1]))
