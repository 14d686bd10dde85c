"""The commands that start a scheduler and workers by hand, with certificates and with the settings
that sweeps want.
"""

import shlex
from pathlib import Path

from cluster.certificates import AUTHORITY, certificate_file, key_file
from cluster.local import SETTINGS
from cluster.preemption import PRELOAD
from cluster.worker_settings import variables_of

PORT = 8786
# a link may be cut for so long and nothing is lost; after that the worker's cohorts go to others
CUT_SECONDS = 60

LINKS: dict[str, object] = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.tcp": f"{CUT_SECONDS}s",
}
SCHEDULER_SETTINGS: dict[str, object] = {
    **LINKS,
    "distributed.scheduler.worker-saturation": SETTINGS["distributed.scheduler.worker-saturation"],
    # a process that answers the network and nothing else is given up after this
    "distributed.scheduler.worker-ttl": "5 minutes",
}
WORKER_SETTINGS: dict[str, object] = {
    **LINKS,
    **{
        name: value
        for name, value in SETTINGS.items()
        if name.startswith("distributed.worker.memory.")
    },
}


def start_commands(folder: Path, host: str, port: int = PORT) -> dict[str, str]:
    """The commands for the scheduler on `host`, for a worker, and for the sweep, by their names."""
    address = f"tls://{host}:{port}"
    scheduler = [
        "dask",
        "scheduler",
        "--host",
        host,
        "--port",
        str(port),
        "--protocol",
        "tls",
        "--dashboard-address",
        "127.0.0.1:8787",
    ]
    worker = [
        "dask",
        "worker",
        address,
        "--protocol",
        "tls",
        "--nthreads",
        "1",
        "--nworkers",
        "WORKERS",
        "--memory-limit",
        "MEMORY",
    ]
    worker += [
        "--host",
        "ITS_ADDRESS",
        "--dashboard-address",
        "127.0.0.1:0",
        "--preload",
        PRELOAD,
        "--preload-nanny",
        PRELOAD,
    ]
    return {
        "scheduler": shown(SCHEDULER_SETTINGS, [*scheduler, *tls_words(folder, "scheduler")]),
        "worker": shown(WORKER_SETTINGS, [*worker, *tls_words(folder, "worker")]),
        "sweep": shown(
            {},
            [
                "koco",
                "sweep",
                "SPEC",
                "--store",
                "STORE",
                "--cluster",
                address,
                "--certificates",
                str(folder),
            ],
        ),
    }


def tls_words(folder: Path, role: str) -> list[str]:
    """What `dask scheduler` and `dask worker` are told of certificates."""
    words = [
        "--tls-ca-file",
        folder / AUTHORITY,
        "--tls-cert",
        certificate_file(folder, role),
        "--tls-key",
        key_file(folder, role),
    ]
    return [str(word) for word in words]


def shown(settings: dict[str, object], words: list[str]) -> str:
    """A command as a user types it, with its settings before it."""
    return " ".join(
        [
            *(f"{name}={shlex.quote(value)}" for name, value in variables_of(settings).items()),
            shlex.join(words),
        ]
    )
