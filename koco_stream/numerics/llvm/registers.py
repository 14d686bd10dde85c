"""Arithmetic on lines of numbers in LLVM registers of eight numbers and one of four."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np
from llvmlite import ir

from koco_stream.numerics.compiler import Later, intrinsic
from koco_stream.types import Array

cgutils, types = Later("numba.core.cgutils"), Later("numba.core.types")
INT16, INT32, INT64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
ZERO = ir.Constant(INT64, 0)
DOUBLE = ir.DoubleType()
CACHE_LINE = 64  # bytes of a line of the processor's cache


def halved(line: Array) -> float:
    """The sum of a line: registers in order, then eights folded to fours, twos and one."""
    registers = [line[k : k + 8] for k in range(0, line.size, 8)]
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


_fma = ctypes.CDLL(None).fma
_fma.restype, _fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3


def literal_fused(x: Any, y: Any, z: Any) -> Any:
    """xy + z, rounded once."""
    x, y, z = np.broadcast_arrays(x, y, z)
    flat = zip(x.flat, y.flat, z.flat, strict=True)
    return np.array([_fma(*numbers) for numbers in flat], np.float64).reshape(x.shape)[()]


class Line:
    """A line of numbers in registers, with arithmetic number by number."""

    def __init__(self, builder: Any, registers: list[Any]) -> None:
        self.b = builder
        self.registers = registers

    def _with(self, operation: Any, *others: Any) -> "Line":
        lines = [self.registers]
        for other in others:
            number = DOUBLE(other) if isinstance(other, float) else other
            lines.append(
                other.registers
                if isinstance(other, Line)
                else [spread(self.b, number, r.type.count) for r in self.registers]
            )
        return Line(self.b, [operation(*numbers) for numbers in zip(*lines, strict=True)])

    def __add__(self, other: Any) -> "Line":
        return self._with(self.b.fadd, other)

    def __sub__(self, other: Any) -> "Line":
        return self._with(self.b.fsub, other)

    def __mul__(self, other: Any) -> "Line":
        return self._with(self.b.fmul, other)

    def __truediv__(self, other: Any) -> "Line":
        return self._with(self.b.fdiv, other)

    def fused(self, factor: Any, addend: Any) -> "Line":
        """The line times `factor`, plus `addend`, rounded once."""
        return self._with(lambda *numbers: called(self.b, "llvm.fma", *numbers), factor, addend)

    def roots(self) -> "Line":
        """√x of each number."""
        return self._with(lambda register: called(self.b, "llvm.sqrt", register))

    def inverted(self) -> "Line":
        """1/x of each number."""
        return self._with(lambda x, y: self.b.fdiv(y, x), 1.0)

    def absolute(self) -> "Line":
        """|x| of each number."""
        return self._with(lambda register: called(self.b, "llvm.fabs", register))

    def less(self, other: Any) -> "Line":
        """Whether x < y."""
        return self._with(lambda x, y: self.b.fcmp_ordered("<", x, y), other)

    def equal(self, other: Any) -> "Line":
        """Whether x = y."""
        return self._with(lambda x, y: self.b.fcmp_ordered("==", x, y), other)

    def unequal(self, other: Any) -> "Line":
        """Whether x ≠ y or one is NaN."""
        return self._with(lambda x, y: self.b.fcmp_unordered("!=", x, y), other)

    def where(self, chosen: "Line", other: "Line") -> "Line":
        """This line's numbers where `chosen` is true, else the other's."""
        return self._with(lambda x, c, y: self.b.select(c, x, y), chosen, other)

    def at_most(self, other: Any) -> "Line":
        """Whether not x > y."""
        return self._with(lambda x, y: self.b.fcmp_ordered("<=", x, y), other)

    def either(self, other: "Line") -> "Line":
        """Whether one is true."""
        return self._with(self.b.or_, other)

    def both(self, other: "Line") -> "Line":
        """Whether both are true."""
        return self._with(self.b.and_, other)

    def any(self) -> Any:
        """Whether any of the line is true."""
        found = ir.Constant(ir.IntType(1), 0)
        for register in self.registers:
            for k in range(register.type.count):
                found = self.b.or_(found, self.b.extract_element(register, INT32(k)))
        return found

    def where_positive(self, tested: "Line") -> "Line":
        """The numbers where `tested` is positive, else 0."""
        pairs = zip(self.registers, tested.registers, strict=True)
        zeros = {r: ir.Constant(r.type, [0.0] * r.type.count) for r in self.registers}
        return Line(
            self.b,
            [self.b.select(self.b.fcmp_ordered(">", t, zeros[r]), r, zeros[r]) for r, t in pairs],
        )

    def four(self) -> Any:
        """Four partial sums, as `halved` adds."""
        eights = [r for r in self.registers if r.type.count == 8]
        fours = [r for r in self.registers if r.type.count == 4]
        if eights:
            total = eights[0]
            for r in eights[1:]:
                total = self.b.fadd(total, r)
            fours.insert(0, self._fold(total))
        return fours[0] if len(fours) == 1 else self.b.fadd(*fours)

    def total(self) -> Any:
        """The sum, as `halved` adds."""
        pair = self._fold(self.four())
        return self.b.fadd(*(self.b.extract_element(pair, INT32(k)) for k in (0, 1)))

    def _fold(self, register: Any) -> Any:
        half = register.type.count // 2
        low, high = (shuffled(self.b, register, register, range(k, k + half)) for k in (0, half))
        return self.b.fadd(low, high)

    def running(self, back: bool) -> "Line":
        """The sum before each number, or after it with `back`."""
        carry: Any = DOUBLE(0.0)
        out = list(self.registers)
        numbers = range(len(out))
        for k in reversed(numbers) if back else numbers:
            value, n = out[k], out[k].type.count
            for shift in (1, 2, 4)[: n.bit_length() - 1]:
                value = self.b.fadd(value, self._moved(value, -shift if back else shift))
            before = self._moved(value, -1 if back else 1)
            out[k] = self.b.fadd(before, spread(self.b, carry, n))
            carry = self.b.fadd(carry, self.b.extract_element(value, INT32(0 if back else n - 1)))
        return Line(self.b, out)

    def _moved(self, register: Any, by: int) -> Any:
        n = register.type.count
        zeros = ir.Constant(register.type, [0.0] * n)
        return shuffled(
            self.b, register, zeros, [k - by if 0 <= k - by < n else n for k in range(n)]
        )


def called(builder: Any, function: str, *arguments: Any) -> Any:
    """The result of LLVM's function for doubles or registers."""
    kind = arguments[0].type
    name = "f64" if kind == DOUBLE else f"v{kind.count}f64"
    declared = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(arguments)), f"{function}.{name}"
    )
    return builder.call(declared, arguments)


