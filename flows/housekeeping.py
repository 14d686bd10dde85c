"""Keeping house: what a store has, and removing what is not needed any more."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flows.runtime.processes import locked
from flows.sweeping.status import CLAIM, COLUMNS, refuse_running, statuses
from flows.tables.sweep_runs import sweep_names, sweep_note
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners import LEARNERS
from koco_stream.learners.references import entry_points
from koco_stream.streams.manifest import dataset_path, load_manifest
from koco_stream.streams.shard_cache import copies_of, remove_copies
from storage.collecting import remove_dataset, remove_runs, result_bytes
from storage.nights import night_names, night_path
from storage.results import ids_of, read_runs
from storage.store import existing_store


def sweep_rows(store: AnyPath) -> Iterator[dict[str, Any]]:
    """The sweeps of a store, and then its nightly runs. Their `bytes` are an estimate."""
    yield from _rows(store_path(store), "sweep")
    for name in night_names(store):
        yield from _rows(night_path(store, name), "nightly run")


def _rows(store: StorePath, kind: str) -> Iterator[dict[str, Any]]:
    files = [sizes for _, sizes in result_bytes(store)]
    told = {status.sweep: vars(status) for status in statuses(store)}
    planned = {name: sweep_note(store, name)["run_ids"] for name in sweep_names(store)}
    runs = {
        row["run_id"]: row
        for row in read_runs(store, ("run_id", "status", "finished_at")).to_pylist()
    }
    for name in sorted({*told, *planned}):
        mine = [runs[run_id] for run_id in planned.get(name, ()) if run_id in runs]
        ends = Counter(one["status"] for one in mine)
        counts = {
            "runs": len(planned.get(name, ())),
            "done": len(mine),
            "diverged": ends["diverged"],
            "failed": ends["failed"],
            "stopped": ends["stopped"],
        }
        yield {
            **dict.fromkeys(COLUMNS),
            **told.get(name, {}),
            **(counts if name in planned else {}),
            "sweep": name,
            "kind": kind,
            "bytes": bytes_of(store, name, files, {one["run_id"] for one in mine}),
            "ended": max(filter(None, (one["finished_at"] for one in mine)), default=None),
        }


def bytes_of(store: StorePath, sweep: str, files: list[dict[str, float]], run_ids: set[str]) -> int:
    shares = (sizes[run_id] for sizes in files for run_id in sizes.keys() & run_ids)
    return round(sum(shares)) + sum(
        size for file in files_of(store, sweep) for size in file.sizes()
    )


def files_of(store: StorePath, sweep: str) -> list[StorePath]:
    """The files that a sweep has for itself, in the order of removal; its entry is the last."""
    files = (
        *(store / "reports" / f"{sweep}.{ending}" for ending in ("html", "md")),
        store / "results" / "halving" / f"{sweep}.parquet",
        *(store / folder / f"{sweep}.json" for folder in ("status", "sweeps")),
    )
    return [file for file in files if file.is_file()]


def learner_rows(_: AnyPath) -> Iterator[dict[str, Any]]:
    for name, learner in LEARNERS.items():
        yield {
            "learner": name,
            "from": "the library",
            "parameters": ", ".join(
                f"{one} = {value}" for one, value in learner.defaults().items()
            ),
        }
    for name, found in entry_points().items():
        yield {
            "learner": name,
            "from": f"{found.dist.name} {found.dist.version}",
            "parameters": f"those of {found.value}",
        }


def dataset_removal(
    store: str, name: str, force: bool = False
) -> tuple[dict[str, int], Callable[[], None]]:
    root = existing_store(store)
    manifest = load_manifest(root, name)
    stores = (root, *(night_path(root, one) for one in night_names(root)))
    uses = ((where, sweep) for where in stores for sweep in sweep_names(where))
    users = [
        (sweep, where is not root)
        for where, sweep in (() if force else uses)
        if name in sweep_note(where, sweep)["datasets"].values()
    ]
    if users:
        remedies = " and ".join(
            f"koco store remove sweep {sweep}" for sweep, night in users if not night
        )
        told = ", ".join(f"{'the nights of ' * night}{sweep}" for sweep, night in users)
        raise WrongInput(
            f"dataset {name!r} is used by {told};"
            + (f" remove them first ({remedies}), or" if remedies else "")
            + " keep their results and remove only the dataset with --force; to repeat their"
            " runs, prepare it again"
        )

    @_alone_on(root)
    def remove() -> None:
        remove_dataset(root, name)
        remove_copies(manifest)

    sizes = [
        *dataset_path(root, name).sizes(),
        *(one.stat().st_size for one in copies_of(manifest)),
    ]
    return {"files": len(sizes), "bytes": sum(sizes)}, remove


def sweep_removal(store: str, name: str) -> tuple[dict[str, int], Callable[[], None]]:
    root = existing_store(store)
    mine = {*sweep_note(root, name)["run_ids"]}
    others = (sweep_note(root, other)["run_ids"] for other in sweep_names(root) if other != name)
    kept = mine.intersection(run_id for run_ids in others for run_id in run_ids)
    going = mine - kept
    done = ids_of(read_runs(root, ()))
    own = files_of(root, name)

    @_alone_on(root)
    def remove() -> None:
        remove_runs(root, going)
        for file in own:
            file.remove()

    results = [sizes for _, sizes in result_bytes(root)]
    whole = sum(1 for sizes in results if sizes and going.issuperset(sizes))
    freed = {
        "files": whole + len(own),
        "bytes": bytes_of(root, name, results, going),
        "runs": len(going & done),
        "runs_kept": len(kept & done),
    }
    return freed, remove


@contextmanager
def _alone_on(store: StorePath) -> Iterator[None]:
    from flows.nightly.night import without_nights  # its import takes a quarter of a second

    with without_nights(store), locked(store, CLAIM, "waiting for a sweep that begins"):
        refuse_running(store)
        yield
