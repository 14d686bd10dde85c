"""The commands `koco prepare`, `koco datasets` and `koco verify`."""

from pathlib import Path
from typing import Any

import click

from cluster.machine import cores
from flows.commands.shared import JSON, PREFECT, STORE, example, show

# copies of those in storage.sources, whose import is slow
FORMATS = ("libsvm", "vw", "csv", "space", "parquet", "documents")
MOST_SAID = 400  # characters of a sentence on the columns
MISSING = ("mean", "drop")


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help=(
        "The source file: LIBSVM, CSV, space-separated or VW text (plain, .gz, .bz2, .xz or .zst)"
        " or Parquet, or a folder of Parquet files; may be repeated. Or a folder with the files of"
        " a dataset of the catalogue. Or documents: a folder or .tar archive of GROUP/DOCUMENT"
        " files."
    ),
)
@click.option(
    "--target", help="Tables: the target column, by name or number from 1.  [default: the last]"
)
@click.option(
    "--labels",
    help="Numbers for labels that are texts, such as g=1,b=-1; letters maps A to Z to 1 to 26.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Tables: leave this column out; may be repeated.",
)
@click.option(
    "--one-hot",
    is_flag=True,
    help="Tables: turn each text column into features, one for each text.",
)
@click.option(
    "--missing",
    type=click.Choice(MISSING),
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
        "Compute the scale, and the replacements of missing values, from the first N rows only, so"
        " that nothing is taken from later rows.  [default: all rows]"
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
    help="Documents: remove headers, footers, quotes (a list with commas).",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Whether labels are classes or numbers.  [default: recognised]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the source.  [default: recognised; a folder of documents needs it]",
)
@click.option("--replace", is_flag=True, help="Replace a dataset that is already in the store.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=cores,
    help="Number of processes for large files; 0: only this process.  [default: one per core]",
)
@STORE
@PREFECT
@JSON
@example("koco prepare cpusmall --from cpu.small.csv.xz --target usr --scale minmax")
def prepare(
    name: str,
    sources: tuple[Path, ...],
    form: str | None,
    store: str,
    workers: int,
    replace: bool,
    prefect: bool | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn source files into the dataset NAME: Parquet shards and a manifest, all or nothing.

    For a dataset of the catalogue (koco datasets), the options are known, so --from FOLDER is
    enough. Without --from, its files are downloaded into the cache folder; if that fails, the
    command says which files it needs and where they come from. Options given here override those of
    the catalogue.

    If --from names files, only the options given here are used, even if the catalogue has NAME.
    """
    from flows.prepare.preparation import launch_preparation

    options["one_hot"] = options["one_hot"] or None
    options["strip"] = (
        tuple(name.strip() for name in options["strip"].split(",")) if options["strip"] else ()
    )
    given = {
        option: value
        for option, value in {**options, "format": form}.items()
        if value is not None and value != ()
    }
    manifest = launch_preparation(
        store, name, sources, prefect, given=given, workers=workers, replace=replace
    )
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    values = f"{manifest.n_values / manifest.n_rows:.2f} values a row"
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features, {values}"
        f" ({manifest.layout}, {manifest.value_type})\n  {labels_of(manifest.classes)};"
        f" {len(manifest.shards)} shard(s), identity {manifest.dataset_hash[:12]}"
    )
    for said in (*manifest.source.get("columns", ()), *manifest.transformations):
        click.echo(f"  {said if len(said) <= MOST_SAID else said[:MOST_SAID] + ' …'}")


@click.command()
@STORE
@JSON
@example("koco datasets")
def datasets(store: str, as_json: bool) -> None:
    """List the datasets of the store and of the catalogue, and those that are generated on demand.

    For a dataset that is not prepared, n_rows and n_features come from the catalogue. --json also
    shows the files, their addresses and checksums, and the options they are prepared with.
    """
    from flows.prepare.preparation import DATASETS, DETAILS, dataset_rows

    show(dataset_rows(store), DETAILS if as_json else DATASETS, as_json)


@click.command()
@click.argument("names", nargs=-1)
@STORE
@JSON
@example("koco verify 20news")
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Check the hashes of the datasets NAMES, or of all datasets and result tables if none is
    named.

    Files that are missing, altered or damaged are named with what to do; the exit status is then 1.
    """
    from flows.prepare.preparation import VERIFIED, verified

    rows = list(verified(store, names))
    show(rows, VERIFIED, as_json)
    if any(row["state"] != "ok" for row in rows):
        raise SystemExit(1)


def labels_of(classes: list[float]) -> str:
    """Describe a dataset's labels in words. `classes` is sorted, and empty for real targets."""
    if len(classes) > 12:
        return f"{len(classes)} classes, labels {classes[0]:g} to {classes[-1]:g}"
    return f"labels {', '.join(f'{c:g}' for c in classes)}" if classes else "real targets"
