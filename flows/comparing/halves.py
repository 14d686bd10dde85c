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
    points: Points, run_id: str, n_rounds: int, metric: str, where: str
) -> tuple[float | None, float | None]:
    """Mean loss, or error rate, of a run on the first and second half of a stream of `n_rounds`.

    They are None where the run did not come so far. Raises `WrongInput`, with the remedy, for a
    stream without two rounds.
    """
    half = half_of(n_rounds)
    if half == 0:
        raise WrongInput(f"{where}: no run came to two rounds, so no half; take select={ALL!r}")
    at_half, at_end = (points.get((run_id, t), {}).get(metric) for t in (half, n_rounds))
    first = None if at_half is None else at_half / half
    if at_half is None or at_end is None:
        return first, None
    return first, (at_end - at_half) / (n_rounds - half)
