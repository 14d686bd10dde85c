"""What is measured of a run's predictions, beside its loss and error."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measured:
    """What a sweep asks for of its runs' predictions, beside loss and error.

    Parameters
    ----------
    metrics : tuple of str
        Names of `koco_stream.metrics.METRICS`, and references of functions (`file.py:function@…`),
        sorted.
    window : int, optional
        The rounds of a window over which all of them are measured too.
    keep_predictions : bool
        Whether the prediction of every round is kept.
    """

    metrics: tuple[str, ...] = ()
    window: int | None = None
    keep_predictions: bool = False

    def identity(self) -> dict[str, Any]:
        """What of this is in a run's identity: all that is asked for, and nothing else.

        A run that was not measured so is run again.
        """
        asked = {
            "metrics": list(self.metrics),
            "window": self.window,
            "keep_predictions": self.keep_predictions,
        }
        return {name: value for name, value in asked.items() if value}


NOTHING_MORE = Measured()
