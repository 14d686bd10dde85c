"""Prefect's settings and its own server, both set before prefect is imported or a flow runs."""

import os
import subprocess
from types import SimpleNamespace
from typing import Any, cast

from flows.runtime.processes import OwnSession
from koco_stream.io.cache import private_folder


def configure_prefect() -> None:
    """Prefect's home in the cache folder, nothing sent out, quiet logs, time to start. Must come
    before prefect is imported; what the user has set stays.
    """
    settings = {
        "PREFECT_HOME": str(private_folder("prefect")),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def shield_prefect_server() -> None:
    """Have Prefect start its own server in a session of its own: without it the flow could not even
    say that it was stopped, and would try for long. Where a server runs already, Prefect starts
    none, and need not import it: a second or two.
    """
    if os.environ.get("PREFECT_API_URL"):
        return
    from prefect.server.api import server

    # there is no setting for it
    server.subprocess = cast(Any, SimpleNamespace(**{**vars(subprocess), "Popen": OwnSession}))
