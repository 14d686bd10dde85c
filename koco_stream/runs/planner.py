"""The sweep planner, which groups runs into cohorts.

Few passes share reading and kernel values; many cohorts keep all workers busy until the end:

- A cohort lasts min(`cohort_seconds`, total / (12 · workers)) of all runs' seconds, but at least
  max(0.25 s, 0.006 s · workers) and 10 readings of its stream.
- Runs that share kernel values are cut into no more cohorts than there are workers.
- A short cohort of each learner starts first, then the longest; those of a learner that takes more
  time than all others come last.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from koco_stream.runs.cost_model import Costs, DataSize, RunCost, Timing, pass_bytes
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
LONG = 10.0  # seconds of a learner's runs that are worth a word, and an order of their own


@dataclass(frozen=True)
class Limits:
    """The limits of a plan; None stands for no limit."""

    workers: int
    worker_bytes: int
    cohort_seconds: float = 20.0
    checkpoint_seconds: float = 60.0
    cohort_runs: int = 4096
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
    shared: dict[tuple[object, ...], int] = field(default_factory=dict)

    @cached_property
    def pass_memory(self) -> dict[str, int]:
        """A worker's memory without the states, in bytes by term."""
        return pass_bytes(self.stream, self.costs.sizes[self.stream.dataset_hash])

    @property
    def memory(self) -> dict[str, int]:
        """A worker's memory for the cohort, in bytes by term."""
        return {**self.pass_memory, "states of a cohort": self.bytes}

    def more_bytes(self, cost: RunCost) -> int:
        """The bytes of one more run; of what runs share, the largest counts."""
        return cost.bytes + max(cost.shared_bytes - self.shared.get(cost.key, 0), 0)

    def add(self, run: Run, cost: RunCost) -> None:
        """Add a run."""
        self.runs.append(run)
        self.seconds += cost.seconds
        self.bytes += self.more_bytes(cost)
        self.shared[cost.key] = max(self.shared.get(cost.key, 0), cost.shared_bytes)

    def finished(self, limits: Limits) -> Cohort:
        """The cohort, from whose last states longer runs may go on."""
        cohort = Cohort(
            self.stream,
            tuple(self.runs),
            self.seconds + self.costs.reading(self.stream, self.pause.rounds),
            checkpoint_seconds=limits.checkpoint_seconds,
            states_bytes=max(limits.worker_bytes - sum(self.pass_memory.values()), 1),
            later=self.costs.rungs.later.get(self.stream, ()),
            pause=self.pause,
            time_limit=limits.time_limit,
        )
        return cohort if cohort.resumable else replace(cohort, later=())


def plan(
    runs: Sequence[Run],
    sizes: Mapping[str, DataSize],
    limits: Limits,
    saved: Sequence[Sequence[str]] = (),
    timings: Mapping[str, Timing] | None = None,
    rungs: Rungs = NO_RUNGS,
) -> Plan:
    """Group runs into cohorts: few passes, all workers busy to the end, memory within the limit.

    `saved` has the run_ids of each cohort with a checkpoint, which stays together if it still fits.
    `MemoryError` says that a single run does not fit a worker.
    """
    costs = Costs(sizes, timings or {}, limits.worker_bytes, rungs)
    left = {run.run_id: (run, costs.of(run)) for run in runs}
    taken: dict[str, float] = defaultdict(float)
    for run, cost in left.values():
        taken[run.learner] += cost.seconds
    longest = longest_of(taken)
    planned: list[UnfinishedCohort] = []
    for ids in sorted(saved, key=len, reverse=True):
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
    passes: dict[tuple[Stream, Pause, bool], list[tuple[Run, RunCost]]] = defaultdict(list)
    for run, cost in left.values():
        if not run.is_own:  # it may fail or hang, and cannot be resumed
            planned.append(UnfinishedCohort(run.stream, costs))
            planned[-1].add(run, cost)
        else:
            passes[run.stream, rungs.pause(run), run.learner == longest].append((run, cost))
    total = sum(cost.seconds for costed in passes.values() for _, cost in costed)
    for (stream, pause, _), costed in passes.items():
        planned += cohorts_of(UnfinishedCohort(stream, costs, pause), costed, limits, total)
    memory = max(
        (cohort.memory for cohort in planned), key=lambda terms: sum(terms.values()), default={}
    )
    cohorts = sorted(
        (one.finished(limits) for one in planned),
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
    least = max(
        SHORTEST,
        SERVING_SECONDS * workers,  # each worker is served once in this time
        PASSES * empty.costs.reading(empty.stream, empty.pause.rounds),
    )
    usual = max(least, min(limits.cohort_seconds, total / (COHORTS_A_WORKER * workers)))
    by_key: dict[tuple[object, ...], list[tuple[Run, RunCost]]] = defaultdict(list)
    for run, cost in costed:
        by_key[cost.key].append((run, cost))
    cohorts = [empty]
    for key, alike in sorted(by_key.items(), key=lambda item: str(item[0])):
        own = sum(cost.seconds for _, cost in alike)
        length = max(usual, own / workers) if key else usual
        length = own / math.ceil(own / length)
        for run, cost in alike:
            cohort = cohorts[-1]
            used = sum(cohort.memory.values()) + cohort.more_bytes(cost)
            is_full = len(cohort.runs) >= limits.cohort_runs or used > limits.worker_bytes
            if cohort.runs and (is_full or cohort.seconds + cost.seconds / 2 > length):
                cohort = UnfinishedCohort(empty.stream, empty.costs, empty.pause)
                cohorts.append(cohort)
                used = sum(cohort.memory.values()) + cohort.more_bytes(cost)
            if used > limits.worker_bytes:
                raise MemoryError(
                    f"{run.learner} on {empty.stream.dataset} needs {used >> 20} MiB on a worker,"
                    f" and a worker has {limits.worker_bytes >> 20} MiB; use fewer workers, a"
                    " smaller sketch or dictionary, or a machine with more memory"
                )
            cohort.add(run, cost)
    return cohorts
