"""Keeping as many jobs in a batch queue as there are cohorts for.

A job that ended is replaced by a new one, and a job without remaining cohorts is cancelled.
"""

import asyncio
import itertools
import os
import pwd
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from distributed import Status

from cluster.site import JobSite
from koco_stream.errors import WrongInput

POLL_SECONDS = 5.0  # interval between listings of the queue, each of which covers all jobs
ANSWER_SECONDS = 60.0
# no more jobs are submitted after this multiple of the most jobs ended in a row without a worker
USELESS = 3

# Commands that list the user's unfinished jobs, one a line that begins with the job's number.
LISTINGS = {
    "slurm": (
        "squeue --noheader --user={user} --format=%i --states=PENDING,CONFIGURING,RUNNING,SUSPENDED"
    ),
    "pbs": "qstat -u {user}",
    "sge": "qstat -u {user}",
    "lsf": "bjobs -noheader -u {user} -o jobid",
}
NONE_LEFT = "No unfinished job found"  # LSF's message for an empty list, with an error status


def job_numbers(listing: str) -> set[str]:
    """Job numbers at the beginning of a listing's lines."""
    return set(re.findall(r"^\s*(\d+)", listing, re.MULTILINE))


def job_of(worker: Any) -> str:
    """Name of the job that a worker belongs to: `koco-7` for the worker `koco-7-0` or `koco-7`."""
    return "-".join(str(worker.name).split("-")[:2])


class KeptJobs:
    """Context manager that keeps the number of jobs of a dask-jobqueue cluster at what is needed.

    It polls the queue, because dask-jobqueue does not notice that a job has ended. The number of
    jobs follows the number of unfinished cohorts, which the executor writes into `cluster.left`,
    within the site's limits. If jobs keep ending without a worker, the reason is written into
    `cluster.lost`, with the folder `logs` of the jobs' logs, and whoever waits for workers raises
    it.
    """

    def __init__(self, cluster: Any, site: JobSite, logs: Path) -> None:
        self.cluster, self.site, self.logs = cluster, site, logs
        self.numbers = itertools.count(1)  # a job's name is never used again
        user = pwd.getpwuid(os.getuid()).pw_name
        self.listing = shlex.split(LISTINGS[site.kind].format(user=user))
        self.useless = 0  # jobs in a row that ended without a worker
        self.fruitful: set[str] = set()  # jobs that have had a worker
        cluster.lost = cluster.left = None

    def __enter__(self) -> Self:
        self.cluster.sync(self._begin)
        return self

    def __exit__(self, *error: object) -> None:
        self.cluster.sync(self._end)

    async def _begin(self) -> None:
        try:
            await self._fill()
        except FileNotFoundError as error:
            raise WrongInput(
                f"there is no command {error.filename}: this machine cannot submit jobs to"
                f" {self.site.kind}; run the sweep on one that can"
            ) from None
        except RuntimeError as error:
            # what the queue's command printed, out of dask-jobqueue's message
            printed = " ".join(str(error).partition("stderr:")[2].split())
            raise RuntimeError(f"{self.site.kind} refused the job: {printed or error}") from None
        self.keeping = asyncio.create_task(self._keep())

    async def _end(self) -> None:
        self.keeping.cancel()
        await asyncio.gather(self.keeping, return_exceptions=True)

    def wanted(self) -> int:
        """Number of jobs needed now.

        It is the site's maximum while the number of unfinished cohorts is unknown.
        """
        least, most = self.site.jobs
        left = self.cluster.left
        return most if left is None else min(most, max(least, -(-left // self.site.cores)))

    async def _fill(self) -> None:
        """Submit the missing jobs. Raises the queue's error if it refuses one."""
        while len(self.cluster.worker_spec) < self.wanted():
            self.cluster.worker_spec[f"koco-{next(self.numbers)}"] = self.cluster.new_spec
        try:
            await self.cluster
        finally:
            for job in self.cluster.workers.values():
                if job.job_id is None:
                    job.status = Status.failed  # else the cluster would not close

    async def _keep(self) -> None:
        """Replace jobs regularly, until too many have ended without a worker."""
        while self.cluster.lost is None:
            await asyncio.sleep(POLL_SECONDS)
            # a queue that does not answer, or takes no job now, is asked again
            with suppress(RuntimeError, OSError, TimeoutError):
                await self._replace()

    async def _listed(self) -> str:
        """List the user's jobs in the queue; raises if the queue does not answer."""
        question = self.cluster.job_cls._call(self.listing)
        try:
            return str(await asyncio.wait_for(question, ANSWER_SECONDS))
        except RuntimeError as error:
            if NONE_LEFT in str(error):
                return ""
            raise

    async def _replace(self) -> None:
        """Replace jobs that have ended, or else cancel those that are not needed any more.

        The job numbers are read before the queue is asked, so that a job submitted meanwhile does
        not count as ended.
        """
        noted = {name: job.job_id for name, job in self.cluster.workers.items()}
        self.fruitful |= noted.keys() & set(map(job_of, self.cluster.scheduler.workers.values()))
        living = job_numbers(await self._listed())
        ended = [name for name, number in noted.items() if number not in living]
        if ended:
            self.useless = 0 if self.fruitful else self.useless + len(ended)
            if self.useless >= USELESS * self.site.jobs[1]:
                self.cluster.lost = (
                    f"{self.useless} jobs have ended without starting a worker; see the"
                    f" last files in {self.logs}"
                )
                return
        for name in ended:
            self.cluster.workers.pop(name, None)
        for name in ended or self._not_wanted():
            self.fruitful.discard(name)
            self.cluster.worker_spec.pop(name, None)
        await self._fill()

    def _not_wanted(self) -> list[str]:
        """Names of the jobs to cancel: first those still queued, then those without work.

        Jobs with a busy worker are kept.
        """
        workers = self.cluster.scheduler.workers.values()
        busy = {job_of(worker) for worker in workers if worker.processing}
        free = sorted(
            (name for name in self.cluster.worker_spec if name not in busy),
            key=lambda name: name in self.fruitful,
        )
        return free[: max(0, len(self.cluster.worker_spec) - self.wanted())]
