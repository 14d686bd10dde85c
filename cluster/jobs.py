"""Dask workers as jobs of a batch queue (Slurm, PBS, SGE or LSF), through dask-jobqueue."""

import asyncio
import itertools
import os
import pwd
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

import dask
import psutil
from distributed import Client, Status
from distributed.utils import get_ip_interface

from cluster.site import (
    LOOPBACK_PAGE,
    PRELOADS,
    SETTINGS,
    JobSite,
    cache_of,
    clock_seconds,
    environment,
)
from koco_stream.errors import WrongInput
from koco_stream.io.cache import cache_folder, private_folder

# dask-jobqueue's class for each kind of site, and its name for the account option
CLASSES = {
    "slurm": ("SLURMCluster", "account"),
    "pbs": ("PBSCluster", "account"),
    "sge": ("SGECluster", "project"),
    "lsf": ("LSFCluster", "project"),
}
# how each queue marks its own lines in a script, and the file in which it logs a job
DIRECTIVES = {
    "slurm": ("#SBATCH", "koco-%J.{}"),
    "pbs": ("#PBS", ""),
    "sge": ("#$", ""),
    "lsf": ("#BSUB", "koco-%J.{}"),
}
POLL_SECONDS = 5.0  # interval between listings of the queue, each of which covers all jobs
ANSWER_SECONDS = 60.0

# Commands that list the user's unfinished jobs, one a line that begins with the job's number.
LISTINGS = {
    "slurm": (
        "squeue --noheader --user={user} --format=%i --states=PENDING,CONFIGURING,RUNNING,SUSPENDED"
    ),
    "pbs": "qstat -u {user}",
    "sge": "qstat -u {user}",
    "lsf": "bjobs -noheader -u {user} -o jobid",
}


