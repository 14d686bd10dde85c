"""The sweep planner, which groups runs into cohorts.

It does arithmetic only, no I/O, and the same input always gives the same plan.

It balances two aims. Few passes over the data, because the runs of a cohort share what a pass reads
and its kernel values. And all workers busy until the end, which needs many cohorts, started longest
first. Memory is a hard limit.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from koco_stream.runs.cost_model import SAVED_BYTES_PER_SECOND, Costs, DataSize, RunCost, pass_bytes
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.stream import Stream

# The minimum duration of a cohort in seconds, if there is enough work. It keeps the overhead of
# sending and committing small.
SHORTEST = 0.25
# The time of the driver and scheduler to dispatch a cohort and receive its result. They handle
# one cohort at a time for all workers.
SERVING_SECONDS = 0.006
PASSES = 10  # a cohort's minimum duration, as a multiple of the time to read its stream
COHORTS_A_WORKER = 12  # many, so that waiting for the last cohort is a small share of the time
LAST_PIECES = 3  # the most pieces of a worker's last cohort: a half and two quarters
# Runs that share work are split further only if their own work is at least this multiple of what
# they share.
OUTWEIGHS = 8
SAVING_SHARE = 0.01  # the largest share of a cohort's time that checkpoints may take


@dataclass(frozen=True)
class Limits:
    """The limits of a plan.

    Parameters
    ----------
    workers : int
        Number of worker processes.
    worker_bytes : int
        Memory of each worker, in bytes.
    cohort_seconds : float
        The preferred maximum duration of a cohort.
    checkpoint_seconds : float
        The most work, in seconds, that an interrupted cohort may lose.
    cohort_runs : int
        The maximum number of runs in a cohort.
    """

    workers: int
    worker_bytes: int
    cohort_seconds: float = 20.0
    checkpoint_seconds: float = 60.0
    cohort_runs: int = 4096


@dataclass(frozen=True)
class Plan:
    """A sweep's cohorts, longest first, and the peak memory of a worker in bytes, by named term."""

    cohorts: tuple[Cohort, ...]
    memory: dict[str, int]

    @property
    def runs(self) -> list[Run]:
        """All runs of the plan."""
        return [run for cohort in self.cohorts for run in cohort.runs]

    @property
    def seconds(self) -> float:
        """The expected computing time of all cohorts in total, on one core."""
        return sum(cohort.seconds for cohort in self.cohorts)


@dataclass
class Batch:
    """A cohort under construction, with its expected time and memory."""

    stream: Stream
    costs: Costs
    runs: list[Run] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    shared: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)

    def more_bytes(self, cost: RunCost) -> int:
        """The additional memory that a run of this cost would need in the cohort."""
        return cost.bytes + max(cost.shared_bytes - self.shared.get(cost.key, (0.0, 0))[1], 0)

    def add(self, run: Run, cost: RunCost) -> None:
        """Add a run to the cohort.

        For work that runs share, the largest requirement among them counts once.
        """
        seconds, held = self.shared.get(cost.key, (0.0, 0))
        self.runs.append(run)
        self.bytes += self.more_bytes(cost)
        self.seconds += cost.seconds + max(cost.shared_seconds - seconds, 0.0)
        self.shared[cost.key] = max(seconds, cost.shared_seconds), max(held, cost.shared_bytes)

    @property
    def memory(self) -> dict[str, int]:
        """The memory that a worker needs for the cohort, in bytes by named term."""
        return {
            **pass_bytes(self.stream, self.costs.sizes[self.stream.dataset_hash]),
            "states of a cohort": self.bytes,
        }

    def cohort(self, limits: Limits) -> Cohort:
        """The finished cohort.

        It gets checkpoints if it runs longer than the limit on lost work, spaced so that saving
        takes a small share of its time.
        """
        seconds = self.seconds + self.costs.reading(self.stream)
        between = max(limits.checkpoint_seconds, self.bytes / SAVED_BYTES_PER_SECOND / SAVING_SHARE)
        rounds = self.costs.sizes[self.stream.dataset_hash].rounds(self.stream)
        every = max(1, int(rounds * between / seconds)) if seconds > between else 0
        return Cohort(self.stream, tuple(self.runs), seconds, every)


