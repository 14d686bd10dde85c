"""There are as many jobs as there is work for: one that has ended, by its walltime or by anyone's
hand, is submitted again, and one that no cohort is left for is given back.
"""

import asyncio
import itertools
import os
import pwd
import re
import shlex
from types import TracebackType
from typing import Any, Self

from distributed import Status

from koco_stream.errors import WrongInput

LOOK_EVERY = 5.0  # seconds, at the queue: one question for all jobs
ANSWER_SECONDS = 60.0
# times as many jobs as there are to be, that ended in a row without a worker: then no more are
# submitted
USELESS = 3

# The user's jobs that wait or run, one a line, the line beginning with the job's number.
LISTINGS = {
    "slurm": (
        "squeue --noheader --user={user} --format=%i --states=PENDING,CONFIGURING,RUNNING,SUSPENDED"
    ),
    "pbs": "qstat -u {user}",
    "sge": "qstat -u {user}",
    "lsf": "bjobs -noheader -u {user} -o jobid",
}
NONE_LEFT = "No unfinished job found"  # so LSF says, with an exit status as if it had failed


def job_numbers(listing: str) -> set[str]:
    """The numbers that a listing's lines begin with."""
    return set(re.findall(r"^\s*(\d+)", listing, re.MULTILINE))


def said(error: RuntimeError) -> str:
    """What a queue's command printed to stderr, out of dask-jobqueue's message."""
    return " ".join(str(error).partition("stderr:")[2].split()) or str(error)


class KeptJobs:
    """Looks at the queue now and then while it is entered; dask-jobqueue itself does not notice
    that a job has ended.

    There are `jobs` of them, a least and a most number, with so many `cores` each: as many as
    `cluster.left`, where the executor notes how many cohorts are not done yet, has a use for. When
    no job brings a worker any more, the reason is left as `cluster.lost`, which whoever waits for
    workers looks at.
    """

    def __init__(
        self, cluster: Any, kind: str, jobs: tuple[int, int], cores: int, logs: str
    ) -> None:
        self.cluster, self.kind, self.logs, self.cores = cluster, kind, logs, cores
        self.least, self.most = jobs
        self.numbers = itertools.count(1)  # a job's name is never used again
        self.listing = shlex.split(LISTINGS[kind].format(user=pwd.getpwuid(os.getuid()).pw_name))
        self.useless = 0
        self.fruitful: set[str] = set()  # jobs that have had a worker
        cluster.lost = cluster.left = None

    def __enter__(self) -> Self:
        self.cluster.sync(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cluster.sync(self._end)

    async def _begin(self) -> None:
        try:
            await self._fill()
        except FileNotFoundError as error:
            raise WrongInput(
                f"{error.filename} is not there: this machine submits no jobs to {self.kind}"
            ) from None
        except RuntimeError as error:
            raise RuntimeError(f"{self.kind} does not take the job: {said(error)}") from None
        self.looking = asyncio.create_task(self._keep())

    def wanted(self) -> int:
        """How many jobs there are to be: the most, as long as it is not known how many cohorts are
        left.
        """
        left = self.cluster.left
        return (
            self.most if left is None else min(self.most, max(self.least, -(-left // self.cores)))
        )

    async def _fill(self) -> None:
        """Submit as many jobs as are missing. Raises what the queue says against them."""
        while len(self.cluster.worker_spec) < self.wanted():
            self.cluster.worker_spec[f"koco-{next(self.numbers)}"] = self.cluster.new_spec
        try:
            await self.cluster
        finally:
            for job in self.cluster.workers.values():
                if job.job_id is None:
                    job.status = Status.failed  # else the cluster would not close

    async def _end(self) -> None:
        self.looking.cancel()
        await asyncio.gather(self.looking, return_exceptions=True)

    async def _keep(self) -> None:
        while self.cluster.lost is None:
            await asyncio.sleep(LOOK_EVERY)
            try:
                await self._look()
            except (RuntimeError, OSError, TimeoutError):
                continue  # the queue does not answer, or takes no job now: it is asked again

    async def _listed(self) -> str:
        """What the queue answers. Raises if it does not."""
        try:
            return str(
                await asyncio.wait_for(self.cluster.job_cls._call(self.listing), ANSWER_SECONDS)
            )
        except RuntimeError as error:
            if NONE_LEFT in str(error):
                return ""
            raise

    async def _look(self) -> None:
        """Submit again what has ended. Jobs are noted before the queue is asked, so that one
        submitted meanwhile is not missed.
        """
        noted = {name: job.job_id for name, job in self.cluster.workers.items()}
        workers = [str(worker.name) for worker in self.cluster.scheduler.workers.values()]
        self.fruitful |= {
            name
            for name in noted
            if any(worker == name or worker.startswith(f"{name}-") for worker in workers)
        }
        living = job_numbers(await self._listed())
        ended = [name for name, number in noted.items() if number not in living]
        if not ended:
            await self._give_back()
            return
        self.useless = 0 if self.fruitful else self.useless + len(ended)
        if self.useless >= USELESS * self.most:
            self.cluster.lost = (
                f"{self.useless} jobs have ended and none of them brought a worker; see the last"
                f" files in {self.logs}"
            )
            return
        for name in ended:
            self.fruitful.discard(name)
            self.cluster.workers.pop(name, None)
            self.cluster.worker_spec.pop(name, None)
        await self._fill()

    async def _give_back(self) -> None:
        """End jobs that nothing is left for: those that wait in the queue, then those whose workers
        do nothing. One that is busy stays.
        """
        busy = {
            str(worker.name)
            for worker in self.cluster.scheduler.workers.values()
            if worker.processing
        }
        idle = [
            name
            for name in self.cluster.worker_spec
            if not any(worker == name or worker.startswith(f"{name}-") for worker in busy)
        ]
        idle.sort(key=lambda name: name in self.fruitful)
        for name in idle[: max(0, len(self.cluster.worker_spec) - self.wanted())]:
            self.fruitful.discard(name)
            self.cluster.worker_spec.pop(name)
        await self._fill()
