"""The koco command. Each subcommand imports what it needs when it runs, so that `--help` answers at once."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

import koco_stream

STORE = click.option(
    "--store",
    default="store",
    envvar="KOCO_STORE",
    show_default=True,
    metavar="PLACE",
    help="The store: a folder, or s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; KOCO_STORE sets it too.",
)
FORMATS = ("libsvm", "vw", "csv", "space", "parquet", "documents")  # storage.sources.reading has them too, but takes its time to import
KEPT = "what was finished is kept. To go on:"  # the same command
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Usage(click.Group):
    """Ends wrong input with exit status 2 and one message, a failure of the work with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand."""
        from koco_stream.errors import WrongInput

        again = " ".join(["koco", *sys.argv[1:]])
        try:
            return super().invoke(ctx)
        except WrongInput as error:
            click.echo(f"koco: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo(f"koco: stopped; {KEPT} {again}", err=True)
            ctx.exit(1)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except (OSError, MemoryError, RuntimeError) as error:
            kept = f"; {KEPT} {again}" if ctx.invoked_subcommand == "sweep" else ""
            click.echo(f"koco: {type(error).__name__}: {error}{kept}", err=True)
            ctx.exit(1)


def example(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Append an example to the command's help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        command.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n\b\nExample:\n  {text}"
        return command

    return decorate


@click.group(cls=Usage, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(koco_stream.__version__, prog_name="koco")
def koco() -> None:
    """Benchmarks of second-order online learners.

    Data goes to stdout, progress and errors to stderr. Exit status: 0 done, 1 the work failed, 2 the input is wrong. Nothing is
    written outside the store (--store) and the cache folder ($KOCO_CACHE, by default ~/.cache/koco-stream). $KOCO_CACHE_BYTES limits
    the copies of datasets in the cache folder, the least recently used going first; by default they may take half of what its disk would
    have free without them.
    """


@koco.command()
@click.argument("name")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The source file: LIBSVM, CSV, space-separated or VW text, plain, .gz, .bz2, .xz or .zst, or Parquet; several are read in order. "
    "Or a folder with the files of a dataset that the catalogue has; or documents, as a folder or .tar archive of GROUP/DOCUMENT files.",
)
@click.option("--target", help="Columns: the target, by name or by number from 1.  [default: the last]")
@click.option("--labels", help="The labels' texts as numbers, for example g=1,b=-1; or: letters (A to Z as 1 to 26).")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Columns: leave this one out; may be given again.")
@click.option("--one-hot", is_flag=True, help="Columns: one feature for each text of a column of texts.")
@click.option("--header/--no-header", default=None, help="Columns: whether the first line holds names.  [default: seen from it]")
@click.option("--n-features", type=click.IntRange(min=1), help="LIBSVM, VW: d.  [default: the largest feature in the file]")
@click.option("--zero-based/--one-based", default=None, help="Features are counted from 0 or 1.  [default: LIBSVM from 1, VW from 0]")
@click.option("--layout", type=click.Choice(["dense", "sparse"]), help="How rows are kept.  [default: as in the source]")
@click.option("--scale", help="none, minmax, unit-rows, unit-mean-square or tf-idf.  [default: none, or the catalogue's]")
@click.option("--hash-bits", type=click.IntRange(1, 30), metavar="B", help="Hash the features to 2^B, after scaling.")
@click.option("--strip", metavar="PARTS", help="Documents: take away headers, footers, quotes (with commas).")
@click.option("--task", type=click.Choice(["classification", "regression"]), help="What the labels are.  [default: seen from them]")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="The source's.  [default: seen from it; a folder of documents must be named]"
)
@click.option("--workers", type=click.IntRange(min=0), help="Processes for large files; 0: only this one.  [default: the cores]")
@STORE
@JSON
@example("koco prepare cpusmall --from cpu.small.csv.xz --target usr --scale minmax")
def prepare(name: str, sources: tuple[Path, ...], form: str | None, store: str, workers: int | None, as_json: bool, **options: Any) -> None:
    """Turn source files into the dataset NAME: Parquet shards and a manifest, all or nothing.

    A dataset of the catalogue (koco datasets) has its options there: --from FOLDER is enough. Without --from its files are fetched into
    the cache folder; if that cannot be done the command says which files it needs and where they come from. Options given here come
    before the catalogue's; files given one by one are read as the options here say, whatever the NAME.
    """
    from cluster.local import cores
    from flows.preparing import prepare_named

    options["one_hot"] = options["one_hot"] or None
    options["strip"] = tuple(part.strip() for part in options["strip"].split(",")) if options["strip"] else ()
    given = {option: value for option, value in {**options, "format": form}.items() if value is not None and value != ()}
    manifest = prepare_named(store, name, sources, given, cores() if workers is None else workers)
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features, {manifest.n_values / manifest.n_rows:.2f} values a row "
        f"({manifest.layout}, {manifest.value_type}), {labels_of(manifest.classes)}; "
        f"{len(manifest.shards)} shard(s), identity {manifest.dataset_hash[:12]}"
    )


@koco.command()
@STORE
@JSON
@example("koco datasets")
def datasets(store: str, as_json: bool) -> None:
    """List the datasets of the store and of the catalogue, and those that are generated on demand.

    For a dataset that is not prepared, n_rows and n_features are the catalogue's. --json also shows the files, their addresses and
    checksums, and the options they are prepared with.
    """
    from flows.preparing import DATASETS, DETAILS, dataset_rows

    show(dataset_rows(store), DETAILS if as_json else DATASETS, as_json)


@koco.command()
@click.argument("names", nargs=-1)
@STORE
@JSON
@example("koco verify 20news")
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Compute every hash of the datasets NAMES (of all datasets and tables of results, if none is named) again.

    Exit status 1 if a file is missing, altered or damaged; each is named with what to do.
    """
    from flows.verifying import VERIFIED, verified

    rows = list(verified(store, names))
    show(rows, VERIFIED, as_json)
    if any(row["state"] != "ok" for row in rows):
        raise SystemExit(1)


