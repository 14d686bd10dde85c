"""How else one would run many configurations of our learner, as a user would write it: joblib, ray
tune, optuna.

`python -m tests.bench.sweep_peers NAME FOLDER` does so once on FOLDER/rows.npz, labels.npy and
grid.json, and prints as JSON the seconds of the call that does all runs, and the configurations
done with their mean losses.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from koco_stream import OjaSON

Config = dict[str, float]
Grid = dict[str, list[float]]
Answer = tuple[float, list[tuple[Config, float]]]
LONGEST = {"ray": 180.0, "ray-plain": 12.0, "optuna": 15.0}  # seconds, after which they stop


def load(folder: Path) -> tuple[Any, np.ndarray]:
    """The rows as a CSR matrix, and the labels."""
    return scipy.sparse.load_npz(folder / "rows.npz"), np.load(folder / "labels.npy")


def mean_loss(X: Any, y: np.ndarray, **config: float) -> float:
    """The progressive squared loss of one configuration, added up in the order of the rows."""
    y_hat = OjaSON(sketch_size=10, **config).progressive(X, y)
    return float(np.cumsum((y_hat - y) ** 2)[-1] / y.size)


def configurations(grid: Grid) -> list[Config]:
    """The product of two parameters' values."""
    (a, first), (b, second) = grid.items()
    return [{a: x, b: z} for x in first for z in second]


def with_joblib(folder: Path, grid: Grid) -> Answer:
    """Two processes, which map the rows."""
    from joblib import Parallel, delayed

    X, y = load(folder)
    todo = configurations(grid)
    begun = time.perf_counter()
    losses = Parallel(n_jobs=2, temp_folder=str(folder))(
        delayed(mean_loss)(X, y, **config) for config in todo
    )
    return time.perf_counter() - begun, list(zip(todo, losses, strict=True))


def with_optuna(folder: Path, grid: Grid) -> Answer:
    """The grid sampler, in this process."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = load(folder)
    mean_loss(X, y)  # so that the compiled code is there when the study begins

    def objective(trial: Any) -> float:
        return mean_loss(
            X,
            y,
            **{
                name: trial.suggest_float(name, min(values), max(values))
                for name, values in grid.items()
            },
        )

    study = optuna.create_study(sampler=optuna.samplers.GridSampler(grid))
    begun = time.perf_counter()
    study.optimize(objective, n_jobs=1, timeout=LONGEST["optuna"])
    return time.perf_counter() - begun, [(trial.params, trial.value) for trial in study.trials]


def with_ray(folder: Path, grid: Grid, reuse: bool, longest: float) -> Answer:
    """ray tune on two processors, on only this machine, until all is done or `longest` seconds
    have passed.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = (
        "0"  # else ray.init takes the network address for 127.0.0.1
    )
    import ray
    from ray import tune

    X, y = load(folder)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder / "ray"),
        object_store_memory=256 << 20,
        log_to_driver=False,
        logging_level="ERROR",
    )

    def trial(config: Config, X: Any, y: np.ndarray) -> Config:
        return {"mean_loss": mean_loss(X, y, **config)}

    try:
        tuner = tune.Tuner(
            tune.with_parameters(trial, X=X, y=y),
            param_space={name: tune.grid_search(values) for name, values in grid.items()},
            tune_config=tune.TuneConfig(time_budget_s=longest, reuse_actors=reuse),
            run_config=tune.RunConfig(storage_path=str(folder / "tune"), verbose=0),
        )
        begun = time.perf_counter()
        results = tuner.fit()
        taken = time.perf_counter() - begun
        return taken, [
            (r.config, r.metrics["mean_loss"]) for r in results if "mean_loss" in (r.metrics or {})
        ]
    finally:
        ray.shutdown()


def main() -> None:
    """One of them, by its name."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    grid: Grid = json.loads((folder / "grid.json").read_text())
    peers = {"joblib": with_joblib, "optuna": with_optuna}
    taken, losses = (
        peers[name](folder, grid)
        if name in peers
        else with_ray(folder, grid, name == "ray", LONGEST[name])
    )
    print(json.dumps({"seconds": taken, "losses": losses}))


if __name__ == "__main__":
    main()
