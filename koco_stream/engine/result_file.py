"""Result files: the results of one cohort as a Parquet file that appears atomically."""

import socket
import sys
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.io.files import canonical_json
from koco_stream.io.fingerprint import processor
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import named, read_table, write_tables
from koco_stream.learners import Reference, shown_name
from koco_stream.learners.record import doubtful_rounds, recorded
from koco_stream.runs.row_checks import OPEN, check_rows
from koco_stream.runs.run import Cohort, Run, RunState
from koco_stream.runs.schemas import (
    PARAMETER_COLUMNS,
    PREDICTIONS,
    RUNS,
    WINDOWS,
    curve_points,
    result_schema,
    schema,
)
from koco_stream.streams.reader import StreamReader
from koco_stream.theory.baselines import comparator_of, trivial_result
from koco_stream.types import Array
from koco_stream.version import __version__

NUMBA = version("numba")
PARAMETERS = {column.name: column.kind for column in PARAMETER_COLUMNS}


def result_files_folder(store: AnyPath) -> StorePath:
    """The folder of result files that are not collected yet."""
    return store_path(store) / "results" / "parts"


def result_path(store: AnyPath, cohort: Cohort) -> StorePath:
    """A cohort's result file."""
    return result_files_folder(store) / f"{cohort.cohort_id}.parquet"


def commit(
    store: AnyPath, sweep: str, cohort: Cohort, reader: StreamReader, run_states: list[RunState]
) -> None:
    """Write the result file of a cohort whose runs have ended, after windows and predictions."""
    end(run_states)
    file, results = result_path(store, cohort), store_path(store) / "results"
    for name, table_of, mine in (
        ("windows", windows_table, [one for one in run_states if one.run.measured.window]),
        (
            "predictions",
            predictions_table,
            [one for one in run_states if one.run.measured.keep_predictions],
        ),
    ):
        if mine:  # a row group each
            write_tables(map(table_of, mine), results / name / file.name)
    write_tables([result_table(sweep, cohort, reader, run_states)], file)


def end(run_states: list[RunState]) -> None:
    """Finish the measurements of runs that have ended."""
    for run_state in run_states:
        if run_state.status in OPEN:
            run_state.measurement = None
        elif run_state.measurement is not None:
            run_state.measurement.finish()  # the last window
        done = 0 if run_state.status in OPEN else int(run_state.totals[0])
        run_state.predictions = run_state.predictions[:done]


def windows_table(run_state: RunState) -> pa.Table:
    """A run's rows of the table `windows`; none if it failed."""
    if run_state.measurement is None:
        return schema(WINDOWS).empty_table()
    found = run_state.measurement.windows()
    n = found["first"].size
    columns: dict[str, Any] = {"run_id": [run_state.run.run_id] * n, **found}
    unknown = np.full(n, np.nan)  # written as null
    return pa.Table.from_arrays(
        [pa.array(columns.get(c.name, unknown), c.type, from_pandas=True) for c in WINDOWS],
        schema=schema(WINDOWS),
    )


def predictions_table(run_state: RunState) -> pa.Table:
    """A run's rows of the table `predictions`."""
    n = run_state.predictions.size
    return pa.Table.from_arrays(
        [
            pa.repeat(run_state.run.run_id, n),
            pa.array(np.arange(1, n + 1)),
            pa.array(run_state.predictions),
        ],
        schema=schema(PREDICTIONS),
    )


def read_result(file: StorePath) -> pa.Table:
    """The checked table in a result file."""
    with named(file):
        table = read_table(file, result_schema().names).cast(result_schema())
        check_rows(table)
        if table.column("curve").null_count:
            raise pa.ArrowInvalid("a row has no curve")
    return table


def committed(store: AnyPath, cohort: Cohort) -> list[str] | None:
    """The statuses in a cohort's result file, if it can be read."""
    try:
        return list(read_result(result_path(store, cohort)).column("status").to_pylist())
    except (FileNotFoundError, WrongInput):  # the runs are computed again, and the file replaced
        return None


