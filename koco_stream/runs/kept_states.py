"""Which cohorts of a plan leave their states on disk, so that longer runs go on from them."""

from collections.abc import Sequence
from typing import NamedTuple

from koco_stream.runs.cost_model import SAVED_BYTES_PER_SECOND

SMALL_STATE = 64 << 20  # bytes; smaller ones are kept even if computing them again is shorter


class States(NamedTuple):
    """The states of a cohort: their size in bytes, of how many runs, and the seconds they cost."""

    bytes: int
    runs: int
    seconds: float

    @property
    def worth_keeping(self) -> bool:
        """Whether they are small, or writing them is shorter than computing them again."""
        return (
            self.bytes <= SMALL_STATE * self.runs
            or self.bytes / SAVED_BYTES_PER_SECOND <= self.seconds
        )


def to_keep(states: Sequence[States], room: int | None) -> list[bool]:
    """Whether each cohort's states are kept, so that all of them have room.

    If not all have, those are kept that save the most seconds for their bytes. `room` is in bytes;
    None is without limit.
    """
    kept, taken = [False] * len(states), 0
    order = sorted(
        range(len(states)), key=lambda k: (-states[k].seconds / max(states[k].bytes, 1), k)
    )
    for k in order:
        if states[k].worth_keeping and (room is None or taken + states[k].bytes <= room):
            kept[k] = True
            taken += states[k].bytes
    return kept
