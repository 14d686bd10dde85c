"""Every learner on a few sparse rows: run by a test with the compiler on, and as a process with it
off.
"""

import json
import warnings
from typing import Any

import numpy as np
import scipy.sparse

import koco_stream
from koco_stream.learners import LEARNERS
from koco_stream.learners.several import advance_states
from koco_stream.learners.shared_lines import laid_side_by_side
from koco_stream.streams.inputs import as_rows
from tests.golden.cases import BASES, COMBINATIONS


def predictions() -> dict[str, list[float]]:
    """By learner and parameters: predictions of 30 rounds, and of three rows afterwards."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((30, 5)) * (draw.random((30, 5)) < 0.7)
    rows, labels = scipy.sparse.csr_array(X), np.where(X.sum(1) >= 0.0, 1.0, -1.0)
    found = {}
    for name, base in BASES.items():
        for more in ({}, *COMBINATIONS.get(name, [])):
            model = getattr(koco_stream, name)(**{**base, **more}, seed=3)
            progressive = model.progressive(rows, labels)
            found[f"{name} {more}"] = [*progressive.tolist(), *model.predict(rows[:3]).tolist()]
    for name, more in (("OGD", {}), ("OGD", {"step_schedule": "sqrt"}), ("AdaGrad", {})):
        found[f"{name} {more} side by side"] = side_by_side(LEARNERS[name], more, rows, labels)
    return found


def side_by_side(learner: Any, more: dict[str, str], rows: Any, labels: Any) -> list[float]:
    """The predictions and the states of four step sizes in one table."""
    given = [learner.complete({"step_size": step, **more}) for step in (0.1, 0.3, 1.0, 3.0)]
    params = [learner.to_params(one) for one in given]
    states = laid_side_by_side([learner.init(one, 5, 0) for one in params])
    predictions = np.empty((4, 30))
    learnt = as_rows(rows), np.tile(labels, (4, 1)), predictions
    advance_states([learner] * 4, params, states, *learnt)
    return [*predictions.ravel().tolist(), *np.array([one[0] for one in states]).ravel().tolist()]


if __name__ == "__main__":
    # The hash under the random numbers is meant to wrap around.
    warnings.filterwarnings("ignore", "overflow", RuntimeWarning, "koco_stream.numerics.random")
    print(json.dumps(predictions()))
