"""A sweep as a flow run in Prefect: what it should be, as the sweep tells, and what Prefect has.

It is written by Prefect's REST API alone. Prefect's flow engine would retry for minutes and fail
where its server does not answer, and takes seconds of a core to import.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import uuid4

from flows.runtime.pages import PROGRESS_EVERY, about_results, key, results_key
from koco_stream.io.files import json_text

LINES = 200  # at most, in one request
INFO, ERROR = 20, 40  # levels of a log
Message = dict[str, Any]
State = dict[str, str]


class Api(Protocol):
    """Prefect's API: `request` raises `httpx.HTTPError` unless the answer is a success."""

    def request(self, method: Any, path: Any, **more: Any) -> Any:
        """Ask the API; returns its answer."""


def state(kind: str, message: str = "") -> State:
    """A state as Prefect's API takes it; `kind` is Completed, Failed, Cancelled or Crashed."""
    return {"type": kind.upper(), "name": kind, "message": message}


RUNNING = state("Running")


@dataclass
class Step:
    """A step of the sweep, which is a task run."""

    name: str
    begun: float
    state: State = field(default_factory=lambda: RUNNING)
    id: str | None = None
    written: State | None = None


class FlowRun:
    """The flow run of one sweep.

    `hear` takes the messages of `flows.sweeping.flow_record.FlowRecord`. `write` sends Prefect what
    it does not have yet. If that fails, what was not written is sent the next time, and nothing is
    there twice.
    """

    def __init__(self, sweep: str, request: Message) -> None:
        self.sweep, self.request = sweep, request
        self.once = str(uuid4())  # with it, Prefect creates the flow run once
        self.id: str | None = None
        self.steps: list[Step] = []
        self.lines: list[Message] = []
        self.share, self.share_written, self.next_share = 0.0, 0.0, 0.0
        self.progress_id: str | None = None
        self.end: State | None = None
        self.end_written = False
        self.report: str | None = None  # its path, until Prefect has the table of results
        self.results: list[Message] = []

    def hear(self, message: Message) -> None:
        """Take over what a message of the sweep says."""
        match message:
            case {"line": text, "at": seconds}:
                self._log(INFO, text, seconds)
            case {"begun": name, "at": seconds}:
                self.steps.append(Step(name, seconds))
            case {"ended": kind, "message": text, "at": seconds}:
                took = f"{seconds - self.steps[-1].begun:.1f} s"
                self.steps[-1].state = state(kind, text or took)
            case {"progress": share}:
                self.share = share
            case {"state": kind, "message": text, "at": seconds}:
                self.end, self.report = state(kind, text), message.get("report")
                self.results = message.get("results", [])
                self._log(INFO if kind == "Completed" else ERROR, f"{kind}: {text}", seconds)

    def cut(self) -> None:
        """The sweep will say no more. Unless it has said how it ended, it was killed."""
        for step in self.steps:
            if step.state is RUNNING:
                step.state = state("Crashed", "the sweep's process was killed")
        if self.end is None:
            text = "the sweep's process was killed; the same command continues it"
            self.end = state("Crashed", text)
            self._log(ERROR, f"Crashed: {text}", time.time())

    @property
    def complete(self) -> bool:
        """Whether Prefect has all of it."""
        return self.end_written and not self.lines and self.report is None

    def write(self, api: Api, begun: Callable[[str], None] = lambda identity: None) -> None:
        """Send Prefect what it does not have; raises `httpx.HTTPError` if it does not take it.

        `begun` is called with the flow run's id, when Prefect has the flow run.
        """
        if self.id is None:
            flow = api.request("POST", "/flows/", json={"name": "sweep"}).json()
            about = {"name": self.sweep, "parameters": self.request, "state": RUNNING}
            run = {"flow_id": flow["id"], "idempotency_key": self.once, **about}
            self.id = str(api.request("POST", "/flow_runs/", json=run).json()["id"])
            begun(self.id)
        if self.end is not None and not self.end_written:
            # before the rest, for which a slow server may leave no time
            self._set_state(api, "flow_runs", self.id, self.end)
            self.end_written = True
        for number, step in enumerate(self.steps):
            self._write_step(api, number, step)
        while self.lines:
            some = [{**line, "flow_run_id": self.id} for line in self.lines[:LINES]]
            api.request("POST", "/logs/", json=some)
            del self.lines[: len(some)]
        self._write_progress(api)
        if self.report is not None:
            about = {"description": about_results(self.report, self.request["store"])}
            rows = json_text(self.results)
            self._create_artifact(api, results_key(self.sweep), "table", rows, about)
            self.report = None

    def _log(self, level: int, text: str, seconds: float) -> None:
        at = datetime.fromtimestamp(seconds, UTC).isoformat()
        self.lines.append({"name": "koco", "level": level, "message": text, "timestamp": at})

    def _set_state(self, api: Api, runs: str, identity: str, new: State) -> None:
        words = {"state": new, "force": True}  # the sweep is in this state, whatever Prefect says
        api.request("POST", f"/{runs}/{identity}/set_state", json=words)

    def _write_step(self, api: Api, number: int, step: Step) -> None:
        if step.id is None:
            keys = {"task_key": step.name, "dynamic_key": str(number)}
            task = {"name": step.name, "flow_run_id": self.id, "state": RUNNING, **keys}
            step.id = str(api.request("POST", "/task_runs/", json=task).json()["id"])
            step.written = RUNNING
        if step.written != step.state:
            self._set_state(api, "task_runs", step.id, step.state)
            step.written = step.state

    def _write_progress(self, api: Api) -> None:
        now, last = time.monotonic(), self.share == 1.0 or self.end is not None
        if self.share == self.share_written or (now < self.next_share and not last):
            return
        share, percent = self.share, 100.0 * self.share
        if self.progress_id is None:
            about = {"description": f"Runs done of the sweep {self.sweep}"}
            name = key(f"progress-{self.sweep}")
            self.progress_id = self._create_artifact(api, name, "progress", percent, about)
        else:
            api.request("PATCH", f"/artifacts/{self.progress_id}", json={"data": percent})
        self.share_written, self.next_share = share, now + PROGRESS_EVERY

    def _create_artifact(self, api: Api, name: str, kind: str, data: Any, about: Message) -> str:
        named = {"key": name, "type": kind, "data": data, "flow_run_id": self.id}
        return str(api.request("POST", "/artifacts/", json={**named, **about}).json()["id"])
