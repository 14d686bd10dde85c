"""What can be wrong with a sweep, and what it would compute: found before anything starts."""

from pathlib import Path
from typing import Any

from flows.sweep.file import Sweep, read_sweep
from flows.sweep.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.io.paths import StorePath, store_path
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import plan
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.orders import SHUFFLED
from koco_stream.streams.shard_cache import cache_limit, check_room
from storage.generated.generators import GENERATORS, existing_synthetic
from storage.results import finished_runs
from storage.store import check_store


def known_manifests(sweep: Sweep, store: StorePath) -> dict[str, Manifest | None]:
    """The manifests that there are; None for a generated dataset that is not made yet. Raises
    `WrongInput` if another is missing.
    """
    manifests: dict[str, Manifest | None] = {}
    for use in sweep.datasets:
        try:
            if use.given is not None:
                manifests[use.name] = existing_synthetic(store, use.generator, use.given)
            else:
                manifests[use.name] = load_manifest(store, use.name)
        except WrongInput as error:
            raise WrongInput(
                f"{sweep.path}: {error}. Generated datasets: {', '.join(GENERATORS)}"
            ) from None
    return manifests


def checked(
    spec: str | Path, store: str, retry_failed: bool = False
) -> tuple[Sweep, dict[str, Manifest | None], list[Run], list[Run]]:
    """The sweep, its manifests, its runs, and those to be computed. What can be wrong is found
    here, before anything starts.
    """
    sweep = read_sweep(spec)
    root = store_path(store)
    check_store(root)
    manifests = known_manifests(sweep, root)
    for use in sweep.datasets:
        manifest = manifests[use.name]
        if manifest and use.orders[0][0] == SHUFFLED:
            check_room(manifest)
    runs = sweep.runs(manifests)
    finished = finished_runs(root, retry_failed)
    return sweep, manifests, runs, [run for run in runs if run.run_id not in finished]


def sizes_of_all(sweep: Sweep, manifests: dict[str, Manifest | None]) -> dict[str, DataSize]:
    """The sizes of all datasets, by dataset hash or what stands for it in the runs."""
    return {
        use.identity(manifest): DataSize.of(manifest) if manifest else use.unprepared_size()
        for use, manifest in ((use, manifests[use.name]) for use in sweep.datasets)
    }


def dry_run_of(request: SweepRequest) -> dict[str, Any]:
    """The plan in numbers: runs, passes, expected seconds, memory and disk in bytes. Nothing is
    written.
    """
    from flows.sweep.planning import cost_factors, limits_of

    sweep, manifests, runs, missing = checked(request.sweep_file, request.store)
    sizes = sizes_of_all(sweep, manifests)
    todo = plan(
        missing,
        sizes,
        limits_of(request.cluster, request.workers),
        factors=cost_factors(request.store, sizes),
    )
    return {
        "sweep": sweep.name,
        "runs": len(runs),
        "in the store": len(runs) - len(missing),
        "to compute": len(missing),
        **({"halving": "not counted: these are the numbers without it"} if sweep.halving else {}),
        "orders": sorted({use.order_text for use in sweep.datasets}),
        "passes": len(todo.cohorts),
        "computing seconds on one core": round(todo.seconds, 1),
        "memory of a worker": {name: value for name, value in todo.memory.items()},
        "memory of a worker in bytes": sum(todo.memory.values()),
        "disk of the results in bytes": 700 * len(missing),
        "disk of the shared copies in bytes": sum(
            12 * size.n_values + 16 * size.n_rows for size in sizes.values()
        ),
        "limit of the shared copies in bytes": cache_limit(),
    }


def next_missing(
    sweep: Sweep,
    manifests: dict[str, Manifest | None],
    runs: list[Run],
    store: str,
    retry_failed: bool,
) -> list[Run]:
    """With halving: what is to be computed of the first stage that is not in the store; nothing if
    all stages are.
    """
    from flows.sweep.halving import losses_of, stages

    finished = finished_runs(store, retry_failed)
    n_rows = {identity: size.n_rows for identity, size in sizes_of_all(sweep, manifests).items()}
    for stage in stages(runs, n_rows, sweep.halving, lambda ids: losses_of(store, ids), []):
        if missing := [run for run in stage if run.run_id not in finished]:
            return missing
    return []
