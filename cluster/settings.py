"""How Dask is set for sweeps, here and in what workers on other machines are told."""

import json
import os
from collections.abc import Mapping

from cluster.site import Site
from koco_stream.io.cache import cache_folder

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
# what a task raises reaches whoever waits for it, and is said there, once
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}

SETTINGS = {
    "distributed.nanny.pre-spawn-environ": {**ONE_THREAD, **QUIET},
    "distributed.worker.use-file-locking": False,
    "distributed.logging.distributed": "error",
    # what has cost two workers their lives is not given to a third
    "distributed.scheduler.allowed-failures": 1,
    # nothing waits on a worker: its death then says something of one cohort only
    "distributed.scheduler.worker-saturation": 1.0,
    # Dask looks at itself: a hundred times a second at what runs, fifty times whether its loop
    # turns, twice at all that psutil knows. On the cores that scan this costs several per cent of
    # their time.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.target": False,  # there is nothing to spill: states are not Dask's
    "distributed.worker.memory.spill": False,
    # a paused worker would wait for ever for memory that its cohort holds
    "distributed.worker.memory.pause": False,
    # So long after a worker was lost Dask looks whether it is back, and gives its place up for good
    # if it is just being started once more.
    "distributed.deploy.lost-worker-timeout": "87600h",
}
OF_ALL = ("distributed.admin.", "distributed.logging.")
OF_WORKERS = ("distributed.nanny.", "distributed.worker.", *OF_ALL)
OF_SCHEDULERS = ("distributed.scheduler.", *OF_ALL)
PASSED_ON = ("PYTHONPATH", "KOCO_CACHE_BYTES")  # as they are here, if they are set
PRELOAD = "cluster.preemption"
PRELOADS = ("--preload", PRELOAD, "--preload-nanny", PRELOAD)
LOOPBACK_PAGE = ("--dashboard-address", "127.0.0.1:0")  # at any port


def cache_of(site: Site) -> str:
    """The cache folder on the site's machines: the site's, or the same as here."""
    return site.cache or str(cache_folder())


def settings_of(prefixes: tuple[str, ...]) -> dict[str, object]:
    """The settings of these parts of Dask."""
    return {name: value for name, value in SETTINGS.items() if name.startswith(prefixes)}


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings of Dask as it reads them from the environment."""
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": json.dumps(value)
        if isinstance(value, dict)
        else str(value)
        for name, value in settings.items()
    }


def environment(site: Site, prefixes: tuple[str, ...] = OF_WORKERS) -> dict[str, str]:
    """The variables of a process that another machine starts, with the settings of these parts of
    Dask.

    Nothing secret is among them: others can read job scripts.
    """
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    settings = variables_of(settings_of(prefixes))
    return {"KOCO_CACHE": cache_of(site), **passed_on, **settings, **site.environment}
