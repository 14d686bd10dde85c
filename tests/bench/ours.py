"""Our learners: the compiled scan by itself, and the public interface."""

from typing import Any

import numpy as np

import koco_stream
from koco_stream.learners import learner_named
from koco_stream.learners.scan import scan_rows
from koco_stream.streams.rows import frozen
from tests.bench.data import Stream
from tests.bench.measure import seconds

# The squared loss with the paper's projection at |ŷ| ≤ 1, or the squared hinge loss with room above
# 1: what is past a label costs nothing then, as for the peers, who truncate ŷ before they take the
# squared loss.
TASKS = [
    {"clip": 1.0},
    {"loss": "squared_hinge", "clip": 4.0, "curvature": 0.25},
    {"loss": "squared_hinge", "clip": 10.0, "curvature": 0.25},
    {"loss": "logistic", "clip": 2.5, "curvature": 1.0},
]
ALPHAS = [1.0, 2.0, 4.0, 8.0, 16.0]
RATES = [1.0, 16.0, 64.0]
STEPS = [2.0**k for k in range(-6, 5)]


class Ours:
    """A learner of the project, by its class's name, with public parameters."""

    def __init__(self, learner: str, **given: Any) -> None:
        self.learner, self.given = learner, given
        m = given.get("sketch_size")
        self.name = (learner if m is None else f"{learner} m={m}") + (
            ", diagonal" if given.get("diagonal") else ""
        )

    def grid(self, quick: bool) -> list[dict[str, float]]:
        """What is tried to find the best progressive loss: alpha (and Oja's rate), or the step."""
        if self.learner in ("OGD", "AdaGrad"):
            return [{"step_size": step} for step in STEPS[:: 3 if quick else 1]]
        rates = RATES if self.learner == "OjaSON" and self.given["sketch_size"] else [None]
        alphas = ALPHAS[1::2] if quick else ALPHAS
        tasks = (
            TASKS
            if self.given.get("sketch_size", 1)
            else [{k: v for k, v in task.items() if k != "curvature"} for task in TASKS]
        )
        return [
            {"alpha": a, **task} if rate is None else {"alpha": a, **task, "sketch_rate": rate}
            for rate in rates
            for task in tasks
            for a in alphas
        ]

    def fresh(self, d: int, **tuned: float) -> tuple[Any, Any]:
        """(params, state) before the first round; every page of the state is in memory, so no page
        is fetched while timing.
        """
        learner = learner_named(self.learner)
        params = learner.to_params(learner.complete({**self.given, **tuned}))
        state = learner.initial_state(params, d, 0, True)
        fetch(state)
        return params, state

    def predictions(self, stream: Stream, **tuned: float) -> np.ndarray:
        """Progressive predictions; NaN from where the learner diverged."""
        params, state = self.fresh(stream.d, **tuned)
        out = np.full(stream.n, np.nan)
        scan(self.learner, params, state, stream.rows, stream.y, out)
        return out

    def scan_us(self, stream: Stream, **tuned: float) -> float:
        """µs a round of the compiled scan with a fresh state."""
        params, state = self.fresh(stream.d, **tuned)
        out = np.empty(stream.n)
        labels = frozen(stream.y, np.float64)
        return (
            1e6
            / stream.n
            * seconds(lambda: scan(self.learner, params, state, stream.rows, labels, out))
        )

    def started(self, stream: Stream, **tuned: float) -> Any:
        """A learner before its first round, with every page of its state in memory."""
        model = getattr(koco_stream, self.learner)(**{**self.given, **tuned})
        model.partial_fit(stream.X[:0], stream.y[:0])
        fetch(model._state)
        return model


def fetch(state: Any) -> None:
    """Write each page of a state, so that the system gives its memory now."""
    for array in state:
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array += array.dtype.type(0)


def scan(
    learner: str, params: Any, state: Any, rows: Any, labels: np.ndarray, out: np.ndarray
) -> int:
    """The only caller of the compiled scan."""
    labels = frozen(labels, np.float64)
    run = learner_named(learner).compiled(scan_rows, "step", "full")
    return run(params, state, rows, labels, out)


def contestants() -> list[Ours]:
    """Our side of the tables."""
    sketched = [Ours(name, sketch_size=10) for name in ("OjaSON", "RPSON", "FDSON")]
    return [*sketched, Ours("OjaSON", sketch_size=10, diagonal=True), Ours("AdaGrad")]