def result_table(
    sweep: str, cohort: Cohort, reader: StreamReader, run_states: list[RunState]
) -> pa.Table:
    """The result table of a finished cohort."""
    stream, n, points = cohort.stream, len(run_states), curve_points(reader.n_rows)
    classification = reader.manifest.task == "classification" or stream.positive_class is not None
    shared = {
        "computed_by": sweep,
        "dataset": stream.dataset,
        **stream.identity(),
        "cohort_size": n,
        "host": machine(),
        "version": (
            f"koco_stream {__version__}, numpy {np.__version__}, numba {NUMBA},"
            f" python {sys.version.split()[0]}"
        ),
        "finished_at": datetime.now(UTC),
    }
    # read once, because with short runs building the table takes a good share of the time
    comparator, trivial = (
        cache(partial(comparator_of, reader)),
        cache(partial(trivial_result, reader)),
    )
    sizes = [dictionary_sizes(run_state, points) for run_state in run_states]
    rows = []
    for run_state, (size, _) in zip(run_states, sizes, strict=True):
        run = run_state.run
        row = shared | identity_columns(run) | measured_columns(run_state, classification)
        row["dictionary_size"] = size
        # A run that could not start says nothing of its stream, which may be what is damaged.
        if run_state.states and run.loss and (constant := trivial(run.loss)):
            row["constant_mean_loss"] = constant.mean_loss
            row["constant_error_rate"] = constant.error_rate if classification else None
        predicts = run.learner_class.predicts and stream.multiclass is None
        has_regret = predicts and run.loss == "squared" and run_state.status == "ok"
        if has_regret and (best := comparator(run.adds_intercept)):
            row["regret"] = float(run_state.totals[1]) - best.loss
            row["comparator_largest"] = best.largest
        rows.append(row)
    arrays = [pa.array([row.get(c.name) for row in rows], c.type) for c in RUNS]
    arrays.append(nested_curves(run_states, points, sizes, classification))
    return pa.Table.from_arrays(arrays, schema=result_schema())


def identity_columns(run: Run) -> dict[str, Any]:
    """What a run is, but for its stream, as columns."""
    learner = run.learner_class
    columns: dict[str, Any] = {
        "run_id": run.run_id,
        "learner": shown_name(run.learner),
        "learner_code": Reference.of(run.learner).code or None,
        "numbers": "own" if run.is_own else "foreign",
        "params": canonical_json(run.params),
        "numbers_version": learner.numbers_version,
        "learner_seed": run.learner_seed,
        "window": run.measured.window,
    }
    if learner.numbers == "foreign":
        return columns
    for name, value in run.params.items():
        kind = PARAMETERS.get(name)
        if kind is str and isinstance(value, bool):
            columns[name] = str(value).lower()
        elif kind and isinstance(value, kind):
            # a user's learner may mean another parameter by the name
            columns[name] = value
    return columns


def measured_columns(run_state: RunState, classification: bool) -> dict[str, Any]:
    """What a run amounts to, as columns."""
    rounds, loss, mistakes = run_state.totals.tolist()
    columns: dict[str, Any] = {
        "status": run_state.status,
        "error": run_state.error,
        "doubtful_rounds": doubtful_rounds(run_state.states),
        "rounds": int(rounds),
        "seconds": run_state.seconds,
    }
    if rounds:
        columns["mean_loss"] = loss / rounds
        columns["error_rate"] = mistakes / rounds if classification else None
    if run_state.seconds:
        columns["rounds_per_second"] = rounds / run_state.seconds
    if run_state.run.measured.keep_predictions:
        columns["kept_predictions"] = run_state.predictions.size
    # those of a run that has failed or was stopped are null
    return columns | (run_state.measurement.values() if run_state.measurement else {})


def nested_curves(
    run_states: list[RunState],
    points: Array,
    sizes: list[tuple[int | None, list[int | None]]],
    classification: bool,
) -> pa.Array:
    """The runs' loss curves at `points`, nested."""
    # runs that go on for more rounds have the points of longer curves as well
    found = [one.curve[: one.at][np.isin(one.curve[: one.at, 0], points)] for one in run_states]
    rounds, losses, mistakes = np.concatenate(found).T
    counted = pa.array(mistakes.astype(np.int64))
    curve = pa.StructArray.from_arrays(
        [
            pa.array(rounds.astype(np.int64)),
            pa.array(losses),
            counted if classification else pa.nulls(len(counted), pa.int64()),
            pa.array(
                [k for (_, of), one in zip(sizes, found, strict=True) for k in of[: len(one)]],
                pa.int64(),
            ),
        ],
        fields=list(result_schema().field("curve").type.value_type),
    )
    return pa.ListArray.from_arrays(np.cumsum([0, *map(len, found)], dtype=np.int32), curve)


def dictionary_sizes(run_state: RunState, points: Array) -> tuple[int | None, list[int | None]]:
    """The final size of a run's dictionaries together, and that at each of `points`, if it only
    grows.
    """
    learner, states = run_state.run.learner_class, run_state.states
    last = [recorded(state).get("dictionary_size") for state in states]
    size = sum(k for k in last if k is not None) if last and None not in last else None
    joined = [learner.joined(state) for state in states]
    sizes = [np.searchsorted(of, points, side="right") for of in joined if of is not None]
    if not states or len(sizes) < len(states):
        return size, [None] * points.size
    return size, np.sum(sizes, axis=0).tolist()


def machine() -> str:
    """The host name and processor."""
    return f"{socket.gethostname()} ({processor()})"