@koco.command()
@click.argument("spec", type=click.Path(path_type=Path))
@STORE
@click.option(
    "--cluster",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local, a scheduler's address (tls://HOST:8786), or a site: a name or a file.",
)
@click.option(
    "--certificates",
    envvar="KOCO_CERTIFICATES",
    metavar="FOLDER",
    help="For tls:// and for sites: the folder; KOCO_CERTIFICATES sets it too.",
)
@click.option("--insecure", is_flag=True, help="Allow tcp:// to other machines: whoever reaches such a cluster can run code on it.")
@click.option("--workers", type=click.IntRange(min=0), help="Local worker processes; 0 to run in this one.  [default: the cores]")
@click.option("--block-rows", type=click.IntRange(min=1), help="Rows read at a time; changes no number.  [default: 4096 or more]")
@click.option("--retry-failed", is_flag=True, help="Run the runs again that have failed.")
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")
@JSON
@example("koco sweep flows/sweeps/ill-conditioned.toml --store store")
def sweep(
    spec: Path,
    store: str,
    cluster: str,
    certificates: str | None,
    insecure: bool,
    workers: int | None,
    block_rows: int | None,
    retry_failed: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run the sweep in SPEC (TOML). Runs that the store has are not run again; a sweep that was stopped or killed goes on.

    Exit status 1 if runs have failed, after all others are done. A run that diverged has not failed: its row says when.
    """
    from cluster.local import cores
    from flows.launch import dry_run_of, launch

    workers = cores() if workers is None else workers
    if dry_run:
        planned = dry_run_of(spec, store, workers, cluster)
        click.echo(json.dumps(planned) if as_json else "\n".join(f"{name}: {in_words(value)}" for name, value in planned.items()))
        return
    begun = time.monotonic()
    summary = launch(spec, store, workers, block_rows, cluster, retry_failed, certificates, insecure)
    whole = time.monotonic() - begun
    seconds = summary["seconds"]
    computing = seconds.get("computing", 0.0)
    if not summary["computed"]:
        click.echo("nothing to compute: all runs are in the store", err=True)
    phases = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items() if name not in ("computing", "scans"))
    click.echo(f"computing {computing:.1f} s, the rest {whole - computing:.1f} s ({phases})", err=True)
    seconds["total"] = round(whole, 2)
    failed = summary["statuses"].get("failed", 0)
    if failed:
        for row in summary["failed"]:
            click.echo(f"failed: {row['learner']} {row['params']} on {row['dataset']}: {row['error']}", err=True)
        command = f"koco sweep {spec} --store {store} --retry-failed"
        click.echo(f"{failed:,} of {summary['runs']:,} runs have failed; to run them again: {command}", err=True)
    click.echo(json.dumps(summary) if as_json else f"report: {summary['report']}")
    if failed:
        raise SystemExit(1)


@koco.group()
def cluster() -> None:
    """Clusters that sweeps run on; see docs/clusters.md and docs/security.md."""


@cluster.command("show")
@click.argument("site")
@example("koco cluster show slurm")
def cluster_show(site: str) -> None:
    """Print the job script or the Kubernetes manifest that a sweep on SITE would submit. Nothing is started.

    SITE is the name of a site file that comes with koco-stream (slurm, pbs, sge, lsf, kubernetes), or the path of your own.
    """
    from cluster.site_clusters import submission
    from cluster.sites import read_site

    click.echo(submission(read_site(site)).rstrip("\n"))


@cluster.command()
@click.argument("spec", type=click.Path(path_type=Path))
@STORE
@click.option("--workers", "counts", multiple=True, type=click.IntRange(min=1), help="How many; repeat it.  [default: 10 to 10,000]")
@click.option("--cores", type=click.IntRange(min=1), help="Cores that all workers share.  [default: each has its own]")
@click.option("--memory", type=click.FloatRange(min=0.1), default=4.0, show_default=True, help="GiB of a worker.")
@click.option("--deaths-an-hour", type=click.FloatRange(min=0), default=0.0, show_default=True, help="How often a worker dies.")
@JSON
@example("koco cluster simulate flows/sweeps/ill-conditioned.toml --workers 100 --workers 1000 --deaths-an-hour 0.1")
def simulate(
    spec: Path, store: str, counts: tuple[int, ...], cores: int | None, memory: float, deaths_an_hour: float, as_json: bool
) -> None:
    """Predict what the sweep in SPEC would take on clusters of other sizes. Nothing is run.

    The plan is the real one for each size; its costs are what the store's finished runs have taken on this machine, where there are any.
    wall is in seconds, efficiency the share of the workers' time that cohorts take, scheduler the share of the time that it is busy.
    """
    from flows.simulating import PREDICTED, predictions

    sizes = counts or (10, 100, 1000, 10_000)
    show(predictions(spec, store, sizes, cores, deaths_an_hour, int(memory * 2**30)), PREDICTED, as_json)


@cluster.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", "hosts", multiple=True, required=True, help="A machine's name or address, the scheduler's first; repeat it.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True, max=366), default=7, show_default=True, help="How long they are valid.")
@example("koco cluster certificates ~/koco-certificates --host 10.0.0.1 --host 10.0.0.2 --host 10.0.0.3")
def certificates(folder: Path, hosts: tuple[str, ...], days: float) -> None:
    """Make certificates in the new FOLDER for a scheduler, its workers and their client, and print the commands that use them.

    Only who has a key of the folder gets in. The key that signed is not kept: to change anything, make a new folder.
    """
    from cluster.certificates import make_certificates
    from cluster.commands import start_commands

    folder = folder.expanduser().absolute()
    until = make_certificates(folder, hosts, days)
    click.echo(f"certificates in {folder}, valid until {until:%Y-%m-%d %H:%M} UTC ({days:g} days), readable by you only")
    click.echo("Copy to a worker's machine only authority.pem, worker.pem and worker-key.pem. Dashboards listen on loopback only.")
    for name, command in start_commands(folder, hosts[0]).items():
        click.echo(f"\n{name}:\n  {command}")


@koco.command()
@STORE
@JSON
@example("koco status")
def status(store: str, as_json: bool) -> None:
    """Show how far the sweeps of a store are: those that run, and how the others ended.

    state is running, done, stopped (by Ctrl-C), ended by an error, or killed; all but done go on with the same koco sweep.
    """
    from dataclasses import asdict

    from flows.status import COLUMNS, statuses
    from storage.store import existing_store

    short = ("sweep", "state", "runs", "done", "diverged", "failed", "rounds_per_second", "seconds_left", "dashboard", "updated")
    show(map(asdict, statuses(existing_store(store))), COLUMNS if as_json else short, as_json)


@koco.command()
@STORE
@JSON
@example("koco compact")
def compact(store: str, as_json: bool) -> None:
    """Make one file of each table of results, of the many that sweeps have left.

    Nothing is lost wherever this is stopped, and koco results may be used meanwhile.
    """
    from storage.results import compact as compact_results
    from storage.store import existing_store

    before, after = compact_results(existing_store(store))
    click.echo(json.dumps({"before": before, "after": after}) if as_json else f"{before} files of runs before, {after} now")


@koco.command()
@STORE
@click.option("--sweep", "name", help="Only the runs of this sweep.")
@click.option("--runs", "single", is_flag=True, help="List single runs.")
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--arrow", "arrow", type=click.Path(path_type=Path), help="Write an Arrow file.")
@example("koco results --sweep ill-conditioned | head")
def results(store: str, name: str | None, single: bool, as_json: bool, as_csv: bool, arrow: Path | None) -> None:
    """Show results: configurations averaged over orders and seeds, best first; or single runs."""
    import pyarrow as pa

    from flows.tables import SUMMARY, runs_of, summary_of
    from koco_stream.records import RUNS
    from storage.store import existing_store

    existing_store(store)
    table = runs_of(store, name)
    if not single:
        rows = summary_of(table)
        table = pa.Table.from_pylist(rows) if rows else pa.table({})
        columns: tuple[str, ...] = SUMMARY
    else:
        columns = tuple(c.name for c in RUNS)
        table = table.select(columns)
    if arrow:
        with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return
    if as_csv:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    short = ("run_id", "dataset", "learner", "params", "status", "mean_loss", "error_rate", "seconds")
    show(table.to_pylist(), columns if as_json or not single else short, as_json)


@koco.command()
@click.argument("name")
@STORE
@example("koco report ill-conditioned")
def report(name: str, store: str) -> None:
    """Write the HTML report of the sweep NAME again, and print its path."""
    from flows.report import write_report
    from storage.store import existing_store

    click.echo(str(write_report(existing_store(store), name)))


def labels_of(classes: list[float]) -> str:
    """A dataset's labels in words; `classes` are sorted, or none for real targets."""
    if not classes:
        return "real targets"
    if len(classes) > 12:
        return f"{len(classes)} classes, labels {classes[0]:g} to {classes[-1]:g}"
    return f"labels {', '.join(f'{c:g}' for c in classes)}"


def in_words(planned: Any) -> str:
    """A value of the plan for people: large numbers with commas, lists and tables on one line."""
    if isinstance(planned, dict):
        return ", ".join(f"{name} {in_words(value)}" for name, value in planned.items())
    if isinstance(planned, list):
        return "; ".join(in_words(value) for value in planned)
    return f"{planned:,}" if isinstance(planned, int | float) else str(planned)


def show(rows: Iterable[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    """Print rows as JSON or as an aligned table."""
    rows = list(rows)
    if as_json:
        click.echo(json.dumps([{c: row[c] for c in columns} for row in rows], default=str))
        return
    cells = [
        columns,
        *(tuple("" if row[c] is None else f"{row[c]:.5g}" if isinstance(row[c], float) else str(row[c]) for c in columns) for row in rows),
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(columns))]
    for row in cells:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    """The entry point of the koco command."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        koco(prog_name="koco")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: `koco results | head`


if __name__ == "__main__":
    main()
