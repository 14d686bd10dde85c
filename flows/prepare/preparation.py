"""Implementation of `koco prepare`, `koco store verify` and `koco list datasets`."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flows.prepare.downloads import fetch_edition, record_edition
from flows.runtime.bytes_progress import BytesProgress
from flows.runtime.console import say
from koco_stream.errors import WrongInput
from koco_stream.streams.manifest import Manifest, load_manifest, prepared_names
from storage.catalogue.entries import CATALOGUE, Edition, Entry, entry_named, find_edition, remarks
from storage.catalogue.fetch import recorded
from storage.generated.generators import ABOUT, GENERATORS, parameters_of
from storage.preparing.parallel import map_on_dask
from storage.preparing.prepare import check_name, prepare_file
from storage.sources.compressed import OPENERS
from storage.sources.reading import unfolded
from storage.store import check_store, existing_store

DATASETS = ("name", "task", "n_rows", "n_features", "prepared", "papers")
LARGE = 64 << 20  # bytes of text for which starting workers, which takes seconds, pays
PACKED = 4  # typical ratio of the text's size to that of a compressed file
VERIFIED = ("what", "state")
DETAILS = (*DATASETS, "source", "editions")


def prepare_named(
    store: str,
    name: str,
    sources: Sequence[Path],
    given: dict[str, Any],
    workers: int = 0,
    replace: bool = False,
) -> Manifest:
    """Prepare a dataset from files, from a folder, or from the catalogue's addresses.

    Warnings on the result, such as an incomplete dataset, are printed on stderr.

    Parameters
    ----------
    store : str
        The store of the dataset.
    name : str
        Name of the dataset.
    sources : sequence of Path
        Files, or folders of Parquet files; or one folder with the files of a catalogue
        dataset; or nothing, to download them.
    given : dict
        Options of `prepare_file`, which override those of the catalogue.
    workers : int
        Number of processes for large files; below 2, this process does the work.
    replace : bool
        Whether an existing dataset of that name is replaced.

    Returns
    -------
    Manifest
        Manifest of the prepared dataset.

    Raises
    ------
    WrongInput
        If a source or an option is wrong, the dataset exists, or files cannot be downloaded; the
        message says which files are needed and how to pass them.
    """
    check_name(name)
    if not replace and name in prepared_names(store):
        raise WrongInput(f"{store} already has a dataset {name!r}; to replace it, add --replace")
    if name.split(",")[0] in GENERATORS:
        raise WrongInput(
            f"{name!r} is a generated dataset, which a sweep file names directly; for your own"
            " data choose another name"
        )
    if not sources:
        entry = entry_named(name)
        edition, paths, came = fetch_edition(store, entry)
        manifest = _prepare_edition(store, entry, edition, paths, given, workers)
        record_edition(store, came)
        return manifest
    if name not in CATALOGUE:
        sources = unfolded(sources, given.get("format"))
    if given.get("format") == "documents" or not any(path.is_dir() for path in sources):
        return _prepare(store, name, list(sources), given, workers)
    if name not in CATALOGUE and len(sources) == 1:
        raise WrongInput(
            f"{sources[0]} is a folder without Parquet files, and the catalogue does not have"
            f" {name!r}; give the files, or for a folder of documents add --format documents"
        )
    if len(sources) > 1:
        raise WrongInput("--from takes one folder, or one or several files; give only the folder")
    entry = entry_named(name)
    return _prepare_edition(store, entry, *find_edition(entry, sources[0]), given, workers)


def _prepare_edition(
    store: str,
    entry: Entry,
    edition: Edition,
    paths: list[Path],
    given: dict[str, Any],
    workers: int,
) -> Manifest:
    """Prepare an edition of a catalogue dataset, and warn on stderr of unexpected sizes."""
    manifest = _prepare(store, entry.name, paths, {**edition.options, **given}, workers)
    for remark in remarks(entry, edition, manifest.n_rows, manifest.n_features):
        say(f"koco: warning: {remark}")
    return manifest


def dataset_rows(store: str) -> list[dict[str, Any]]:
    """Rows of `koco list`: one for each dataset of the store, the catalogue and the generators.

    The columns are those of `DETAILS`.
    """
    check_store(store)
    known = recorded(store)
    stored = {name: load_manifest(store, name) for name in prepared_names(store)}
    rows: list[tuple[Any, ...]] = []
    shown: tuple[Any, ...]  # task, number of rows, number of features, whether prepared
    for name in sorted({*stored, *CATALOGUE}):
        manifest, entry = stored.get(name), CATALOGUE.get(name)
        if manifest:
            task = {0: "regression", 2: "binary"}.get(
                len(manifest.classes), f"{len(manifest.classes)} classes"
            )
            fewer = entry and manifest.n_rows < entry.editions[0].n_rows
            shown = (task, manifest.n_rows, manifest.n_features, "a part" if fewer else "yes")
        else:
            whole = CATALOGUE[name].editions[0]
            shown = (CATALOGUE[name].task, whole.n_rows, whole.n_features, "no")
        papers = ", ".join(entry.papers) if entry else ""
        editions = [_edition_row(edition, known) for edition in entry.editions] if entry else []
        rows.append((name, *shown, papers, entry.source if entry else "", editions))
    for name in GENERATORS:
        values, (kind, paper) = parameters_of(name), ABOUT[name]
        task = "binary" if kind == "classification" else kind
        shown = (task, values["n_rows"], values["n_features"], "on demand")
        rows.append((name, *shown, paper, f"synthetic: {name}", []))
    return [dict(zip(DETAILS, row, strict=True)) for row in rows]


def _edition_row(edition: Edition, recorded: dict[str, str]) -> dict[str, Any]:
    """Describe an edition of a dataset for `koco list datasets --json`.

    `sha256` is the checksum of the published file, and `recorded_sha256` that of the file first
    downloaded from the address into this store.
    """
    files: list[dict[str, Any]] = [{"file": name} for name in edition.files]
    # an edition without addresses has none for any file
    for row, address in zip(files, edition.addresses, strict=False):
        row |= {
            "address": address.url,
            "path_inside": address.path_inside or None,
            "sha256": address.sha256,
            "recorded_sha256": recorded.get(address.url),
        }
    return {
        "files": files,
        "n_rows": edition.n_rows,
        "n_features": edition.n_features,
        "subset": edition.subset,
        "options": dict(edition.options),
    }


def _prepare(
    store: str, name: str, paths: list[Path], options: dict[str, Any], workers: int
) -> Manifest:
    """Prepare files, with progress on stderr; large ones on a local Dask cluster."""
    text_bytes = 0
    for path in paths:
        n_bytes = path.stat().st_size if path.is_file() else 0
        text_bytes += n_bytes * (PACKED if path.suffix in OPENERS else 1)
        say(f"reading {path}" + (f" ({n_bytes:,} bytes)" if path.is_file() else ""))
    with BytesProgress("reading") as progress:
        if workers < 2 or text_bytes < LARGE:
            return prepare_file(store, name, paths, progress=progress.step, **options)
        from cluster.clusters import cluster_named
        from cluster.site import LOCAL
        from flows.runtime.engine import engine

        with engine(cluster_named(LOCAL, workers, 0), []) as started:
            return prepare_file(
                store,
                name,
                paths,
                parallel_map=partial(map_on_dask, started.client),
                progress=progress.step,
                **options,
            )


def verified(store: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Check datasets and results: a row for each problem, and one for each dataset without any.

    The columns are those of `VERIFIED`; without `names` everything in the store is checked. Raises
    `WrongInput` if the store or a dataset does not exist.
    """
    from storage.verify import dataset_problems, result_problems  # slow: results import SciPy

    existing_store(store)
    for name in names:
        if name not in prepared_names(store):
            load_manifest(store, name)  # raises `WrongInput` that names similar datasets
    for name in names or prepared_names(store):
        for problem in dataset_problems(store, name) or ["ok"]:
            yield {"what": f"dataset {name}", "state": problem}
    if not names:
        for problem in result_problems(store) or ["ok"]:
            yield {"what": "results", "state": problem}
