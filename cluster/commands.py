"""The commands that start a scheduler and workers by hand, with certificates and with the settings
that sweeps want.
"""

import shlex
from pathlib import Path

from cluster.certificates import AUTHORITY, certificate_file, key_file
from cluster.settings import LOOPBACK_PAGE, PRELOADS, settings_of, variables_of

PORT = 8786
# a link may be cut for so long and nothing is lost; after that the worker's cohorts go to others
CUT_SECONDS = 60

LINKS: dict[str, object] = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.tcp": f"{CUT_SECONDS}s",
}
SCHEDULER_SETTINGS: dict[str, object] = {
    **LINKS,
    **settings_of(("distributed.scheduler.worker-saturation",)),
    # a process that answers the network and nothing else is given up after this
    "distributed.scheduler.worker-ttl": "5 minutes",
}
WORKER_SETTINGS: dict[str, object] = {**LINKS, **settings_of(("distributed.worker.memory.",))}


def start_commands(folder: Path, host: str, port: int = PORT) -> dict[str, str]:
    """The commands for the scheduler on `host`, for a worker, and for the sweep, by their names."""
    address = f"tls://{host}:{port}"
    scheduler = f"dask scheduler --host {host} --port {port} --protocol tls"
    scheduler += " --dashboard-address 127.0.0.1:8787"
    worker = f"dask worker {address} --protocol tls --nthreads 1 --nworkers WORKERS"
    worker += " --memory-limit MEMORY --host ITS_ADDRESS"
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
    """What `dask scheduler` and `dask worker` are told of certificates."""
    authority, certificate = folder / AUTHORITY, certificate_file(folder, role)
    files = {"ca-file": authority, "cert": certificate, "key": key_file(folder, role)}
    return [word for name, file in files.items() for word in (f"--tls-{name}", str(file))]


def shown(settings: dict[str, object], words: list[str]) -> str:
    """A command as a user types it, with its settings before it."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in variables_of(settings).items()]
    return " ".join([*variables, shlex.join(words)])
