"""The methods of koco_stream.numerics.instructions.registers that emit instructions of LLVM."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import BaseTuple, NamedUniTuple
from numba.np.arrayobj import populate_array

BOOL, INT32, INT64 = (ir.IntType(size) for size in (1, 32, 64))
DOUBLE = ir.DoubleType()
KINDS = {bool: BOOL, int: INT64, float: DOUBLE}
EIGHT = 8  # numbers of a register, but for the last


def emitted(text: Any, result: str, width: int, given: tuple[Any, ...]) -> tuple[Any, Any]:
    """An instruction's type for arguments of the types `given`, and what emits it."""

    def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
        arguments: list[Any] = []
        for kind, value in zip(call.args, values, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                arguments.append(Memory(builder, array, kind.dtype.bitwidth // 8))
            else:
                a_tuple = isinstance(kind, BaseTuple)
                arguments.append(kind if a_tuple else Numbers(builder, [value]))
        numbers = width or next(len(kind) for kind in given if isinstance(kind, BaseTuple))
        value = text(_LlvmRegisters(builder, numbers), *arguments)
        return context.get_dummy_value() if value is None else value.registers[0]

    kinds = [types.int64 if isinstance(kind, types.Integer) else kind for kind in given]
    return getattr(types, result)(*kinds), generate


def view(a: Any, shape: Any) -> tuple[Any, Any]:
    """The type of `row_at(a, k, shape)`, and its instructions."""
    row, width = types.Array(a.dtype, 1, "C"), len(shape)

    def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
        one, start = context.make_array(row)(context, builder), context.make_array(a)
        data = start(context, builder, values[0]).data
        data = builder.gep(data, [builder.mul(values[1], INT64(width))])
        populate_array(one, data, [INT64(width)], [INT64(8)], INT64(8), None)
        return one._getvalue()

    return row(a, types.int64, shape), generate


def views(kind: Any, a: Any, shape: Any) -> tuple[Any, Any]:
    """The type of `named_rows(kind, a, shape)`, and its instructions."""
    row, width = types.Array(a.dtype, 1, "C"), len(shape)
    rows = NamedUniTuple(row, len(kind.instance_class._fields), kind.instance_class)

    def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
        start, of_rows = context.make_array(a)(context, builder, values[1]).data, []
        for number in range(rows.count):
            one = context.make_array(row)(context, builder)
            data = builder.gep(start, [INT64(number * width)])
            populate_array(one, data, [INT64(width)], [INT64(8)], INT64(8), None)
            of_rows.append(one._getvalue())
        return context.make_tuple(builder, rows, of_rows)

    return rows(kind, a, shape), generate


class Memory:
    """An array."""

    def __init__(self, builder: Any, array: Any, size: int) -> None:
        self.data = array.data
        self.element = array.data.type.pointee
        self.bytes = size  # of an element
        sizes = cgutils.unpack_tuple(builder, array.shape)
        self.shape = [Numbers(builder, [size]) for size in sizes]
        self.size = self.shape[0]

    def place(self, index: tuple[Any, ...]) -> Any:
        """An element's place in the flat array."""
        place = index[0]
        for i, size in zip(index[1:], self.shape[1:], strict=False):
            place = place * size + i
        return place


def arithmetic(name: str) -> Any:
    """An operator of numbers, which LLVM calls by this name if they are integers."""

    def apply(x: "Numbers", y: Any) -> "Numbers":
        return each(x.b, getattr(x.b, name if x.are_integers else f"f{name}"), x, y)

    return apply


def comparison(sign: str) -> Any:
    """A comparison; if one of two numbers is NaN, they are only unequal."""

    def apply(x: "Numbers", y: Any) -> "Numbers":
        compare = x.b.fcmp_unordered if sign == "!=" else x.b.fcmp_ordered
        return each(x.b, partial(x.b.icmp_signed if x.are_integers else compare, sign), x, y)

    return apply


class Numbers:
    """Numbers side by side in registers, or a single one."""

    def __init__(self, builder: Any, registers: list[Any]) -> None:
        self.b = builder
        self.registers = registers
        self.counts = [getattr(register.type, "count", 0) for register in registers]
        self.size = sum(self.counts)
        kind = registers[0].type
        self.are_integers = isinstance(getattr(kind, "element", kind), ir.IntType)

    __add__ = __radd__ = arithmetic("add")
    __mul__ = __rmul__ = arithmetic("mul")
    __sub__, __truediv__ = arithmetic("sub"), arithmetic("div")
    __and__, __or__, __xor__ = arithmetic("and_"), arithmetic("or_"), arithmetic("xor")
    __lshift__, __rshift__ = arithmetic("shl"), arithmetic("ashr")
    __lt__, __le__ = comparison("<"), comparison("<=")
    __gt__, __ge__ = comparison(">"), comparison(">=")
    __eq__, __ne__ = comparison("=="), comparison("!=")

    def __neg__(self) -> "Numbers":
        return each(self.b, self.b.neg if self.are_integers else self.b.fneg, self)

    def __getitem__(self, k: int) -> "Numbers":
        return Numbers(
            self.b, [self.b.extract_element(self.registers[k // EIGHT], INT32(k % EIGHT))]
        )


def each(builder: Any, operation: Callable[..., Any], *given: Any) -> Numbers:
    """An operation, register by register; a single number goes with each of several."""
    counts = max((x.counts for x in given if isinstance(x, Numbers)), key=sum)
    columns = [registers_of(builder, x, counts) for x in given]
    return Numbers(builder, [operation(*registers) for registers in zip(*columns, strict=True)])


def registers_of(builder: Any, x: Any, counts: list[int]) -> list[Any]:
    """Registers of as many numbers each as `counts` says, of these numbers or of this one."""
    if isinstance(x, Numbers) and x.counts == counts:
        return x.registers
    number = x.registers[0] if isinstance(x, Numbers) else KINDS[type(x)](x)
    return [spread(builder, number, n) if n else number for n in counts]


def spread(builder: Any, number: Any, n: int) -> Any:
    """A register of n times the number."""
    kind = ir.VectorType(number.type, n)
    if isinstance(number, ir.Constant):
        return ir.Constant(kind, [number.constant] * n)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, INT32(0))
    return shuffled(builder, first, first, [0] * n)


def shuffled(builder: Any, x: Any, y: Any, chosen: Iterable[int]) -> Any:
    """The chosen numbers of x, then y."""
    numbers = list(chosen)
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT32, len(numbers)), numbers))


class Variables:
    """Numbers that change."""

    def __init__(self, builder: Any, numbers: list[list[Any]]) -> None:
        self.b = builder
        self.addresses = [[cgutils.alloca_once_value(builder, r) for r in x] for x in numbers]

    def __getitem__(self, k: int) -> Numbers:
        return Numbers(self.b, [self.b.load(address) for address in self.addresses[k]])

    def __setitem__(self, k: int, numbers: Numbers) -> None:
        for address, register in zip(self.addresses[k], numbers.registers, strict=True):
            self.b.store(register, address)


def called(name: str) -> Any:
    """LLVM's function of this name, register by register."""

    def apply(e: "_LlvmRegisters", *numbers: Any) -> Numbers:
        def call(*registers: Any) -> Any:
            kind, n = registers[0].type, getattr(registers[0].type, "count", 0)
            signature = ir.FunctionType(kind, [kind] * len(registers))
            full = f"llvm.{name}.v{n}f64" if n else f"llvm.{name}.f64"
            function = cgutils.get_or_insert_function(e.b.module, signature, full)
            return e.b.call(function, registers)

        return each(e.b, call, *numbers)

    return apply


def converted(kind: Any) -> Any:
    """The same bits as numbers of another type."""

    def apply(e: "_LlvmRegisters", x: Numbers) -> Numbers:
        types = [ir.VectorType(kind, n) if n else kind for n in x.counts]
        registers = zip(x.registers, types, strict=True)
        return Numbers(e.b, [e.b.bitcast(register, type_) for register, type_ in registers])

    return apply


class _LlvmRegisters:
    """The methods of `Registers`, which describes them."""

    fma, sqrt, abs = called("fma"), called("sqrt"), called("fabs")
    bits, of_bits = converted(INT64), converted(DOUBLE)

    def __init__(self, builder: Any, width: int) -> None:
        self.b = builder
        self.width = width

    def _one(self, number: Any) -> Any:
        return registers_of(self.b, number, [0])[0]

    def _address(self, array: Memory, index: tuple[Any, ...], further: int = 0) -> Any:
        pointer = self.b.gep(array.data, [self._one(array.place(index))])
        return self.b.gep(pointer, [INT64(further)]) if further else pointer

    def _widened(self, value: Any) -> Any:
        n = getattr(value.type, "count", 0)
        element = value.type.element if n else value.type
        if element == DOUBLE:
            return value
        if isinstance(element, ir.IntType) and not n:
            return self.b.sext(value, INT64)
        widen = self.b.sitofp if isinstance(element, ir.IntType) else self.b.fpext
        return widen(value, ir.VectorType(DOUBLE, n) if n else DOUBLE)

    def number(self, array: Memory, *index: Any) -> Numbers:
        return Numbers(self.b, [self._widened(self.b.load(self._address(array, index)))])

    def load(self, array: Memory, *index: Any) -> Numbers:
        registers = []
        for first in range(0, self.width, EIGHT):
            kind = ir.VectorType(array.element, min(EIGHT, self.width - first))
            address = self._address(array, index, first)
            value = self.b.load(self.b.bitcast(address, kind.as_pointer()))
            value.align = array.bytes
            registers.append(self._widened(value))
        return Numbers(self.b, registers)

    def store(self, numbers: Any, array: Memory, *index: Any) -> None:
        registers = numbers.registers if isinstance(numbers, Numbers) else [self._one(numbers)]
        for k, register in enumerate(registers):
            address = self._address(array, index, EIGHT * k)
            kind = register.type
            if isinstance(kind, ir.IntType) and kind != array.element:
                register = self.b.trunc(register, array.element)
            pointer = self.b.bitcast(address, register.type.as_pointer())
            self.b.store(register, pointer).align = array.bytes

    def loop(self, end: Any, step: int = 1, start: Any = 0) -> Iterable[Numbers]:
        limits = map(self._one, (start, end, step))
        with cgutils.for_range_slice(self.b, *limits) as (i, _):
            yield Numbers(self.b, [i])

    def pairs(self, end: Any, start: Any = 0) -> Iterable[tuple[Numbers, int]]:
        whole = ((end - start) & -2) + start
        for i in self.loop(whole, 2, start):
            yield i, 0
            yield i + 1, 1
        for _ in self.when(whole < end):
            yield whole, 0

    def when(self, condition: Numbers) -> Iterable[None]:
        with self.b.if_then(self._one(condition)):
            yield

    def variables(self, *numbers: Any) -> Variables:
        counts = [x.counts if isinstance(x, Numbers) else [0] for x in numbers]
        return Variables(
            self.b, [registers_of(self.b, *one) for one in zip(numbers, counts, strict=True)]
        )

    def zeros(self) -> Numbers:
        counts = [min(EIGHT, self.width - first) for first in range(0, self.width, EIGHT)]
        return Numbers(self.b, registers_of(self.b, 0.0, counts))

    def joined(self, numbers: list[Any]) -> Numbers:
        register = ir.Constant(ir.VectorType(DOUBLE, len(numbers)), ir.Undefined)
        for k, number in enumerate(numbers):
            register = self.b.insert_element(register, self._one(number), INT32(k))
        return Numbers(self.b, [register])

    def float(self, integer: Numbers) -> Numbers:
        return Numbers(self.b, [self.b.sitofp(integer.registers[0], DOUBLE)])

    def select(self, condition: Numbers, x: Any, y: Any) -> Numbers:
        return each(self.b, self.b.select, condition, x, y)

    def any(self, conditions: Numbers) -> Numbers:
        found = BOOL(0)
        for register, n in zip(conditions.registers, conditions.counts, strict=True):
            mask = self.b.bitcast(register, ir.IntType(n))
            found = self.b.or_(found, self.b.icmp_unsigned("!=", mask, mask.type(0)))
        return Numbers(self.b, [found])

    def parts(self, x: Numbers) -> list[Numbers]:
        return [Numbers(self.b, [register]) for register in x.registers]

    def chosen(self, x: Numbers, y: Numbers, places: Iterable[int]) -> Numbers:
        return Numbers(self.b, [shuffled(self.b, x.registers[0], y.registers[0], places)])
