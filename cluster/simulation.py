"""What a sweep would take on a cluster of any size: the plan's own cohorts, run by a model of
workers, scheduler and store.

The model: the driver and the scheduler serve one message at a time; a worker runs one cohort at a
time, for as long as the plan expects it to take; workers on one machine share its cores; a worker
dies now and then, is away for a while, and its cohort goes on from its last checkpoint on another.
What the sweep writes and reads is counted. Nothing is learnt and nothing is random but the deaths,
which come from a seed.
"""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from koco_stream.runs.planner import SERVING_SECONDS
from koco_stream.runs.run import Cohort

FILE_BYTES_A_RUN = 700  # of a result file: a run's row and its curve, compressed
FILE_BYTES = 30_000  # of a result file, whatever its runs: its schema
RUN_BYTES = 130  # on the wire: a run's parameters


@dataclass(frozen=True)
class Machines:
    """A cluster.

    Parameters
    ----------
    workers
        How many there are.
    cores
        Those that the workers share; None if each has its own.
    deaths_an_hour
        How often a worker dies.
    away_seconds
        How long it is away then.
    message_seconds, byte_seconds
        What the driver and the scheduler do for a cohort, one after the other, and for each byte
        of it.
    loading_seconds
        What a worker needs to load the library and the compiled code, before its first cohort and
        when it is back.
    seed
        Of the deaths.
    """

    workers: int
    cores: int | None = None
    deaths_an_hour: float = 0.0
    away_seconds: float = 60.0
    message_seconds: float = SERVING_SECONDS / 2
    byte_seconds: float = 2e-8
    loading_seconds: float = 0.8
    seed: int = 0


@dataclass(frozen=True)
class Prediction:
    """What the sweep took.

    Parameters
    ----------
    workers, cohorts, runs
        How many there were.
    wall
        Seconds of wall time.
    efficiency
        The share of the workers' time that went into cohorts that were finished.
    scheduler
        The share of the time that the scheduler was busy.
    deaths
        How often a worker died with a cohort.
    parts_a_second, bytes_a_second
        What the store was written: result files, and bytes.
    """

    workers: int
    cohorts: int
    runs: int
    wall: float
    efficiency: float
    scheduler: float
    deaths: int
    parts_a_second: float
    bytes_a_second: float


@dataclass
class Worker:
    """A worker: when it dies next, and whether it has loaded the library."""

    dies: float
    loaded: bool = False


@dataclass
class Job:
    """A cohort to be run: its seconds, those between two checkpoints, its runs, and the seconds of
    it that are done.
    """

    seconds: float
    between: float
    size: int
    done: float = 0.0

    def cut(self, ran: float) -> None:
        """Its worker died after so many more seconds: what is done is what the last checkpoint
        has.
        """
        if math.isfinite(self.between):
            self.done += math.floor((self.done % self.between + ran) / self.between) * self.between
            self.done = min(self.done, self.seconds)


class Simulation:
    """The jobs that wait, the workers that are free, and what happens to them next."""

    def __init__(self, jobs: Sequence[Job], machines: Machines) -> None:
        self.machines, self.waiting, self.left = machines, deque(jobs), len(jobs)
        self.slowdown = max(1.0, machines.workers / (machines.cores or machines.workers))
        self.random = np.random.default_rng(machines.seed)
        self.workers = [Worker(self.lifetime()) for _ in range(machines.workers)]
        self.free = list(self.workers)
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.numbers = itertools.count()
        self.served_until = self.served = self.last = 0.0
        self.deaths = 0

    def run(self) -> None:
        """Go from event to event until the last job has ended."""
        self.give(0.0)
        while self.left:
            now, _, happen = heapq.heappop(self.events)
            happen(now)
            self.give(now)

    def lifetime(self) -> float:
        """How long a worker lives from now on."""
        rate = self.machines.deaths_an_hour
        return float(self.random.exponential(3600.0 / rate)) if rate else math.inf

    def at(self, when: float, happen: Callable[[float], None]) -> None:
        """Have something happen."""
        heapq.heappush(self.events, (when, next(self.numbers), happen))

    def serve(self, now: float, size: int) -> float:
        """A message through the driver and the scheduler: when it has arrived."""
        took = self.machines.message_seconds + size * RUN_BYTES * self.machines.byte_seconds
        self.served_until = max(self.served_until, now) + took
        self.served += took
        return self.served_until

    def give(self, now: float) -> None:
        """Send what waits to who is free."""
        while self.waiting and self.free:
            worker, job = self.free.pop(), self.waiting.popleft()
            begins = self.serve(now, job.size)
            if not worker.loaded:
                begins += self.machines.loading_seconds * self.slowdown
            worker.loaded = True
            ends = begins + (job.seconds - job.done) * self.slowdown
            if ends <= worker.dies:
                self.at(ends, partial(self.end, worker))
            else:
                self.at(max(worker.dies, now), partial(self.die, worker, job, begins))

    def end(self, worker: Worker, now: float) -> None:
        """The worker has finished its job, and sends the receipt."""
        self.left -= 1
        self.last = self.serve(now, 0)
        self.free.append(worker)

    def die(self, worker: Worker, job: Job, begun: float, now: float) -> None:
        """The worker dies, and its job waits again."""
        self.deaths += 1
        job.cut(max(now - begun, 0.0) / self.slowdown)
        self.waiting.appendleft(job)
        self.at(now + self.machines.away_seconds, partial(self.come_back, worker))

    def come_back(self, worker: Worker, now: float) -> None:
        """The worker is there again."""
        worker.dies, worker.loaded = now + self.lifetime(), False
        self.free.append(worker)


def simulate(cohorts: Sequence[Cohort], rounds: Sequence[int], machines: Machines) -> Prediction:
    """Run the cohorts of a plan, in its order, on these machines.

    `rounds` are those of each cohort's stream: checkpoints are by rounds.
    """
    jobs = []
    for cohort, n_rounds in zip(cohorts, rounds, strict=True):
        every = cohort.checkpoint_rounds
        between = cohort.seconds * every / n_rounds if every else math.inf
        jobs.append(Job(cohort.seconds, between, len(cohort.runs)))
    simulation = Simulation(jobs, machines)
    simulation.run()
    runs, wall = sum(job.size for job in jobs), max(simulation.last, 1e-9)
    busy = sum(job.seconds for job in jobs) * simulation.slowdown
    written = FILE_BYTES * len(jobs) + FILE_BYTES_A_RUN * runs
    return Prediction(
        workers=machines.workers,
        cohorts=len(jobs),
        runs=runs,
        wall=wall,
        efficiency=busy / (wall * machines.workers),
        scheduler=simulation.served / wall,
        deaths=simulation.deaths,
        parts_a_second=len(jobs) / wall,
        bytes_a_second=written / wall,
    )
