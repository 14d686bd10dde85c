"""The commands of koco.

Their implementations are imported when a command runs, so that `--help` answers at once.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import click
from rich.filesize import decimal

from cluster.machine import cores
from flows.runtime.console import say, wrapped
from flows.runtime.processes import seconds_since_start
from flows.sweeping.packaged import description, packaged, sweep_file
from flows.sweeping.request import SweepRequest
from flows.tables.text import laid_out, line_width, printable
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text

STORE = click.option(
    "--store",
    default="store",
    envvar="KOCO_STORE",
    show_default=True,
    metavar="PATH",
    help=(
        "The store: a folder, or s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; KOCO_STORE sets it too."
    ),
)
CLUSTER = click.option(
    "--cluster",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local, a scheduler's address (tls://HOST:8786), or a site: a name or a file.",
)
WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=cores,
    help="Number of local worker processes; 0: only this process.  [default: one per core]",
)
PREFECT = click.option(
    "--prefect/--no-prefect",
    default=None,
    help=(
        "Whether this is a flow run of Prefect.  [default: if PREFECT_API_URL or koco serve has a"
        " server; --prefect starts one otherwise]"
    ),
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
OF_A_SWEEP = (
    click.argument("spec"),
    STORE,
    CLUSTER,
    click.option(
        "--certificates",
        envvar="KOCO_CERTIFICATES",
        metavar="FOLDER",
        help="Folder of the certificates, for tls:// and sites; KOCO_CERTIFICATES sets it too.",
    ),
    click.option(
        "--insecure",
        is_flag=True,
        help=(
            "Allow tcp:// to other machines. Whoever can connect to the cluster can run code on it."
        ),
    ),
    WORKERS,
)
MOST_SAID = 400  # characters of a sentence on the columns
# what koco list lists, and the columns that a terminal shows
LISTED = {
    "learners": ("learner", "from", "parameters"),
    "datasets": ("name", "task", "n_rows", "n_features", "prepared", "papers"),
    "sweeps": (
        *("sweep", "kind", "state", "runs", "done", "diverged", "failed", "rounds_per_second"),
        *("seconds_left", "bytes", "ended", "dashboard"),
    ),
}
# what a terminal acts on, or hides
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}]"


def of_a_sweep(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that adds a sweep file, and the fields of `SweepRequest`, to a command."""
    for one in reversed(OF_A_SWEEP):
        command = one(command)
    return command


def show(
    rows: Sequence[dict[str, Any]], as_json: bool, columns: Sequence[str] | None = None
) -> None:
    """Print rows as JSON, or the columns of them that hold anything as an aligned table."""
    if as_json:
        click.echo(json_text(rows))
        return
    names = columns or list(rows[0])
    shown = [one for one in names if not rows or any(row[one] not in (None, "") for row in rows)]
    click.echo(laid_out(shown, [[row[one] for one in shown] for row in rows])[0])


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
    default=None,
    help="Tables: turn each text column into features, one for each text.",
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
    type=click.Choice(["libsvm", "vw", "csv", "space", "parquet", "documents"]),
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
    from flows.prepare.launch import launch_preparation

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
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features,"
        f" {manifest.n_values / manifest.n_rows:.2f} values a row"
        f" ({manifest.layout}, {manifest.value_type})\n  {labels_of(manifest.classes)};"
        f" {len(manifest.shards)} shard(s), identity {manifest.dataset_hash[:12]}"
    )
    for said in (*manifest.source.get("columns", ()), *manifest.transformations):
        click.echo(f"  {said if len(said) <= MOST_SAID else said[:MOST_SAID] + ' …'}")


def labels_of(classes: list[float]) -> str:
    """Describe a dataset's labels in words. `classes` is sorted, and empty for real targets."""
    if len(classes) > 12:
        return f"{len(classes)} classes, labels {classes[0]:g} to {classes[-1]:g}"
    return f"labels {', '.join(f'{c:g}' for c in classes)}" if classes else "real targets"


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """List the packaged sweeps, and end."""
    if wanted:
        show([{"sweep": name, "what": description(one)} for name, one in packaged().items()], False)
        context.exit()


