"""Which cluster a user names: `local`, the address of a scheduler that runs already, or a site
file's workers.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from distributed import Client, Security

from cluster.certificates import ROLES, security_of
from cluster.jobs import job_cluster, job_script
from cluster.kubernetes import manifest_text, pod_cluster
from cluster.local import local_cluster
from cluster.site import JobSite, KubernetesSite, may_be_site, read_site, shipped
from cluster.workers import ANSWER_SECONDS, WITHOUT_WORKERS, wait_for_worker, workers_of
from koco_stream.errors import WrongInput, nearest

LOCAL = "local"
UNLIMITED = 1 << 50  # bytes, for a worker that was given no memory limit

Cluster = Callable[[], AbstractContextManager[Client]]


def cluster_named(
    name: str,
    workers: int,
    mapped_bytes: int,
    certificates: str | None = None,
    insecure: bool = False,
) -> Cluster | None:
    """How to start, or reach, a cluster.

    Parameters
    ----------
    name
        `local`, a scheduler's address, or a site.
    workers
        How many processes the local one has.
    mapped_bytes
        What the copies of the datasets take of each worker's memory.
    certificates
        Their folder. A `tls://` scheduler is shown the client's; a site's scheduler, which is
        started here, and its workers use all of them.
    insecure
        Whether an address that others can reach is used without certificates.

    Returns
    -------
    What starts it, as a context with a client; None for this process alone (`local` with no
    workers).

    Raises
    ------
    WrongInput
        If there is no such cluster, or the certificates cannot be used; if others can reach the
        address without any, unless `insecure`.
    """
    if name == LOCAL:
        return partial(local_cluster, workers, mapped_bytes) if workers else None
    folder = Path(certificates).expanduser().absolute() if certificates else None
    found = re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d+)", name)
    if not found:
        if "://" in name or not may_be_site(name):
            raise WrongInput(
                f"no cluster is called {name!r}; give local, or a scheduler's address such as"
                f" tls://HOST:8786, or a site{nearest(name, [LOCAL, *shipped()])}"
            )
        site, security = read_site(name), security_of(folder, ROLES) if folder else None
        if isinstance(site, JobSite):
            return job_cluster(site, mapped_bytes, security, insecure)
        return pod_cluster(site, mapped_bytes, insecure)
    if int(found[3]) > 65535:
        raise WrongInput(f"{name}: a port is at most 65535")
    if found[1] == "tls":
        if not folder:
            raise WrongInput(
                f"{name} asks for certificates: name their folder with --certificates or"
                " KOCO_CERTIFICATES"
            )
        return partial(connected, name, security_of(folder))
    if not on_loopback(found[2]) and not insecure:
        raise WrongInput(
            f"{name} is not on the loopback interface: whatever reaches a scheduler is executed by"
            " its workers, and tcp:// does not ask who it is; use tls:// (koco cluster"
            " certificates makes what it takes), or --insecure where nobody else can reach it"
        )
    return partial(connected, name)


def submission(site: JobSite | KubernetesSite) -> str:
    """The job script or the manifest that would be submitted. Nothing is started."""
    return job_script(site) if isinstance(site, JobSite) else manifest_text(site)


def on_loopback(host: str) -> bool:
    """Whether this host, as written in an address, is this machine's loopback interface."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def connected(address: str, security: Security | None = None) -> Iterator[Client]:
    """A client of the scheduler at `address`, which stays when the client goes.

    Raises `WrongInput` if none answers.
    """
    # what is wrong reaches whoever waits, and is said there, once
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, set_as_default=False, timeout=ANSWER_SECONDS, security=security)
    except (OSError, TimeoutError) as error:
        raise WrongInput(
            f"no scheduler answers at {address}: {error}; start one with `dask scheduler`, or use"
            " --cluster local"
        ) from None
    with client:
        yield client


def site_named(name: str) -> JobSite | KubernetesSite | None:
    """The site called `name`, or None for `local` and for a scheduler's address.

    Raises `WrongInput`.
    """
    return None if name == LOCAL or "://" in name else read_site(name)


def patience_of(name: str) -> float:
    """Seconds that a sweep on the cluster called `name` goes on while there is no worker."""
    site = site_named(name)
    return site.patience_seconds if site else WITHOUT_WORKERS


def capacity(client: Client) -> tuple[int, int]:
    """How many cohorts the cluster runs at once, and the least memory in bytes that one has.

    Waits for the first worker. Raises `WrongInput` if none comes.
    """
    wait_for_worker(client)
    workers = workers_of(client).values()
    return sum(w["nthreads"] for w in workers), min(
        (w["memory_limit"] or UNLIMITED) // w["nthreads"] for w in workers
    )
