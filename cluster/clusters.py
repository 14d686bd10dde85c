"""Which cluster a user names: `local`, or the address of a scheduler that runs already."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from distributed import Client, Security

from cluster.local import local_cluster
from cluster.security import security_of
from koco_stream.errors import WrongInput

LOCAL = "local"
ANSWER_SECONDS = 20.0
UNLIMITED = 1 << 50  # bytes, for a worker that was given no memory limit

Cluster = Callable[[], AbstractContextManager[Client]]


def cluster_named(name: str, workers: int, mapped_bytes: int, certificates: str | None = None, insecure: bool = False) -> Cluster | None:
    """How to start, or reach, the cluster called `name`; None for this process alone (`local` with no workers).

    A `tls://` scheduler is shown the client's certificate of the folder `certificates`. Raises `WrongInput` if the name is neither `local`
    nor a scheduler's address; if the certificates cannot be used; if others can reach the address without any, unless `insecure`.
    """
    if name == LOCAL:
        return partial(local_cluster, workers, mapped_bytes) if workers else None
    found = re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[^:/]+):(\d+)", name)
    if not found:
        raise WrongInput(f"no cluster is called {name!r}; give local, or a scheduler's address such as tls://HOST:8786")
    if found[1] == "tls":
        if not certificates:
            raise WrongInput(f"{name} asks for certificates: name their folder with --certificates or KOCO_CERTIFICATES")
        return partial(connected, name, security_of(Path(certificates).expanduser().absolute()))
    if not on_loopback(found[2]) and not insecure:
        raise WrongInput(
            f"{name} is not on the loopback interface: whatever reaches a scheduler is executed by its workers, and tcp:// does not ask "
            "who it is; use tls:// (koco cluster certificates makes what it takes), or --insecure where nobody else can reach it"
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
def connected(address: str, security: Security | None = None) -> Iterator[Client]:
    """A client of the scheduler at `address`, which stays when the client goes. Raises `WrongInput` if none answers."""
    try:
        client = Client(address, set_as_default=False, timeout=ANSWER_SECONDS, security=security)
    except (OSError, TimeoutError) as error:
        raise WrongInput(f"no scheduler answers at {address}: {error}; start one with `dask scheduler`, or use --cluster local") from None
    try:
        yield client
    finally:
        client.close()


def wait_for_worker(client: Client) -> None:
    """Wait for the first worker. Raises `WrongInput` if none comes."""
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError:
        raise WrongInput(f"the scheduler at {client.scheduler.address} has no worker; start some with `dask worker`") from None


def capacity(client: Client) -> tuple[int, int]:
    """How many cohorts the cluster runs at once, and the least memory in bytes that one of them has. Waits for the first worker.

    Raises `WrongInput` if none comes.
    """
    wait_for_worker(client)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(w["nthreads"] for w in workers), min((w["memory_limit"] or UNLIMITED) // w["nthreads"] for w in workers)
