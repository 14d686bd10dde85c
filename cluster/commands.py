"""Commands that start a Dask scheduler and workers by hand, with certificates and Dask settings."""

import shlex
from pathlib import Path

from cluster.certificates import AUTHORITY
from cluster.settings import LOOPBACK_PAGE, PRELOADS, settings_of, variables_of

PORT = 8786
# a connection may fail for so long without loss; then the worker's cohorts are run by others
CUT_SECONDS = 60

LINKS: dict[str, object] = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.tcp": f"{CUT_SECONDS}s",
}
SCHEDULER_SETTINGS: dict[str, object] = {
    **LINKS,
    **settings_of(("distributed.scheduler.worker-saturation",)),
    # the scheduler gives up a worker that sends no heartbeat for so long
    "distributed.scheduler.worker-ttl": "5 minutes",
}
WORKER_SETTINGS: dict[str, object] = {**LINKS, **settings_of(("distributed.worker.memory.",))}


def start_commands(folder: Path, host: str, port: int = PORT) -> dict[str, str]:
    """Commands to start the scheduler on `host`, a worker, and the sweep, by these names."""
    address = f"tls://{host}:{port}"
    scheduler = (
        f"dask scheduler --host {host} --port {port} --protocol tls"
        " --dashboard-address 127.0.0.1:8787"
    )
    worker = (
        f"dask worker {address} --protocol tls --nthreads 1 --nworkers WORKERS"
        " --memory-limit MEMORY --host ITS_ADDRESS"
    )
    sweep = f"koco sweep SPEC --store STORE --cluster {address}"
    return {
        "scheduler": shown(
            SCHEDULER_SETTINGS, [*scheduler.split(), *tls_words(folder, "scheduler")]
        ),
        "worker": shown(
            WORKER_SETTINGS,
            [*worker.split(), *LOOPBACK_PAGE, *PRELOADS, *tls_words(folder, "worker")],
        ),
        "sweep": shown({}, [*sweep.split(), "--certificates", str(folder)]),
    }


def tls_words(folder: Path, role: str) -> list[str]:
    """Options that give `dask scheduler` or `dask worker` its certificates."""
    names = {"ca-file": AUTHORITY, "cert": f"{role}.pem", "key": f"{role}-key.pem"}
    files = {name: folder / file for name, file in names.items()}
    return [word for name, file in files.items() for word in (f"--tls-{name}", str(file))]


def shown(settings: dict[str, object], words: list[str]) -> str:
    """A shell command with Dask settings as environment variables before it."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in variables_of(settings).items()]
    return " ".join([*variables, shlex.join(words)])
