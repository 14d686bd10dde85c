"""Axes of plots: the values that they can show, their ticks, and the ticks' labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from koco_stream.types import Array

if TYPE_CHECKING:
    # its import takes half a second, and most importers of this module draw nothing
    from matplotlib.ticker import Locator

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FEW_TICKS, MOST_TICKS = 4, 6
ROUND = (1, 2, 5, 10)
NEAR = 0.5  # an axis starts at 0 unless the smallest value is above this share of the largest
# for axes of at least so many decades: multiples of each power of ten that get a tick
FACTORS = ((0.7, (1.0, 2.0, 3.0, 5.0)), (1.1, (1.0, 2.0, 5.0)), (1.7, (1.0, 3.0)), (3.0, (1.0,)))


@dataclass(frozen=True)
class Axis:
    """An axis of a plot: its label, and whether it is logarithmic.

    A linear vertical axis starts at `low` or below, such as 0 for errors. With `names`, the axis
    has these at 0, 1 and so on.
    """

    label: str
    log: bool = False
    low: float | None = None
    names: tuple[str, ...] = ()

    def shown(self, values: Iterable[float]) -> Array:
        """The values, with NaN for those that the axis cannot show.

        These are infinite values and, on a logarithmic axis, values that are not positive.
        """
        given = np.array(list(values), float)
        return np.where(np.isfinite(given) & ((given > 0) | (not self.log)), given, np.nan)

    def zoomed(self, values: Iterable[float]) -> Axis:
        """This axis, but for values close together not from 0 on, where their lines would touch."""
        shown = self.shown(values)
        if self.log or not np.isfinite(shown).any():
            return self
        near = np.nanmin(shown) > NEAR * np.nanmax(shown)
        return replace(self, low=None) if near else self

    def text(self, value: float, _: object = None) -> str:
        """The label of a tick, as Matplotlib asks for it."""
        return self.names[round(value)] if self.names else tick_text(value)

    def locator(self, low: float, high: float) -> Locator:
        """Matplotlib locator for round ticks between `low` and `high`, few enough for labels."""
        from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

        if self.names:
            return FixedLocator(list(range(len(self.names))))
        decades = math.log10(high / low) if self.log else 0.0
        if decades < FACTORS[0][0]:
            return MaxNLocator(FEW_TICKS if self.log else MOST_TICKS, steps=ROUND)
        factors = [factors for least, factors in FACTORS if decades >= least][-1]
        return LogLocator(subs=factors, numticks=MOST_TICKS)


def tick_text(value: float) -> str:
    """Format a tick's label: `0.05`, `20,000`, `10⁶`, `2·10⁻⁷`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return (f"{value:,.6g}" if value == int(value) else f"{value:.6g}").replace("-", "−")
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    mantissa = f"{value / 10.0**exponent:.3g}"
    power = f"10{str(exponent).translate(SUPERSCRIPTS)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"
