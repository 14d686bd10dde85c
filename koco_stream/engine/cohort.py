"""Running a cohort on a worker: one pass over a stream, and one result file for all its runs."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from koco_stream.engine.checkpoint import checkpoint_of, continued, resumed, save_cohort
from koco_stream.engine.limits import fail_outgrown, has_room, rows_in_time, stop_late
from koco_stream.engine.preemption import Preempted, requested
from koco_stream.engine.reporting import Reporter
from koco_stream.engine.result_file import commit, committed, end, result_table, windows_table
from koco_stream.errors import why_diverged
from koco_stream.io.fingerprint import check_versions
from koco_stream.learners.files import fetch
from koco_stream.learners.kernel.shared_kernel_scan import SharedKernelLearner
from koco_stream.learners.saved import state_arrays
from koco_stream.losses import LOSSES
from koco_stream.metrics.tally import losses_and_classes, tally
from koco_stream.runs.cost_model import GATHERED_BYTES
from koco_stream.runs.run import Cohort, Run, RunState, Seen
from koco_stream.runs.schemas import points_until
from koco_stream.streams.reader import BLOCK_ROWS, BlockLabels, StreamReader
from koco_stream.streams.rows import Rows, with_intercept
from koco_stream.types import Array

# If states are large, a run reads at least this multiple of its state's bytes from the stream
# before the next run's turn.
TURN = 4
SAVING_SHARE = 0.01  # the largest share of a cohort's time that checkpoints may take
MOST_PREDICTIONS = 2**21  # of a run in a block
LONGEST_BLOCK = 65536  # rows


@dataclass(frozen=True)
class Receipt:
    """A worker's summary of a processed cohort and of the work done now."""

    cohort_id: str
    runs: int
    diverged: int
    failed: int
    rounds: int
    scan_seconds: float
    stopped: int = 0

    @staticmethod
    def of(
        cohort: Cohort, statuses: Sequence[str], rounds: int = 0, scan_seconds: float = 0.0
    ) -> "Receipt":
        """The receipt of a cohort whose runs ended so."""
        return Receipt(
            cohort.cohort_id,
            len(statuses),
            statuses.count("diverged"),
            statuses.count("failed"),
            rounds,
            scan_seconds,
            statuses.count("stopped"),
        )


def run_cohort(
    store: str,
    sweep: str,
    cohort: Cohort,
    block_rows: int | None = None,
    expected: dict[str, str] | None = None,
) -> Receipt:
    """Run a cohort over its stream and write its result file, if that is not there.

    An interrupted cohort resumes from its last checkpoint. `expected` are package versions that
    this process must have. `Preempted` says that it has saved the states.
    """
    if expected is not None:
        check_versions(expected)
    fetch_files(store, cohort.runs)
    if requested.is_set():
        raise Preempted
    checkpoint = checkpoint_of(store, cohort)
    statuses = committed(store, cohort)
    if statuses is not None:  # an earlier worker wrote the file and stopped before it reported
        if not cohort.later and "stopped" not in statuses:
            checkpoint.remove()
        return Receipt.of(cohort, statuses)
    import numba  # noqa: F401  # the compiler's import is in no run's time

    reader = StreamReader(store, cohort.stream)
    points = points_until(reader.n_rows, cohort.later)
    seen = seen_by(reader, cohort.later)
    run_states = [RunState.start(run, seen, points, cohort.time_limit) for run in cohort.runs]
    first = found = resumed(checkpoint, run_states, cohort.later)
    if cohort.pause.rounds and not first:
        first = continued(store, cohort, reader.n_rows, run_states)
    before = work_of(run_states)
    save_at = time.monotonic() + cohort.checkpoint_seconds
    stopped = set[str]()
    rows = block_rows or min(rows_in_time(cohort, reader.n_rows), fitting_rows(reader, run_states))
    reporter = Reporter(cohort.cohort_id, first)
    for done in advance_runs(run_states, reader, first, reader.n_rows, rows, points, reporter):
        fail_outgrown(run_states, cohort.states_bytes)
        ended = done == reader.n_rows
        if not ended:
            stopped |= stop_late(store, cohort, done, run_states)
        going = not ended and any(one.status == "ok" for one in run_states)
        told = going and requested.is_set()
        pauses = ended and cohort.later and has_room(store, run_states)
        now = time.monotonic()
        if cohort.resumable and (told or pauses or (going and now >= save_at)):
            save_cohort(checkpoint, done, run_states, cohort.later, ended)
            found = done
            took = time.monotonic() - now
            save_at = now + max(cohort.checkpoint_seconds, took / SAVING_SHARE)
        if told:
            raise Preempted
        if not going:
            break
    commit(store, sweep, cohort, reader, run_states)
    if found and not (cohort.later or cohort.cohort_id in stopped):
        checkpoint.remove()
    rounds, seconds = (work_of(run_states) - before).tolist()
    return Receipt.of(cohort, [one.status for one in run_states], int(rounds), seconds)


