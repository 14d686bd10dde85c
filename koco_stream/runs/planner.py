"""The plan: runs → cohorts. Pure arithmetic, no I/O; the same input gives the same plan.

Two aims are balanced: few passes over the data, since what a pass reads, and kernel values, are
shared by the runs of a cohort; and all workers busy to the end, which takes many cohorts, the
longest first. Memory is a limit, not an aim.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from koco_stream.runs.cost_model import SAVED_BYTES_PER_SECOND, Costs, DataSize, RunCost, pass_bytes
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.stream import Stream

# seconds of a cohort, where there is work for more: what sending and committing it costs is then
# small
SHORTEST = 0.25
# of the driver and the scheduler, for a cohort there and back: they serve one after the other, for
# all workers
SERVING_SECONDS = 0.006
PASSES = 10  # a cohort takes at least so many times what reading its stream does
COHORTS_A_WORKER = 12  # so that the last one, which others wait for, is a small part of the whole
LAST_PIECES = 3  # at most, in which the last cohort of a worker is cut: a half and two quarters
# times what they share, at least, is the own work of runs that share something, before they are
# parted further
OUTWEIGHS = 8
SAVING_SHARE = 0.01  # of a cohort's time, at most, for its checkpoints


@dataclass(frozen=True)
class Limits:
    """What a plan must respect: workers, the memory of each in bytes; the longest cohort wished for
    and how much of a longer one may be lost, both in seconds; the most runs of a cohort.
    """

    workers: int
    worker_bytes: int
    cohort_seconds: float = 20.0
    checkpoint_seconds: float = 60.0
    cohort_runs: int = 4096


@dataclass(frozen=True)
class Plan:
    """Cohorts, the longest first, and the most memory one of them needs on a worker, as named terms
    in bytes.
    """

    cohorts: tuple[Cohort, ...]
    memory: dict[str, int]

    @property
    def runs(self) -> list[Run]:
        """All runs of the plan."""
        return [run for cohort in self.cohorts for run in cohort.runs]

    @property
    def seconds(self) -> float:
        """The expected computing time of all cohorts together, on one core."""
        return sum(cohort.seconds for cohort in self.cohorts)


@dataclass
class Batch:
    """A cohort being filled."""

    stream: Stream
    costs: Costs
    runs: list[Run] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    shared: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)

    def more_bytes(self, cost: RunCost) -> int:
        """What a run of this cost would add."""
        return cost.bytes + max(cost.shared_bytes - self.shared.get(cost.key, (0.0, 0))[1], 0)

    def add(self, run: Run, cost: RunCost) -> None:
        """Take a run in. Of what runs share, that of the one that needs most of it counts."""
        seconds, held = self.shared.get(cost.key, (0.0, 0))
        self.runs.append(run)
        self.bytes += self.more_bytes(cost)
        self.seconds += cost.seconds + max(cost.shared_seconds - seconds, 0.0)
        self.shared[cost.key] = max(seconds, cost.shared_seconds), max(held, cost.shared_bytes)

    @property
    def memory(self) -> dict[str, int]:
        """What a worker needs for it, as named terms in bytes."""
        return {
            **pass_bytes(self.stream, self.costs.sizes[self.stream.dataset_hash]),
            "states of a cohort": self.bytes,
        }

    def cohort(self, limits: Limits) -> Cohort:
        """The cohort, with checkpoints if it takes longer than may be lost: rarely enough that
        saving takes little of its time.
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

    `sizes` is by dataset hash; `factors` correct the declared costs, by learner (see
    `cost_model.factors_of`). Cohorts that were begun and left a checkpoint, named by their run_ids,
    stay as they were, if they fit.

    Raises `MemoryError` with the sum if a single run does not fit a worker.
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
    shortest = max(SHORTEST, SERVING_SECONDS * workers)  # in which each worker is served once
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
    """The runs of one stream in batches that take `aims` seconds, the least and the usual; `taken`
    are the bytes of a worker without any run.
    """
    by_key: dict[tuple[object, ...], list[tuple[Run, RunCost]]] = {}
    for one in costed:
        by_key.setdefault(one[1].key, []).append(one)
    batches = [Batch(stream, costs)]
    for _, alike in sorted(by_key.items(), key=lambda item: str(item[0])):
        lengths = batch_lengths(alike, limits, *aims)
        wished = longest = next(lengths)
        for run, cost in alike:
            batch = batches[-1]
            full = (
                len(batch.runs) >= limits.cohort_runs
                or taken + batch.bytes + batch.more_bytes(cost) > limits.worker_bytes
            )
            if batch.runs and (full or batch.seconds + cost.seconds / 2 > longest):
                # What one batch has too little or too much, the next one gets or lacks: else their
                # number would not be the one wished for, and a worker would wait for the last. The
                # half is for a single run that is much longer than others.
                carried = 0.0 if full else max(longest - batch.seconds, -wished / 2)
                wished = next(lengths)
                longest = wished + carried
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
    """The seconds that batches of these runs, which share something, are to take, one by one:
    equal parts, as many as keep all workers busy, of which the last of each worker is cut in
    smaller ones, since nobody knows exactly how long one takes. Runs that share much stay together
    until their own work outweighs it by far, if that leaves something for every worker.
    """
    workers = max(limits.workers, 1)
    own, shared = sum(cost.seconds for _, cost in alike), alike[0][1].shared_seconds
    parts = max(1, math.ceil(own / max(target, min(OUTWEIGHS * shared, own / workers))))
    if parts > workers:
        parts = -(-parts // workers) * workers
    last = [own / parts]
    shortest = max(least, OUTWEIGHS * shared, max(cost.seconds for _, cost in alike))
    while parts > workers and len(last) < LAST_PIECES and last[-1] / 2 >= shortest:
        last[-1:] = [last[-1] / 2] * 2
    yield from [shared + own / parts] * (parts - workers)
    for piece in last:
        yield from [shared + piece] * min(parts, workers)
    while True:  # where other limits have cut them shorter
        yield shared + own / parts
