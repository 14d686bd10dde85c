"""Launching a sweep from the command line: check everything first, then start the slow parts together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.sweep_file import Sweep, read_sweep
from koco_stream.copies import cache_limit, check_room
from koco_stream.errors import WrongInput
from koco_stream.manifest import Manifest, load_manifest
from koco_stream.orders import SHUFFLED
from koco_stream.places import Place, place, store_name
from koco_stream.plan import DataSize, Limits, plan
from koco_stream.runs import Run
from koco_stream.warm import needed
from storage.generated.datasets import existing_synthetic
from storage.generated.generators import GENERATORS
from storage.results import finished_runs
from storage.store import check_store


def known_manifests(sweep: Sweep, store: Place) -> dict[str, Manifest | None]:
    """The manifests that there are; None for a generated dataset that is not made yet. Raises `WrongInput` if another is missing."""
    manifests: dict[str, Manifest | None] = {}
    for use in sweep.datasets:
        try:
            if use.given is not None:
                manifests[use.name] = existing_synthetic(store, use.generator, use.given)
            else:
                manifests[use.name] = load_manifest(store, use.name)
        except WrongInput as error:
            raise WrongInput(f"{sweep.path}: {error}. Generated datasets: {', '.join(GENERATORS)}") from None
    return manifests


def checked(spec: Path, store: str) -> tuple[Sweep, dict[str, Manifest | None], list[Run], list[Run]]:
    """The sweep, its manifests, its runs, and those not in the store. What can be wrong is found here, before anything starts."""
    sweep = read_sweep(spec)
    root = place(store)
    check_store(root)
    manifests = known_manifests(sweep, root)
    for use in sweep.datasets:
        manifest = manifests[use.name]
        if manifest and use.orders[0][0] == SHUFFLED:
            check_room(manifest)
    runs = sweep.runs(manifests)
    finished = finished_runs(root)
    return sweep, manifests, runs, [run for run in runs if run.run_id not in finished]


def dry_run_of(spec: Path, store: str, workers: int) -> dict[str, Any]:
    """The plan in numbers: runs, passes, expected seconds, memory and disk in bytes. Nothing is written."""
    from cluster.local import worker_bytes

    sweep, manifests, runs, missing = checked(spec, store)
    sizes = {}
    for use in sweep.datasets:
        manifest = manifests[use.name]
        size = DataSize.of(manifest) if manifest else use.unprepared_size()
        sizes[manifest.dataset_hash if manifest else f"not prepared: {use.name}"] = size
    todo = plan(missing, sizes, Limits(max(workers, 1), worker_bytes(max(workers, 1))))
    return {
        "sweep": sweep.name,
        "runs": len(runs),
        "in the store": len(runs) - len(missing),
        "to compute": len(missing),
        "orders": sorted({use.order_text for use in sweep.datasets}),
        "passes": len(todo.cohorts),
        "computing seconds on one core": round(todo.seconds, 1),
        "memory of a worker": {name: value for name, value in todo.memory.items()},
        "memory of a worker in bytes": sum(todo.memory.values()),
        "disk of the results in bytes": 700 * len(missing),
        "disk of the shared copies in bytes": sum(12 * size.n_values + 16 * size.n_rows for size in sizes.values()),
        "limit of the shared copies in bytes": cache_limit(),
    }


def launch(spec: Path, store: str, workers: int, block_rows: int) -> dict[str, Any]:
    """Run the sweep through its Prefect flow. The Dask cluster, the compiler and Prefect's server start side by side."""
    from flows.startup import abandon, begin, configure_prefect

    configure_prefect()
    _, manifests, _, missing = checked(spec, store)
    if missing and workers:
        value_types = {run.stream.dataset_hash: "float64" for run in missing}
        value_types |= {m.dataset_hash: m.value_type for m in manifests.values() if m}
        begin(workers, needed(missing, value_types))
    try:
        sweep_flow = _flow()
        return sweep_flow(str(spec), store_name(store), workers, block_rows)
    finally:
        abandon()


def _flow() -> Callable[..., dict[str, Any]]:
    from flows.startup import shield_prefect_server
    from flows.sweep import sweep_flow  # imports prefect: seconds, while the cluster starts

    shield_prefect_server()
    return sweep_flow