def run_alone(store: str, run: Run) -> dict[str, Any]:
    """Compute a run by itself, without a limit, and write nothing: its row of `runs`, with its
    `curve` and its `windows`.
    """
    reader = StreamReader(store, run.stream)
    points = points_until(reader.n_rows, ())
    ones = [RunState.start(run, seen_by(reader), points)]
    block = fitting_rows(reader, ones)
    list(advance_runs(ones, reader, 0, reader.n_rows, block, points, Reporter("", 0)))
    end(ones)
    return {
        **result_table("", Cohort(run.stream, (run,), 0.0), reader, ones).to_pylist()[0],
        "windows": windows_table(*ones).to_pylist(),
    }


def work_of(run_states: Sequence[RunState]) -> Array:
    """The rounds of all runs, and the seconds of their scans."""
    return np.sum([(one.totals[0], one.seconds) for one in run_states], axis=0)


def seen_by(reader: StreamReader, later: Sequence[int] = ()) -> Seen:
    """What runs see of a stream, or of the longest of `later`."""
    manifest = reader.manifest
    classifies = manifest.task == "classification" or reader.stream.positive_class is not None
    return Seen(
        manifest.n_features,
        max(reader.n_rows, *later, 0),
        manifest.layout == "dense",
        "classification" if classifies else "regression",
        tuple(manifest.classes),
    )


def fail_cohort(store: str, sweep: str, cohort: Cohort, error: str) -> Receipt:
    """Write a result file in which all runs failed with this message."""
    fetch_files(store, cohort.runs)
    failed = [
        RunState(run, None, [], np.zeros((0, 3)), status="failed", error=error)
        for run in cohort.runs
    ]
    commit(store, sweep, cohort, StreamReader(store, cohort.stream), failed)
    checkpoint_of(store, cohort).remove()
    return Receipt.of(cohort, ["failed"] * len(failed))


def fetch_files(store: str, runs: Sequence[Run]) -> None:
    """Take the learners' files from the store."""
    for file in {file for run in runs for file in run.files}:
        fetch(store, *file)


def fitting_rows(reader: StreamReader, run_states: list[RunState]) -> int:
    """The rows in a block that suit the runs' states."""
    if any(one.run.open_ended for one in run_states):
        return 1024  # between two looks at the sizes of dictionaries
    row = 16 + 12 * reader.manifest.n_values / max(reader.manifest.n_rows, 1)
    states = [state for one in run_states for state in one.states]
    of_all, gathers = reader.stream.multiclass is not None, reader.order is not None
    if reader.manifest.layout == "dense" or len(states) <= 1 or (gathers and not of_all):
        return BLOCK_ROWS
    largest = max(sum(array.nbytes for array in state_arrays(one).values()) for one in states)
    # A run over all classes has a prediction of each for every row.
    most = MOST_PREDICTIONS // max(len(one.states) for one in run_states)
    room = GATHERED_BYTES / row if gathers else LONGEST_BLOCK
    return max(BLOCK_ROWS, int(min(TURN * largest / row, LONGEST_BLOCK, most, room)))


