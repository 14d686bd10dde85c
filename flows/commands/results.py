"""Commands that show results: results, compare, report."""

import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from flows.commands.options import JSON, STORE, show
from flows.runtime.processes import say, wrapped
from flows.tables.text import laid_out, line_width
from koco_stream.errors import WrongInput, refuse_first

# what a terminal acts on, or hides
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}]"


@click.command()
@click.argument("name", required=False, metavar="")
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
@click.option(
    "--arrow", type=click.Path(path_type=Path, dir_okay=False), help="Write an Arrow file."
)
def results(
    name: str | None,
    store: str,
    limit: int | None,
    as_json: bool,
    as_csv: bool,
    arrow: Path | None,
    **asked: Any,
) -> None:
    """Show results: averages of configurations over orders and seeds, or single runs.

    On each stream, the best configuration comes first, by error rate where there are classes and
    otherwise by mean loss. beats_constant says whether it is better, in mean loss and error rate,
    than Constant, which always predicts the best constant so far.

    The table fits the terminal. It shows the parameters that vary, and leaves out columns that are
    empty or the same in all rows. --json, --csv and --arrow have all columns and all digits. In
    CSV, a text that a spreadsheet would take for a formula has an apostrophe before it, and control
    characters are spaces.

    Conditions are SQL on the columns of single runs (--runs --json shows them all), such as
    "learner = 'OGD' AND alpha IS NOT NULL". The best configuration is one of which all runs ended
    well. --diff joins two sweeps by stream, learner and parameters; with --best, by stream and
    learner. Nightly runs have results of their own (--store STORE/nights/SWEEP).

    \b
    Example:
      koco results --learner OjaSON --where 'sketch_size>=5' --sort seconds_mean --limit 10
    """
    from flows.views.answer import answer, in_terminal
    from storage.nights import night_names, night_path
    from storage.store import existing_store

    refuse_first(
        [
            (
                name is not None,
                f"results are those of all sweeps; for those of one, koco results --sweep {name}",
            ),
            (
                as_json + as_csv + (arrow is not None) > 1,
                "--json, --csv and --arrow write the same result in three formats; choose one",
            ),
        ]
    )
    root = existing_store(store)
    views, whole = answer(root, **asked)
    table = whole.slice(0, limit)
    if arrow or as_csv:
        _export(table, arrow)
    elif as_json:
        show(table.to_pylist(), True)
    else:
        remarks = [f"no run has finished in {root} yet"]
        if table.num_rows:
            text, remarks = in_terminal(views, table, len(whole) - len(table), line_width())
            click.echo(text)
        remarks += [
            f"nightly runs of {one} have results of their own: --store"
            f" {shlex.quote(str(night_path(root, one)))}"
            for one in night_names(root)
            if not asked["sweep"]
        ]
        for words in remarks:
            say(words)


def _export(table: Any, file: Path | None) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    if file is None:
        for place, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                marked = pc.replace_substring_regex(table.column(place), r"\A([=+\-@\t\r])", r"'\1")
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
    help="Choose configurations by all rounds, and compare the same; or by the first half of each"
    " stream, and compare the second.",
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
    high, its resolution, and p of Wilcoxon's test with Holm's correction. Below it stands what may
    be concluded, by Friedman's test and Nemenyi's critical difference. Several sweeps are taken
    together. --json has also all pairs of learners, and the configuration that was chosen on each
    block.

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
    digits = {
        "low": 2,
        "high": 2,
        "resolution": 2,
        "p": 2,
        "mean_rank": 3,
        "difference": 3,
        "microseconds": 3,
    }
    rows = found.said
    text, left_out = laid_out([*rows[0]], [[*row.values()] for row in rows], line_width(), digits)
    click.echo(text)
    sentences = [
        *filter(None, [found.conclusion, found.unresolved]),
        *(found.diagram.alt, found.how, found.meaning),
        *(f"Note: {note}" for note in found.notes),
        *[f"No room for {', '.join(left_out)}; --json has all."] * bool(left_out),
    ]
    click.echo(wrapped("".join(f"\n\n{words}" for words in sentences)[1:], sys.stdout))


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
    address = written.path.as_uri() if written.is_local else str(written)
    if opens and not webbrowser.open(address):
        say("no browser was found; open the page by hand")
