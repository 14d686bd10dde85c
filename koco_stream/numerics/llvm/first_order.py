"""AdaGrad's update of a row, several entries at once."""

from typing import Any

import numpy as np

from koco_stream.numerics.llvm.registers import INT64, Line, Lines, instruction, shuffled
from koco_stream.types import Array

AT_ONCE = 4  # the entries of a row that `adagrad_row` changes at once: a vector register


def _adagrad(w: float, G: float, g: float, step: float) -> tuple[float, float]:
    G = G + g * g
    return w - (step * g / np.sqrt(G) if G > 0.0 else 0.0), G


def _adagrad_of_lines(w: Line, G: Line, g: Line, step: Any) -> tuple[Line, Line]:
    G = G + g * g
    return w - (g * step / G.roots()).where_positive(G), G


def literal_adagrad_row(wG: Array, idx: Array, val: Array, slope: float, step: float) -> None:
    """A step of AdaGrad: G += g², then w −= step·g/√G where G > 0, with g = slope·val[i]."""
    for i in range(idx.size):
        w, G = wG[idx[i]]
        wG[idx[i]] = _adagrad(w, G, slope * np.float64(val[i]), step)


@instruction("void", literal_adagrad_row, width=AT_ONCE)
def adagrad_row(e: Lines, wG: Any, idx: Any, val: Any, slope: Any, step: Any) -> None:
    """Emit `literal_adagrad_row`."""
    pair = Lines(e.b, 2)

    def change(first: Any, n: int) -> None:
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
    with e.loop(many, AT_ONCE) as first:
        change(first, AT_ONCE)
    with e.loop(idx.size, start=many) as first:
        change(first, 1)


def joined(builder: Any, registers: list[Any]) -> Any:
    """One register with the numbers of a power of two of registers."""
    while len(registers) > 1:
        n = 2 * registers[0].type.count
        registers = [
            shuffled(builder, x, y, range(n))
            for x, y in zip(registers[::2], registers[1::2], strict=True)
        ]
    return registers[0]
