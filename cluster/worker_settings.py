"""What a worker that another machine starts has to be told through its environment: Dask's
settings, and where its cache is.
"""

import json
import os
from collections.abc import Mapping

from cluster.local import SETTINGS
from cluster.site import Site
from koco_stream.io.cache import cache_folder

OF_ALL = ("distributed.admin.", "distributed.logging.")
OF_WORKERS = ("distributed.nanny.", "distributed.worker.", *OF_ALL)
OF_SCHEDULERS = ("distributed.scheduler.", *OF_ALL)
PASSED_ON = ("PYTHONPATH", "KOCO_CACHE_BYTES")  # as they are here, if they are set


def cache_of(site: Site) -> str:
    """The cache folder on the site's machines: the site's, or the same as here."""
    return site.cache or str(cache_folder())


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings of Dask as it reads them from the environment."""
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": json.dumps(value)
        if isinstance(value, dict)
        else str(value)
        for name, value in settings.items()
    }


def environment(site: Site, parts: tuple[str, ...] = OF_WORKERS) -> dict[str, str]:
    """The variables of a process, with the settings of these parts of Dask. Nothing secret is among
    them: others can read job scripts.
    """
    settings = variables_of(
        {name: value for name, value in SETTINGS.items() if name.startswith(parts)}
    )
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {"KOCO_CACHE": cache_of(site), **passed_on, **settings, **site.environment}
