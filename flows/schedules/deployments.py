"""Prefect's deployments of the nights in a schedules file."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from prefect import serve
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Scheduled
from prefect.types.entrypoint import EntrypointType

from flows.nightly.flow import nightly_flow
from flows.nightly.times import Times
from flows.runtime.console import say
from flows.runtime.processes import interrupt
from flows.schedules.file import Schedule
from flows.sweeping.file import read_sweep

# Nights that come while one is in progress are left out: they would disturb its times.
ONE = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)


def serve_nights(schedules: Sequence[Schedule]) -> None:
    """Let Prefect run the nights of schedules at their times, until this process is stopped.

    Prefect would do each night that was planned while nobody served it, and an earlier process that
    was killed may hold the one place for a night. So its deployments are made anew, and if a night
    is due that the store does not have, the last one is run.
    """
    deployments = list(map(deployment_of, schedules))
    with get_client(sync_client=True) as client:
        for schedule, deployment in zip(schedules, deployments, strict=True):
            with suppress(ObjectNotFound):
                earlier = client.read_deployment_by_name(f"nightly/{deployment.name}")
                client.delete_deployment(earlier.id)
            times, now = Times(schedule.store, read_sweep(schedule.sweep).name), datetime.now(UTC)
            times.begin(schedule.cron, schedule.timezone, now)
            say(f"{schedule.name}: {schedule.cron} ({schedule.timezone}), store {schedule.store}")
            if due := times.due(now):
                say(f"{schedule.name}: the night of {due} starts late, now")
                made, at = deployment.apply(), Scheduled(scheduled_time=due)
                client.create_flow_run_from_deployment(made, state=at)
    # Prefect's own handler leaves at once, and errors of what it leaves on the terminal
    Runner.handle_sigterm = interrupt  # type: ignore[method-assign]
    serve(*deployments, limit=1, pause_on_shutdown=False, print_starting_message=False)


def deployment_of(schedule: Schedule) -> RunnerDeployment:
    """Prefect's deployment of the nightly flow for a schedule."""
    return nightly_flow.to_deployment(
        schedule.deployment,
        schedule=Cron(schedule.cron, timezone=schedule.timezone),
        concurrency_limit=ONE,
        parameters=schedule.parameters(),
        description=f"{schedule.sweep.name} again on {schedule.store}",
        tags=["koco"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
