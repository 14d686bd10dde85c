"""Which cluster a user names: `local`, the address of a scheduler that runs already, or a site file's workers."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from ipaddress import ip_address

from distributed import Client

from cluster.executors import WITHOUT_WORKERS, check_hope
from cluster.local import local_cluster
from cluster.site import JobSite, KubernetesSite
from cluster.site_clusters import site_cluster
from cluster.sites import may_be_site, read_site, shipped
from koco_stream.errors import WrongInput, nearest

LOCAL = "local"
ANSWER_SECONDS = 20.0
SILENT_SECONDS = 10.0

Cluster = Callable[[], AbstractContextManager[Client]]


def cluster_named(name: str, workers: int, mapped_bytes: int) -> Cluster | None:
    """How to start, or reach, the cluster called `name`; None for this process alone (`local` with no workers).

    Raises `WrongInput` if it is neither `local` nor a scheduler's address nor a site, or an address that others can reach.
    """
    if name == LOCAL:
        return partial(local_cluster, workers, mapped_bytes) if workers else None
    found = re.fullmatch(r"tcp://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d+)", name)
    if not found:
        if "://" in name or not may_be_site(name):
            choice = f"local, or a scheduler's address such as tcp://127.0.0.1:8786, or a site{nearest(name, [LOCAL, *shipped()])}"
            raise WrongInput(f"no cluster is called {name!r}; give {choice}")
        return site_cluster(read_site(name), mapped_bytes)
    if int(found[2]) > 65535:
        raise WrongInput(f"{name}: a port is at most 65535")
    if not on_loopback(found[1]):
        raise WrongInput(
            f"{name} is not on the loopback interface: whatever reaches a scheduler is executed by its workers, and tcp:// does not ask "
            "who it is; use a scheduler on 127.0.0.1"
        )
    return partial(connected, name)


def on_loopback(host: str) -> bool:
    """Whether this host, as written in an address, is this machine's loopback interface."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at `address`, which stays when the client goes. Raises `WrongInput` if none answers."""
    for name in ("distributed", "distributed.client"):  # what is wrong reaches whoever waits, and is said there, once
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, set_as_default=False, timeout=ANSWER_SECONDS)
    except (OSError, TimeoutError) as error:
        raise WrongInput(f"no scheduler answers at {address}: {error}; start one with `dask scheduler`, or use --cluster local") from None
    try:
        yield client
    finally:
        client.close()


def site_named(name: str) -> JobSite | KubernetesSite | None:
    """The site called `name`, or None for `local` and for a scheduler's address. Raises `WrongInput`."""
    return None if name == LOCAL or "://" in name else read_site(name)


def patience_of(name: str) -> float:
    """Seconds that a sweep on the cluster called `name` goes on while there is no worker."""
    site = site_named(name)
    return site.patience_seconds if site else WITHOUT_WORKERS


def wait_for(client: Client, workers: int, seconds: float) -> bool:
    """Wait until there are so many workers, and say so if it takes long; whether they came. Raises `LostCluster` if they never will."""
    begun, told = time.monotonic(), False
    while (there := len(client.scheduler_info(n_workers=-1)["workers"])) < workers:
        check_hope(client)
        waited = time.monotonic() - begun
        if waited > seconds:
            return False
        if waited > SILENT_SECONDS and not told:
            print(f"waiting for workers: {there} of the {workers} that it takes are there", file=sys.stderr, flush=True)
            told = True
        time.sleep(0.1)
    return True


def capacity(client: Client) -> tuple[int, int]:
    """How many cohorts the cluster runs at once, and the least memory in bytes that one of them has. Waits for the first worker.

    Raises `WrongInput` if none comes.
    """
    if not wait_for(client, 1, ANSWER_SECONDS):
        raise WrongInput(f"the scheduler at {client.scheduler.address} has no worker; start some with `dask worker`")
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(w["nthreads"] for w in workers), min(w["memory_limit"] // w["nthreads"] for w in workers)
