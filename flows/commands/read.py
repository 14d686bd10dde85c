"""The commands on what a store has: `koco list`, `results`, `compare`, `report` and `store`."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from flows.commands.shared import JSON, STORE, show
from flows.runtime.console import say, wrapped
from flows.tables.tables import rows_of
from flows.tables.text import laid_out, line_width
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text

# what koco list lists, and the columns that a terminal shows
LISTED = {
    "learners": ("learner", "from", "parameters"),
    "datasets": ("name", "task", "n_rows", "n_features", "prepared", "papers"),
    "sweeps": (
        *("sweep", "kind", "state", "runs", "done", "diverged", "failed", "rounds_per_second"),
        *("seconds_left", "bytes", "ended", "dashboard"),
    ),
}
# digits of columns of a comparison
DIGITS = {"low": 2, "high": 2, "p": 2, "mean_rank": 3, "difference": 3, "microseconds": 3}
# what a terminal acts on, or hides
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}]"


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
    from flows.prepare.preparation import dataset_rows
    from storage.store import existing_store

    if what == "sweeps":
        existing_store(store)
    readers = {"learners": learner_rows, "datasets": dataset_rows, "sweeps": sweep_rows}
    found = {kind: list(readers[kind](store)) for kind in ([what] if what else LISTED)}
    if as_json:
        click.echo(json_text(found[what] if what else found))
        return
    for row in found.get("sweeps", ()):
        row["bytes"] = decimal(row["bytes"])
        row["ended"] = row["ended"] and f"{row['ended']:%Y-%m-%d %H:%M} UTC"
    for kind, rows in found.items():
        if not what:
            click.echo(f"{kind.upper()}\n")
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
            words = "; ".join(f"--store {path}" for path in nights)
            remarks.append(f"nightly runs have results of their own: {words}")
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

    text, left_out = laid_out(*summary_rows(found.summary), line_width(), DIGITS)
    sentences = [text, found.conclusion]
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
    click.echo("\n\n".join(wrapped(words, sys.stdout) for words in sentences))


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
    """Check the hashes of the datasets NAMES, or of all datasets and result tables if none is
    named.

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

    of_dataset = kind == "dataset"
    removal = dataset_removal(store, name, force) if of_dataset else sweep_removal(store, name)
    freed, act = removal
    if not dry_run:
        act()
    if as_json:
        told = {"kind": kind, "name": name, "runs": 0, "runs_kept": 0, **freed}
        click.echo(json_text({**told, "removed": not dry_run}))
        return
    runs = "" if of_dataset else f", {freed['runs']:,} runs"
    kept = f"; {freed['runs_kept']:,} runs of other sweeps stay" if freed.get("runs_kept") else ""
    click.echo(
        f"{kind} {name}: {'would free' if dry_run else 'freed'} {decimal(freed['bytes'])} in"
        f" {freed['files']:,} file{'s' * (freed['files'] != 1)}{runs}{kept}"
    )
