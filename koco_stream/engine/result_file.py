"""Result files: the results of one cohort as a Parquet file that appears atomically.

It has one row per run, with the run's loss curve nested in the row.
"""

import socket
import sys
from datetime import UTC, datetime
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json
from koco_stream.io.fingerprint import processor
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import named, read_table, write_tables
from koco_stream.learners import Reference, shown_name
from koco_stream.learners.record import doubtful_rounds, recorded
from koco_stream.metrics import METRICS
from koco_stream.runs.row_checks import check_rows
from koco_stream.runs.run import Cohort, RunState
from koco_stream.runs.schemas import (
    PREDICTIONS,
    RUNS,
    WINDOWS,
    curve_points,
    points_until,
    result_schema,
    schema,
)
from koco_stream.streams.reader import StreamReader
from koco_stream.theory.comparator import comparator_of
from koco_stream.theory.trivial import trivial_result
from koco_stream.types import Array
from koco_stream.version import __version__

# A parameter's values that fit a column of such a type, which may be true or false where there are
# texts: a user's learner may mean another parameter by the name.
FITS: dict[pa.DataType, Any] = {
    pa.float64(): float,
    pa.int64(): int,
    pa.bool_(): bool,
    pa.string(): str,
}


def result_files_folder(store: AnyPath) -> StorePath:
    """The store's folder of result files that are not collected yet."""
    return store_path(store) / "results" / "parts"


def result_path(store: AnyPath, cohort: Cohort) -> StorePath:
    """The path of a cohort's result file."""
    return result_files_folder(store) / f"{cohort.cohort_id}.parquet"


def commit(
    store: AnyPath, sweep: str, cohort: Cohort, reader: StreamReader, run_states: list[RunState]
) -> None:
    """Write the result file of a cohort whose runs have ended, atomically.

    Windows and predictions are written before it, so that a run that is there has them.
    """
    for run_state in run_states:
        if run_state.measurement is not None and run_state.status != "failed":
            try:
                run_state.measurement.finish()  # the last window
            except WrongInput as error:  # of a user's metric
                run_state.fail(error)
        if run_state.status == "failed":
            run_state.measurement = None
    write_more(store, cohort, run_states)
    table = result_table(sweep, cohort, reader, run_states)
    write_tables([table], result_path(store, cohort))


def write_more(store: AnyPath, cohort: Cohort, run_states: list[RunState]) -> None:
    """Write the windows and the predictions of a cohort's runs, if there are any.

    Each table has a file for the cohort, which appears atomically, with a row group for each run.
    """
    windowed = [one for one in run_states if one.run.measured.window]
    kept = [one for one in run_states if one.run.measured.keep_predictions]
    for name, table_of, mine in (
        ("windows", windows_table, windowed),
        ("predictions", predictions_table, kept),
    ):
        if mine:
            path = store_path(store) / "results" / name / f"{cohort.cohort_id}.parquet"
            write_tables(map(table_of, mine), path)


def windows_table(run_state: RunState) -> pa.Table:
    """The windows of a run, as rows of the table `windows`; none of a failed run."""
    if run_state.measurement is None:
        return schema(WINDOWS).empty_table()
    found = run_state.measurement.windows()
    columns: dict[str, Any] = {"run_id": [run_state.run.run_id] * found["first"].size, **found}
    # NaN is written as null
    arrays = [pa.array(columns[c.name], c.type, from_pandas=True) for c in WINDOWS]
    return pa.Table.from_arrays(arrays, schema=schema(WINDOWS))


def predictions_table(run_state: RunState) -> pa.Table:
    """The predictions of the rounds that a run has done, as rows of the table `predictions`."""
    n = kept_predictions(run_state)
    run_ids = pa.repeat(run_state.run.run_id, n)
    arrays = [run_ids, pa.array(np.arange(1, n + 1)), pa.array(run_state.predictions[:n])]
    return pa.Table.from_arrays(arrays, schema=schema(PREDICTIONS))


