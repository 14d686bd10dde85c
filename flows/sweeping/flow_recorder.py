"""The process that records a sweep in Prefect: it runs the sweep's flow, whose tasks wait for what
the sweep says of its steps.

Run as `python -m flows.sweeping.flow_recorder`, it reads the messages of
`flows.sweeping.flow_record.FlowRecord`, one JSON object a line. The first has the sweep's name and
request.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from flows.runtime.prefect_server import PrefectServer, configure_prefect

if TYPE_CHECKING:
    from prefect.states import State

    from flows.runtime.artifacts import ProgressArtifact

NICENESS = 15  # the sweep's own processes come first
PATIENCE = 900.0  # seconds for a server that starts while all cores are busy
Message = dict[str, Any]


def main() -> None:
    """Record one sweep, from its first message to the end of the input."""
    os.nice(NICENESS)
    lines: SimpleQueue[str] = SimpleQueue()
    # read at once, so that the sweep never waits for a full pipe
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    messages = map(json.loads, iter(lines.get, ""))
    about = next(messages)
    configure_prefect()
    server = PrefectServer()
    server.start_for_one_flow()
    # importing Prefect takes seconds; the server starts meanwhile
    from flows.sweeping.flow import flow_of, sweep_flow

    server.wait(PATIENCE)
    tasks: list[State[Any]] = []
    flow = flow_of(sweep_flow, lambda: recorded(messages, about["sweep"], about["request"], tasks))
    flow.with_options(flow_run_name=about["sweep"])(**about["request"], return_state=True)
    server.wait_until_written(tasks)


def _read(lines: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put("")


def recorded(
    messages: Iterator[Message], sweep: str, request: dict[str, Any], tasks: "list[State[Any]]"
) -> "State[Any]":
    """Run a task for each step that the messages tell of, and add its final state to `tasks`;
    returns the flow run's final state.
    """
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect.states import Cancelled, Completed, Crashed, Failed

    from flows.report.flow import results_artifact
    from flows.sweeping.flow import progress_artifact

    progress = progress_artifact(sweep)
    for message in messages:
        match message:
            case {"begun": name}:
                step = task(during, name=name, cache_policy=NO_CACHE)
                tasks.append(step(messages, name, progress, return_state=True))
            case {"state": "Completed", "message": text, "report": report}:
                results_artifact(request["store"], sweep, report)
                return Completed(message=text)
            case {"state": "Cancelled", "message": text}:
                return Cancelled(message=text)
            case {"message": text}:
                return Failed(message=text)
    return Crashed(message="the sweep's process was killed; the same command goes on")


def during(messages: Iterator[Message], name: str, progress: "ProgressArtifact") -> "State[Any]":
    """Wait for the end of the step `name`; returns its final state."""
    from prefect.states import Completed, Crashed, Failed

    for message in messages:
        match message:
            case {"progress": share}:
                progress.show(share)
            case {"ended": _, "error": error}:
                return Failed(message=error)
            case {"ended": _}:
                return Completed()
    return Crashed(message="the sweep's process was killed")


if __name__ == "__main__":
    main()
