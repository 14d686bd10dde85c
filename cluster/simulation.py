"""Simulation of a sweep on a cluster of any size, with the cohorts of the real plan.

The driver and the scheduler serve one message at a time. A worker runs one cohort at a time, for as
long as the plan expects. Workers on one machine share its cores. A worker dies at random times and
is away for a while; its cohort resumes from the last checkpoint on another worker. The number and
size of result files are counted. Deaths are drawn with a seed, and nothing else is random.
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

FILE_BYTES_A_RUN = 700  # bytes of a run's row and curve in a result file, compressed
FILE_BYTES = 30_000  # bytes of a result file without runs: its schema
RUN_BYTES = 130  # bytes of a run's parameters in a message


@dataclass(frozen=True)
class Machines:
    """A cluster to be simulated.

    Parameters
    ----------
    workers : int
        Number of workers.
    cores : int or None
        Cores that all workers share; None if each has its own.
    deaths_an_hour : float
        Rate at which a worker dies.
    away_seconds : float
        Time from a worker's death to its return.
    message_seconds, byte_seconds : float
        Time that the driver and the scheduler take for a message, and for each of its bytes.
    loading_seconds : float
        Time in which a worker loads the library and the compiled code, at its start and return.
    seed : int
        Seed of the deaths.
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
    """Predicted course of a sweep on a cluster.

    Attributes
    ----------
    workers, cohorts, runs : int
        Number of each.
    wall : float
        Wall time in seconds.
    efficiency : float
        Share of the workers' time spent on cohorts, without work that was lost.
    scheduler : float
        Share of the time in which the scheduler is busy.
    deaths : int
        Number of workers that died while they ran a cohort.
    parts_a_second, bytes_a_second : float
        Result files, and their bytes, written to the store per second.
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
    """A simulated worker: the time of its next death, and whether it has loaded the library."""

    dies: float
    loaded: bool = False


@dataclass
class Job:
    """A cohort in the simulation.

    Attributes
    ----------
    seconds : float
        Expected computing time.
    between : float
        Computing time between two checkpoints; infinite without checkpoints.
    size : int
        Number of runs.
    done : float
        Computing time that the last checkpoint saved.
    """

    seconds: float
    between: float
    size: int
    done: float = 0.0

    def cut(self, ran: float) -> None:
        """Account for a worker's death after `ran` seconds: only checkpointed work counts."""
        if math.isfinite(self.between):
            self.done += math.floor((self.done % self.between + ran) / self.between) * self.between
            self.done = min(self.done, self.seconds)


class Simulation:
    """Discrete-event simulation of a cluster: waiting jobs, free workers, and coming events."""

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
        """Process events in order of time until the last job has ended."""
        self.give(0.0)
        while self.left:
            now, _, happen = heapq.heappop(self.events)
            happen(now)
            self.give(now)

    def lifetime(self) -> float:
        """Draw the time until a worker's next death, in seconds."""
        rate = self.machines.deaths_an_hour
        return float(self.random.exponential(3600.0 / rate)) if rate else math.inf

    def at(self, when: float, happen: Callable[[float], None]) -> None:
        """Schedule an event: `happen` is called with the time `when`."""
        heapq.heappush(self.events, (when, next(self.numbers), happen))

    def serve(self, now: float, size: int) -> float:
        """Pass a message about `size` runs through driver and scheduler; returns its arrival."""
        took = self.machines.message_seconds + size * RUN_BYTES * self.machines.byte_seconds
        self.served_until = max(self.served_until, now) + took
        self.served += took
        return self.served_until

    def give(self, now: float) -> None:
        """Send waiting jobs to free workers."""
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
        """Event: the worker has finished its job, and sends the receipt."""
        self.left -= 1
        self.last = self.serve(now, 0)
        self.free.append(worker)

    def die(self, worker: Worker, job: Job, begun: float, now: float) -> None:
        """Event: the worker dies, and its job waits again."""
        self.deaths += 1
        job.cut(max(now - begun, 0.0) / self.slowdown)
        self.waiting.appendleft(job)
        self.at(now + self.machines.away_seconds, partial(self.come_back, worker))

    def come_back(self, worker: Worker, now: float) -> None:
        """Event: the worker has been restarted."""
        worker.dies, worker.loaded = now + self.lifetime(), False
        self.free.append(worker)


def simulate(cohorts: Sequence[Cohort], rounds: Sequence[int], machines: Machines) -> Prediction:
    """Simulate the cohorts of a plan, in its order, on a cluster.

    Parameters
    ----------
    cohorts : sequence of Cohort
        Cohorts of the plan.
    rounds : sequence of int
        Rounds of each cohort's stream, which give the times of its checkpoints.
    machines : Machines
        The cluster.

    Returns
    -------
    Prediction
        Wall time, efficiency, and load of the scheduler and the store.
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