def spread(builder: Any, value: Any, n: int) -> Any:
    """A register of `value`."""
    undefined = ir.Constant(ir.VectorType(DOUBLE, n), ir.Undefined)
    first = builder.insert_element(undefined, value, INT32(0))
    return shuffled(builder, first, first, [0] * n)


def shuffled(builder: Any, x: Any, y: Any, chosen: Any) -> Any:
    """The chosen numbers of x, then y."""
    numbers = list(chosen)
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT32, len(numbers)), numbers))


def _bytes_of(pointer: Any) -> int:
    return {INT16: 2, DOUBLE: 8}[pointer.type.pointee]


class Memory:
    """An array argument."""

    def __init__(self, builder: Any, array: Any) -> None:
        self.b = builder
        self.data = array.data
        self.shape = cgutils.unpack_tuple(builder, array.shape)
        self.size = self.shape[0]

    def at(self, *steps: Any) -> Any:
        """The pointer at the sum of offsets."""
        offset = steps[0]
        for step in steps[1:]:
            offset = self.b.add(offset, step)
        return self.b.gep(self.data, [offset])

    def line(self, i: Any) -> Any:
        """The pointer to line i."""
        return self.at(self.b.mul(i, self.shape[1]))

    def last(self, i: Any) -> Any:
        """The offset of line i's last element."""
        return self.b.sub(self.b.mul(self.b.add(i, INT64(1)), self.shape[1]), INT64(1))

    def number(self, *steps: Any) -> Any:
        """The element at the sum of offsets, in 64 bits."""
        value = self.b.load(self.at(*steps))
        if isinstance(value.type, ir.IntType):
            return self.b.sext(value, INT64)
        return value if value.type == DOUBLE else self.b.fpext(value, DOUBLE)

    def numbers(self, first: Any, n: int) -> Any:
        """The n floats from `first` on, as doubles."""
        address = self.at(first)
        vector = ir.VectorType(address.type.pointee, n)
        value = self.b.load(self.b.bitcast(address, vector.as_pointer()))
        value.align = 4
        doubles = ir.VectorType(DOUBLE, n)
        return value if vector == doubles else self.b.fpext(value, doubles)


class Variable:
    """A line that changes."""

    def __init__(self, builder: Any, line: Line) -> None:
        self.b = builder
        self.addresses = [cgutils.alloca_once_value(builder, r) for r in line.registers]

    def get(self) -> Line:
        """The current line."""
        return Line(self.b, [self.b.load(address) for address in self.addresses])

    def set(self, line: Line) -> None:
        """Assign a line."""
        for address, register in zip(self.addresses, line.registers, strict=True):
            self.b.store(register, address)


