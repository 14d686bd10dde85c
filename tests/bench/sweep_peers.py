"""How else one would run many configurations of our learner, as a user would write it: joblib,
optuna.

`python -m tests.bench.sweep_peers NAME FOLDER` does so once on FOLDER/rows.npz, labels.npy and
grid.json, and prints as JSON the seconds of the call that does the runs, and alpha, sketch_rate and
mean loss of those done.
"""

import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from koco_stream import OjaSON

Answer = tuple[float, list[tuple[float, float, float]]]
LONGEST = 15.0  # seconds, after which optuna's study stops


def mean_loss(X: Any, y: np.ndarray, alpha: float, rate: float) -> float:
    """The progressive squared loss of one configuration, added up in the order of the rows."""
    y_hat = OjaSON(sketch_size=10, alpha=alpha, sketch_rate=rate).progressive(X, y)
    return float(np.cumsum((y_hat - y) ** 2)[-1] / y.size)


def with_joblib(folder: Path, X: Any, y: np.ndarray, grid: dict[str, list[float]]) -> Answer:
    """Two processes, which map the rows."""
    from joblib import Parallel, delayed

    todo = list(product(*grid.values()))
    begun = time.perf_counter()
    losses = Parallel(n_jobs=2, temp_folder=str(folder))(
        delayed(mean_loss)(X, y, *config) for config in todo
    )
    taken = time.perf_counter() - begun
    return taken, [(*config, loss) for config, loss in zip(todo, losses, strict=True)]


def with_optuna(folder: Path, X: Any, y: np.ndarray, grid: dict[str, list[float]]) -> Answer:
    """The grid sampler, in this process."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    mean_loss(X, y, 1.0, 1.0)  # so that the compiled code is there when the study begins

    def objective(trial: Any) -> float:
        ranges = {name: (min(values), max(values)) for name, values in grid.items()}
        return mean_loss(X, y, *(trial.suggest_float(name, *ends) for name, ends in ranges.items()))

    study = optuna.create_study(sampler=optuna.samplers.GridSampler(grid))
    begun = time.perf_counter()
    study.optimize(objective, n_jobs=1, timeout=LONGEST)
    taken = time.perf_counter() - begun
    return taken, [(*trial.params.values(), trial.value) for trial in study.trials]


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    matrix, labels = scipy.sparse.load_npz(folder / "rows.npz"), np.load(folder / "labels.npy")
    given = json.loads((folder / "grid.json").read_text())
    run = {"joblib": with_joblib, "optuna": with_optuna}[sys.argv[1]]
    spent, losses = run(folder, matrix, labels, given)
    print(json.dumps({"seconds": spent, "losses": losses}))
