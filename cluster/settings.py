"""Dask settings and environment variables for sweeps, on this machine and on remote workers."""

import os
from collections.abc import Mapping

from cluster.site import Site
from koco_stream.io.cache import cache_folder
from koco_stream.io.files import json_text

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
# Dask's log would repeat the errors of tasks, which the client raises
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}

SETTINGS = {
    "distributed.nanny.pre-spawn-environ": {**ONE_THREAD, **QUIET},
    "distributed.worker.use-file-locking": False,
    "distributed.logging.distributed": "error",
    # a task that has lost two workers fails
    "distributed.scheduler.allowed-failures": 1,
    # no tasks queue on a worker, so that its death is blamed on the one cohort that ran
    "distributed.scheduler.worker-saturation": 1.0,
    # By default Dask samples its tasks 100 times a second, checks its event loop 50 times and
    # queries psutil twice. On the cores that scan this costs several per cent of their time.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.target": False,  # Dask has nothing to spill: it holds no states
    "distributed.worker.memory.spill": False,
    # a paused worker would wait forever for memory that its own cohort holds
    "distributed.worker.memory.pause": False,
    # After this time Dask gives up a lost worker for good, even while it is being restarted.
    "distributed.deploy.lost-worker-timeout": "87600h",
}
OF_ALL = ("distributed.admin.", "distributed.logging.")
OF_WORKERS = ("distributed.nanny.", "distributed.worker.", *OF_ALL)
OF_SCHEDULERS = ("distributed.scheduler.", *OF_ALL)
PASSED_ON = ("PYTHONPATH", "KOCO_CACHE_BYTES")  # variables copied from this process, if set
REPORTING = "cluster.reporting"  # what workers on this machine preload
PRELOAD = "cluster.preemption"  # and others
PRELOADS = ("--preload", PRELOAD, "--preload-nanny", PRELOAD)
LOOPBACK_PAGE = ("--dashboard-address", "127.0.0.1:0")  # at any port


def cache_of(site: Site) -> str:
    """Path of the cache folder on a site's machines; by default the same as here."""
    return site.cache or str(cache_folder())


def settings_of(prefixes: tuple[str, ...]) -> dict[str, object]:
    """The Dask settings whose names start with one of these prefixes."""
    return {name: value for name, value in SETTINGS.items() if name.startswith(prefixes)}


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Dask settings as environment variables."""
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": json_text(value)
        if isinstance(value, dict)
        else str(value)
        for name, value in settings.items()
    }


def environment(site: Site, prefixes: tuple[str, ...] = OF_WORKERS) -> dict[str, str]:
    """Environment variables for a worker or scheduler that a site starts on another machine.

    `prefixes` select the Dask settings. No secrets are included, because others can read job
    scripts.
    """
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    settings = variables_of(settings_of(prefixes))
    return {"KOCO_CACHE": cache_of(site), **passed_on, **settings, **site.environment}
