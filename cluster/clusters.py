"""Resolution of `--cluster`: `local`, the address of a running scheduler, or a site file."""

import logging
import os
import shlex
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from unittest.mock import patch

import dask
import yaml
from distributed import Client, LocalCluster, Security

from cluster.jobs import job_cluster, job_script
from cluster.kubernetes import manifest, pod_cluster
from cluster.machine import worker_bytes
from cluster.site import ADDRESS, LOCAL, SETTINGS, JobSite, KubernetesSite, check_where, read_site
from cluster.workers import ANSWER_SECONDS, WITHOUT_WORKERS, wait_for_worker, workers_of
from koco_stream.errors import WrongInput, refuse_first
from koco_stream.io.cache import private_folder


def cluster_named(
    name: str,
    workers: int,
    mapped_bytes: int,
    certificates: str | None = None,
    insecure: bool = False,
) -> Callable[[], AbstractContextManager[Client]] | None:
    """What starts or reaches a cluster, not called yet. None for `local` without workers."""
    if name == LOCAL:
        return partial(local_cluster, workers, mapped_bytes) if workers else None
    # imported here, because other clusters need no cryptography
    if certificates:
        from cluster.certificates import ROLES, security_of
    folder = Path(certificates).expanduser().absolute() if certificates else None
    check_where(name)
    found = ADDRESS.fullmatch(name)
    if not found:
        # a site needs all certificates, because its scheduler runs in this process
        site = read_site(name)
        security = security_of(folder, ROLES) if folder else None
        if isinstance(site, JobSite):
            if folder and shlex.quote(str(folder)) != str(folder):
                raise WrongInput(
                    f"--certificates {folder}: jobs cannot name a folder with blanks or quotation"
                    " marks in its path; move it"
                )
            return job_cluster(site, mapped_bytes, security, insecure)
        return pod_cluster(site, mapped_bytes, insecure)
    tls = found[1] == "tls"
    refuse_first(
        [
            (int(found[3]) > 65535, f"{name}: a port is at most 65535"),
            (
                tls and folder is None,
                f"{name} needs certificates: name their folder with --certificates or"
                " KOCO_CERTIFICATES",
            ),
            (
                not (tls or insecure or on_loopback(found[2])),
                f"{name} is not on the loopback interface: workers execute whatever is sent to"
                " their scheduler, and tcp:// does not check who sends it; use tls:// (koco cluster"
                " certificates creates the certificates), or --insecure if nobody else can connect",
            ),
        ]
    )
    return partial(connected, name, security_of(folder) if tls and folder else None)


def submission(site: JobSite | KubernetesSite) -> str:
    if isinstance(site, JobSite):
        return job_script(site)
    return yaml.safe_dump(manifest(site), sort_keys=False)


def on_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def connected(address: str, security: Security | None = None) -> Iterator[Client]:
    # Dask's own log would repeat the errors that this function raises
    for log in ("distributed", "distributed.client"):
        logging.getLogger(log).setLevel(logging.CRITICAL)
    if security is not None:
        _check_tls(address, security)
    try:
        client = Client(address, set_as_default=False, timeout=ANSWER_SECONDS, security=security)
    except (OSError, TimeoutError) as error:
        raise WrongInput(
            f"no scheduler answers at {address}: {error}; start it, and its workers, with the"
            " commands of docs/clusters.md, or use --cluster local"
        ) from None
    with client:
        yield client


def _check_tls(address: str, security: Security) -> None:
    """Raise `WrongInput` if who listens there speaks no TLS or is not of the same authority."""
    host, _, port = address.removeprefix("tls://").rpartition(":")
    context = security.get_connection_args("client")["ssl_context"]
    # a scheduler that is not there yet is waited for
    with (
        suppress(OSError),
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS) as plain,
    ):
        try:
            context.wrap_socket(plain).close()
        except ssl.SSLError as error:
            raise WrongInput(
                f"who listens at {address} has no certificate of the authority in --certificates"
                f" ({error.reason or error}); use the folder with which its scheduler was started"
            ) from None


def site_named(name: str) -> JobSite | KubernetesSite | None:
    return None if name == LOCAL or "://" in name else read_site(name)


def patience_of(name: str) -> float:
    return site.patience_seconds if (site := site_named(name)) else WITHOUT_WORKERS


def capacity(name: str, workers: int, client: Client | None = None) -> tuple[int, int]:
    """Number of cohorts at once, and the least memory in bytes for one."""
    if site := site_named(name):
        return site.workers.max, site.worker_bytes
    if name == LOCAL or client is None:
        return max(workers, 1), worker_bytes(workers)
    wait_for_worker(client)
    there = workers_of(client).values()
    return sum(w["nthreads"] for w in there), min(
        (w["memory_limit"] or 1 << 50) // w["nthreads"]
        for w in there  # many bytes for no limit
    )


@contextmanager
def local_cluster(workers: int, mapped_bytes: int = 0) -> Iterator[Client]:
    """A client of a cluster of single-threaded workers on this machine.

    Dask counts mapped pages as a worker's memory, although all workers share them: `mapped_bytes`
    are allowed on top.
    """
    with (
        dask.config.set({**SETTINGS, "temporary-directory": str(private_folder("dask"))}),
        # Dask sets the variables meant for its workers in this process too, and leaves them there
        patch.dict(os.environ),
        started(workers, worker_bytes(workers) + mapped_bytes) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        try:
            yield client
        finally:
            # Dask fails to close a worker that it is just starting again
            with suppress(TimeoutError):
                client.wait_for_workers(workers, timeout=10.0)


def started(workers: int, limit: int, starts: int = 3) -> LocalCluster:
    """A worker that dies while it starts makes the start fail; it is tried up to `starts` times."""
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=limit,
            silence_logs=40,
            preload=["cluster.reporting"],
        )
    except RuntimeError:
        if starts == 1:
            raise
    return started(workers, limit, starts - 1)