@click.command()
@of_a_sweep
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List the packaged sweeps and do nothing.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Repeat the runs that have failed, or whose windows or predictions are gone.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")
@PREFECT
@JSON
def sweep(spec: str, dry_run: bool, prefect: bool | None, as_json: bool, **where: Any) -> None:
    """Run the sweep in SPEC: a TOML file, or the name of a packaged sweep.

    Runs that are in the store are not repeated, so the same command continues a sweep that was
    stopped or killed. If runs fail, the others are still completed, and the exit status is 1. A
    run that diverged does not count as failed; its row says in which round it diverged.

    \b
    Example:
      koco sweep ill-conditioned --store store
    """
    request = SweepRequest(str(sweep_file(spec)), **where)
    if dry_run:
        from flows.sweeping.planning import dry_run_of

        planned = dry_run_of(request)
        lines = (f"{name}: {in_words(value)}" for name, value in planned.items())
        words = "\n".join(wrapped(line, sys.stdout) for line in lines)
        click.echo(json_text(planned) if as_json else words)
        return
    from flows.sweeping.file import read_sweep

    starting = seconds_since_start()
    given = read_sweep(request.sweep_file)  # a mistake in it is told before more is imported
    from flows.sweeping.launch import launch

    summary = launch(request, prefect, given)
    from flows.sweeping.steps import failed_lines

    seconds = summary["seconds"] = {"Python": round(starting, 2), **summary["seconds"]}
    if not summary["computed"]:
        say("nothing to compute: all runs are in the store")
    phases = {name: took for name, took in seconds.items() if name != "scans"}
    whole = seconds["total"] = round(sum(phases.values()), 2)
    computing = phases.pop("computing", 0.0)
    rest = ", ".join(f"{name} {took:.1f}" for name, took in phases.items())
    say(f"computing {computing:.1f} s, the rest {whole - computing:.1f} s ({rest})")
    failed = summary["statuses"].get("failed", 0)
    if failed:
        for line in failed_lines(summary):
            say(line)
        again = f"koco sweep {request.sweep_file} --store {request.store} --retry-failed"
        say(f"{failed:,} of {summary['runs']:,} runs have failed; to run them again: {again}")
    click.echo(json_text(summary) if as_json else f"report: {summary['report']}")
    sys.exit(failed > 0)


def in_words(planned: Any) -> str:
    """Format a value of a dry run as text: numbers with commas, lists and dicts on one line."""
    if isinstance(planned, dict):
        return ", ".join(f"{name} {in_words(value)}" for name, value in planned.items())
    if isinstance(planned, list):
        return "; ".join(in_words(value) for value in planned)
    return f"{planned:,}" if isinstance(planned, int | float) else str(planned)


