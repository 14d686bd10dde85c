"""What a worker does: read a stream once, advance every run of a cohort block by block, commit one result part."""

from __future__ import annotations

import platform
import socket
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import koco_stream
from koco_stream.comparator import Comparator, comparator_of
from koco_stream.errors import WrongInput
from koco_stream.files import canonical_json
from koco_stream.learners import learner_named
from koco_stream.linalg import Array
from koco_stream.losses import LOSSES
from koco_stream.member import Member, start
from koco_stream.places import Place, Where, place
from koco_stream.records import RUNS, curve_points, part_schema, recorded
from koco_stream.resume import checkpoint_of, resumed, save_cohort
from koco_stream.rows import Rows, with_intercept
from koco_stream.runs import Cohort, Run
from koco_stream.scan import advance, tally
from koco_stream.stream import BLOCK_ROWS, StreamReader
from koco_stream.together import Together, reads_tiles


@dataclass(frozen=True)
class Receipt:
    """What comes back over the wire: which cohort, how many runs and rounds, how long. Never data."""

    cohort_id: str
    runs: int
    not_ok: int
    rounds: int
    scan_seconds: float
    seconds: float


def parts_folder(store: Where) -> Place:
    """Where workers commit result parts."""
    return place(store) / "results" / "parts"


def run_cohort(store: str, sweep: str, cohort: Cohort, block_rows: int = BLOCK_ROWS) -> Receipt:
    """Run a cohort over its stream and commit its part. Doing it twice gives the same file. If it was cut, it goes on from its last
    checkpoint, which goes when the part is there.

    Raises `WrongInput` if the dataset is missing, damaged or changed.
    """
    begun = time.perf_counter()
    reader = StreamReader(store, cohort.stream)
    points = curve_points(reader.n_rows)
    members, done = [start(run, reader.manifest.n_features, points) for run in cohort.runs], 0
    checkpoint = checkpoint_of(store, cohort)
    if cohort.checkpoint_rounds:
        done = resumed(checkpoint, members)
    known = sum(int(member.totals[0]) for member in members)
    while done < reader.n_rows:
        every = cohort.checkpoint_rounds or reader.n_rows
        until = min((done // every + 1) * every, reader.n_rows)
        advance_members(members, reader, done, until, block_rows, points)
        done = until
        if done < reader.n_rows:
            save_cohort(checkpoint, done, members)
    table = part_of(sweep, cohort, members, points, reader.manifest.task, comparators_for(reader, members))
    with (parts_folder(store) / f"{cohort.cohort_id}.parquet").written() as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
    if cohort.checkpoint_rounds:
        checkpoint.remove()
    return Receipt(
        cohort.cohort_id,
        len(members),
        sum(member.status != "ok" for member in members),
        sum(int(member.totals[0]) for member in members) - known,
        sum(member.seconds for member in members),
        time.perf_counter() - begun,
    )


def advance_members(members: list[Member], reader: StreamReader, first: int, last: int, block_rows: int, points: Array) -> None:
    """Rounds `first` to `last` of the stream, for all members that are still ok."""
    groups = grouped(members)
    for block in reader.blocks(block_rows, start=first, stop=last):
        widened = with_intercept(block.rows) if any(member.run.params["fit_intercept"] for member in members) else block.rows
        for group in groups:
            live = [member for member in group if member.status == "ok"]
            if live:
                rows = widened if live[0].run.params["fit_intercept"] else block.rows
                advance_group(live, rows, block.labels, points)


def comparators_for(reader: StreamReader, members: list[Member]) -> dict[bool, Comparator]:
    """The comparators, by `fit_intercept`, of the runs that have one: those with the squared loss that went through the whole stream."""
    wanted = {bool(m.run.params["fit_intercept"]) for m in members if m.status == "ok" and m.run.params.get("loss") == "squared"}
    return {intercept: comparator_of(reader, intercept) for intercept in sorted(wanted)}


def grouped(members: list[Member]) -> list[list[Member]]:
    """Members that share their kernel values go together, the others alone."""
    groups: dict[Any, list[Member]] = {}
    for i, member in enumerate(members):
        shares = reads_tiles(member.run.learner)
        key = (member.params.kernel, member.run.params["fit_intercept"]) if shares else i
        groups.setdefault(key, []).append(member)
    return list(groups.values())


def advance_group(members: list[Member], rows: Rows, labels: Array, points: Array) -> None:
    """One block of rounds of members that go together, timed; what they share is counted in equal parts."""
    predictions = np.empty((len(members), labels.size))
    begun = time.perf_counter()
    if reads_tiles(members[0].run.learner):
        together = Together([m.run.learner for m in members], [m.params for m in members], [m.state for m in members])
        done = together.advance(rows, labels, predictions)
        states = together.states
    else:
        (member,) = members
        state, rounds = advance(member.run.learner, member.params, member.state, rows, labels, predictions[0])
        states, done = [state], [rounds]
    seconds = (time.perf_counter() - begun) / len(members)
    for member, state, rounds, line in zip(members, states, done, predictions, strict=True):
        member.state = state
        member.seconds += seconds
        count(member, line, labels, rounds, points)


def count(member: Member, predictions: Array, labels: Array, done: int, points: Array) -> None:
    """Add a block's rounds to a member's totals. A prediction that is not finite ends the run as diverged."""
    loss = LOSSES[str(member.run.params.get("loss", "squared"))]
    member.at = tally(loss, predictions, labels, done, member.totals, points, member.at, member.curve)
    if done < labels.size:
        member.status = "diverged"
        member.error = f"the prediction of round {int(member.totals[0]) + 1} is {predictions[done]}"
    elif not np.isfinite(member.totals[1]):
        member.status = "diverged"
        member.error = f"the cumulative loss is {member.totals[1]} by round {int(member.totals[0])}"


def dictionary_sizes(member: Member, points: Array) -> tuple[int | None, list[int | None]]:
    """The dictionary's size at the end, and at each of these rounds where its points stay once they have joined; None if there is none."""
    if member.state is None:
        return None, [None] * points.size
    size = recorded(member.state).get("dictionary_size")
    module = learner_named(member.run.learner).module
    if not hasattr(module, "joined"):
        return size, [None] * points.size
    return size, [int(k) for k in np.searchsorted(module.joined(member.state), points, side="right")]


def part_of(sweep: str, cohort: Cohort, members: list[Member], points: Array, task: str, comparators: dict[bool, Comparator]) -> pa.Table:
    """The cohort's result part: see `records.part_schema`."""
    finished = datetime.now(UTC)
    classification = task == "classification" or cohort.stream.positive_class is not None
    rows = []
    for member in members:
        run, (rounds, loss, mistakes) = member.run, member.totals
        size, sizes = dictionary_sizes(member, points)
        comparator = (
            comparators.get(bool(run.params["fit_intercept"])) if member.status == "ok" and run.params.get("loss") == "squared" else None
        )
        row: dict[str, Any] = dict.fromkeys(column.name for column in RUNS)
        row.update(run.params)
        row.update(
            run_id=run.run_id,
            sweep=sweep,
            dataset=run.stream.dataset,
            dataset_hash=run.stream.dataset_hash,
            positive_class=run.stream.positive_class,
            order=run.stream.order,
            order_seed=run.stream.order_seed,
            window_rows=run.stream.window_rows,
            sharding=run.stream.sharding,
            max_rows=run.stream.max_rows,
            learner=run.learner,
            params=canonical_json(run.params),
            numbers_version=learner_named(run.learner).numbers_version,
            learner_seed=run.learner_seed,
            status=member.status,
            error=member.error,
            rounds=int(rounds),
            mean_loss=loss / rounds if rounds else None,
            error_rate=mistakes / rounds if rounds and classification else None,
            regret=loss - comparator.loss if comparator else None,
            comparator_largest=comparator.largest if comparator else None,
            seconds=member.seconds,
            rounds_per_second=rounds / member.seconds if member.seconds > 0 else None,
            dictionary_size=size,
            cohort_size=len(members),
            host=machine(),
            version=versions(),
            finished_at=finished,
        )
        row["curve"] = [
            {"t": int(t), "cumulative_loss": line[1], "mistakes": int(line[2]) if classification else None, "dictionary_size": at}
            for t, line, at in zip(points[: member.at], member.curve[: member.at], sizes[: member.at], strict=True)
        ]
        rows.append(row)
    return pa.Table.from_pylist(rows, part_schema())


@cache
def machine() -> str:
    """This machine's name and processor."""
    processor = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass  # not Linux: the architecture's name has to do
    return f"{socket.gethostname()} ({processor})"


@cache
def versions() -> str:
    """The versions that numbers may depend on to rounding."""
    return f"koco_stream {koco_stream.__version__}, numpy {np.__version__}, numba {numba.__version__}, python {sys.version.split()[0]}"


def check_labels(run: Run, classes: list[float], task: str) -> None:
    """Refuse a stream whose labels the loss cannot take. Raises `WrongInput` with the remedy."""
    if run.stream.positive_class is not None and task == "regression":
        raise WrongInput(f"{run.stream.dataset!r} is a regression set, which has no classes; leave out positive_class")
    binary = run.stream.positive_class is not None or (task == "classification" and set(classes) <= {-1.0, 1.0})
    if run.stream.positive_class is not None and classes and run.stream.positive_class not in classes:
        shown = ", ".join(f"{c:g}" for c in classes[:30])
        raise WrongInput(f"dataset {run.stream.dataset!r} has no label {run.stream.positive_class:g}; its labels are {shown}")
    if task == "classification" and not binary:
        raise WrongInput(
            f"dataset {run.stream.dataset!r} has the labels {', '.join(f'{c:g}' for c in classes[:30])}, not -1 and +1; add "
            f"positive_class = {classes[-1]:g} (or another of them) to its [[dataset]] table to learn that class against the rest"
        )
    if not binary and run.params["loss"] != "squared":
        raise WrongInput(f"the {run.params['loss']} loss needs labels -1 and +1, and {run.stream.dataset!r} is a regression set")
