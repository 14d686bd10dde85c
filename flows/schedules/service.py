"""Implementation of `koco serve`: nightly runs at planned times until it is stopped.

This module takes the locks, starts Prefect's server and handles signals. See
`flows.schedules.deployments` for the scheduling.
"""

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path

from flows.runtime.console import say
from flows.runtime.prefect_server import PASSWORD, PrefectServer, configure_prefect
from flows.runtime.processes import SERVER, interrupt, locked
from flows.schedules.file import read_schedules
from storage.store import open_store

PORT = 4200  # Prefect's default; another is used if it is taken


def serve_schedules(file: Path, store: str) -> None:
    """Serve the schedules of a file until this process is stopped.

    Raises `WrongInput` as `read_schedules` does, and `RuntimeError` if another process serves one
    of the stores, or if Prefect's server does not start or ends.
    """
    configure_prefect()
    os.environ[SERVER] = str(os.getpid())
    server = PrefectServer(PORT)
    schedules = read_schedules(file, store)
    with ExitStack() as stack:
        for path in sorted({schedule.store for schedule in schedules}):
            open_store(path)
            try:
                stack.enter_context(locked(path, "serve", None))
            except BlockingIOError:
                raise RuntimeError(
                    f"another koco serve is running for {path}; stop it first"
                ) from None
        server.start()
        server.wait()
        if server.process:
            file = stack.enter_context(server.announced())
            say(f"Prefect's web interface: {server.pages}")
            say(f"it asks for the password, {PASSWORD} in {file}")
        signal.signal(signal.SIGTERM, interrupt)
        # imported here, because prefect reads its settings when it is imported
        from flows.schedules.deployments import serve

        asyncio.run(serve(schedules, server.check, interrupt))