@click.command("list")
@click.argument("what", type=click.Choice([*LISTED]), required=False)
@STORE
@JSON
def list_all(what: str | None, store: str, as_json: bool) -> None:
    """List learners, datasets, and the sweeps of a store with their state; or one of the three.

    The learners are those of the library and those that installed packages offer. The datasets are
    those of the store and of the catalogue, and those that are generated on demand; for one that is
    not prepared, n_rows and n_features come from the catalogue. --json also shows the files, their
    addresses and checksums, and the options they are prepared with.

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
        from flows.prepare.preparation import dataset_rows

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


@click.command()
@STORE
@click.option("--sweep", help="Only the runs of this sweep.")
@click.option("--learner", "learners", multiple=True, help="Only this learner; may be repeated.")
@click.option("--dataset", "datasets", multiple=True, help="Only this dataset; may be repeated.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only runs that meet this condition in SQL; may be repeated.",
)
@click.option("--runs", "single", is_flag=True, help="List single runs.")
@click.option(
    "--best", is_flag=True, help="Only the best configuration of each stream and learner."
)
@click.option(
    "--diff",
    "other",
    metavar="SWEEP",
    help="Compare with another sweep; difference is its mean loss minus that of --sweep.",
)
@click.option("--sort", metavar="COLUMN", help="Sort by this column or parameter, ascending.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N rows.")
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--arrow", "arrow", type=click.Path(path_type=Path), help="Write an Arrow file.")
def results(
    store: str, limit: int | None, as_json: bool, as_csv: bool, arrow: Path | None, **asked: Any
) -> None:
    """Show results: averages of configurations over orders and seeds, or single runs.

    On each stream, the best configuration comes first, by error rate where there are classes and
    otherwise by mean loss. beats_constant says whether a configuration is better, in mean loss and
    error rate, than Constant, which always predicts the best constant so far. Learners whose best
    configuration is not better are named below the table.

    The table fits the terminal. It shows the parameters that vary, and leaves out columns that are
    empty or the same in all rows; values that are the same everywhere stand below the table.
    --json, --csv and --arrow have all columns and all digits. In CSV, a text that a
    spreadsheet would take for a formula has an apostrophe before it, and control characters
    are spaces.

    Conditions are SQL on the columns of single runs (--runs --json shows them all), such as
    "learner = 'OGD' AND alpha IS NOT NULL". The best configuration is one of which all runs ended
    well. --diff joins two sweeps by stream, learner and parameters; with --best, by stream and
    learner. Runs of a running sweep are shown as they finish. Nightly runs have results of their
    own (--store STORE/nights/SWEEP).

    \b
    Example:
      koco results --learner OjaSON --where 'sketch_size>=5' --sort seconds_mean --limit 10
    """
    from flows.tables.tables import rows_of
    from flows.views.answer import answer, in_terminal
    from storage.nights import night_names, night_path
    from storage.store import existing_store

    if as_json + as_csv + (arrow is not None) > 1:
        raise click.UsageError(
            "--json, --csv and --arrow write the same result in three formats; choose one"
        )
    root = existing_store(store)
    views, whole = answer(root, **asked)
    table = whole.slice(0, limit)
    if arrow or as_csv:
        _export(table, arrow)
    elif as_json:
        show([*rows_of(table)], True)
    else:
        remarks = [f"no run has finished in {root} yet"]
        if table.num_rows:
            text, remarks = in_terminal(views, table, len(whole) - len(table), line_width())
            click.echo(text)
        nights = [] if asked["sweep"] else [night_path(root, one) for one in night_names(root)]
        if nights:
            remarks += [
                "nightly runs have results of their own:",
                *map("--store {}".format, nights),
            ]
        for words in remarks:
            say(words)


def _export(table: Any, file: Path | None) -> None:
    """Write a table as Arrow into a file, or as CSV to stdout.

    In CSV, texts that a spreadsheet would take for formulas, such as an error's, get an apostrophe
    before them. Characters on which a terminal would act become spaces. Raises `WrongInput` if the
    file's folder does not exist.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    if file is None:
        for place, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                texts = table.column(place)
                marked = pc.replace_substring_regex(texts, r"\A([=+\-@\t\r])", r"'\1")
                plain = pc.replace_substring_regex(marked, CONTROLS, " ")
                table = table.set_column(place, field, plain)
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
    elif file.parent.is_dir():
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        raise WrongInput(f"{file}: there is no folder {file.parent}; create it, or choose another")


