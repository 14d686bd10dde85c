"""Commands on datasets, learners and stores: prepare, list, learners, store."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from flows.commands.options import JSON, PREFECT, STORE, WORKERS, show
from koco_stream.io.files import json_text

LONG = 1e3  # mean square norm of rows beyond which the default steps and ridges are of another size
MOST_SAID = 400  # characters of a sentence on the columns
# what koco list lists, and the columns that a terminal shows
LISTED = {
    "learners": ("learner", "from", "parameters"),
    "datasets": ("name", "task", "n_rows", "n_features", "prepared", "papers"),
    "sweeps": (
        *("sweep", "kind", "state", "runs", "done", "diverged", "failed", "stopped"),
        *("rounds_per_second", "seconds_left", "bytes", "ended", "dashboard"),
    ),
}


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help=(
        "The source file: LIBSVM, CSV, ARFF, space-separated or VW text (plain, .gz, .bz2, .xz or"
        " .zst) or Parquet, or a folder of Parquet files; may be repeated. Or a folder with the"
        " files of a dataset of the catalogue. Or documents: a folder or .tar archive of"
        " GROUP/DOCUMENT files."
    ),
)
@click.option(
    "--target", help="Tables: the target column, by name or number from 1.  [default: the last]"
)
@click.option(
    "--labels",
    help=(
        "Numbers for labels, such as g=1,b=-1; letters maps A to Z to 1 to 26.  [default: classes"
        " of a table that are texts are numbered in sorted order]"
    ),
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Tables: leave this column out; may be repeated.",
)
@click.option(
    "--categorical",
    multiple=True,
    metavar="COLUMN",
    help="Tables: this column holds categories, even if they are numbers; may be repeated.",
)
@click.option(
    "--numeric",
    multiple=True,
    metavar="COLUMN",
    help="Tables: this column holds numbers, and its texts are missing; may be repeated.",
)
@click.option(
    "--one-hot",
    is_flag=True,
    default=None,
    help="Tables: let a column of texts have more than 100 categories, a feature for each.",
)
@click.option(
    "--missing",
    type=click.Choice(["mean", "drop"]),
    help=(
        "Tables: replace missing numbers by the mean of their column, or leave out their rows"
        " (drop).  [default: refuse them]"
    ),
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Tables: whether the first line holds column names.  [default: recognised]",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="LIBSVM, VW: the number of features.  [default: up to the largest in the file]",
)
@click.option(
    "--zero-based/--one-based",
    default=None,
    help="Whether features are counted from 0 or 1.  [default: LIBSVM from 1, VW from 0]",
)
@click.option(
    "--layout",
    type=click.Choice(["dense", "sparse"]),
    help="How rows are stored.  [default: as in the source]",
)
@click.option(
    "--scale",
    help=(
        "Scale features: none, minmax, unit-rows, unit-mean-square or tf-idf.  [default: none, or"
        " as in the catalogue]"
    ),
)
@click.option(
    "--scale-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help=(
        "Take the scale, and the replacements of missing values, from the first N rows only."
        "  [default: all rows]"
    ),
)
@click.option(
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="B",
    help="Hash the features into 2^B features, after scaling.",
)
@click.option(
    "--strip",
    metavar="PARTS",
    callback=lambda *given: tuple(part.strip() for part in given[2].split(",")) if given[2] else (),
    help="Documents: remove headers, footers, quotes (a list with commas).",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Whether labels are classes or numbers.  [default: recognised]",
)
@click.option(
    "--format",
    # copies of those in storage.sources, whose import is slow
    type=click.Choice(["libsvm", "vw", "csv", "space", "arff", "parquet", "documents"]),
    help="Format of the source.  [default: recognised; a folder of documents needs it]",
)
@click.option("--replace", is_flag=True, help="Replace a dataset that is already in the store.")
@WORKERS
@STORE
@PREFECT
@JSON
def prepare(
    name: str,
    sources: tuple[Path, ...],
    store: str,
    workers: int,
    replace: bool,
    prefect: bool | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn source files into the dataset NAME: Parquet shards and a manifest, all or nothing.

    For a dataset of the catalogue (koco list datasets), the options are known, so --from FOLDER is
    enough. Without --from, its files are downloaded into the cache folder; if that fails, the
    command says which files it needs and where they come from. Options given here override those of
    the catalogue.

    If --from names files, only the options given here are used, even if the catalogue has NAME.

    \b
    Example:
      koco prepare cpusmall --from cpu.small.csv.xz --target usr --scale minmax
    """
    from flows.preparing.preparation import launch_preparation

    manifest = launch_preparation(
        store,
        name,
        sources,
        prefect,
        given={option: value for option, value in options.items() if value not in (None, ())},
        workers=workers,
        replace=replace,
    )
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    labels = labels_of(manifest.classes, manifest.class_names)
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features,"
        f" {manifest.n_values / manifest.n_rows:.2f} values a row"
        f" ({manifest.layout}, {manifest.value_type})\n  {labels};"
        f" {len(manifest.shards)} shard(s), identity {manifest.dataset_hash[:12]}"
    )
    long = manifest.statistics["mean_square_norm"] > LONG
    short = f"try --scale {'minmax' if manifest.layout == 'dense' else 'unit-rows'} --replace"
    scale = f"features are large, which most learners do badly with: {short}"
    notes = (*manifest.source.get("columns", ()), *manifest.transformations, *[scale] * long)
    for said in notes:
        click.echo(f"  {said if len(said) <= MOST_SAID else said[:MOST_SAID] + ' …'}")


def labels_of(classes: list[float], names: Sequence[str] = ()) -> str:
    if len(classes) > 12:
        return f"{len(classes)} classes, labels {classes[0]:g} to {classes[-1]:g}"
    if names:
        return "classes " + ", ".join(
            f"{name} ({label:g})" for name, label in zip(names, classes, strict=False)
        )
    return f"labels {', '.join(f'{c:g}' for c in classes)}" if classes else "real targets"


@click.command("list")
@click.argument("what", type=click.Choice([*LISTED]), required=False)
@STORE
@JSON
def list_all(what: str | None, store: str, as_json: bool) -> None:
    """List learners, datasets, and the sweeps of a store with their state; or one of the three.

    The learners are those of the library and of installed packages. The datasets are those of the
    store and of the catalogue, and those that are generated on demand. --json also shows their
    files, addresses and checksums, and the options they are prepared with.

    The state of a sweep is running, done, stopped (by Ctrl-C), ended by an error, or killed. A
    sweep that was stopped, ended by an error or killed continues with the same koco sweep command.
    The bytes are an estimate for the rows of its runs, and for its report; a run that several
    sweeps share counts for each of them. Nightly runs are listed too.

    \b
    Example:
      koco list sweeps --store store
    """
    from flows.housekeeping import learner_rows, sweep_rows
    from storage.store import existing_store

    if what == "sweeps":
        existing_store(store)
    readers: dict[str, Callable[[str], Any]] = {"learners": learner_rows, "sweeps": sweep_rows}
    if what in ("datasets", None):
        from flows.preparing.preparation import dataset_rows

        readers["datasets"] = dataset_rows
    found = {kind: list(readers[kind](store)) for kind in ([what] if what else LISTED)}
    if as_json:
        click.echo(json_text(found[what] if what else found))
        return
    for row in found.get("sweeps", ()):
        row["bytes"] = decimal(row["bytes"])
        row["ended"] = row["ended"] and f"{row['ended']:%Y-%m-%d %H:%M} UTC"
    for kind, rows in found.items():
        if not what:
            click.echo(f"\n{kind}:\n")
        show(rows, False, LISTED[kind])
