"""Dask workers as jobs of a batch queue (Slurm, PBS, SGE or LSF), through dask-jobqueue."""

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import dask
import psutil
from distributed import Client
from distributed.utils import get_ip_interface

from cluster.kept_jobs import KeptJobs
from cluster.settings import LOOPBACK_PAGE, PRELOADS, SETTINGS, cache_of, environment
from cluster.site import JobSite, clock_seconds
from koco_stream.errors import WrongInput
from koco_stream.io.cache import cache_folder, private_folder

# dask-jobqueue's class for each kind of site, and its name for the account option
CLASSES = {
    "slurm": ("SLURMCluster", "account"),
    "pbs": ("PBSCluster", "account"),
    "sge": ("SGECluster", "project"),
    "lsf": ("LSFCluster", "project"),
}
PLACEHOLDER = "tcp://SCHEDULER:PORT"  # address in a script that is only printed
# a worker closes a tenth of the walltime before its end, within these limits in seconds
LEAVE_BEFORE = (10, 300)


def job_arguments(site: JobSite, mapped_bytes: int = 0) -> dict[str, Any]:
    """Arguments of dask-jobqueue's job class for a site: one process per core, of one thread.

    `mapped_bytes` are allowed on top of a worker's share of the job's memory.
    """
    least, most = LEAVE_BEFORE
    walltime = clock_seconds(site.walltime)
    extra = {
        # repeated here, where it takes precedence
        "--memory-limit": str(site.worker_bytes + mapped_bytes),
        "--lifetime": f"{walltime - min(max(walltime // 10, least), most)}s",
        "--worker-port": site.worker_ports,
        "--nanny-port": site.nanny_ports,
    }
    options = [word for option, value in extra.items() if value for word in (option, value)]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment(site).items()]
    hours, minutes = divmod(-(-walltime // 60), 60)  # LSF takes HH:MM
    arguments = {
        "cores": site.cores,
        "processes": site.cores,
        "memory": site.memory,
        "nanny": True,
        "walltime": f"{hours:02}:{minutes:02}" if site.kind == "lsf" else site.walltime,
        "queue": site.queue,
        CLASSES[site.kind][1]: site.account,
        "job_extra_directives": list(site.job_extra),
        "job_script_prologue": [*site.setup, *exports],
        "worker_extra_args": [*options, *LOOPBACK_PAGE, *PRELOADS],
        "python": shlex.quote(sys.executable),
        "job_name": "koco",
        "interface": site.interface,
        "local_directory": shlex.quote(f"{cache_of(site)}/dask"),
        "log_directory": str(cache_folder() / "jobs"),
    }
    return {name: value for name, value in arguments.items() if value is not None}


def job_script(site: JobSite) -> str:
    """Text of the job script, with placeholders for the scheduler's address and the job's name."""
    return str(
        _cluster_class(site).job_cls(PLACEHOLDER, name="NAME", **job_arguments(site)).job_script()
    )


def job_cluster(
    site: JobSite, mapped_bytes: int = 0, security: Any = None, insecure: bool = False
) -> Callable[[], AbstractContextManager[Client]]:
    """How to start a scheduler in this process with the site's jobs as workers. Nothing is started.

    Must be called in the main thread. Raises `WrongInput` if the scheduler would listen beyond the
    loopback interface without the certificates `security`, unless `insecure` is set.
    """
    kind, address = _cluster_class(site), interface_address(site.interface)
    if security is None and not insecure and not ip_address(address).is_loopback:
        raise WrongInput(
            f"interface {site.interface} ({address}) is not the loopback interface: workers"
            " execute whatever is sent to their scheduler; create certificates (koco cluster"
            " certificates) and name their folder with --certificates, or add --insecure if"
            " nobody else can connect"
        )
    listening = {"host": address, "port": site.scheduler_port, "dashboard_address": "127.0.0.1:0"}
    start = partial(
        kind,
        scheduler_options=listening,
        security=security,
        silence_logs=40,
        **job_arguments(site, mapped_bytes),
    )
    return partial(running_jobs, start, site)


@contextmanager
def running_jobs(start: Callable[[], Any], site: JobSite) -> Iterator[Client]:
    """Submit the site's jobs, and give a client of their cluster, without waiting for workers.

    All jobs are cancelled at the end. Raises `RuntimeError` if the queue refuses them.
    """
    settings = {**SETTINGS, "temporary-directory": str(private_folder("dask"))}
    with (
        dask.config.set(settings),
        start() as cluster,
        KeptJobs(cluster, site, private_folder("jobs")),
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def interface_address(interface: str) -> str:
    """IP address of a network interface of this machine, or `WrongInput` if there is none."""
    try:
        return str(get_ip_interface(interface))
    except ValueError:
        raise WrongInput(
            f"this machine has no network interface {interface!r} with an address; it has:"
            f" {', '.join(psutil.net_if_addrs())}"
        ) from None


def _cluster_class(site: JobSite) -> Any:
    """dask-jobqueue's cluster class for the kind of a site.

    Importing dask-jobqueue replaces signal handlers, which are restored here.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        import dask_jobqueue
    except ImportError:
        raise WrongInput(
            f"a site of the kind {site.kind} needs dask-jobqueue: pip install"
            " 'koco-stream[jobqueue]'"
        ) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return getattr(dask_jobqueue, CLASSES[site.kind][0])