@click.command()
@click.argument("sweeps", nargs=-1, required=True, metavar="SWEEP...")
@STORE
@click.option(
    "--select",
    type=click.Choice(["all", "first-half"]),
    default="all",
    show_default=True,
    help="How each learner's configuration is chosen: by all rounds, which are also compared; or"
    " by the first half of each stream, of which the second half is then compared.",
)
@click.option(
    "--metric",
    metavar="METRIC",
    help="error_rate, mean_loss or another metric.  [default: the error rate where there are"
    " classes, else the mean loss]",
)
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="The level of the tests."
)
@click.option("--learner", "learners", multiple=True, help="Only this learner; repeat it.")
@JSON
def compare(sweeps: tuple[str, ...], store: str, as_json: bool, **asked: Any) -> None:
    """Compare learners over datasets and orders: which is better, and how sure that is.

    A block is a dataset in one kind of order; its orders and seeds are repeats. On each block every
    learner has its best configuration. The table has mean ranks, and against the learner with the
    least of them: wins, losses, ties, the mean difference with a bootstrap interval from low to
    high, and p of Wilcoxon's test with Holm's correction. Below it stands what may be concluded, by
    Friedman's test and Nemenyi's critical difference. Several sweeps are taken together. --json has
    also all pairs of learners, and the configuration that was chosen on each block.

    docs/compare.md says how it is computed, and when nothing can be concluded.

    \b
    Example:
      koco compare poster-regression poster-classification --select first-half
    """
    from flows.comparing.comparison import compare as comparison_of
    from storage.store import existing_store

    found = comparison_of(existing_store(store), sweeps, **asked)
    if as_json:
        click.echo(found.to_json())
        return
    from flows.comparing.conclusion import p_text
    from flows.comparing.shown import summary_rows

    width = line_width()
    digits = {"low": 2, "high": 2, "p": 2, "mean_rank": 3, "difference": 3, "microseconds": 3}
    text, left_out = laid_out(*summary_rows(found.summary), width, digits)
    click.echo(text)
    sentences = [found.conclusion]
    if found.friedman is not None:
        sentences.append(
            f"Friedman's chi-square {found.friedman.chi_square:.3g}, F {found.friedman.f:.3g},"
            f" {p_text(found.friedman.p)}; critical difference of mean ranks"
            f" {found.critical_difference:.3g} at level {found.alpha:g}."
        )
    if found.groups:
        groups = "; ".join(", ".join(group) for group in found.groups)
        sentences.append(f"Not told apart by the critical difference: {groups}.")
    sentences += [found.how, found.meaning, *(f"Note: {note}" for note in found.notes)]
    if left_out:
        sentences.append(f"No room for {', '.join(left_out)}; --json has all.")
    for words in map(printable, sentences):
        click.echo(f"\n{fill(words, width, break_long_words=False, break_on_hyphens=False)}")


@click.command()
@click.argument("name", required=False)
@STORE
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write its charts there too, as SVG and PNG.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
def report(name: str | None, store: str, figures: Path | None, opens: bool) -> None:
    """Write the report of the sweep NAME again, and print its path.

    Without a name, write the store's index: a line a sweep, with what it found.

    \b
    Example:
      koco report ill-conditioned --open
    """
    from flows.report.document import write_index, write_report
    from storage.store import existing_store

    if figures is not None and name is None:
        raise click.UsageError("--figures needs the NAME of a sweep")
    root = existing_store(store)
    written = write_index(root) if name is None else write_report(root, name, figures)
    click.echo(str(written))
    if opens:
        click.launch(str(written))


@click.command()
@click.argument("target", required=False)
@click.option("--list", "listed", is_flag=True, help="List what can be reproduced.")
@STORE
@click.option(
    "--data",
    envvar="KOCO_DATA",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder with the datasets' files; KOCO_DATA sets it too.  [default: download them]",
)
@CLUSTER
@WORKERS
@JSON
def reproduce(
    target: str | None,
    listed: bool,
    store: str,
    data: Path | None,
    cluster: str,
    workers: int,
    as_json: bool,
) -> None:
    """Reproduce TARGET: a published figure, table or claim, or the benchmark.

    Prepares the data, runs the sweeps, writes a page, and prints a line for each of the paper's
    claims: whether it is reproduced, the criterion, and the outcome. Datasets that are not
    available are named. Exit status 1 if runs have failed, but not if a claim does not hold.

    \b
    Example:
      koco reproduce son-figure-1 --store store
    """
    from flows.report.papers.experiment import EXPERIMENTS

    if listed or target is None:
        show([{"target": one.name, "about": one.about} for one in EXPERIMENTS.values()], as_json)
        return
    from flows.reproduce.reproduction import SETS
    from flows.reproduce.reproduction import reproduce as reproduce_target

    done = reproduce_target(target, store, data, workers, cluster)
    if as_json:
        claims = [claim._asdict() for _, claim in done.claims]
        sets = [dict(zip(SETS, row, strict=True)) for row in done.sets]
        click.echo(
            json_text({"target": target, "claims": claims, "datasets": sets, "report": done.page})
        )
    else:
        click.echo("\n".join(wrapped(line, sys.stdout) for line in done.lines))
    sys.exit(done.failed > 0)