def groups_of(run_states: list[RunState]) -> list[tuple[bool, list[RunState]]]:
    """The runs that share kernel values, in groups, and whether these have an intercept."""
    groups: dict[tuple[bool, Any], list[RunState]] = {}
    for i, one in enumerate(run_states):
        shares = issubclass(one.run.learner_class, SharedKernelLearner)
        key = one.run.adds_intercept, one.params.kernel if shares else i
        groups.setdefault(key, []).append(one)
    return [(intercept, group) for (intercept, _), group in groups.items()]


def advance_runs(
    run_states: list[RunState],
    reader: StreamReader,
    first: int,
    last: int,
    block_rows: int,
    points: Array,
    reporter: Reporter,
) -> Iterator[int]:
    """Advance the live runs through rounds `first` to `last` of the stream; yields the rounds done
    after each block.
    """
    groups = groups_of(run_states)
    done = first
    for block in reader.blocks(block_rows, start=first, stop=last):
        labels = reader.to_learn(block.labels)
        rows = {
            intercept: with_intercept(block.rows) if intercept else block.rows
            for intercept in {intercept for intercept, _ in groups}
        }
        for k, (intercept, group) in enumerate(groups):
            live = [run_state for run_state in group if run_state.status == "ok"]
            if live:
                advance_group(live, rows[intercept], labels, points)
            reporter.tell(done + labels.learnt.shape[1] * (k + 1) / len(groups), len(run_states))
        done += block.labels.size
        yield done


def advance_group(
    run_states: list[RunState], rows: Rows, labels: BlockLabels, points: Array
) -> None:
    """Advance runs that share a scan over one block; each takes an equal share of the time."""
    n_states, n = labels.learnt.shape
    predictions = np.empty((len(run_states) * n_states, n))
    learners = [one.run.learner_class for one in run_states for _ in one.states]
    params = [one.params for one in run_states for _ in one.states]
    states = [state for one in run_states for state in one.states]
    learnt = np.tile(labels.learnt, (len(run_states), 1)) if len(run_states) > 1 else labels.learnt
    done, failures = [0] * len(states), dict[int, Exception]()
    started_at = learners[0].clock(states[0])
    try:
        states, done, failures = learners[0].advance_states(
            learners, params, states, rows, learnt, predictions
        )
    except Exception as error:
        failures = dict.fromkeys(range(len(states)), error)
    seconds = (learners[0].clock(states[0]) - started_at) / len(run_states)
    for k, run_state in enumerate(run_states):
        mine = range(k * n_states, (k + 1) * n_states)
        run_state.states = [states[i] for i in mine]
        run_state.seconds += seconds
        if failed := [failures[i] for i in mine if i in failures]:
            run_state.fail(failed[0])
        else:
            count(
                run_state,
                predictions[mine.start : mine.stop],
                labels,
                [done[i] for i in mine],
                points,
            )


def count(
    run_state: RunState, predictions: Array, labels: BlockLabels, done: list[int], points: Array
) -> None:
    """Add a block to a run's totals and curve; state k has done `done[k]` of its rounds."""
    loss, totals, rounds = LOSSES[run_state.run.loss], run_state.totals, min(done)
    losses, predicted = losses_and_classes(loss, predictions, labels.learnt, rounds)
    numbers, before = labels.numbers[:rounds], int(totals[0])
    run_state.at = tally(losses, predicted, numbers, totals, points, run_state.at, run_state.curve)
    if run_state.predictions.size:
        run_state.predictions[before : before + rounds] = (
            np.array(labels.classes)[predicted] if labels.classes else predictions[0, :rounds]
        )
    if run_state.measurement is not None:
        run_state.measurement.add(
            predictions[:, :rounds], labels.learnt[:, :rounds], numbers, losses, predicted
        )
    if rounds < labels.learnt.shape[1]:
        first = done.index(rounds)
        of = f" for class {labels.classes[first]:g}" if labels.classes else ""
        run_state.error = why_diverged(
            f"round {int(totals[0]) + 1}{of}", float(predictions[first, rounds])
        )
    elif not np.isfinite(totals[1]):
        run_state.error = f"the cumulative loss is {totals[1]} by round {int(totals[0])}"
    if run_state.error is not None:
        run_state.status = "diverged"
