"""What a worker does: read a stream once, advance every run of a cohort block by block, commit one
result part.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from koco_stream.engine.checkpoint import checkpoint_of, resumed, save_cohort
from koco_stream.engine.preemption import Preempted, asked
from koco_stream.engine.result_file import commit, committed, part_of
from koco_stream.engine.run_state import Member, start
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import check_versions
from koco_stream.learners import learner_named
from koco_stream.learners.saved import state_arrays
from koco_stream.learners.scan import tally
from koco_stream.learners.shared_kernel_learner import SharedKernelLearner
from koco_stream.learners.shared_kernel_scan import SharedKernelScan
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.numerics.linear_algebra import Array
from koco_stream.runs.run import Cohort, Run
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.reader import BLOCK_ROWS, StreamReader
from koco_stream.streams.rows import Rows, with_intercept
from koco_stream.theory.comparator import Comparator, comparator_of

# times a state's bytes are read of the stream before the next member's turn, where states are large
TURN = 4
LONGEST_BLOCK = 65536  # rows


@dataclass(frozen=True)
class Receipt:
    """What comes back over the wire: which cohort, how many runs, diverged and failed ones among
    them, and rounds, how long. Never data. `found` says that the part was there already: then no
    round was done.
    """

    cohort_id: str
    runs: int
    diverged: int
    failed: int
    rounds: int
    scan_seconds: float
    seconds: float
    found: bool = False

    @staticmethod
    def of(
        cohort: Cohort,
        statuses: Sequence[str],
        begun: float,
        rounds: int = 0,
        scan_seconds: float = 0.0,
        found: bool = False,
    ) -> Receipt:
        """The receipt of a cohort whose runs ended so; `begun` is by `time.perf_counter`."""
        count = Counter(statuses)
        took = time.perf_counter() - begun
        return Receipt(
            cohort.cohort_id,
            len(statuses),
            count["diverged"],
            count["failed"],
            rounds,
            scan_seconds,
            took,
            found,
        )


def run_checked(
    expected: dict[str, str], store: str, sweep: str, cohort: Cohort, block_rows: int | None
) -> Receipt:
    """`run_cohort`, on a worker that may have joined a moment ago. Raises `Misfit` if it has others
    than the `expected` versions.
    """
    check_versions(expected)
    return run_cohort(store, sweep, cohort, block_rows)


def run_cohort(store: str, sweep: str, cohort: Cohort, block_rows: int | None = None) -> Receipt:
    """Run a cohort over its stream and commit its part. If the part is there, nothing is done
    again. If it was cut, it goes on from its last checkpoint, which goes when the part is there.

    Raises `WrongInput` if the dataset is missing, damaged or changed, `OSError` if the disk fails
    or is full, and `Preempted` if this process was told to leave: what was done is then saved,
    whether or not the cohort has checkpoints.
    """
    begun = time.perf_counter()
    if asked():
        raise Preempted
    checkpoint = checkpoint_of(store, cohort)
    statuses = committed(store, cohort)
    if statuses is not None:  # whoever committed it may have died before it could say so
        checkpoint.remove()
        return Receipt.of(cohort, statuses, begun, found=True)
    reader = StreamReader(store, cohort.stream)
    points = curve_points(reader.n_rows)
    members = [start(run, reader.manifest.n_features, points) for run in cohort.runs]
    done = found = resumed(checkpoint, members)
    known = sum(int(member.totals[0]) for member in members)
    while done < reader.n_rows:
        every = cohort.checkpoint_rounds or reader.n_rows
        until = min((done // every + 1) * every, reader.n_rows)
        done = advance_members(
            members, reader, done, until, block_rows or fitting_rows(reader, members), points
        )
        if done < reader.n_rows:
            save_cohort(checkpoint, done, members)
            if asked():
                raise Preempted
    commit(
        store,
        cohort,
        part_of(
            sweep, cohort, members, points, reader.manifest.task, comparators_for(reader, members)
        ),
    )
    if cohort.checkpoint_rounds or found:
        checkpoint.remove()
    rounds = sum(int(member.totals[0]) for member in members) - known
    return Receipt.of(
        cohort,
        [member.status for member in members],
        begun,
        rounds,
        sum(member.seconds for member in members),
    )


def fail_cohort(store: str, sweep: str, cohort: Cohort, error: str) -> Receipt:
    """Commit a part in which every run of the cohort has failed with `error`, none of its rounds
    done.
    """
    begun = time.perf_counter()
    reader = StreamReader(store, cohort.stream)
    points = curve_points(reader.n_rows)
    members = [
        Member(run, None, None, np.zeros((points.size, 3)), status="failed", error=error)
        for run in cohort.runs
    ]
    commit(store, cohort, part_of(sweep, cohort, members, points, reader.manifest.task, {}))
    checkpoint_of(store, cohort).remove()
    return Receipt.of(cohort, [member.status for member in members], begun)


def fitting_rows(reader: StreamReader, members: list[Member]) -> int:
    """Rows of a block. Members take turns at each block, and a member's state has to come back to
    the processor's cache each time: where states are large the turns are longer. Only as stored,
    where a block is a view and its size costs no memory.
    """
    state = max(
        (
            sum(array.nbytes for array in state_arrays(member.state).values())
            for member in members
            if member.state
        ),
        default=0,
    )
    if reader.order is not None or reader.manifest.layout == "dense" or len(members) == 1:
        return BLOCK_ROWS
    row = 16 + 12 * reader.manifest.n_values / max(reader.manifest.n_rows, 1)
    return min(max(BLOCK_ROWS, int(TURN * state / row)), LONGEST_BLOCK)


def advance_members(
    members: list[Member],
    reader: StreamReader,
    first: int,
    last: int,
    block_rows: int,
    points: Array,
) -> int:
    """Rounds `first` to `last` of the stream, for all members that are still ok. Returns the round
    that was reached: `last`, or the end of the block after which this process was found to have
    been told to leave.
    """
    groups, done = grouped(members), first
    for block in reader.blocks(block_rows, start=first, stop=last):
        widened = (
            with_intercept(block.rows)
            if any(member.run.params["fit_intercept"] for member in members)
            else block.rows
        )
        for group in groups:
            live = [member for member in group if member.status == "ok"]
            if live:
                rows = widened if live[0].run.params["fit_intercept"] else block.rows
                advance_group(live, rows, block.labels, points)
        done += block.labels.size
        if asked():
            break
    return done


def comparators_for(reader: StreamReader, members: list[Member]) -> dict[bool, Comparator]:
    """The comparators, by `fit_intercept`, of the runs that have one: those with the squared loss
    that went through the whole stream. None where it could not be found at a fair price: see
    `comparator.least_squares`.
    """
    wanted = {
        bool(m.run.params["fit_intercept"])
        for m in members
        if m.status == "ok" and m.run.params.get("loss") == "squared"
    }
    found = {intercept: comparator_of(reader, intercept) for intercept in sorted(wanted)}
    return {intercept: comparator for intercept, comparator in found.items() if comparator}


def grouped(members: list[Member]) -> list[list[Member]]:
    """Members that share their kernel values go together, the others alone."""
    groups: dict[Any, list[Member]] = {}
    for i, member in enumerate(members):
        shares = issubclass(learner_named(member.run.learner), SharedKernelLearner)
        key = (member.params.kernel, member.run.params["fit_intercept"]) if shares else i
        groups.setdefault(key, []).append(member)
    return list(groups.values())


def advance_group(members: list[Member], rows: Rows, labels: Array, points: Array) -> None:
    """One block of rounds of members that go together, timed; what they share is counted in equal
    parts.

    What a learner raises is its run's failure, with the rounds of earlier blocks done; if it comes
    from what they share, that of all.
    """
    predictions = np.empty((len(members), labels.size))
    learners = [learner_named(m.run.learner) for m in members]
    params, states = [m.params for m in members], [m.state for m in members]
    failures: dict[int, Exception] = {}
    begun = time.perf_counter()
    try:
        if issubclass(learners[0], SharedKernelLearner):
            scan = SharedKernelScan(learners, params, states)
            done = scan.advance(rows, labels, predictions)
            states, failures = scan.states, scan.failures
        else:
            state, rounds = learners[0].advance(params[0], states[0], rows, labels, predictions[0])
            states, done = [state], [rounds]
    except Exception as error:
        done, failures = [0] * len(members), dict.fromkeys(range(len(members)), error)
    seconds = (time.perf_counter() - begun) / len(members)
    for i, (member, state, rounds, line) in enumerate(
        zip(members, states, done, predictions, strict=True)
    ):
        member.state = state
        member.seconds += seconds
        if i in failures:
            member.fail(failures[i])
        else:
            count(member, line, labels, rounds, points)


def count(member: Member, predictions: Array, labels: Array, done: int, points: Array) -> None:
    """Add a block's rounds to a member's totals. A prediction that is not finite ends the run as
    diverged.
    """
    loss = LOSSES[str(member.run.params.get("loss", "squared"))]
    member.at = tally(
        loss, predictions, labels, done, member.totals, points, member.at, member.curve
    )
    if done < labels.size:
        member.status = "diverged"
        member.error = f"the prediction of round {int(member.totals[0]) + 1} is {predictions[done]}"
    elif not np.isfinite(member.totals[1]):
        member.status = "diverged"
        member.error = f"the cumulative loss is {member.totals[1]} by round {int(member.totals[0])}"


def check_labels(run: Run, classes: list[float], task: str) -> None:
    """Refuse a stream whose labels the loss cannot take. Raises `WrongInput` with the remedy."""
    if run.stream.positive_class is not None and task == "regression":
        raise WrongInput(
            f"{run.stream.dataset!r} is a regression set, which has no classes; leave out"
            " positive_class"
        )
    binary = run.stream.positive_class is not None or (
        task == "classification" and set(classes) <= {-1.0, 1.0}
    )
    if (
        run.stream.positive_class is not None
        and classes
        and run.stream.positive_class not in classes
    ):
        shown = ", ".join(f"{c:g}" for c in classes[:30])
        raise WrongInput(
            f"dataset {run.stream.dataset!r} has no label {run.stream.positive_class:g}; its labels"
            f" are {shown}"
        )
    if task == "classification" and not binary:
        raise WrongInput(
            f"dataset {run.stream.dataset!r} has the labels"
            f" {', '.join(f'{c:g}' for c in classes[:30])}, not -1 and +1; add positive_class ="
            f" {classes[-1]:g} (or another of them) to its [[dataset]] table to learn that class"
            " against the rest"
        )
    if not binary and run.params["loss"] not in OF_REAL_LABELS:
        raise WrongInput(
            f"the {run.params['loss']} loss needs labels -1 and +1, and {run.stream.dataset!r} is a"
            " regression set"
        )
