"""Work that Prefect records as a flow run, and whose outcome is the work's own."""

import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial, wraps
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import quote

import flows
from flows.runtime.prefect_server import ADDRESS, configure_prefect, served, start_embedded
from flows.runtime.processes import come_to, say

T = TypeVar("T")
# How long Prefect may let work wait: seconds for an answer, and requests made again.
PATIENCE = {"PREFECT_API_REQUEST_TIMEOUT": "5", "PREFECT_CLIENT_MAX_RETRIES": "0"}
INCOMPLETE: set[str] = set()  # flow runs that Prefect has not recorded as a whole


def recorded(
    flow: str,
    name: str,
    parameters: dict[str, Any],
    work: Callable[[], T],
    prefect: bool | None = None,
    state_of: Callable[[T], object] = lambda result: None,
) -> T:
    """The result of `work`, as a flow run called `name` where Prefect has a server."""
    # without a server, this process and a notebook's own Prefect stay as they are
    if prefect is None:
        prefect = bool(os.environ.get(ADDRESS) or served()) and find_spec("prefect") is not None
    if not prefect or flow_run_here():
        return work()
    configure_prefect()
    os.environ.update({**PATIENCE, **os.environ})
    INCOMPLETE.discard(name)

    def as_flow_run(once: Callable[[], T]) -> None:
        given = os.environ.get(ADDRESS)
        if not given:
            say("starting Prefect's server, which takes about ten seconds")
        address = given or start_embedded()
        from prefect.events.clients import PrefectEventsClient
        from prefect.events.worker import EventsWorker
        from prefect.runtime import flow_run
        from prefect.utilities.urls import url_for

        def begin(*_: Any, **__: Any) -> object:  # its inputs were read before
            if given:
                say(f"  {name} in Prefect: {url_for('flow-run', flow_run.id)}")
            return state_of(once())

        # by default a server that is gone is tried for ten seconds by each event that is left
        EventsWorker.set_client_override(
            PrefectEventsClient, api_url=address, reconnection_attempts=2
        )
        named = getattr(flows, flow).with_options(flow_run_name=name)
        named.fn = wraps(named.fn)(begin)
        named(**parameters, return_state=True)
        if not given:
            say("koco serve shows this flow run in Prefect's web interface")

    return _outcome(name, work, as_flow_run)


def stage(name: str, function: Callable[..., T], *args: Any) -> T:
    """The result of a stage of the work; in a flow run it is a task that hides its arguments."""
    work = partial(function, *args)
    flow_run = flow_run_here()
    if flow_run is None:
        return work()
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    def as_task(once: Callable[[], T]) -> object:
        return task(once, name=name, task_run_name=name, cache_policy=NO_CACHE)()

    return _outcome(flow_run, work, as_task)


def flow_run_here() -> str | None:
    if "prefect" not in sys.modules:
        return None
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return context.flow_run.name if context and context.flow_run else None


def _outcome(
    flow_run: str, work: Callable[[], T], record: Callable[[Callable[[], T]], object]
) -> T:
    """The result of `work`, called by `record`; or by us, if `record` does not call it."""
    done = Future[T]()

    def once() -> T:
        if not done.done():
            come_to(done, work)
        return done.result()

    try:
        record(once)
    except Exception as error:  # Prefect may answer anything
        of_prefect = not done.done() or error is not done.exception()
        if of_prefect and flow_run not in INCOMPLETE:
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            say(f"Prefect's record of {flow_run} is incomplete: {why}")
            INCOMPLETE.add(flow_run)
    return once()


def artifact(kind: str, name: str, content: Callable[[], Any], *files: str) -> None:
    """Make an artifact, with links to files, of the flow run that this is part of, if it is."""
    if not (flow_run := flow_run_here()):
        return
    from prefect import artifacts

    links = [f"[{path}]({path if '://' in path else f'file://{quote(path)}'})" for path in files]
    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    made = partial(
        getattr(artifacts, f"create_{kind}_artifact"), content(), key, "\n\n".join(links) or None
    )
    _outcome(flow_run, lambda: None, lambda _: made())
