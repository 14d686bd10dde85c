"""The sweep planner, which groups runs into cohorts.

Few passes share reading and kernel values; many cohorts keep all workers busy until the end:

- A cohort lasts min(`cohort_seconds`, max(served, total / (12 · workers))) of all runs' seconds,
  where served is max(0.25 s, 0.006 s · workers).
- It lasts at least 10 readings of its stream, and 8 times its runs' shared work, unless a worker
  would then have none.
- A worker's last cohorts are a half and two quarters of that.
- A short cohort of each learner starts first, then the longest; those of a learner that takes more
  time than all others come last.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, repeat

from koco_stream.runs.cost_model import SAVED_BYTES_PER_SECOND, Costs, DataSize, RunCost, pass_bytes
from koco_stream.runs.run import NO_PAUSE, NO_RUNGS, Cohort, Pause, Run, Rungs
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
LONG = 10.0  # seconds of a learner's runs that are worth a word, and an order of their own


@dataclass(frozen=True)
class Limits:
    """The limits of a plan; None stands for no limit.

    An interrupted cohort loses at most `checkpoint_seconds` of work. `paused_bytes` is the room on
    disk for cohorts that pause.
    """

    workers: int
    worker_bytes: int
    cohort_seconds: float = 20.0
    checkpoint_seconds: float = 60.0
    cohort_runs: int = 4096
    paused_bytes: int | None = None
    time_limit: float | None = None


@dataclass(frozen=True)
class Plan:
    """A sweep's cohorts in the order of their start, and what was planned with.

    `memory` is a worker's peak in bytes, by term. `taken` are each learner's seconds without time
    limit.
    """

    cohorts: tuple[Cohort, ...]
    memory: dict[str, int]
    costs: Costs
    taken: dict[str, float]

    @property
    def runs(self) -> list[Run]:
        """All runs of the plan."""
        return [run for cohort in self.cohorts for run in cohort.runs]

    @property
    def seconds(self) -> float:
        """All cohorts' seconds on one core, within time limits."""
        return sum(min(cohort.seconds, cohort.seconds_allowed) for cohort in self.cohorts)


@dataclass
class UnfinishedCohort:
    """A cohort under construction."""

    stream: Stream
    costs: Costs
    pause: Pause = NO_PAUSE
    runs: list[Run] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    shared: dict[tuple[object, ...], tuple[float, int]] = field(default_factory=dict)

    @cached_property
    def pass_memory(self) -> dict[str, int]:
        """A worker's memory without the states, in bytes by term."""
        return pass_bytes(self.stream, self.costs.sizes[self.stream.dataset_hash])

    @property
    def memory(self) -> dict[str, int]:
        """A worker's memory for the cohort, in bytes by term."""
        return {**self.pass_memory, "states of a cohort": self.bytes}

    def bytes_with(self, cost: RunCost) -> int:
        """A worker's memory for the cohort and one more run."""
        shared = max(cost.shared_bytes - self.shared.get(cost.key, (0.0, 0))[1], 0)
        return sum(self.memory.values()) + cost.bytes + shared

    def add(self, run: Run, cost: RunCost) -> None:
        """Add a run; of work that runs share, the largest requirement counts."""
        seconds, held = self.shared.get(cost.key, (0.0, 0))
        self.runs.append(run)
        self.bytes += cost.bytes + max(cost.shared_bytes - held, 0)
        self.seconds += cost.seconds + max(cost.shared_seconds - seconds, 0.0)
        self.shared[cost.key] = max(seconds, cost.shared_seconds), max(held, cost.shared_bytes)

    def finished(self, limits: Limits, pauses: bool) -> Cohort:
        """The cohort, with checkpoints if it takes long; if it `pauses`, longer runs may go on from
        it.
        """
        seconds = self.seconds + self.costs.reading(self.stream, self.pause.rounds)
        between = max(limits.checkpoint_seconds, self.bytes / SAVED_BYTES_PER_SECOND / SAVING_SHARE)
        rounds = self.costs.sizes[self.stream.dataset_hash].rounds(self.stream)
        rest = rounds - self.pause.rounds
        every = max(1, int(rest * between / seconds)) if seconds > between else 0
        left = max(limits.worker_bytes - sum(self.pass_memory.values()), 1)
        cohort = Cohort(
            self.stream,
            tuple(self.runs),
            seconds,
            every,
            left,
            self.costs.rungs.later.get(self.stream, ()) if pauses else (),
            self.pause,
            limits.time_limit,
        )
        return cohort if cohort.resumable else replace(cohort, checkpoint_rounds=0, later=())