class Lines:
    """Emits loops over lines of `width` doubles, and moves them between memory and registers."""

    def __init__(self, builder: Any, width: int) -> None:
        self.b = builder
        self.width = width
        self.registers = [(first, min(8, width - first)) for first in range(0, width, 8)]

    def load(self, pointer: Any) -> Line:
        """The line at `pointer`, which may be unaligned."""
        loaded = [self.b.load(self._pointer(pointer, first, n)) for first, n in self.registers]
        for value in loaded:
            value.align = _bytes_of(pointer)
        if pointer.type.pointee != DOUBLE:
            loaded = [self.b.sitofp(x, ir.VectorType(DOUBLE, x.type.count)) for x in loaded]
        return Line(self.b, loaded)

    def store(self, line: Line, pointer: Any) -> None:
        """Store a line."""
        for value, (first, n) in zip(line.registers, self.registers, strict=True):
            self.b.store(value, self._pointer(pointer, first, n)).align = _bytes_of(pointer)

    def _pointer(self, pointer: Any, first: int, n: int) -> Any:
        vector = ir.VectorType(pointer.type.pointee, n)
        return self.b.bitcast(self.b.gep(pointer, [INT64(first)]), vector.as_pointer())

    def prefetch(self, pointer: Any) -> None:
        """Have the processor fetch a line."""
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32])
        prefetch = cgutils.get_or_insert_function(self.b.module, kind, "llvm.prefetch.p0i8")
        for first in range(0, self.width, CACHE_LINE // _bytes_of(pointer)):
            address = self.b.bitcast(self.b.gep(pointer, [INT64(first)]), byte)
            self.b.call(prefetch, [address, INT32(0), INT32(3), INT32(1)])

    def line_at(self, i: Any) -> Any:
        """The offset of line i."""
        return self.b.mul(i, INT64(self.width))

    @contextmanager
    def loop(self, end: Any, step: int = 1, start: Any = ZERO) -> Iterator[Any]:
        """A loop from `start` to before `end` by `step`."""
        with cgutils.for_range_slice(self.b, start, end, INT64(step)) as (i, _):
            yield i

    def two_sums(
        self,
        end: Any,
        begin: tuple[Line, Line],
        with_term: Callable[[Line, Any], Line],
        start: Any = ZERO,
    ) -> tuple[Line, Line]:
        """Two lines that become with_term(line, i) in turn, for start ≤ i < end."""
        even, odd = (self.variable(line) for line in begin)
        pairs = self.b.add(start, self.b.and_(self.b.sub(end, start), INT64(-2)))
        with self.loop(pairs, 2, start) as i:
            even.set(with_term(even.get(), i))
            odd.set(with_term(odd.get(), self.b.add(i, INT64(1))))
        with self.b.if_then(self.b.icmp_signed("<", pairs, end)):
            even.set(with_term(even.get(), pairs))
        return even.get(), odd.get()

    def sum_of(self, count: Any, term: Callable[[Any], Line], begin: Line | None = None) -> Line:
        """The sum of term(i) for i < count, even and odd i apart, both from `begin` on."""
        zeros = begin or self.zeros()
        even, odd = self.two_sums(count, (zeros, zeros), lambda total, i: total + term(i))
        return even + odd

    def variable(self, line: Line) -> Variable:
        """A variable line that starts as `line`."""
        return Variable(self.b, line)

    def zeros(self) -> Line:
        """A line of zeros."""
        return Line(
            self.b, [ir.Constant(ir.VectorType(DOUBLE, n), [0.0] * n) for _, n in self.registers]
        )


def instruction(result: str, literal: Any, width: int = 0) -> Callable[[Any], Any]:
    """Decorate the emitter of a function's instructions, so that compiled code can call it.

    The emitter is given a `Lines`, of `width` numbers or as many as the first tuple is long, and
    the arguments: an array as `Memory`, a tuple as its length. Without the compiler, `literal` is
    called.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        def typed(typing_context: Any, *given: Any) -> Any:
            def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
                arguments: list[Any] = []
                for kind, value in zip(call.args, values, strict=True):
                    if isinstance(kind, types.Array):
                        array = context.make_array(kind)(context, builder, value)
                        arguments.append(Memory(builder, array))
                    else:
                        arguments.append(len(kind) if isinstance(kind, types.BaseTuple) else value)
                numbers = width or next(len(k) for k in call.args if isinstance(k, types.BaseTuple))
                value = emit(Lines(builder, numbers), *arguments)
                return context.get_dummy_value() if result == "void" else value

            kinds = [types.int64 if isinstance(kind, types.Integer) else kind for kind in given]
            return getattr(types, result)(*kinds), generate

        typed.__signature__ = signature(emit)  # type: ignore[attr-defined]  # numba reads it
        return intrinsic(typed, literal)

    return decorate
