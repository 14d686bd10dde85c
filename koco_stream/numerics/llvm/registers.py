"""Building blocks for hand-written LLVM instructions: arithmetic in vector registers.

A line of numbers is split into registers of eight lanes and one of four. The order of every sum is
fixed here; `halved` is its Python specification.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from koco_stream.types import Array

INT32, INT64, DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()


def halved(registers: list[Array]) -> float:
    """The sum of a line, in its fixed order.

    Registers of equal size are added in order, then eights folded to fours, fours to twos, twos to
    one.
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


def emitted_by(
    emit: Callable[..., Any], returns: Any = types.void
) -> Callable[[Callable[..., Any]], Any]:
    """Compile calls of the decorated function to the instructions that `emit` emits.

    The decorated function is a plain Python loop that specifies what the instructions compute. It
    runs instead of them with `NUMBA_DISABLE_JIT=1`, and tests use it through the attribute
    `literal`.

    Parameters
    ----------
    emit : callable
        Receives LLVM's builder and the arguments: an array as a `Memory`, a tuple as the `Lines` of
        its length, a number as a 64-bit value of its kind.
    returns : numba type
        The type of the value that `emit` returns.
    """

    def decorate(literal: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return literal

        def typed(typing_context: Any, *given: Any) -> Any:
            def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                shown = [
                    _argument(context, builder, kind, value)
                    for kind, value in zip(signature.args, args, strict=True)
                ]
                value = emit(builder, *shown)
                return context.get_dummy_value() if returns is types.void else value

            return returns(*map(_widened, given)), lower

        first = Parameter("typing_context", Parameter.POSITIONAL_OR_KEYWORD)
        shape = signature(literal)
        typed.__dict__.update(
            literal=literal,
            __signature__=shape.replace(parameters=[first, *shape.parameters.values()]),
        )
        typed.__name__, typed.__doc__ = literal.__name__, literal.__doc__
        return intrinsic(typed)

    return decorate


def _widened(kind: Any) -> Any:
    if isinstance(kind, types.Boolean):
        return types.boolean
    if isinstance(kind, types.Integer):
        return types.int64
    return types.float64 if isinstance(kind, types.Float) else kind


def _argument(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        return Memory(builder, context.make_array(kind)(context, builder, value))
    return Lines(builder, len(kind)) if isinstance(kind, types.BaseTuple) else value


class Memory:
    """An array argument of emitted code: its data, length, and lines per panel for a panel
    table.
    """

    def __init__(self, builder: Any, array: Any) -> None:
        shape = cgutils.unpack_tuple(builder, array.shape)
        self.b, self.data, self.size = builder, array.data, shape[0]
        self.panel_lines = shape[-2] if len(shape) > 1 else None

    def at(self, place: Any) -> Any:
        """A pointer to the array's element at an offset."""
        return self.b.gep(self.data, [place])

    def number(self, place: Any) -> Any:
        """The array's element at an offset, as a double or a 64-bit integer."""
        value = self.b.load(self.at(place))
        if isinstance(value.type, ir.IntType):
            return self.b.sext(value, INT64)
        return self.b.fpext(value, DOUBLE)


class Lines:
    """The layout of lines of `width` lanes, split into registers of eight lanes and one of four."""

    def __init__(self, builder: Any, width: int) -> None:
        self.b = builder
        self.width = width
        self.registers = [(first, min(8, width - first)) for first in range(0, width, 8)]

    def spread(self, value: Any) -> "Line":
        """A line with `value`, a Python number or an LLVM value, in every lane."""
        if isinstance(value, float):
            value = DOUBLE(value)
        return Line(self.b, [self._spread(value, n) for _, n in self.registers])

    def _spread(self, value: Any, lanes: int) -> Any:
        undefined = ir.Constant(ir.VectorType(DOUBLE, lanes), ir.Undefined)
        first = self.b.insert_element(undefined, value, INT32(0))
        return _shuffled(self.b, first, first, [0] * lanes)

    def zeros(self) -> "Line":
        """A line of zeros."""
        return self.spread(0.0)

    def row(self, i: Any, first: Any) -> Any:
        """The offset of line i of the lines that begin at the offset `first`."""
        return self.b.add(first, self.b.mul(i, INT64(self.width)))

    def load(self, memory: Memory, place: Any) -> "Line":
        """Load the line at an offset, which need not be aligned."""
        values = [self.b.load(self._pointer(memory, place, k, n)) for k, n in self.registers]
        for value in values:
            value.align = 8
        return Line(self.b, values)

    def store(self, line: "Line", memory: Memory, place: Any) -> None:
        """Store a line at an offset."""
        for value, (k, n) in zip(line.values, self.registers, strict=True):
            self.b.store(value, self._pointer(memory, place, k, n)).align = 8

    def _pointer(self, memory: Memory, place: Any, first: int, lanes: int) -> Any:
        pointer = self.b.gep(memory.at(place), [INT64(first)])
        return self.b.bitcast(pointer, ir.VectorType(DOUBLE, lanes).as_pointer())


class Line:
    """A line of numbers in vector registers. Arithmetic is lane by lane."""

    def __init__(self, builder: Any, values: list[Any]) -> None:
        self.b, self.values = builder, values

    def __add__(self, other: "Line") -> "Line":
        return self._each(self.b.fadd, other)

    def __sub__(self, other: "Line") -> "Line":
        return self._each(self.b.fsub, other)

    def __mul__(self, other: "Line") -> "Line":
        return self._each(self.b.fmul, other)

    def _each(self, operation: Callable[..., Any], other: "Line") -> "Line":
        pairs = zip(self.values, other.values, strict=True)
        return Line(self.b, [operation(x, y) for x, y in pairs])

    def total(self) -> Any:
        """The sum of the line's lanes, in the order of `halved`."""
        eights = [value for value in self.values if value.type.count == 8]
        fours = [value for value in self.values if value.type.count == 4]
        if eights:
            total = eights[0]
            for value in eights[1:]:
                total = self.b.fadd(total, value)
            fours.insert(0, self._folded(total, 8))
        pair = self._folded(fours[0] if len(fours) == 1 else self.b.fadd(*fours), 4)
        return self.b.fadd(*(self.b.extract_element(pair, INT32(k)) for k in (0, 1)))

    def _folded(self, value: Any, lanes: int) -> Any:
        half = lanes // 2
        return self.b.fadd(
            _shuffled(self.b, value, value, list(range(half))),
            _shuffled(self.b, value, value, list(range(half, lanes))),
        )


class Variable:
    """A line, or other values, that an emitted loop changes."""

    def __init__(self, line: Line) -> None:
        self.b = line.b
        self.places = [cgutils.alloca_once_value(self.b, value) for value in line.values]

    def get(self) -> Line:
        """The variable's current value."""
        return Line(self.b, [self.b.load(place) for place in self.places])

    def set(self, line: Line) -> None:
        """Assign a new value to the variable."""
        for value, place in zip(line.values, self.places, strict=True):
            self.b.store(value, place)


def _shuffled(builder: Any, x: Any, y: Any, lanes: list[int]) -> Any:
    """A register with the given lanes of x followed by y."""
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT32, len(lanes)), lanes))


@contextmanager
def steps(builder: Any, end: Any, step: int = 1) -> Iterator[Any]:
    """Emit a loop over 0, step, 2·step, … below `end`; yields its counter."""
    with cgutils.for_range_slice(builder, INT64(0), end, INT64(step)) as (i, _):
        yield i


def in_two_chains(
    count: Any, term: Callable[[Any], Line], even: Line, odd: Line
) -> tuple[Line, Line]:
    """Add the terms with even i below `count` to `even`, and those with odd i to `odd`."""
    b, chains = even.b, (Variable(even), Variable(odd))
    pairs = b.and_(count, INT64(-2))
    with steps(b, pairs, 2) as i:
        for chain, k in zip(chains, (i, b.add(i, INT64(1))), strict=True):
            chain.set(chain.get() + term(k))
    with b.if_then(b.icmp_signed("!=", pairs, count)):
        chains[0].set(chains[0].get() + term(pairs))
    return chains[0].get(), chains[1].get()
