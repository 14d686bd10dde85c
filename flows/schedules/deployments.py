"""Prefect deployments for scheduled nightly runs, each planned time done exactly once.

Prefect's scheduler keeps the time. Its runner starts one process at a time, because parallel runs
would disturb each other's measurements. Prefect by itself may do a planned time twice or never
while schedules are registered again, and later does all times that passed while it was down. So
each flow run first reads the store's record of planned times (`flows.nightly.times`) under the
store's lock. This module creates runs that Prefect has lost, and cancels those that are not needed.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Cancelled, Crashed, Scheduled
from prefect.types.entrypoint import EntrypointType

from flows.nightly.flow import nightly_flow
from flows.nightly.times import Times
from flows.runtime.console import say
from flows.schedules.file import Schedule

POLL_SECONDS = 5.0  # interval at which Prefect's runner asks for runs to start
CHECK_SECONDS = 10.0  # interval between checks of what is due
GRACE = timedelta(seconds=20)  # time that Prefect has to create the run of a planned time
UNDER_WAY = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)


async def serve(
    schedules: list[Schedule], check: Callable[[], None], interrupt: Callable[..., None]
) -> None:
    """Register schedules, and run what is due until cancelled.

    `check` is called regularly, and raises if a required process has ended. `interrupt` handles the
    termination signal.
    """
    runner = Runner(name="koco", limit=1, pause_on_shutdown=False, query_seconds=POLL_SECONDS)
    runner.handle_sigterm = interrupt  # type: ignore[method-assign]
    async with get_client() as client:
        deployments = {}
        for schedule in schedules:
            times = Times(schedule.store, schedule.name)
            times.begin(schedule.cron, schedule.timezone, datetime.now(UTC))
            await clear_up(client, schedule)
            deployments[schedule.name] = await runner.add_deployment(await deployment_of(schedule))
            say(
                f"{schedule.name}: {schedule.cron} ({schedule.timezone}), {schedule.sweep}, store"
                f" {schedule.store}"
            )
        running = asyncio.create_task(runner.start())
        making_up = asyncio.create_task(_make_up_all(client, schedules, deployments))
        try:
            while not (running.done() or making_up.done()):
                check()  # beside them, because a server that has ended leaves requests unanswered
                await asyncio.wait((running, making_up), timeout=CHECK_SECONDS)
            if running.done():
                raise RuntimeError(f"Prefect's runner has ended: {running.exception()}")
            making_up.result()
        finally:
            running.cancel()
            making_up.cancel()
            await asyncio.gather(running, making_up, return_exceptions=True)


async def _make_up_all(
    client: PrefectClient, schedules: list[Schedule], deployments: dict[str, UUID]
) -> None:
    """Create the missing runs of planned times that are due, every `CHECK_SECONDS`.

    In the first check, Prefect gets no time to create them itself.
    """
    grace = timedelta()
    while True:
        for schedule in schedules:
            try:
                await make_up(client, schedule, deployments[schedule.name], grace)
            except httpx.HTTPError as error:  # a server that somebody else runs may be down
                say(f"Prefect's server does not answer ({type(error).__name__}); trying again")
        grace = GRACE
        await asyncio.sleep(CHECK_SECONDS)


async def deployment_of(schedule: Schedule) -> RunnerDeployment:
    """Prefect deployment of the nightly flow for a schedule."""
    return await nightly_flow.to_deployment(
        schedule.deployment,
        schedule=Cron(schedule.cron, timezone=schedule.timezone),
        parameters=schedule.parameters(),
        description=(
            f"{schedule.sweep.name} again on {schedule.store}, compared with the accepted run"
        ),
        tags=["koco"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


async def clear_up(client: PrefectClient, schedule: Schedule) -> None:
    """Close an earlier process's unfinished runs in Prefect, and past times that are not due."""
    try:
        deployment = await client.read_deployment_by_name(f"nightly/{schedule.deployment}")
    except ObjectNotFound:
        return
    for run in await runs_of_deployment(client, deployment.id, *UNDER_WAY):
        await client.set_flow_run_state(
            run.id, Crashed(message="koco serve ended while this run was in progress"), force=True
        )
    now = datetime.now(UTC)
    due = await asyncio.to_thread(Times(schedule.store, schedule.name).due, now)
    for run in await runs_of_deployment(client, deployment.id, StateType.SCHEDULED):
        planned = datetime.fromtimestamp(run.expected_start_time.timestamp(), UTC)
        if run.auto_scheduled and planned <= now and planned != due:
            await client.set_flow_run_state(
                run.id, Cancelled(name="Left out", message="koco serve was not running"), force=True
            )


async def make_up(
    client: PrefectClient, schedule: Schedule, deployment: UUID, grace: timedelta
) -> None:
    """Create the run of a planned time that has been due for `grace`, unless Prefect has it."""
    now = datetime.now(UTC)
    due = await asyncio.to_thread(Times(schedule.store, schedule.name).due, now)
    if due is None or now - due < grace:
        return
    every = [state for state in StateType if state != StateType.CRASHED]
    if await runs_of_deployment(client, deployment, *every, planned=due):
        return
    say(
        f"{schedule.name}: the run scheduled for {due.isoformat(timespec='seconds')} starts late,"
        " now"
    )
    await client.create_flow_run_from_deployment(
        deployment,
        parameters={"planned": due.isoformat()},
        state=Scheduled(scheduled_time=due),
        tags=["late"],
    )


async def runs_of_deployment(
    client: PrefectClient, deployment: UUID, *states: StateType, planned: datetime | None = None
) -> list[FlowRun]:
    """Flow runs of a deployment in the given states, optionally of one planned time."""
    around = timedelta(seconds=1)
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[deployment]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))),
        expected_start_time=planned
        and FlowRunFilterExpectedStartTime(after_=planned - around, before_=planned + around),
    )
    found: list[FlowRun] = []
    while page := await client.read_flow_runs(flow_run_filter=wanted, limit=200, offset=len(found)):
        found += page
    return found
