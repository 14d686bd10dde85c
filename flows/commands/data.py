"""The commands `koco prepare`, `koco datasets` and `koco verify`."""

from pathlib import Path
from typing import Any

import click

from cluster.machine import cores
from flows.commands.shared import JSON, STORE, example, show

# copies of those in storage.sources, whose import is slow
FORMATS = ("libsvm", "vw", "csv", "space", "parquet", "documents")
MISSING = ("mean", "median", "indicator", "drop")


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help=(
        "The source file: LIBSVM, CSV, space-separated or VW text, plain, .gz, .bz2, .xz or .zst,"
        " or Parquet; several are read in order. Or a folder with the files of a dataset that the"
        " catalogue has; or documents, as a folder or .tar archive of GROUP/DOCUMENT files."
    ),
)
@click.option(
    "--target", help="Columns: the target, by name or by number from 1.  [default: the last]"
)
@click.option(
    "--labels",
    help="The labels' texts as numbers, for example g=1,b=-1; or: letters (A to Z as 1 to 26).",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Columns: leave this one out; may be given again.",
)
@click.option(
    "--one-hot", is_flag=True, help="Columns: one feature for each text of a column of texts."
)
@click.option(
    "--missing",
    type=click.Choice(MISSING),
    help=(
        "Columns: fill missing numbers in with the mean or the median of their column, with the"
        " mean and a feature that marks them (indicator), or leave such rows out (drop)."
        "  [default: refuse them]"
    ),
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Columns: whether the first line holds names.  [default: seen from it]",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="LIBSVM, VW: d.  [default: the largest feature in the file]",
)
@click.option(
    "--zero-based/--one-based",
    default=None,
    help="Features are counted from 0 or 1.  [default: LIBSVM from 1, VW from 0]",
)
@click.option(
    "--layout",
    type=click.Choice(["dense", "sparse"]),
    help="How rows are kept.  [default: as in the source]",
)
@click.option(
    "--scale",
    help=(
        "none, minmax, standard, unit-rows, unit-mean-square or tf-idf.  [default: none, or the"
        " catalogue's]"
    ),
)
@click.option(
    "--scale-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help=(
        "Compute the scale, and what is filled in for missing values, from the first N rows only,"
        " so that nothing looks ahead.  [default: all rows]"
    ),
)
@click.option(
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="B",
    help="Hash the features to 2^B, after scaling.",
)
@click.option(
    "--strip", metavar="PARTS", help="Documents: take away headers, footers, quotes (with commas)."
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What the labels are.  [default: seen from them]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="The source's.  [default: seen from it; a folder of documents must be named]",
)
@click.option("--replace", is_flag=True, help="Prepare a dataset anew that the store has already.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=cores,
    help="Processes for large files; 0: only this one.  [default: the cores]",
)
@STORE
@JSON
@example("koco prepare cpusmall --from cpu.small.csv.xz --target usr --scale minmax")
def prepare(
    name: str,
    sources: tuple[Path, ...],
    form: str | None,
    store: str,
    workers: int,
    replace: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn source files into the dataset NAME: Parquet shards and a manifest, all or nothing.

    The catalogue has the options of its datasets (koco datasets), so --from FOLDER is enough for
    them. Without --from their files are downloaded into the cache folder; if that fails, the
    command says which files it needs and where they come from. Options given here override those of
    the catalogue. Files named one by one are read with the options given here only, whatever the
    NAME.
    """
    from flows.prepare.preparation import prepare_named

    options["one_hot"] = options["one_hot"] or None
    options["strip"] = (
        tuple(name.strip() for name in options["strip"].split(",")) if options["strip"] else ()
    )
    given = {
        option: value
        for option, value in {**options, "format": form}.items()
        if value is not None and value != ()
    }
    manifest = prepare_named(store, name, sources, given, workers, replace)
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features,"
        f" {manifest.n_values / manifest.n_rows:.2f} values a row ({manifest.layout},"
        f" {manifest.value_type}), {labels_of(manifest.classes)}; {len(manifest.shards)} shard(s),"
        f" identity {manifest.dataset_hash[:12]}"
    )


@click.command()
@STORE
@JSON
@example("koco datasets")
def datasets(store: str, as_json: bool) -> None:
    """List the datasets of the store and of the catalogue, and those that are generated on demand.

    For a dataset that is not prepared, n_rows and n_features are the catalogue's. --json also shows
    the files, their addresses and checksums, and the options they are prepared with.
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

    Exit status 1 if a file is missing, altered or damaged; each is named with what to do.
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