def plan(
    runs: Sequence[Run],
    sizes: dict[str, DataSize],
    limits: Limits,
    begun: Sequence[Sequence[str]] = (),
    factors: dict[str, float] | None = None,
    rungs: Rungs = NO_RUNGS,
) -> Plan:
    """Group runs into cohorts: few passes, all workers busy to the end, memory within the limit.

    `begun` has the run_ids of each cohort with a checkpoint, which is kept if it still fits.
    `MemoryError` says that a single run does not fit a worker.
    """
    costs = Costs(sizes, factors or {}, limits.worker_bytes, rungs)
    left = {run.run_id: (run, costs.of(run)) for run in runs}
    alike = Counter((run.stream, cost.key) for run, cost in left.values())
    taken: dict[str, float] = defaultdict(float)
    for run, cost in left.values():
        taken[run.learner] += cost.seconds + cost.shared_seconds / alike[run.stream, cost.key]
    longest = longest_of(taken)
    planned: list[UnfinishedCohort] = []
    for ids in sorted(begun, key=len, reverse=True):
        if ids and left.keys() >= set(ids):
            (pause, *others) = {rungs.pause(left[run_id][0]) for run_id in ids}
            resumable = UnfinishedCohort(
                left[ids[0]][0].stream, costs, NO_PAUSE if others else pause
            )
            for run_id in ids:
                resumable.add(*left[run_id])
            if sum(resumable.memory.values()) <= limits.worker_bytes:
                planned.append(resumable)
                for run_id in ids:
                    del left[run_id]
    passes: dict[tuple[Stream, Pause, bool], list[tuple[Run, RunCost]]] = {}
    alone: list[UnfinishedCohort] = []  # runs that may fail or hang, and cannot be resumed
    for run, cost in left.values():
        if run.learner_class.numbers == "foreign":
            alone.append(UnfinishedCohort(run.stream, costs))
            alone[-1].add(run, cost)
        else:
            key = run.stream, rungs.pause(run), run.learner == longest
            passes.setdefault(key, []).append((run, cost))
    total = sum(cost.seconds for costed in passes.values() for _, cost in costed)
    for key, costed in passes.items():
        empty = UnfinishedCohort(key[0], costs, key[1])
        planned += cohorts_of(empty, costed, limits, total)
    planned += alone  # last, so that cohorts that can pause have the room
    memory = max(
        (cohort.memory for cohort in planned), key=lambda terms: sum(terms.values()), default={}
    )
    room = math.inf if limits.paused_bytes is None else limits.paused_bytes
    full = accumulate(one.bytes for one in planned)
    cohorts = sorted(
        (one.finished(limits, used <= room) for one, used in zip(planned, full, strict=True)),
        key=lambda cohort: (
            any(run.learner == longest for run in cohort.runs),
            -cohort.seconds,
            cohort.cohort_id,
        ),
    )
    return Plan(tuple(early_results(cohorts, longest)), memory, costs, taken)


def longest_of(taken: dict[str, float]) -> str | None:
    """The learner that takes more time than all others, if that is long."""
    longest = max(taken, key=taken.__getitem__, default="")
    return (
        longest if len(taken) > 1 and taken[longest] > max(LONG, sum(taken.values()) / 2) else None
    )


