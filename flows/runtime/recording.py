"""Work that Prefect records as a flow run, and whose outcome is the work's own.

In a flow run its stages are tasks, and what they come to are tables; without one nothing of Prefect
is imported, whose import takes seconds.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial, wraps
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import flows
from flows.runtime.console import say
from flows.runtime.prefect_server import ADDRESS, configure_prefect, served, start_embedded
from flows.runtime.processes import come_to

T = TypeVar("T")
# How long Prefect may let work wait: seconds for an answer, and requests made again.
PATIENCE = {"PREFECT_API_REQUEST_TIMEOUT": "5", "PREFECT_CLIENT_MAX_RETRIES": "0"}
WRITTEN_WITHIN = 20.0  # seconds in which the embedded server writes what it was told
PAGE = 200  # most task runs in one answer of Prefect
SHOWN = 50  # most rows of a table


class Record:
    """Prefect's record of one flow run: how many tasks it has, and whether it is incomplete."""

    def __init__(self, name: str) -> None:
        self.name, self.tasks, self.incomplete = name, 0, False

    def outcome(self, work: Callable[[], T], record: Callable[[Callable[[], T]], object]) -> T:
        """What `work` comes to, called by `record`; or by us, if `record` does not come so far.

        `record` may call it again. Raises what the work raises.
        """
        tries: list[Future[T]] = []

        def once() -> T:
            tries.append(Future())
            come_to(tries[-1], work)
            return tries[-1].result()

        try:
            record(once)
        except Exception as error:  # Prefect may answer anything
            if not tries or error is not tries[-1].exception():
                self.lacks(error)
        return tries[-1].result() if tries else work()

    def lacks(self, error: Exception) -> None:
        """Say once that the record is incomplete."""
        if not self.incomplete:
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            say(f"Prefect's record of {self.name} is incomplete: {why}")
        self.incomplete = True


RECORDS: dict[str, Record] = {}  # of the flow runs of this process, by their ids


def record_here() -> Record:
    """The record of the flow run that this is a part of."""
    from prefect.runtime import flow_run

    return RECORDS.setdefault(flow_run.id, Record(flow_run.name))


def in_flow_run() -> bool:
    """Whether what is done now is a part of a flow run."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def stage(name: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
    """What a stage of the work comes to; in a flow run it is a task, with these options.

    Prefect does not see its arguments.
    """
    work = partial(function, *args)
    if not in_flow_run():
        return work()
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    def as_task(once: Callable[[], T]) -> object:
        return task(once, name=name, task_run_name=name, cache_policy=NO_CACHE, **options)()

    record = record_here()
    record.tasks += 1
    return record.outcome(work, as_task)


def key(name: str) -> str:
    """Turn a name into a key that Prefect allows: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def table_artifact(
    name: str, rows_of: Callable[[], Sequence[dict[str, Any]]], about: Sequence[str], *files: str
) -> None:
    """Add a table with the first rows to the flow run, with Markdown and links to files."""
    if not in_flow_run():
        return
    from prefect.artifacts import create_table_artifact

    rows = list(rows_of()[:SHOWN])
    links = [f"[{path}]({path if '://' in path else f'file://{quote(path)}'})" for path in files]
    try:
        create_table_artifact(rows, key=key(name), description="\n\n".join([*about, *links]))
    except Exception as error:  # as above
        record_here().lacks(error)


def recorded(
    flow: str,
    name: str,
    parameters: dict[str, Any],
    work: Callable[[], T],
    prefect: bool | None = None,
    state_of: Callable[[T], object] = lambda result: None,
) -> T:
    """What `work` comes to, as a flow run called `name` where Prefect has a server.

    The server is that of PREFECT_API_URL or of `koco serve`; if there is none, and with `prefect`
    true, one that is embedded in this process. With `prefect` false, and within a flow run, it is
    no flow run. The `flow` of the package `flows` gives its name and the names of the `parameters`;
    `state_of` its last state, by default Completed. Whatever Prefect does, the outcome is that of
    the work, and a line says that the record is incomplete.
    """
    # without a server, this process and a notebook's own Prefect stay as they are
    if prefect is None:
        prefect = bool(os.environ.get(ADDRESS) or served()) and find_spec("prefect") is not None
    if not prefect or in_flow_run():
        return work()
    configure_prefect()
    os.environ.update({**PATIENCE, **os.environ})
    record = Record(name)
    return record.outcome(work, partial(_as_flow_run, record, flow, parameters, state_of))


def _as_flow_run(
    record: Record,
    flow: str,
    parameters: dict[str, Any],
    state_of: Callable[[T], object],
    once: Callable[[], T],
) -> None:
    """Do some work once, as a flow run that `recorded` describes."""
    if embedded := not os.environ.get(ADDRESS):
        start_embedded()
    from prefect.runtime import flow_run
    from prefect.utilities.urls import url_for

    def begin(*_: Any, **__: Any) -> object:  # its inputs were read before
        if not embedded:
            say(f"  {record.name} in Prefect: {url_for('flow-run', flow_run.id)}")
        RECORDS[flow_run.id] = record
        return state_of(once())

    named = getattr(flows, flow).with_options(flow_run_name=record.name)
    named.fn = wraps(named.fn)(begin)
    ended = named(**parameters, return_state=True)
    if embedded:
        _wait_until_written(ended.state_details.flow_run_id, min(record.tasks, PAGE))
        say("koco serve shows this flow run in Prefect's web interface")


def _wait_until_written(flow_run: UUID, tasks: int) -> None:
    """Wait until the embedded server, which ends with this process, has the last tasks' ends.

    They reach it as events, some time after a task has ended.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import TaskRunSort

    mine = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    until = time.monotonic() + WRITTEN_WITHIN
    with get_client(sync_client=True) as client:
        while time.monotonic() < until:
            last = client.read_task_runs(
                flow_run_filter=mine, sort=TaskRunSort.EXPECTED_START_TIME_DESC
            )
            if sum(run.state is not None and run.state.is_final() for run in last) >= tasks:
                return
            time.sleep(0.1)
    raise TimeoutError("the embedded server has not written all tasks")