@click.command()
@of_a_sweep
@PREFECT
@JSON
def nightly(spec: str, prefect: bool | None, as_json: bool, **where: Any) -> None:
    """Compute all runs of the sweep in SPEC again and compare them with the accepted nightly run.

    Numbers must be equal bit for bit. A learner is slower if the median of its runs takes a quarter
    more time. After an interruption, the same command continues. Exit status 1 if numbers have
    changed or a learner has become slower; see docs/schedules.md.

    The first nightly run is accepted. To accept a later one whose numbers or speeds have changed
    for a known reason: koco nightly accept NAME. For its results: koco results --store
    STORE/nights/NAME.

    \b
    Example:
      koco nightly ill-conditioned --store store
    """
    request = SweepRequest(str(sweep_file(spec)), **where)
    from flows.nightly.launch import launch_nightly
    from flows.nightly.regression import FAILING

    summary = launch_nightly(request, prefect)
    say(f"its results: koco results --store {request.store}/nights/{summary['sweep']}")
    click.echo(
        json_text(summary) if as_json else f"{summary['result']}; report: {summary['report']}"
    )
    sys.exit(summary["result"] in FAILING)


@click.command("nightly accept")
@click.argument("name")
@STORE
def accept(name: str, store: str) -> None:
    """Accept the last nightly run of the sweep NAME.

    Later nightly runs are compared with its numbers and speeds.

    \b
    Example:
      koco nightly accept ill-conditioned
    """
    from flows.nightly.night import accept_last

    click.echo(f"{name}: the nightly run of {accept_last(store, name)} is accepted")


@click.command()
@click.argument("schedules", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@STORE
def serve(schedules: Path | None, store: str) -> None:
    """Run nightly sweeps at the times in the schedules file FILE, until stopped (Ctrl-C).

    This starts a Prefect server that only this machine can reach, unless PREFECT_API_URL names one,
    and prints the address of its pages. While it runs, koco prepare, sweep and nightly are flow
    runs on it. Without FILE, it does nothing else.

    If scheduled times have passed while it was not running, only the last is run late. --store is
    for schedules that name no store. flows/schedules.toml is an example; see docs/schedules.md.

    \b
    Example:
      koco serve schedules.toml --store store
    """
    from flows.schedules.service import serve_schedules

    serve_schedules(schedules, store)


@click.group()
def learners() -> None:
    """Check learners of your own; koco list learners shows those that there are.

    A sweep file can name a class in a file (file.py:Class, relative to the sweep file), a River or
    scikit-learn estimator (package.module:Class), or Vowpal Wabbit (vw).

    \b
    Example:
      koco learners check nlms.py:NLMS
    """


@learners.command()
@click.argument("name")
@JSON
def check(name: str, as_json: bool) -> None:
    """Check whether a learner keeps the promises of every learner, and say which ones it breaks.

    NAME is file.py:Class, package.module:Class, or the name of a learner in the list. The checks
    take a minute, most of it for compiling. Exit status 1 if a promise is broken.

    \b
    Example:
      koco learners check nlms.py:NLMS
    """
    from koco_stream.learners import Learner, learner_called, learner_named
    from koco_stream.learners.contract import check_contract

    learner = learner_named(learner_called(name, Path()))
    if not issubclass(learner, Learner):
        raise WrongInput(
            f"{name} is not a koco_stream.Learner; other learners do not make the promises that"
            " this command checks"
        )
    outcomes = check_contract(learner)
    rows = [
        {"": "NOT KEPT" if one.found else "kept", "promise": one.promise, "found": one.found}
        for one in outcomes
    ]
    show(rows, as_json)
    sys.exit(any(one.found for one in outcomes))


@click.group()
def cluster() -> None:
    """Prepare and try out clusters for sweeps; see docs/clusters.md and docs/security.md.

    \b
    Example:
      koco cluster show slurm
    """


@cluster.command("show")
@click.argument("site")
def cluster_show(site: str) -> None:
    """Print the job script or Kubernetes manifest that a sweep on SITE would submit.

    Nothing is submitted or started. SITE is the name of a site file that comes with koco-stream
    (slurm, pbs, sge, lsf, kubernetes), or the path of your own.

    \b
    Example:
      koco cluster show slurm
    """
    from cluster.clusters import submission
    from cluster.site import read_site

    click.echo(submission(read_site(site)).rstrip("\n"))


@cluster.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    required=True,
    help="Name or address of a machine; may be repeated, the scheduler's machine first.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True, max=366),
    default=7,
    show_default=True,
    help="How many days the certificates are valid.",
)
def certificates(folder: Path, hosts: tuple[str, ...], days: float) -> None:
    """Create certificates for a cluster in the new FOLDER, and print the commands that use them.

    There is one for the scheduler, one for its workers and one for the client. Only processes with
    a key from the folder can connect. The key of the authority is not kept: to change anything,
    create a new folder.

    \b
    Example:
      koco cluster certificates ~/certificates --host 10.0.0.1 --host 10.0.0.2 --host 10.0.0.3
    """
    from cluster.certificates import make_certificates, start_commands

    folder = folder.expanduser().absolute()
    until = make_certificates(folder, hosts, days)
    click.echo(
        f"certificates in {folder}, valid until {until:%Y-%m-%d %H:%M} UTC ({days:g} days),"
        " readable only by you\nCopy to a worker's machine only authority.pem, worker.pem and"
        " worker-key.pem. Dashboards listen on loopback only."
    )
    for name, command in start_commands(folder, hosts[0]).items():
        click.echo(f"\n{name}:\n  {command}")