def early_results(cohorts: list[Cohort], longest: str | None) -> list[Cohort]:
    """The cohorts after a short one of each learner, except the `longest`."""
    shortest = {
        run.learner: cohort
        for cohort in cohorts
        for run in cohort.runs[:1]
        if longest not in {one.learner for one in cohort.runs}
    }
    early = sorted(shortest.values(), key=lambda cohort: (cohort.seconds, cohort.cohort_id))
    first = {cohort.cohort_id for cohort in early}
    return [*early, *(cohort for cohort in cohorts if cohort.cohort_id not in first)]


def cohorts_of(
    empty: UnfinishedCohort, costed: list[tuple[Run, RunCost]], limits: Limits, total: float
) -> list[UnfinishedCohort]:
    """Split one stream's runs into cohorts, the first of which is `empty`."""
    workers = max(limits.workers, 1)
    served = max(SHORTEST, SERVING_SECONDS * workers)  # each worker is served once in this time
    least = max(served, PASSES * empty.costs.reading(empty.stream, empty.pause.rounds))
    target = min(limits.cohort_seconds, max(served, total / (COHORTS_A_WORKER * workers)))
    by_key: dict[tuple[object, ...], list[tuple[Run, RunCost]]] = {}
    for costed_run in costed:
        by_key.setdefault(costed_run[1].key, []).append(costed_run)
    cohort = empty
    cohorts = [empty]
    for _, alike in sorted(by_key.items(), key=lambda item: str(item[0])):
        lengths = cohort_lengths(alike, workers, least, max(target, least))
        intended = next(lengths)
        # What is left over of the runs before, if it is too short, is filled up with these.
        longest = max(intended, least) if 0 < cohort.seconds < least else intended
        for run, cost in alike:
            full = (
                len(cohort.runs) >= limits.cohort_runs
                or cohort.bytes_with(cost) > limits.worker_bytes
            )
            if cohort.runs and (full or cohort.seconds + cost.seconds / 2 > longest):
                # A cohort's deviation from its intended duration is carried over to the next one of
                # the same key. Otherwise the number of cohorts would not be the intended one, and
                # workers would wait for the last. The lower limit is for a run much longer than
                # the others.
                carried = 0.0
                if run is not alike[0][0]:
                    carried = 0.0 if full else max(longest - cohort.seconds, -intended / 2)
                    intended = next(lengths)
                longest = intended + carried
                cohort = UnfinishedCohort(empty.stream, empty.costs, empty.pause)
                cohorts.append(cohort)
            if cohort.bytes_with(cost) > limits.worker_bytes:
                raise MemoryError(
                    f"{run.learner} on {empty.stream.dataset} needs"
                    f" {cohort.bytes_with(cost) >> 20} MiB on a worker, and a worker has"
                    f" {limits.worker_bytes >> 20} MiB; use fewer workers, a smaller sketch or"
                    " dictionary, or a machine with more memory"
                )
            cohort.add(run, cost)
    return cohorts


def cohort_lengths(
    alike: list[tuple[Run, RunCost]], workers: int, least: float, target: float
) -> Iterator[float]:
    """The seconds of successive cohorts of runs that share work; the last ones are shorter."""
    own = sum(cost.seconds for _, cost in alike)
    shared = alike[0][1].shared_seconds
    cohorts = max(1, math.ceil(own / max(target, min(OUTWEIGHS * shared, own / workers))))
    if cohorts > workers:
        cohorts = -(-cohorts // workers) * workers
    last = [own / cohorts]
    # A cohort of whole runs may be shorter than intended by almost one run.
    shortest = max(least, OUTWEIGHS * shared) + max(cost.seconds for _, cost in alike)
    while cohorts > workers and len(last) < LAST_PIECES and last[-1] / 2 >= shortest:
        last[-1:] = [last[-1] / 2] * 2
    return chain(
        repeat(shared + own / cohorts, max(cohorts - workers, 0)),
        (shared + piece for piece in last for _ in range(min(cohorts, workers))),
        repeat(shared + own / cohorts),  # if other limits have made them shorter
    )
