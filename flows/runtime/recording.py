"""Work that Prefect records as a flow run with tasks, and whose outcome is the work's own."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial, wraps
from importlib.util import find_spec
from subprocess import Popen
from typing import Any, TypeVar
from uuid import UUID

import psutil

import flows
from flows.runtime.console import say
from flows.runtime.prefect_server import ADDRESS, configure_prefect, served
from flows.runtime.processes import end_with_driver, shielded

T = TypeVar("T")
Function = Callable[..., Any]
# turns a stage of the work, which has a name, into one that may be a task
Stage = Callable[[str, Function], Function]

# How long Prefect may let work wait: seconds for an answer, and requests made again.
PATIENCE = {"PREFECT_API_REQUEST_TIMEOUT": "5", "PREFECT_CLIENT_MAX_RETRIES": "0"}
# The embedded server starts slowly on a busy machine. It has no pages, and does not act on the flow
# runs of others that have the same database.
EMBEDDED = {
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": "http://127.0.0.1",
    "PREFECT_SERVER_UI_ENABLED": "false",
} | {
    f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false"
    for service in (
        *("CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "EVENT_PERSISTER", "FOREMAN"),
        *("LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR", "SCHEDULER", "TRIGGERS"),
    )
}
WRITTEN_WITHIN = 20.0  # seconds in which the embedded server writes what it was told


def plainly(_: str, function: Function) -> Function:
    """A stage of work that Prefect does not record."""
    return function


def as_task(name: str, function: Function, **options: Any) -> Function:
    """A stage as a task of the flow run that calls it. Prefect does not see its arguments."""
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    more = {"task_run_name": name, "cache_policy": NO_CACHE, **options}
    return lambda *args: task(lambda: function(*args), name=name, **more)()


def recorded(
    flow: str,
    name: str,
    parameters: dict[str, Any],
    work: Callable[[Stage], T],
    prefect: bool | None = None,
    state_of: Callable[[T], object] = lambda result: None,
) -> T:
    """What `work` comes to, as a flow run called `name` where Prefect has a server.

    The server is that of PREFECT_API_URL or of `koco serve`; if there is none, and with `prefect`
    true, one that is embedded in this process. With `prefect` false it is no flow run. The `flow`
    of the package `flows` gives its name and the names of the `parameters`; `state_of` its last
    state, by default Completed. Whatever Prefect does, the outcome is that of the work, and a line
    says that the record is incomplete.
    """
    # without a server, this process and a notebook's own Prefect stay as they are
    if prefect is None:
        prefect = bool(os.environ.get(ADDRESS) or served()) and find_spec("prefect") is not None
    if not prefect:
        return work(plainly)
    configure_prefect()
    os.environ.update({**PATIENCE, **os.environ})
    return Recording(name).flow_run(flow, parameters, work, state_of)


class Recording:
    """The record of one flow run; `tasks` is the number of its stages."""

    def __init__(self, name: str) -> None:
        self.name, self.tasks, self.failed = name, 0, False

    def flow_run(
        self,
        flow: str,
        parameters: dict[str, Any],
        work: Callable[[Stage], T],
        state_of: Callable[[T], object],
    ) -> T:
        """What `work` comes to within a flow run."""

        def record(once: Callable[[], T]) -> None:
            if embedded := not os.environ.get(ADDRESS):
                start_embedded()
            from prefect.runtime import flow_run
            from prefect.utilities.urls import url_for

            def begin() -> object:
                if not embedded:
                    say(f"  {self.name} in Prefect: {url_for('flow-run', flow_run.id)}")
                started.append(flow_run.id)
                return state_of(once())

            started: list[str] = []
            named = getattr(flows, flow).with_options(flow_run_name=self.name)
            named.fn = wraps(named.fn)(lambda *_, **__: begin())  # its inputs were read before
            named(**parameters, return_state=True)
            if embedded:
                self.wait_until_written(started[0])
                say("koco serve shows this flow run in Prefect's web interface")

        return self.outcome(partial(work, self.stage), record, partial(work, plainly))

    def stage(self, name: str, function: Function) -> Function:
        """A stage as a task, whose outcome is its own too."""

        def run(*args: Any) -> Any:
            self.tasks += 1
            own = partial(function, *args)
            return self.outcome(own, lambda once: as_task(name, once)(), own)

        return run

    def outcome(
        self, work: Callable[[], T], record: Callable[[Callable[[], T]], object], plain: Function
    ) -> T:
        """What `work` comes to, called by `record`; or `plain`, if `record` does not come so far.

        Raises what the work raises.
        """
        results: list[T] = []
        errors: list[BaseException] = []

        def once() -> T:
            try:
                results.append(work())
            except BaseException as error:
                errors.append(error)
                raise
            return results[-1]

        try:
            record(once)
        except ModuleNotFoundError:
            raise
        except Exception as error:  # Prefect may answer anything
            if error not in errors:
                self.fails(error)
        if errors:
            raise errors[-1]
        return results[-1] if results else plain()

    def fails(self, error: Exception) -> None:
        """Say once that Prefect's record is incomplete."""
        if not self.failed:
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            say(f"Prefect's record of {self.name} is incomplete: {why}")
        self.failed = True

    def wait_until_written(self, flow_run: str) -> None:
        """Wait until the embedded server, which ends with this process, has the tasks' ends.

        They reach it as events, some time after a task has ended.
        """
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        mine = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(flow_run)]))
        until = time.monotonic() + WRITTEN_WITHIN
        with get_client(sync_client=True) as client:
            while time.monotonic() < until:
                states = [run.state for run in client.read_task_runs(flow_run_filter=mine)]
                if sum(state is not None and state.is_final() for state in states) >= self.tasks:
                    return
                time.sleep(0.1)
        raise TimeoutError("the embedded server has not written all tasks")


def start_embedded() -> None:
    """Start Prefect's embedded server, which ends with this process and is not hit by Ctrl-C.

    Raises `RuntimeError` if it is killed or stopped meanwhile, for which Prefect would wait.
    """
    say("starting Prefect's server, which takes about ten seconds")
    os.environ.update({**EMBEDDED, **os.environ})
    # its import, which takes seconds, reads the settings
    from prefect.server.api.server import SubprocessASGIServer

    server, started = SubprocessASGIServer(), Future[None]()

    def start() -> None:
        try:
            started.set_result(server.start())
        except BaseException as error:  # raised below
            started.set_exception(error)

    with shielded():
        threading.Thread(target=start, daemon=True).start()
    while not started.done():
        wait((started,), timeout=0.2)
        process = server.server_process
        if process and not started.done() and not _goes_on(process):
            process.kill()
            raise RuntimeError("the embedded server was killed or stopped while it started")
    started.result()
    if server.server_process:
        end_with_driver(server.server_process.pid)


def _goes_on(process: Popen[Any]) -> bool:
    """Whether a server is starting, or has found its port taken, for which Prefect has another."""
    if process.poll() is not None:
        return process.returncode == 3
    return psutil.Process(process.pid).status() != psutil.STATUS_STOPPED
