"""Implementation of `koco serve`: Prefect's server, and nights at the times that Prefect keeps."""

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from flows.runtime.console import say
from flows.runtime.prefect_server import (
    ADDRESS,
    PASSWORD,
    PrefectServer,
    announced,
    configure_prefect,
)
from flows.runtime.processes import SERVER, interrupt, locked
from flows.schedules.file import Schedule, read_schedules
from flows.sweeping.file import read_sweep
from storage.store import open_store

PORT = 4200  # Prefect's default; another is used if it is taken


def serve_schedules(file: Path | None, store: str) -> None:
    """Serve Prefect's pages, and the schedules of a file, until this process is stopped.

    Raises `WrongInput` as `read_schedules` does, and `RuntimeError` if another process serves one
    of the stores, or if Prefect's server does not start or ends.
    """
    configure_prefect(serving=True)
    os.environ[SERVER] = str(os.getpid())
    server = None if os.environ.get(ADDRESS) else PrefectServer(PORT)
    schedules = read_schedules(file, store) if file else []
    with ExitStack() as stack:
        for path in sorted({schedule.store for schedule in schedules}):
            open_store(path)
            busy = RuntimeError(f"another koco serve is running for {path}; stop it first")
            stack.enter_context(locked(path, "serve", busy))
        if server:
            server.wait()
            note = stack.enter_context(announced(server.port))
            say(f"Prefect's web interface: {os.environ[ADDRESS].removesuffix('/api')}")
            say(f"it asks for the password, {PASSWORD} in {note}")
            threading.Thread(target=_end_with, args=(server,), daemon=True).start()
        _serve_nights(schedules)
        if server:
            server.check()


def _end_with(server: PrefectServer) -> None:
    """Interrupt this process when the server has ended."""
    server.process.wait()
    os.kill(os.getpid(), signal.SIGINT)


def _serve_nights(schedules: Sequence[Schedule]) -> None:
    """Let Prefect run the nights of schedules at their times, until this process is stopped.

    An earlier process that was killed may hold the one place for a night, so Prefect's deployments
    are made anew. If the store does not have the last night that was planned meanwhile, it is run.
    """
    # imported here, because prefect reads its settings when it is imported
    from prefect import serve
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.exceptions import ObjectNotFound
    from prefect.runner import Runner
    from prefect.schedules import Cron
    from prefect.states import Scheduled
    from prefect.types.entrypoint import EntrypointType

    from flows.nightly.night import has_ended
    from flows.prefect_flows import last_planned, nightly_flow

    # Nights that come while one is in progress are left out: they would disturb its times.
    one = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    deployments = [
        nightly_flow.to_deployment(
            schedule.deployment,
            schedule=Cron(schedule.cron, timezone=schedule.timezone),
            concurrency_limit=one,
            parameters=schedule.parameters(),
            description=f"{schedule.sweep.name} again on {schedule.store}",
            tags=["koco"],
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        for schedule in schedules
    ]
    with get_client(sync_client=True) as client:
        for schedule, deployment in zip(schedules, deployments, strict=True):
            say(f"{schedule.name}: {schedule.cron} ({schedule.timezone}), store {schedule.store}")
            due = None
            with suppress(ObjectNotFound):
                earlier = client.read_deployment_by_name(f"nightly/{deployment.name}")
                due = last_planned(earlier.id)
                client.delete_deployment(earlier.id)
            sweep = read_sweep(schedule.sweep).name
            if due and not has_ended(schedule.store, sweep, due.isoformat()):
                say(f"{schedule.name}: the night of {due} starts late, now")
                made, at = deployment.apply(), Scheduled(scheduled_time=due)
                client.create_flow_run_from_deployment(made, state=at)
    # Prefect's own handler leaves at once, and errors of what it leaves on the terminal
    Runner.handle_sigterm = interrupt  # type: ignore[method-assign]
    serve(*deployments, limit=1, pause_on_shutdown=False, print_starting_message=False)