@click.group("store")
def store_group() -> None:
    """Verify what a store has, and remove what is not needed any more.

    \b
    Example:
      koco store verify
    """


@store_group.command()
@click.argument("names", nargs=-1)
@STORE
@JSON
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Check the hashes of the datasets NAMES, or of the whole store.

    Files that are missing, altered or damaged are named with what to do; the exit status is then 1.

    \b
    Example:
      koco store verify 20news
    """
    from flows.prepare.preparation import VERIFIED, verified

    rows = list(verified(store, names))
    show(rows, as_json, VERIFIED)
    sys.exit(any(row["state"] != "ok" for row in rows))


@store_group.command()
@click.argument("kind", type=click.Choice(["dataset", "sweep"]))
@click.argument("name")
@STORE
@click.option(
    "--force", is_flag=True, help="Remove a dataset even if sweeps use it; results are kept."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@JSON
def remove(kind: str, name: str, store: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the dataset or the sweep NAME.

    With a sweep go its entry, its report, and its runs, but for those that another sweep shares. If
    this is interrupted, the same command completes it. The bytes that become free are an estimate.

    With a dataset go its copies in the cache folder. One that a sweep uses is removed only with
    --force. The results of the sweep are kept, and can be read and reported as before. To repeat
    its runs, prepare the dataset again; from the same source it gets the same identity.

    Nothing is removed while a sweep or a nightly run is under way on the store.

    \b
    Example:
      koco store remove sweep ill-conditioned --dry-run
    """
    from flows.housekeeping import dataset_removal, sweep_removal

    of_sweep = kind == "sweep"
    freed, act = sweep_removal(store, name) if of_sweep else dataset_removal(store, name, force)
    if not dry_run:
        act()
    if as_json:
        told = {"kind": kind, "name": name, "runs": 0, "runs_kept": 0, **freed}
        click.echo(json_text({**told, "removed": not dry_run}))
        return
    runs = f", {freed['runs']:,} runs" if of_sweep else ""
    kept = f"; {freed['runs_kept']:,} runs of other sweeps stay" if freed.get("runs_kept") else ""
    click.echo(
        f"{kind} {name}: {'would free' if dry_run else 'freed'} {decimal(freed['bytes'])} in"
        f" {freed['files']:,} file{'s' * (freed['files'] != 1)}{runs}{kept}"
    )
