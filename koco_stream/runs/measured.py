"""What is measured of a run's predictions, beside its loss and error."""

from dataclasses import asdict, dataclass
from functools import cached_property

from koco_stream.io.files import canonical_json


@dataclass(frozen=True)
class Measured:
    """What a sweep asks for of its runs' predictions, beside loss and error.

    Parameters
    ----------
    metrics : tuple of str
        Names of `koco_stream.metrics.METRICS`, sorted.
    window : int, optional
        The rounds of a window over which all of them are measured too.
    keep_predictions : bool
        Whether the prediction of every round is kept.
    """

    metrics: tuple[str, ...] = ()
    window: int | None = None
    keep_predictions: bool = False

    @cached_property
    def identity_text(self) -> str:
        """What of this is in a run's identity, as canonical JSON: a run that was not measured so is
        run again.
        """
        return canonical_json(asdict(self))


NOTHING_MORE = Measured()
