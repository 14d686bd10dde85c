"""Which cohorts of a plan leave their states on disk, so that longer runs go on from them."""

from collections.abc import Sequence
from typing import NamedTuple


class States(NamedTuple):
    """The states of a cohort: their size in bytes, and the seconds they cost."""

    bytes: int
    seconds: float


def to_keep(states: Sequence[States], room: int | None) -> list[bool]:
    """Whether each cohort's states are kept, so that all of them have room.

    If not all have, those are kept that save the most seconds for their bytes. `room` is in bytes;
    None is without limit. Writing is never longer than computing again: a checkpoint has only the
    numbers that are not zero, and rounds compute each of them.
    """
    kept, taken = [False] * len(states), 0
    order = sorted(
        range(len(states)), key=lambda k: (-states[k].seconds / max(states[k].bytes, 1), k)
    )
    for k in order:
        if room is None or taken + states[k].bytes <= room:
            kept[k] = True
            taken += states[k].bytes
    return kept
