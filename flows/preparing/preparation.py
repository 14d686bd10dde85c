"""Implementation of `koco prepare`, `koco store verify` and `koco list datasets`."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from flows.runtime.processes import say
from flows.runtime.recording import recorded, stage
from koco_stream.errors import WrongInput, refuse_first
from koco_stream.io.cache import private_folder
from koco_stream.io.files import file_hash
from koco_stream.io.paths import store_path
from koco_stream.streams.manifest import Manifest, load_manifest, prepared_names
from storage.catalogue import fetch
from storage.catalogue.entries import (
    CATALOGUE,
    Address,
    Edition,
    Entry,
    entry_named,
    find_edition,
    how_to_get,
    remarks,
)
from storage.generated.generators import ABOUT, GENERATORS, parameters_of
from storage.preparing.prepare import check_name, map_on_dask, prepare_file
from storage.sources.compressed import OPENERS
from storage.sources.reading import unfolded
from storage.store import check_makeable, check_store, existing_store

LARGE = 64 << 20  # bytes of text for which starting workers, which takes seconds, pays
PACKED = 4  # typical ratio of the text's size to that of a compressed file
PLAIN_EVERY = 10.0  # seconds between lines in a log


def launch_preparation(
    store: str, name: str, sources: Sequence[Path], prefect: bool | None = None, **more: Any
) -> Manifest:
    work = partial(stage, "prepare", partial(prepare_named, store, name, sources, **more))
    return recorded("prepare_flow", name, {"datasets": [name], "store": store}, work, prefect)


def prepare_named(
    store: str,
    name: str,
    sources: Sequence[Path],
    given: dict[str, Any],
    workers: int = 0,
    replace: bool = False,
    of: str | None = None,
    quiet: bool = False,
) -> Manifest:
    """Prepare a dataset from files, a folder, or the catalogue's addresses."""
    check_name(name)
    check_makeable(store)
    of = of or name
    refuse_first(
        [
            (
                not replace and name in prepared_names(store),
                f"{store} already has a dataset {name!r}; to replace it, add --replace",
            ),
            (
                name.split(",")[0] in GENERATORS,
                f"{name!r} is a generated dataset, which a sweep file names directly; for your own"
                " data choose another name",
            ),
        ]
    )
    is_folder = given.get("format") != "documents" and any(path.is_dir() for path in sources)
    if sources and not (of in CATALOGUE and is_folder):
        paths = unfolded(sources, given.get("format"))
        return _prepare(store, name, paths, given, workers, quiet)
    if len(sources) > 1:
        raise WrongInput("--from takes one folder, or one or several files; give only the folder")
    entry = entry_named(of)
    with _edition(store, entry, *sources) as (edition, paths):
        manifest = _prepare(store, name, paths, {**edition.options, **given}, workers)
    for remark in remarks(entry, edition, manifest.n_rows, manifest.n_features):
        say(f"koco: warning: {remark}")
    return manifest


@contextmanager
def _edition(
    store: str, entry: Entry, folder: Path | None = None
) -> Iterator[tuple[Edition, list[Path]]]:
    if folder:
        yield find_edition(entry, folder)
        return
    edition = entry.fetchable
    if edition is None:
        raise WrongInput(f"{entry.name} has no download address. {how_to_get(entry)}")
    folder = private_folder("sources", entry.name)
    known = fetch.recorded(store)
    came: dict[str, Path] = {}
    paths = []
    for file, address in zip(edition.files, edition.addresses, strict=True):
        if address.url not in came:
            came[address.url] = _fetch(store, entry, file, address, known.get(address.url), folder)
        path = came[address.url]
        if address.path_inside:
            path = fetch.unpack(
                path,
                address.path_inside,
                folder / address.name_of(file),
                address.sha256,
                address.skip_lines,
            )
        paths.append(path)
    yield edition, paths
    for url, path in came.items():
        fetch.record(store, url, file_hash(path))


def _fetch(
    store: str, entry: Entry, file: str, address: Address, recorded_sha256: str | None, folder: Path
) -> Path:
    expected = recorded_sha256 if address.path_inside else address.sha256 or recorded_sha256
    name = None if address.path_inside else address.name_of(file)
    say(f"downloading {address.url}")
    try:
        with BytesProgress() as progress:
            return fetch.fetch(
                address.url, expected, folder, partial(progress.step, "downloading"), name=name
            )
    except fetch.Gone as error:
        raise WrongInput(f"{error}. {how_to_get(entry)}") from None
    except fetch.WrongChecksum as error:
        trust = (
            ", or if you trust the new file, delete the address in"
            f" {store_path(store) / fetch.CHECKSUMS}"
        )
        raise WrongInput(
            f"{error}. Nothing was prepared; pass that file with --from"
            + trust * (expected == recorded_sha256)
        ) from None