def kept_predictions(run_state: RunState) -> int:
    """The number of rounds of which a run has kept the prediction."""
    return int(run_state.totals[0]) if run_state.predictions.size else 0


def read_result(file: StorePath) -> pa.Table:
    """The table in a result file.

    Raises `WrongInput` if it is damaged or no such table, and `FileNotFoundError` if it does not
    exist.
    """
    with named(file):
        table = read_table(file, result_schema().names)
        table.cast(result_schema())
        check_rows(table)
        if table.column("curve").null_count:
            raise pa.ArrowInvalid("a row has no curve")
    return table


def committed(store: AnyPath, cohort: Cohort) -> list[str] | None:
    """The run statuses in a cohort's result file, or None if it is missing or damaged."""
    try:
        table = read_result(result_path(store, cohort))
    except (FileNotFoundError, WrongInput):  # the runs are computed again, and the file replaced
        return None
    return list(table.column("status").to_pylist())


def result_table(
    sweep: str, cohort: Cohort, reader: StreamReader, run_states: list[RunState]
) -> pa.Table:
    """The result table of a finished cohort, in the schema `schemas.result_schema`.

    It is built column by column, because with short runs building it takes a good share of the
    time. Mistakes are counted for classification only, also those of the trivial learner. A run
    has a regret if it has the squared loss, completed the stream, and its comparator was found.
    """
    stream, n, points = cohort.stream, len(run_states), curve_points(reader.n_rows)
    classification = reader.manifest.task == "classification" or stream.positive_class is not None
    runs = [run_state.run for run_state in run_states]
    totals = np.array([run_state.totals for run_state in run_states]).reshape(n, 3)
    rounds, seconds = totals[:, 0], np.array([run_state.seconds for run_state in run_states])
    mean_loss, error_rate, speed = (
        pa.array(np.divide(over, under, out=np.zeros(n), where=under > 0), mask=~(under > 0))
        for over, under in ((totals[:, 1], rounds), (totals[:, 2], rounds), (rounds, seconds))
    )
    intercepts = [
        run_state.run.adds_intercept if has_regret(run_state) else None for run_state in run_states
    ]
    comparators = {
        intercept: None if intercept is None else comparator_of(reader, intercept)
        for intercept in dict.fromkeys(intercepts)
    }
    compared = [comparators[intercept] for intercept in intercepts]
    # A run that could not start says nothing of its stream, which may be what is damaged.
    losses = [one.run.loss if one.states else None for one in run_states]
    trivial = {loss: loss and trivial_result(reader, loss) for loss in dict.fromkeys(losses)}
    constants = [trivial[loss] for loss in losses]
    sizes = [dictionary_sizes(run_state, points) for run_state in run_states]
    # those of a failed run are null
    measured = [one.measurement.values() if one.measurement else {} for one in run_states]
    columns: dict[str, Any] = {
        "run_id": [run.run_id for run in runs],
        "sweep": sweep,
        "dataset": stream.dataset,
        **stream.identity(),
        "learner": [shown_name(run.learner) for run in runs],
        "learner_code": [Reference.of(run.learner).code or None for run in runs],
        "numbers": [run.learner_class.numbers for run in runs],
        "params": [canonical_json(run.params) for run in runs],
        "numbers_version": [run.learner_class.numbers_version for run in runs],
        "learner_seed": [run.learner_seed for run in runs],
        "status": [run_state.status for run_state in run_states],
        "doubtful_rounds": [doubtful_rounds(run_state.states) for run_state in run_states],
        "error": [run_state.error for run_state in run_states],
        "rounds": rounds.astype(np.int64),
        "mean_loss": mean_loss,
        "error_rate": error_rate if classification else None,
        "constant_mean_loss": [c and c.mean_loss for c in constants],
        "constant_error_rate": [c and c.error_rate if classification else None for c in constants],
        **{name: [values.get(name) for values in measured] for name in METRICS},
        "window": [one.run.measured.window for one in run_states],
        "kept_predictions": [
            kept_predictions(one) if one.run.measured.keep_predictions else None
            for one in run_states
        ],
        "regret": [
            None if c is None else float(loss) - c.loss
            for c, loss in zip(compared, totals[:, 1], strict=True)
        ],
        "comparator_largest": [None if c is None else c.largest for c in compared],
        "seconds": seconds,
        "rounds_per_second": speed,
        "dictionary_size": [size for size, _ in sizes],
        "cohort_size": n,
        "host": machine(),
        "version": (
            f"koco_stream {__version__}, numpy {np.__version__}, numba {numba.__version__},"
            f" python {sys.version.split()[0]}"
        ),
        "finished_at": datetime.now(UTC),
    }
    typed = [run.params if run.learner_class.numbers == "own" else {} for run in runs]
    for column in RUNS:
        if column.name not in columns:  # a parameter
            kind, values = FITS[column.type], [params.get(column.name) for params in typed]
            columns[column.name] = [
                str(value).lower()
                if isinstance(value, bool) and column.type == pa.string()
                else value
                if isinstance(value, kind)
                else None
                for value in values
            ]
    of_each = pa.Array | np.ndarray | list
    columns = {
        name: found if isinstance(found, of_each) else [found] * n
        for name, found in columns.items()
    }
    arrays = [pa.array(columns[column.name], column.type) for column in RUNS]
    # runs that go on for more rounds have the points of longer curves as well
    own = np.isin(points_until(reader.n_rows, cohort.later), points)
    curves = nested_curves(run_states, points, own, sizes, classification)
    return pa.Table.from_arrays([*arrays, curves], schema=result_schema())


