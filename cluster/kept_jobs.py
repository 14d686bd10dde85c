"""As many jobs of a batch queue as there is work for.

One that has ended, by its walltime or by anyone's hand, is submitted again, and one that no cohort
is left for is given back.
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

POLL_SECONDS = 5.0  # between two questions to the queue: one for all jobs
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


def job_of(worker: Any) -> str:
    """The name of a worker's job: `koco-7` of `koco-7-0`, or of itself."""
    return "-".join(str(worker.name).split("-")[:2])


class KeptJobs:
    """A context in which a cluster of dask-jobqueue has the jobs that it needs.

    It looks at the queue now and then: dask-jobqueue itself does not notice that a job has ended.
    There are at least and at most as many jobs as the site says, and between the two as many as
    `cluster.left` has a use for, where the executor notes how many cohorts are not done yet. When
    no job brings a worker any more, the reason is left as `cluster.lost`, which whoever waits for
    workers looks at.

    Parameters
    ----------
    cluster
        dask-jobqueue's.
    site
        How many jobs there are to be, and of which queue.
    logs
        Where jobs leave what they print.
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
                f"{error.filename} is not there: this machine submits no jobs to {self.site.kind}"
            ) from None
        except RuntimeError as error:
            # what the queue's command printed, out of dask-jobqueue's message
            printed = " ".join(str(error).partition("stderr:")[2].split())
            raise RuntimeError(
                f"{self.site.kind} does not take the job: {printed or error}"
            ) from None
        self.keeping = asyncio.create_task(self._keep())

    async def _end(self) -> None:
        self.keeping.cancel()
        await asyncio.gather(self.keeping, return_exceptions=True)

    def wanted(self) -> int:
        """How many jobs there are to be: the most, as long as it is not known how many cohorts are
        left.
        """
        least, most = self.site.jobs
        left = self.cluster.left
        return most if left is None else min(most, max(least, -(-left // self.site.cores)))

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

    async def _keep(self) -> None:
        while self.cluster.lost is None:
            await asyncio.sleep(POLL_SECONDS)
            # a queue that does not answer, or takes no job now, is asked again
            with suppress(RuntimeError, OSError, TimeoutError):
                await self._replace()

    async def _listed(self) -> str:
        """What the queue answers. Raises if it does not."""
        question = self.cluster.job_cls._call(self.listing)
        try:
            return str(await asyncio.wait_for(question, ANSWER_SECONDS))
        except RuntimeError as error:
            if NONE_LEFT in str(error):
                return ""
            raise

    async def _replace(self) -> None:
        """Submit again what has ended, or give back what is not wanted any more.

        Jobs are noted before the queue is asked, so that one submitted meanwhile is not missed.
        """
        noted = {name: job.job_id for name, job in self.cluster.workers.items()}
        self.fruitful |= noted.keys() & set(map(job_of, self.cluster.scheduler.workers.values()))
        living = job_numbers(await self._listed())
        ended = [name for name, number in noted.items() if number not in living]
        if ended:
            self.useless = 0 if self.fruitful else self.useless + len(ended)
            if self.useless >= USELESS * self.site.jobs[1]:
                self.cluster.lost = (
                    f"{self.useless} jobs have ended and none of them brought a worker; see the"
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
        """Jobs that nothing is left for: those that wait in the queue, then those whose workers do
        nothing. One that is busy stays.
        """
        workers = self.cluster.scheduler.workers.values()
        busy = {job_of(worker) for worker in workers if worker.processing}
        free = [name for name in self.cluster.worker_spec if name not in busy]
        free.sort(key=lambda name: name in self.fruitful)
        return free[: max(0, len(self.cluster.worker_spec) - self.wanted())]