def plan(
    runs: Sequence[Run],
    sizes: dict[str, DataSize],
    limits: Limits,
    begun: Sequence[Sequence[str]] = (),
    factors: dict[str, float] | None = None,
) -> Plan:
    """Group runs into cohorts: few passes, all workers busy to the end, memory within the limit.

    Parameters
    ----------
    runs : sequence of Run
        The runs, each identity once.
    sizes : dict of str to DataSize
        The datasets' sizes, by dataset hash.
    limits : Limits
        Workers, memory and durations.
    begun : sequence of sequence of str
        The run_ids of each cohort that has a checkpoint. Such a cohort is kept as it is if all of
        its runs are in `runs` and it fits the memory.
    factors : dict of str to float, optional
        Corrections of the declared costs, by learner; see `cost_model.factors_of`.

    Returns
    -------
    Plan
        The cohorts, longest first.

    Raises
    ------
    MemoryError
        A single run does not fit a worker; the message has the number of bytes.
    """
    costs = Costs(sizes, factors or {})
    left = {run.run_id: run for run in runs}
    batches = []
    for ids in begun:
        if ids and left.keys() >= set(ids):
            batch = Batch(left[ids[0]].stream, costs)
            for run_id in ids:
                batch.add(left[run_id], costs.of(left[run_id]))
            if sum(batch.memory.values()) <= limits.worker_bytes:
                batches.append(batch)
                for run_id in ids:
                    del left[run_id]
    streams: dict[Stream, list[tuple[Run, RunCost]]] = {}
    for run in runs:
        if run.run_id in left:
            streams.setdefault(run.stream, []).append((run, costs.of(run)))
    total = sum(cost.seconds for costed in streams.values() for _, cost in costed)
    workers = max(limits.workers, 1)
    shortest = max(SHORTEST, SERVING_SECONDS * workers)  # each worker is served once in this time
    target = min(limits.cohort_seconds, max(shortest, total / (COHORTS_A_WORKER * workers)))
    for stream, costed in streams.items():
        taken = sum(Batch(stream, costs).memory.values())
        least = max(shortest, PASSES * costs.reading(stream))
        batches += batches_of(stream, costed, costs, limits, (least, max(target, least)), taken)
    memory = max(
        (batch.memory for batch in batches), key=lambda terms: sum(terms.values()), default={}
    )
    cohorts = sorted(
        (batch.cohort(limits) for batch in batches),
        key=lambda cohort: (-cohort.seconds, cohort.cohort_id),
    )
    return Plan(tuple(cohorts), memory)


def batches_of(
    stream: Stream,
    costed: list[tuple[Run, RunCost]],
    costs: Costs,
    limits: Limits,
    aims: tuple[float, float],
    taken: int,
) -> list[Batch]:
    """Split the runs of one stream into batches.

    `aims` are the minimum and the usual duration of a batch in seconds; `taken` is the memory in
    bytes of a worker before any run.
    """
    by_key: dict[tuple[object, ...], list[tuple[Run, RunCost]]] = {}
    for costed_run in costed:
        by_key.setdefault(costed_run[1].key, []).append(costed_run)
    batches = [Batch(stream, costs)]
    for _, alike in sorted(by_key.items(), key=lambda item: str(item[0])):
        lengths = batch_lengths(alike, limits, *aims)
        intended = longest = next(lengths)
        for run, cost in alike:
            batch = batches[-1]
            full = (
                len(batch.runs) >= limits.cohort_runs
                or taken + batch.bytes + batch.more_bytes(cost) > limits.worker_bytes
            )
            if batch.runs and (full or batch.seconds + cost.seconds / 2 > longest):
                # A batch's deviation from its intended duration is carried over to the next one.
                # Otherwise the number of batches would not be the intended one, and workers would
                # wait for the last. The lower limit is for a run much longer than the others.
                carried = 0.0 if full else max(longest - batch.seconds, -intended / 2)
                intended = next(lengths)
                longest = intended + carried
                batch = Batch(stream, costs)
                batches.append(batch)
            if taken + batch.bytes + batch.more_bytes(cost) > limits.worker_bytes:
                raise MemoryError(
                    f"{run.learner} on {stream.dataset} needs"
                    f" {(taken + batch.more_bytes(cost)) >> 20} MiB on a worker, and a worker has"
                    f" {limits.worker_bytes >> 20} MiB; use fewer workers, a smaller sketch or a"
                    " machine with more memory"
                )
            batch.add(run, cost)
    return batches


def batch_lengths(
    alike: list[tuple[Run, RunCost]], limits: Limits, least: float, target: float
) -> Iterator[float]:
    """Yield the durations, in seconds, of successive batches of runs that share work.

    The batches are of equal length, enough of them to keep all workers busy. Each worker's last one
    is cut into smaller pieces, since the estimates are not exact. Runs that share much work stay
    together until their own work clearly exceeds it, provided every worker still has something to
    do.
    """
    workers = max(limits.workers, 1)
    own, shared = sum(cost.seconds for _, cost in alike), alike[0][1].shared_seconds
    parts = max(1, math.ceil(own / max(target, min(OUTWEIGHS * shared, own / workers))))
    if parts > workers:
        parts = -(-parts // workers) * workers
    last = [own / parts]
    # A batch of whole runs may be shorter than intended by almost one run.
    shortest = max(least, OUTWEIGHS * shared) + max(cost.seconds for _, cost in alike)
    while parts > workers and len(last) < LAST_PIECES and last[-1] / 2 >= shortest:
        last[-1:] = [last[-1] / 2] * 2
    yield from [shared + own / parts] * (parts - workers)
    for piece in last:
        yield from [shared + piece] * min(parts, workers)
    while True:  # further batches, if other limits have made them shorter
        yield shared + own / parts
