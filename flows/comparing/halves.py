"""What runs came to on the first and on the second half of their stream, from their curves."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from flows.comparing.counted import ALL, ERROR, LOSS
from flows.tables.tables import lists_of
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath
from koco_stream.runs.schemas import half_of
from storage.results import read_curves

# cumulative loss, and mistakes if there are classes, by run_id and round
Points = Mapping[tuple[str, int], Mapping[str, float | None]]


def points_of(store: AnyPath, rounds: Mapping[str, int]) -> Points:
    """Totals of runs after the first half and after all rounds of their streams.

    `rounds` has the number of rounds of each run's stream, by run_id. The keys are pairs of run_id
    and round.
    """
    curves = read_curves(store, sorted(rounds))
    wanted = {t for n in set(rounds.values()) for t in (half_of(n), n)}
    curves = curves.filter(pc.is_in(curves.column("t"), pa.array(sorted(wanted), pa.int64())))
    names = ("run_id", "t", "cumulative_loss", "mistakes")
    return {
        (run_id, t): {LOSS: loss, ERROR: mistakes}
        for run_id, t, loss, mistakes in zip(*lists_of(curves, names), strict=True)
    }


def halves_of(
    points: Points, run_id: str, n_rounds: int, metric: str, ended_well: bool, where: str
) -> tuple[float | None, float | None]:
    """Mean loss, or error rate, of a run on the first and second half of a stream of `n_rounds`.

    They are None where the run did not come so far.

    Raises `WrongInput`, with the remedy, if it ended well and its curve lacks a point: that of
    results that an earlier version has stored.
    """
    half = half_of(n_rounds)
    middle, end = points.get((run_id, half)), points.get((run_id, n_rounds))
    if half == 0 or (ended_well and (middle is None or end is None)):
        raise WrongInput(
            f"{where}: run {run_id} has no result at half its rounds ({half:,}): it was stored by"
            " an earlier version, or has one round. Compute it again (koco remove"
            f" sweep NAME, then koco sweep), or compare with select {ALL!r}"
        )
    at_half, at_end = ((point or {}).get(metric) for point in (middle, end))
    first = None if at_half is None else at_half / half
    if at_half is None or at_end is None:
        return first, None
    return first, (at_end - at_half) / (n_rounds - half)
