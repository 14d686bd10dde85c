"""Which runs of which sweeps are compared, and by what: of whole streams, or of their halves."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from flows.scores.constant import CONSTANT, NOT_JUDGED
from flows.tables.decisions import whole_runs
from flows.tables.sweep_runs import of_sweep, runs_of, sweep_note
from flows.tables.tables import STREAM_AND_CONFIGURATION, lists_of, of_newest_code
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS
from koco_stream.runs.schemas import half_of
from storage.results import finished_runs, read_curves

ALL, FIRST_HALF = "all", "first-half"
SELECTIONS = (ALL, FIRST_HALF)
LOSS, ERROR = "mean_loss", "error_rate"
MEASURES = (LOSS, ERROR, *METRICS)
# columns of the table `runs` that a comparison needs
COLUMNS = (
    *STREAM_AND_CONFIGURATION,
    *("run_id", "order_seed", "learner_seed", "numbers_version", "status", "rounds", "seconds"),
    *("loss", "constant_mean_loss", "constant_error_rate", *MEASURES),
)
WITHOUT_PREDICTIONS = NOT_JUDGED - {CONSTANT}
# cumulative loss, and mistakes if there are classes, by run_id and round
Points = Mapping[tuple[str, int], Mapping[str, float | None]]


def check_choices(select: str, metric: str | None) -> None:
    """Raise `WrongInput` for an unknown selection or metric, or two that do not go together."""
    if select not in SELECTIONS:
        raise WrongInput(f"select is {select!r}{nearest(select, list(SELECTIONS))}")
    if metric is not None and metric not in MEASURES:
        raise WrongInput(f"no metric is called {metric!r}{nearest(metric, list(MEASURES))}")
    if select == FIRST_HALF and metric not in (None, LOSS, ERROR):
        raise WrongInput(
            f"{metric} is only known of whole streams, and select={FIRST_HALF!r} needs it of their"
            f" halves; take {LOSS} or {ERROR}, or select={ALL!r}"
        )


def runs_to_compare(
    store: AnyPath, sweeps: Sequence[str], learners: Sequence[str] = ()
) -> pa.Table:
    """The runs of some sweeps that a comparison counts, each once, with the columns `COLUMNS`.

    `learners` are those that are compared; all, if none are named. Raises `WrongInput` for an
    unknown sweep or learner.
    """
    names, tables, counted = datasets_of(store, sweeps), list[pa.Table](), set[str]()
    every = runs_of(store, None, COLUMNS)
    for sweep in dict.fromkeys(sweeps):
        note = {**sweep_note(store, sweep), "datasets": names}
        runs = whole_runs(store, sweep, of_sweep(every, note))
        ids = runs.column("run_id").to_pylist()
        tables.append(runs.filter(pa.array([one not in counted for one in ids], pa.bool_())))
        counted.update(ids)
    found = pa.concat_tables(tables)
    there = sorted(set(found.column("learner").to_pylist()) - WITHOUT_PREDICTIONS)
    for name in learners:
        if name not in there:
            raise WrongInput(f"no run of {', '.join(sweeps)} is of {name!r}{nearest(name, there)}")
    return with_predictions(found, learners or there)


def datasets_of(store: AnyPath, sweeps: Sequence[str]) -> dict[str, str]:
    """The datasets of some sweeps by their hash, named as the first sweep that has them does."""
    notes = [sweep_note(store, sweep) for sweep in sweeps]
    return {key: name for note in reversed(notes) for key, name in note["datasets"].items()}


def unfinished(store: AnyPath, sweeps: Sequence[str]) -> list[str]:
    """A sentence on each sweep of which runs are not there yet."""
    planned = {sweep: {*sweep_note(store, sweep)["run_ids"]} for sweep in sweeps}
    there = finished_runs(store)
    return [
        f"{len(ids - there):,} of {len(ids):,} runs of {sweep} are not computed yet"
        for sweep, ids in planned.items()
        if ids - there
    ]


def with_predictions(runs: pa.Table, learners: Sequence[str] | None = None) -> pa.Table:
    """Runs of the newest code, of learners that predict something, or of those `learners`."""
    names = pc.unique(runs.column("learner")).to_pylist() if learners is None else learners
    wanted = pa.array([name for name in names if name not in WITHOUT_PREDICTIONS], pa.string())
    return of_newest_code(runs.filter(pc.is_in(runs.column("learner"), wanted)))


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
