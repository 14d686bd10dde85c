"""The loops of the first-order learners: of one state, and of several states side by side.

One state is a table with the few numbers of a feature beside each other. Several states of a
learner, W of them, lie in one table: a feature's line has its first number in each state, then its
second in each. A pass over a row then reads the row and finds the lines once for all states.

The entries of a row are at distinct features, so they can be changed side by side. Sums over a
row go in order, for one state and for several alike, so that a state has the same bits in both.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from koco_stream.numerics.llvm.registers import INT64, Line, Lines, instruction, shuffled
from koco_stream.types import Array

AT_ONCE = 4  # the entries of a row that `adagrad_row` changes at once: a vector register


def literal_products(table: Array, shape: Any, idx: Array, val: Array, out: Array) -> None:
    """Compute wᵀx of each state: out[:W] ← Σ_i val[i]·table[idx[i], :W], summed in order."""
    width = len(shape)
    total = np.zeros(width)
    for i in range(idx.size):
        total += table[idx[i], :width] * np.float64(val[i])
    out[:width] = total


@instruction(types.void, literal_products)
def products(e: Lines, table: Any, shape: Any, idx: Any, val: Any, out: Any) -> None:
    """The instructions of `literal_products`."""
    total = e.variable(e.zeros())
    with e.loop(INT64(0), idx.size) as i:
        address = table.line(idx.number(i))
        total.set(total.get() + e.load(address) * val.number(i))
    e.store(total.get(), out.at(INT64(0)))


def literal_add_changes(
    table: Array, shape: Any, idx: Array, val: Array, changes: Array, following: Array
) -> None:
    """Add changes·val[i] to table[idx[i], :W], the weights of each state, for every entry i.

    `following` has the features of the next row, whose lines are fetched.
    """
    width = len(shape)
    for i in range(idx.size):
        table[idx[i], :width] += changes[:width] * np.float64(val[i])


@instruction(types.void, literal_add_changes)
def add_changes(
    e: Lines, table: Any, shape: Any, idx: Any, val: Any, changes: Any, following: Any
) -> None:
    """The instructions of `literal_add_changes`."""
    each = e.load(changes.at(INT64(0)))

    def change(i: Any) -> None:
        address = table.line(idx.number(i))
        e.store(e.load(address) + each * val.number(i), address)

    _while_fetching(e, table, 1, idx, following, change)


def _while_fetching(
    e: Lines, table: Any, numbers: int, idx: Any, following: Any, change: Callable[[Any], None]
) -> None:
    """The instructions of change(i) for each entry i of a row, and of fetching one line of the next
    row with each. A feature has so many `numbers` in each state.

    The processor waits for few lines at once. Had it to fetch all of them first, it would not
    compute meanwhile.
    """
    whole = Lines(e.b, numbers * e.width)
    shorter = e.b.icmp_signed("<", idx.size, following.size)
    both = e.b.select(shorter, idx.size, following.size)
    with e.loop(INT64(0), both) as i:
        whole.prefetch(table.line(following.number(i)))
        change(i)
    with e.loop(both, idx.size) as i:
        change(i)
    with e.loop(both, following.size) as i:
        whole.prefetch(table.line(following.number(i)))


def literal_adagrad_lines(
    table: Array, shape: Any, idx: Array, val: Array, slopes: Array, steps: Array, following: Array
) -> None:
    """A step of AdaGrad in each state, with its slope ℓ' and its step size.

    With the gradient g = slope·val[i], the line's G += g², and where G > 0, w −= step·g/√G.
    `following` has the features of the next row, whose lines are fetched.
    """
    width = len(shape)
    for i in range(idx.size):
        line = table[idx[i]]
        for k in range(width):
            line[k], line[width + k] = _adagrad(
                line[k], line[width + k], slopes[k] * np.float64(val[i]), steps[k]
            )


def _adagrad(w: float, G: float, g: float, step: float) -> tuple[float, float]:
    """w and G of a feature after a step with the gradient g."""
    G = G + g * g
    return w - (step * g / np.sqrt(G) if G > 0.0 else 0.0), G


def _adagrad_of_lines(w: Line, G: Line, g: Line, step: Any) -> tuple[Line, Line]:
    """The instructions of `_adagrad`, number by number."""
    G = G + g * g
    return w - (g * step / G.roots()).where_positive(G), G


@instruction(types.void, literal_adagrad_lines)
def adagrad_lines(
    e: Lines, table: Any, shape: Any, idx: Any, val: Any, slopes: Any, steps: Any, following: Any
) -> None:
    """The instructions of `literal_adagrad_lines`."""
    slope, step = e.load(slopes.at(INT64(0))), e.load(steps.at(INT64(0)))

    def change(i: Any) -> None:
        first = e.b.mul(idx.number(i), table.shape[1])
        w_at, G_at = table.at(first), table.at(first, INT64(e.width))
        w, G = _adagrad_of_lines(e.load(w_at), e.load(G_at), slope * val.number(i), step)
        e.store(w, w_at)
        e.store(G, G_at)

    _while_fetching(e, table, 2, idx, following, change)


def literal_adagrad_row(wG: Array, idx: Array, val: Array, slope: float, step: float) -> None:
    """A step of AdaGrad in one state (d, 2), as `literal_adagrad_lines`."""
    for i in range(idx.size):
        w, G = wG[idx[i]]
        wG[idx[i]] = _adagrad(w, G, slope * np.float64(val[i]), step)


@instruction(types.void, literal_adagrad_row, width=AT_ONCE)
def adagrad_row(e: Lines, wG: Any, idx: Any, val: Any, slope: Any, step: Any) -> None:
    """The instructions of `literal_adagrad_row`, several entries of the row at once."""
    pair = Lines(e.b, 2)

    def change(first: Any, n: int) -> None:
        """Change the n entries of the row from `first` on."""
        at = [wG.at(e.b.mul(idx.number(first, INT64(k)), INT64(2))) for k in range(n)]
        pairs = [pair.load(address).registers[0] for address in at]
        both = joined(e.b, pairs)
        w, G = (Line(e.b, [shuffled(e.b, both, both, range(k, 2 * n, 2))]) for k in (0, 1))
        g = Line(e.b, [val.numbers(first, n)]) * slope
        w, G = _adagrad_of_lines(w, G, g, step)
        for k, address in enumerate(at):
            new = shuffled(e.b, w.registers[0], G.registers[0], [k, n + k])
            pair.store(Line(e.b, [new]), address)

    many = e.b.and_(idx.size, INT64(-AT_ONCE))
    with e.loop(INT64(0), many, AT_ONCE) as first:
        change(first, AT_ONCE)
    with e.loop(many, idx.size) as first:
        change(first, 1)


def joined(builder: Any, registers: list[Any]) -> Any:
    """A register with the numbers of all registers, of equal size, a power of two of them."""
    while len(registers) > 1:
        n = 2 * registers[0].type.count
        registers = [
            shuffled(builder, x, y, range(n))
            for x, y in zip(registers[::2], registers[1::2], strict=True)
        ]
    return registers[0]
