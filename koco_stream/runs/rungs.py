"""Runs of a sweep with halving: which go on from the state of a shorter run, and for how long, and
which cohorts leave their states on disk.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from koco_stream.runs.run import Kept, Run
from koco_stream.streams.stream import Stream


class Rungs(NamedTuple):
    """What a plan knows of the rungs of successive halving.

    Parameters
    ----------
    later : mapping of Stream to tuple of int
        The rounds of the later rungs of each stream that is cut at a rung, increasing.
    kept : mapping of str to Kept
        By run_id, the state of the shorter run from which a run goes on.
    """

    later: Mapping[Stream, tuple[int, ...]]
    kept: Mapping[str, Kept]

    def begun(self, run: Run) -> int:
        """The rounds that a run need not do again."""
        kept = self.kept.get(run.run_id) if self.kept else None
        return kept.rounds if kept else 0

    def last(self, stream: Stream, rounds: int) -> int:
        """The rounds of the last rung of a stream that has so many rounds itself."""
        return self.later.get(stream, (rounds,))[-1]


NO_RUNGS = Rungs({}, {})


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
