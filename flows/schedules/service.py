"""Implementation of `koco serve`: Prefect's server, and nights at the times that Prefect keeps."""

import asyncio
import os
import signal
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from zoneinfo import available_timezones

from pydantic import BaseModel, Field, NonNegativeInt

from cluster.clusters import cluster_named
from cluster.machine import cores
from cluster.site import LOCAL, Clock, clock_seconds
from flows.runtime.prefect_server import (
    ADDRESS,
    PASSWORD,
    PrefectServer,
    announced,
    configure_prefect,
)
from flows.runtime.processes import SERVER, interrupt, locked, say
from flows.sweeping.file import read_sweep
from flows.sweeping.toml_file import Name, TomlFile
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import text_hash
from koco_stream.io.paths import store_path
from storage.store import check_store, open_store

PORT = 4200  # Prefect's default; another is used if it is taken


class Schedule(BaseModel, extra="forbid", strict=True):
    """A [[schedule]] table. Its paths, relative to the file's folder, are absolute once read."""

    name: Name
    cron: str
    timezone: str = "UTC"
    sweep: Path = Field(strict=False)
    store: str = ""
    cluster: str = LOCAL
    workers: NonNegativeInt = Field(default_factory=cores)
    certificates: str | None = None
    time_limit: Clock | None = None


class SchedulesFile(BaseModel, extra="forbid", strict=True):
    schedule: list[Schedule] = Field(min_length=1)


def serve_schedules(file: Path | None, store: str) -> None:
    configure_prefect(serving=True)
    os.environ[SERVER] = str(os.getpid())
    server = None if os.environ.get(ADDRESS) else PrefectServer(PORT)
    schedules = read_schedules(file, store) if file else []
    with ExitStack() as stack:
        for path in sorted({schedule.store for schedule in schedules}):
            open_store(path)
            busy = f"another koco serve is running for {path}; stop it first"
            stack.enter_context(locked(path, "serve", RuntimeError(busy)))
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
    server.process.wait()
    if threading.main_thread().is_alive():
        os.kill(os.getpid(), signal.SIGINT)


def _serve_nights(schedules: list[Schedule]) -> None:
    """Let Prefect run the nights at their times.

    A killed process may hold the one place for a night, so deployments are made anew. A planned
    night that the store lacks is run.
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
            f"{schedule.name}-{text_hash(schedule.store)[:6]}",  # another store has another one
            schedule=Cron(schedule.cron, timezone=schedule.timezone),
            concurrency_limit=one,
            parameters={
                "sweep_file": str(schedule.sweep),
                **schedule.model_dump(include={"store", "cluster", "workers", "certificates"}),
                "seconds": schedule.time_limit and float(clock_seconds(schedule.time_limit)),
            },
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
            sweep = read_sweep(schedule.sweep)
            if due and not has_ended(schedule.store, sweep.name, due.isoformat()):
                say(f"{schedule.name}: the night of {due} starts late, now")
                client.create_flow_run_from_deployment(
                    deployment.apply(), state=Scheduled(scheduled_time=due)
                )
    # Prefect's own handler leaves at once, and errors of what it leaves on the terminal
    Runner.handle_sigterm = interrupt  # type: ignore[method-assign]
    serve(*deployments, limit=1, pause_on_shutdown=False, print_starting_message=False)


def read_schedules(path: Path, store: str) -> list[Schedule]:
    """The schedules of a file, checked; `store` is for those that name none."""
    from prefect.server.schemas.schedules import CronSchedule  # whose import takes seconds

    file = TomlFile(path, "schedules", "flows/schedules.toml is an example", {"schedule": Schedule})
    schedules = file.as_model(SchedulesFile).schedule
    folder = path.absolute().parent
    for number, schedule in enumerate(schedules):
        with file.blaming("schedule", number, "name"):
            if schedule.name in [other.name for other in schedules[:number]]:
                raise WrongInput(f"two schedules are called {schedule.name!r}; rename one")
        with file.blaming("schedule", number, "timezone"):
            zones = sorted(available_timezones())
            if schedule.timezone not in zones:
                near = nearest(schedule.timezone, zones)
                raise WrongInput(f"no time zone is called {schedule.timezone!r}{near}")
        with file.blaming("schedule", number, "sweep"):
            schedule.sweep = folder / schedule.sweep.expanduser()
            read_sweep(schedule.sweep)
        with file.blaming("schedule", number, "store"):
            local = schedule.store and "://" not in schedule.store
            given = folder / Path(schedule.store).expanduser() if local else schedule.store or store
            check_store(given)
            schedule.store = str(store_path(given))
        with file.blaming("schedule", number, "cluster"):
            cluster_named(schedule.cluster, schedule.workers, 0, schedule.certificates)
        with file.blaming("schedule", number, "cron"):
            fields = schedule.cron.split()
            try:
                if len(fields) != 5 or any(field[0] in "rR" for field in fields):  # R: at random
                    raise ValueError
                asyncio.run(
                    CronSchedule(cron=schedule.cron, timezone=schedule.timezone).get_dates(1)
                )
            except ValueError:  # also of a time that never comes, such as the 30th of February
                raise WrongInput(
                    f"{schedule.cron!r} is not a cron expression; give five fields (minute, hour,"
                    ' day, month, day of the week), for example "0 2 * * *" for two o\'clock each'
                    " night"
                ) from None
    return schedules