def has_regret(run_state: RunState) -> bool:
    """Whether a run is compared with the best linear predictor: it has the squared loss and has
    completed a stream of two classes or real labels.
    """
    run = run_state.run
    predicts = "loss" not in run.learner_class.unused
    squared = predicts and run.loss == "squared" and run.stream.multiclass is None
    return squared and run_state.status == "ok"


def nested_curves(
    run_states: list[RunState],
    points: Array,
    own: Array,
    sizes: list[tuple[int | None, list[int | None]]],
    classification: bool,
) -> pa.Array:
    """The runs' loss curves as one nested Arrow array, each up to the last round of its run.

    Of the lines of a run's curve, those marked in `own` have the rounds `points`.
    """
    found = [one.curve[: one.at][own[: one.at]] for one in run_states]
    at, lines = [len(curve) for curve in found], np.concatenate(found)
    rounds = np.concatenate([points[:reached] for reached in at])
    mistakes = lines[:, 2].astype(np.int64)
    dictionary = [k for (_, found), reached in zip(sizes, at, strict=True) for k in found[:reached]]
    curve = pa.StructArray.from_arrays(
        [
            pa.array(rounds.astype(np.int64)),
            pa.array(lines[:, 1]),
            pa.array(mistakes) if classification else pa.nulls(len(lines), pa.int64()),
            pa.array(dictionary, pa.int64()),
        ],
        fields=list(result_schema().field("curve").type.value_type),
    )
    ends = np.concatenate([[0], np.cumsum(at)])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), curve)


def dictionary_sizes(run_state: RunState, points: Array) -> tuple[int | None, list[int | None]]:
    """The final size of a run's dictionary, and its size at each round in `points`.

    The dictionaries of several classes are added up. Sizes at points are None if dictionary rows
    can leave again; all are None for a learner without a dictionary.
    """
    learner, states = run_state.run.learner_class, run_state.states
    last = [recorded(state).get("dictionary_size") for state in states]
    size = sum(k for k in last if k is not None) if last and None not in last else None
    nothing: list[int | None] = [None] * points.size
    sizes = np.zeros(points.size, np.int64)
    for state in states:
        joined = learner.joined(state)
        if joined is None:
            return size, nothing
        sizes += np.searchsorted(joined, points, side="right")
    shown: list[int | None] = [int(k) for k in sizes]
    return size, shown if states else nothing


def machine() -> str:
    """The host name and processor of this machine."""
    return f"{socket.gethostname()} ({processor()})"
