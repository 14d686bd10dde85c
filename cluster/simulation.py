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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from koco_stream.runs.planner import SERVING_SECONDS
from koco_stream.runs.run import Cohort

FILE_BYTES_A_RUN = 700  # bytes of a run's row and curve in a result file, compressed
FILE_BYTES = 30_000  # bytes of a result file without runs: its schema
RUN_BYTES = 130  # bytes of a run's parameters in a message


@dataclass(frozen=True)
class Machines:
    """A cluster to be simulated."""

    workers: int
    cores: int | None = None  # that all workers share; None if each has its own
    deaths_an_hour: float = 0.0  # of one worker
    away_seconds: float = 60.0  # from a worker's death to its return
    message_seconds: float = SERVING_SECONDS / 2  # of the driver and the scheduler
    byte_seconds: float = 2e-8  # for each byte of a message, in addition
    # in which a worker loads the library and the compiled code, at its start and return
    loading_seconds: float = 0.8
    seed: int = 0  # of the deaths


@dataclass
class Job:
    """A cohort in the simulation; its times are computing times."""

    seconds: float
    between: float  # two checkpoints; infinite without checkpoints
    size: int  # number of runs
    done: float = 0.0  # what the last checkpoint saved

    def cut(self, ran: float) -> None:
        """Account for a worker's death after `ran` seconds: only checkpointed work counts."""
        if math.isfinite(self.between):
            self.done += math.floor((self.done % self.between + ran) / self.between) * self.between
            self.done = min(self.done, self.seconds)


class Scheduler:
    """The driver and the scheduler, which serve one message after the other."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.until = self.busy = 0.0

    def serve(self, now: float, size: int) -> float:
        """Pass on a message about `size` runs; returns its arrival."""
        took = self.machines.message_seconds + size * RUN_BYTES * self.machines.byte_seconds
        self.until = max(self.until, now) + took
        self.busy += took
        return self.until


def simulate(
    cohorts: Sequence[Cohort], rounds: Sequence[int], machines: Machines
) -> dict[str, float]:
    """Simulate the cohorts of a plan, in its order, on a cluster.

    `rounds` has the rounds of each cohort's stream, which give the times of its checkpoints.

    Returns
    -------
    dict
        The number of workers, cohorts, runs, and deaths of workers that ran a cohort; the wall time
        in seconds; as shares, the workers' time spent on cohorts without work that was lost, and
        the time in which the scheduler is busy; and the result files and their bytes that
        are written to the store per second.
    """
    jobs = []
    for cohort, n_rounds in zip(cohorts, rounds, strict=True):
        every = cohort.checkpoint_rounds
        between = cohort.seconds * every / n_rounds if every else math.inf
        jobs.append(Job(cohort.seconds, between, len(cohort.runs)))
    slowdown = max(1.0, machines.workers / (machines.cores or machines.workers))
    loading = machines.loading_seconds * slowdown
    lifetimes = _lifetimes(machines)
    scheduler, waiting, left = Scheduler(machines), deque(jobs), len(jobs)
    free = [(next(lifetimes), loading) for _ in range(machines.workers)]  # of each: dies, loading
    # what happens to a worker: when, a number that no other has, its job (None: it comes back),
    # when it dies, and since when it has run the job if it dies now
    events: list[tuple[float, int, Job | None, float, float | None]] = []
    numbers = itertools.count()
    now = last = 0.0
    deaths = 0
    while left:
        while waiting and free:
            (dies, load), job = free.pop(), waiting.popleft()
            begins = scheduler.serve(now, job.size) + load
            ends = begins + (job.seconds - job.done) * slowdown
            survives = ends <= dies
            when, begun = (ends, None) if survives else (max(dies, now), begins)
            heapq.heappush(events, (when, next(numbers), job, dies, begun))
        now, _, ended, dies, begun = heapq.heappop(events)
        if ended is None:
            free.append((now + next(lifetimes), loading))
        elif begun is None:
            left -= 1
            last = scheduler.serve(now, 0)
            free.append((dies, 0.0))
        else:
            deaths += 1
            ended.cut(max(now - begun, 0.0) / slowdown)
            waiting.appendleft(ended)
            back = now + machines.away_seconds
            heapq.heappush(events, (back, next(numbers), None, 0.0, None))
    runs, wall = sum(job.size for job in jobs), max(last, 1e-9)
    busy = sum(job.seconds for job in jobs) * slowdown
    written = FILE_BYTES * len(jobs) + FILE_BYTES_A_RUN * runs
    return {
        "workers": machines.workers,
        "cohorts": len(jobs),
        "runs": runs,
        "wall": wall,
        "efficiency": busy / (wall * machines.workers),
        "scheduler": scheduler.busy / wall,
        "deaths": deaths,
        "files_a_second": len(jobs) / wall,
        "bytes_a_second": written / wall,
    }


def _lifetimes(machines: Machines) -> Iterator[float]:
    """Draw the times in seconds from a worker's start until its death."""
    random, rate = np.random.default_rng(machines.seed), machines.deaths_an_hour
    while True:
        yield float(random.exponential(3600.0 / rate)) if rate else math.inf
