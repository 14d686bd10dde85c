"""Every learner on a few sparse rows: run by a test with the compiler on, and as a process with it
off.
"""

import json
import warnings

import numpy as np
import scipy.sparse

from tests.golden.cases import COMBINATIONS
from tests.helpers.examples import EXAMPLES, make, width_of


def predictions() -> dict[str, list[float]]:
    """By learner and parameters: predictions of 30 rounds, and of three rows afterwards."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((30, 5)) * (draw.random((30, 5)) < 0.7)
    rows, labels = scipy.sparse.csr_array(X), np.where(X.sum(1) >= 0.0, 1.0, -1.0)
    found = {}
    for name, base in EXAMPLES.items():
        for more in ({}, *COMBINATIONS.get(name, [])):
            if width_of(name, base | more) != width_of(name, base):
                continue  # compiled anew
            model = make(name, **more, seed=3)
            progressive = model.progressive(rows, labels)
            found[f"{name} {more}"] = [*progressive.tolist(), *model.predict(rows[:3]).tolist()]
    return found


if __name__ == "__main__":
    # The hash under the random numbers is meant to wrap around.
    warnings.filterwarnings("ignore", "overflow", RuntimeWarning, "koco_stream.numerics.random")
    print(json.dumps(predictions()))
