"""A run under way."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from koco_stream.learners import learner_named
from koco_stream.runs.run import Run
from koco_stream.types import Array


@dataclass
class RunState:
    """A run under way: its state, totals (rounds, loss, mistakes), curve (`at` points of it
    filled), and time spent in its scan.
    """

    run: Run
    params: Any
    state: Any
    curve: Array
    totals: Array = field(default_factory=lambda: np.zeros(3))
    at: int = 0
    seconds: float = 0.0
    status: str = "ok"
    error: str | None = None

    def fail(self, error: Exception) -> None:
        """End the run as failed, for this reason."""
        self.status, self.error = (
            "failed",
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        )


def start(run: Run, n_features: int, points: Array) -> RunState:
    """The run before its first round. What fails here is the run's own fault and becomes its
    status.
    """
    learner = learner_named(run.learner)
    params = learner.to_params(learner.refilled(run.params))
    try:
        state = learner.init(
            params, n_features + int(bool(run.params["fit_intercept"])), run.learner_seed or 0
        )
    except Exception as error:
        failed = RunState(run, params, None, np.zeros((points.size, 3)))
        failed.fail(error)
        return failed
    return RunState(run, params, state, np.zeros((points.size, 3)))
