"""What a sweep would take on a cluster of any size: the plan's own cohorts, run by a model of
workers, scheduler and store.

The model: the driver and the scheduler serve one message at a time; a worker runs one cohort at a
time, for as long as the plan expects it to take; workers on one machine share its cores; a worker
dies now and then, is away for a while, and its cohort goes on from its last checkpoint on another.
What the sweep writes and reads is counted. Nothing is learnt and nothing is random but the deaths,
which come from a seed.
"""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from koco_stream.runs.planner import SERVING_SECONDS
from koco_stream.runs.run import Cohort

PART_BYTES_A_RUN = 700  # of a part: a run's row and its curve, compressed
PART_BYTES = 30_000  # of a part, whatever its runs: its schema
RUN_BYTES = 130  # on the wire: a run's parameters


@dataclass(frozen=True)
class Machines:
    """The cluster: workers, cores that they share (as many as workers, if each has its own), how
    often one dies, how long it is away.

    `message_seconds` is what the driver and the scheduler do for a cohort, one after the other;
    `byte_seconds` for each byte of it. `loading_seconds` is what a worker needs to load the library
    and the compiled code, before its first cohort and when it is back.
    """

    workers: int
    cores: int | None = None
    deaths_an_hour: float = 0.0
    away_seconds: float = 60.0
    message_seconds: float = SERVING_SECONDS / 2
    byte_seconds: float = 2e-8
    loading_seconds: float = 0.8
    seed: int = 0


@dataclass
class Prediction:
    """What the sweep took: seconds of wall time; the share of the workers' time that went into
    cohorts that were finished; the share of the time that the scheduler was busy; deaths; and what
    the store was written: files and bytes a second.
    """

    workers: int
    cohorts: int
    runs: int
    wall: float = 0.0
    efficiency: float = 0.0
    scheduler: float = 0.0
    deaths: int = 0
    parts_a_second: float = 0.0
    bytes_a_second: float = 0.0


@dataclass
class Worker:
    """A worker: when it dies next, and the cohort that it runs, since when and from where."""

    dies: float
    job: "Job | None" = None
    begun: float = 0.0
    loaded: bool = False


@dataclass
class Job:
    """A cohort to be run: its seconds, those between two checkpoints, and what is done of it."""

    seconds: float
    between: float
    size: int
    done: float = 0.0


@dataclass
class Simulation:
    """The state of things: the clock is the time of the event that is being looked at."""

    machines: Machines
    waiting: deque[Job]
    rng: np.random.Generator
    events: list[tuple[float, int, str, int]] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    workers: dict[int, Worker] = field(default_factory=dict)
    served_until: float = 0.0
    served: float = 0.0
    useful: float = 0.0
    deaths: int = 0
    last: float = 0.0
    number: int = 0

    def at(self, when: float, what: str, worker: int) -> None:
        """Have something happen to a worker."""
        self.number += 1
        heapq.heappush(self.events, (when, self.number, what, worker))

    def serve(self, now: float, size: int) -> float:
        """A message through the driver and the scheduler: when it has arrived."""
        took = self.machines.message_seconds + size * RUN_BYTES * self.machines.byte_seconds
        self.served_until = max(self.served_until, now) + took
        self.served += took
        return self.served_until

    def lifetime(self) -> float:
        """How long a worker lives from now on."""
        rate = self.machines.deaths_an_hour
        return float(self.rng.exponential(3600.0 / rate)) if rate else math.inf

    def give(self, now: float) -> None:
        """Send what waits to who is idle."""
        while self.waiting and self.idle:
            worker, job = self.idle.pop(), self.waiting.popleft()
            arrives = self.serve(now, job.size)
            mine = self.workers[worker]
            if not mine.loaded:
                arrives += self.machines.loading_seconds * self.slowdown()
            mine.job, mine.begun, mine.loaded = job, arrives, True
            ends = arrives + (job.seconds - job.done) * self.slowdown()
            if ends <= mine.dies:
                self.at(ends, "ends", worker)
            else:
                self.at(max(mine.dies, now), "dies", worker)

    def slowdown(self) -> float:
        """How much longer work takes where workers share cores."""
        machines = self.machines
        return max(1.0, machines.workers / machines.cores) if machines.cores else 1.0


def simulate(cohorts: Sequence[Cohort], rounds: Sequence[int], machines: Machines) -> Prediction:
    """Run the cohorts of a plan, in its order, on these machines. `rounds` are those of each
    cohort's stream: checkpoints are by rounds.
    """
    jobs = []
    for cohort, n_rounds in zip(cohorts, rounds, strict=True):
        between = (
            cohort.seconds * cohort.checkpoint_rounds / n_rounds
            if cohort.checkpoint_rounds
            else math.inf
        )
        jobs.append(Job(cohort.seconds, between, len(cohort.runs)))
    state = Simulation(machines, deque(jobs), np.random.default_rng(machines.seed))
    for number in range(machines.workers):
        state.workers[number] = Worker(state.lifetime())
        state.idle.append(number)
    left, total = len(jobs), sum(job.seconds for job in jobs)
    state.give(0.0)
    while left:
        now, _, what, number = heapq.heappop(state.events)
        worker = state.workers[number]
        if what == "ends":
            assert worker.job is not None
            left, worker.job = left - 1, None
            state.last = state.serve(now, 0)  # the receipt
            state.idle.append(number)
        elif what == "dies":
            assert worker.job is not None
            job, worker.job = worker.job, None
            ran = max(now - worker.begun, 0.0) / state.slowdown()
            job.done += (
                math.floor((job.done % job.between + ran) / job.between) * job.between
                if math.isfinite(job.between)
                else 0.0
            )
            job.done = min(job.done, job.seconds)
            state.deaths += 1
            state.waiting.appendleft(job)
            state.at(now + machines.away_seconds, "is back", number)
        else:
            worker.dies, worker.loaded = now + state.lifetime(), False
            state.idle.append(number)
        state.give(now)
    runs, wall = sum(job.size for job in jobs), max(state.last, 1e-9)
    written = PART_BYTES * len(jobs) + PART_BYTES_A_RUN * runs
    busy = total * state.slowdown() / (wall * machines.workers)
    return Prediction(
        machines.workers,
        len(jobs),
        runs,
        wall,
        busy,
        state.served / wall,
        state.deaths,
        len(jobs) / wall,
        written / wall,
    )