def job_arguments(site: JobSite, mapped_bytes: int = 0) -> dict[str, Any]:
    walltime = clock_seconds(site.walltime)
    extra = {
        # repeated here, where it takes precedence
        "--memory-limit": str(site.worker_bytes + mapped_bytes),
        # a worker closes a tenth of the walltime before its end, but from 10 to 300 seconds
        "--lifetime": f"{walltime - min(max(walltime // 10, 10), 300)}s",
        "--worker-port": site.worker_ports,
        "--nanny-port": site.nanny_ports,
    }
    options = [word for option, value in extra.items() if value for word in (option, value)]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment(site).items()]
    mark, log = DIRECTIVES[site.kind]
    # written here, because dask-jobqueue does not quote the folder
    logs = [
        f"-{end[0]} {shlex.quote(f'{cache_folder()}/jobs/{log.format(end)}')}"
        for end in ("err", "out")
        if not f"-{end[0]} ".startswith(tuple(site.job_skip))
    ]
    hours, minutes = divmod(-(-walltime // 60), 60)  # LSF takes HH:MM
    arguments = {
        "cores": site.cores,
        "processes": site.cores,
        "memory": site.memory,
        "nanny": True,
        "walltime": f"{hours:02}:{minutes:02}"
        if site.kind == "lsf"
        else f"{walltime // 3600:02}:{walltime // 60 % 60:02}:{walltime % 60:02}",
        "queue": site.queue,
        CLASSES[site.kind][1]: site.account,
        "job_extra_directives": [*logs, *site.job_extra],
        "job_directives_skip": [f"{mark} {begin}" for begin in site.job_skip],
        "job_script_prologue": [*site.setup, *exports],
        "worker_extra_args": [*options, *LOOPBACK_PAGE, *PRELOADS],
        "python": shlex.quote(sys.executable),
        "job_name": "koco",
        "interface": site.interface,
        "local_directory": shlex.quote(f"{cache_of(site)}/dask"),
    }
    return {name: value for name, value in arguments.items() if value is not None}


def job_script(site: JobSite) -> str:
    return str(
        _cluster_class(site)
        .job_cls("tcp://SCHEDULER:PORT", name="NAME", **job_arguments(site))
        .job_script()
    )


def job_cluster(
    site: JobSite, mapped_bytes: int = 0, security: Any = None, insecure: bool = False
) -> Callable[[], AbstractContextManager[Client]]:
    """Starts nothing, but must be called in the main thread."""
    kind = _cluster_class(site)
    address = interface_address(site.interface)
    if security is None and not insecure and not ip_address(address).is_loopback:
        raise WrongInput(
            f"interface {site.interface} ({address}) is not the loopback interface: workers"
            " execute whatever is sent to their scheduler; create certificates (koco cluster"
            " certificates) and name their folder with --certificates, or add --insecure if"
            " nobody else can connect"
        )
    start = partial(
        kind,
        scheduler_options={
            "host": address,
            "port": site.scheduler_port,
            "dashboard_address": "127.0.0.1:0",
        },
        security=security,
        silence_logs=40,
        **job_arguments(site, mapped_bytes),
    )
    return partial(running_jobs, start, site)


@contextmanager
def running_jobs(start: Callable[[], Any], site: JobSite) -> Iterator[Client]:
    """All jobs are cancelled at the end. Raises `RuntimeError` if the queue refuses them."""
    with (
        dask.config.set({**SETTINGS, "temporary-directory": str(private_folder("dask"))}),
        start() as cluster,
        KeptJobs(cluster, site, private_folder("jobs")),
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def interface_address(interface: str) -> str:
    try:
        return str(get_ip_interface(interface))
    except ValueError:
        raise WrongInput(
            f"this machine has no network interface {interface!r} with an address; it has:"
            f" {', '.join(psutil.net_if_addrs())}"
        ) from None


def _cluster_class(site: JobSite) -> Any:
    """Importing dask-jobqueue replaces the handler of Ctrl-C, which is restored here."""
    before = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)
    return getattr(dask_jobqueue, CLASSES[site.kind][0])


def job_numbers(listing: str) -> set[str]:
    return set(re.findall(r"^\s*(\d+)", listing, re.MULTILINE))


def job_of(worker: Any) -> str:
    """`koco-7` for the worker `koco-7-0` or `koco-7`."""
    return "-".join(str(worker.name).split("-")[:2])


class KeptJobs:
    """Keeps as many jobs of a dask-jobqueue cluster as are needed, by polling the queue.

    The executor writes the number of unfinished cohorts into `cluster.left`; `cluster.lost` says
    why jobs keep ending without a worker.
    """

    def __init__(self, cluster: Any, site: JobSite, logs: Path) -> None:
        self.cluster, self.site, self.logs = cluster, site, logs
        self.numbers = itertools.count(1)  # a job's name is never used again
        self.listing = LISTINGS[site.kind].format(user=pwd.getpwuid(os.getuid()).pw_name)
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
        """All jobs while the number of unfinished cohorts is unknown."""
        least, most = self.site.jobs
        left = self.cluster.left
        return most if left is None else min(most, max(least, -(-left // self.site.cores)))

    async def _fill(self) -> None:
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
        question = self.cluster.job_cls._call(self.listing.split())
        try:
            return str(await asyncio.wait_for(question, ANSWER_SECONDS))
        except RuntimeError as error:
            if "No unfinished job found" in str(error):  # LSF says so with an error status
                return ""
            raise

    async def _replace(self) -> None:
        """Replace jobs that have ended, or else cancel those that are not needed any more.

        Their numbers are read before the queue is asked, so that a job submitted meanwhile does not
        count as ended.
        """
        noted = {name: job.job_id for name, job in self.cluster.workers.items()}
        self.fruitful |= noted.keys() & set(map(job_of, self.cluster.scheduler.workers.values()))
        living = job_numbers(await self._listed())
        ended = [name for name, number in noted.items() if number not in living]
        if ended:
            self.useless = 0 if self.fruitful else self.useless + len(ended)
            if self.useless >= 3 * self.site.jobs[1]:  # of all jobs, three times
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
        """The jobs to cancel: first those still queued, then those without work."""
        busy = {
            job_of(worker)
            for worker in self.cluster.scheduler.workers.values()
            if worker.processing
        }
        free = sorted(
            (name for name in self.cluster.worker_spec if name not in busy),
            key=lambda name: name in self.fruitful,
        )
        return free[: max(0, len(self.cluster.worker_spec) - self.wanted())]
