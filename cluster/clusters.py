"""Which cluster a user names: `local`, or the address of a scheduler that runs already."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from ipaddress import ip_address

from distributed import Client

from cluster.local import local_cluster
from koco_stream.errors import WrongInput

LOCAL = "local"
ANSWER_SECONDS = 20.0

Cluster = Callable[[], AbstractContextManager[Client]]


def cluster_named(name: str, workers: int, mapped_bytes: int) -> Cluster | None:
    """How to start, or reach, the cluster called `name`; None for this process alone (`local` with no workers).

    Raises `WrongInput` if it is neither `local` nor a scheduler's address, or an address that others can reach.
    """
    if name == LOCAL:
        return partial(local_cluster, workers, mapped_bytes) if workers else None
    found = re.fullmatch(r"tcp://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d+)", name)
    if not found:
        raise WrongInput(f"no cluster is called {name!r}; give local, or a scheduler's address such as tcp://127.0.0.1:8786")
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


def capacity(client: Client) -> tuple[int, int]:
    """How many cohorts the cluster runs at once, and the least memory in bytes that one of them has. Waits for the first worker.

    Raises `WrongInput` if none comes.
    """
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError:
        raise WrongInput(f"the scheduler at {client.scheduler.address} has no worker; start some with `dask worker`") from None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(w["nthreads"] for w in workers), min(w["memory_limit"] // w["nthreads"] for w in workers)