def _prepare(
    store: str,
    name: str,
    paths: list[Path],
    options: dict[str, Any],
    workers: int,
    quiet: bool = False,
) -> Manifest:
    text_bytes = 0
    for path in paths:
        n_bytes = path.stat().st_size if path.is_file() else 0
        text_bytes += n_bytes * (PACKED if path.suffix in OPENERS else 1)
        if not quiet:
            say(f"reading {path}" + (f" ({n_bytes:,} bytes)" if path.is_file() else ""))
    with ExitStack() as stack:
        if workers >= 2 and text_bytes >= LARGE:
            from cluster.clusters import local_cluster
            from flows.runtime.engine import Start

            start = stack.enter_context(closing(Start(partial(local_cluster, workers), [])))
            options = {**options, "parallel_map": partial(map_on_dask, start.ready([]))}
        progress = stack.enter_context(BytesProgress())
        return prepare_file(store, name, paths, progress=progress.step, **options)


class BytesProgress(Progress):
    def __init__(self) -> None:
        console = Console(stderr=True)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.last = time.monotonic()

    def step(self, what: str, done: int, total: int | None, rows: int = 0) -> None:
        """Show how far `what` is, in a line of its own; `total` is None if it is unknown."""
        if what not in [task.description for task in self.tasks]:
            self.add_task(what, total=None, rows="")
        row_text = f"{rows:,} rows" if rows else ""
        self.update(self.task_ids[-1], completed=done, total=total, rows=row_text)
        if self.disable and time.monotonic() - self.last > PLAIN_EVERY:
            say(
                f"  {what}: {done:,} of {f'{total:,}' if total else 'unknown'}"
                f" bytes{', ' + row_text if row_text else ''}"
            )
            self.last = time.monotonic()


def dataset_rows(store: str) -> list[dict[str, Any]]:
    check_store(store)
    known = fetch.recorded(store)
    rows: dict[str, dict[str, Any]] = {
        name: {
            "task": entry.task,
            "n_rows": entry.editions[0].n_rows,
            "n_features": entry.editions[0].n_features,
            "prepared": "no",
            "papers": ", ".join(entry.papers),
            "source": entry.source,
            "editions": [_edition_row(edition, known) for edition in entry.editions],
        }
        for name, entry in CATALOGUE.items()
    }
    for name in prepared_names(store):
        manifest = load_manifest(store, name)
        n_classes = len(manifest.classes)
        row = rows.get(name, {"n_rows": 0, "papers": "", "source": "", "editions": []})
        rows[name] = row | {
            "task": {0: "regression", 2: "binary"}.get(n_classes, f"{n_classes} classes"),
            "n_rows": manifest.n_rows,
            "n_features": manifest.n_features,
            "prepared": "a part" if manifest.n_rows < row["n_rows"] else "yes",
        }
    generated = {
        name: {
            "task": "binary" if kind == "classification" else kind,
            "n_rows": parameters_of(name)["n_rows"],
            "n_features": parameters_of(name)["n_features"],
            "prepared": "on demand",
            "papers": paper,
            "source": f"synthetic: {name}",
            "editions": [],
        }
        for name, (kind, paper) in ABOUT.items()
    }
    every = [*sorted(rows.items()), *generated.items()]
    return [{"name": name, **row} for name, row in every]


def _edition_row(edition: Edition, recorded: dict[str, str]) -> dict[str, Any]:
    addressed = zip_longest(edition.files, edition.addresses)  # one for each file, or none
    return {
        "files": [
            {"file": name}
            | {
                "address": address.url,
                "path_inside": address.path_inside or None,
                "sha256": address.sha256,
                "recorded_sha256": recorded.get(address.url),
            }
            if address
            else {"file": name}
            for name, address in addressed
        ],
        "n_rows": edition.n_rows,
        "n_features": edition.n_features,
        "subset": edition.subset,
        "options": dict(edition.options),
    }


def verified(store: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each problem, and for each dataset without any; of all if there are no `names`."""
    from storage.dataset import dataset_problems  # slow: both import SciPy
    from storage.results import result_problems

    there = prepared_names(existing_store(store))
    for name in {*names}.difference(there):
        load_manifest(store, name)  # raises `WrongInput` that names similar datasets
    found = {f"dataset {name}": dataset_problems(store, name) for name in names or there}
    if not names:
        found["results"] = result_problems(store)
    return [
        {"what": what, "state": problem}
        for what, problems in found.items()
        for problem in problems or ["ok"]
    ]
