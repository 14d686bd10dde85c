"""An axis of a plot: which values it spans, where they lie on it, and where its ticks are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FEW_TICKS, MOST_TICKS = 3, 6


@dataclass(frozen=True)
class Axis:
    """A label, and whether the axis is logarithmic. `low`: where it begins at the latest, for linear ones (0 for errors)."""

    label: str
    log: bool = False
    low: float | None = None

    def shows(self, value: float) -> bool:
        """Whether the axis can show the value: it is finite, and positive on a logarithmic one."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def over(self, values: Iterable[float]) -> Scale:
        """The scale that has all these values with some room; from 0 (or 1) to 1 (or 10) if there is none to show."""
        shown = [value for value in values if self.shows(value)]
        if self.log:
            low, high = (math.log10(min(shown)), math.log10(max(shown))) if shown else (0.0, 1.0)
            room = 0.04 * (high - low) or 0.2
            return Scale(True, low - room, high + room)
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if self.low is not None:
            low = min(low, self.low)
        room = 0.04 * (high - low) or 0.1 * abs(high) or 1.0
        return Scale(False, low if low == self.low else low - room, high + room)


@dataclass(frozen=True)
class Scale:
    """From `low` to `high`, which are logarithms to base ten if `log`."""

    log: bool
    low: float
    high: float

    def at(self, value: float) -> float:
        """Where the value lies: 0 at the low end, 1 at the high."""
        return ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values within, few enough to be labelled."""
        if not self.log:
            return round_values(self.low, self.high)
        whole = range(math.ceil(self.low), math.floor(self.high) + 1)
        if len(whole) >= FEW_TICKS:
            return [10.0**k for k in whole[:: math.ceil(len(whole) / MOST_TICKS)]]
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        found = [m * 10.0**k for k in decades for m in (1, 2, 5) if self.low <= math.log10(m * 10.0**k) <= self.high]
        return found if len(found) >= FEW_TICKS else round_values(10.0**self.low, 10.0**self.high)


def round_values(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two values: three to about six of them."""
    least = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= least)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_text(value: float) -> str:
    """A tick's label: `0.05`, `20,000`, `10⁶`, `2·10⁻⁷`."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.6g}".replace("-", "−") if value == int(value) else f"{value:.6g}".replace("-", "−")
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    mantissa = f"{value / 10.0**exponent:.3g}"
    return ("" if mantissa == "1" else f"{mantissa}·") + f"10{str(exponent).translate(SUPERSCRIPTS)}"
