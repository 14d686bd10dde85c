"""The commands `koco results` and `koco report`."""

import sys
from pathlib import Path
from typing import Any

import click

from flows.commands.shared import JSON, STORE, example, show
from flows.tables.text import line_width


@click.command()
@STORE
@click.option("--sweep", "name", help="Only the runs of this sweep.")
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
@example("koco results --learner OjaSON --where 'sketch_size>=5' --sort seconds_mean --limit 10")
def results(
    store: str, name: str | None, as_json: bool, as_csv: bool, arrow: Path | None, **asked: Any
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
    """
    from flows.views.answer import Query, answer
    from storage.nights import night_names, night_path
    from storage.store import existing_store

    if as_json + as_csv + (arrow is not None) > 1:
        raise click.UsageError(
            "--json, --csv and --arrow write the same result in three formats; choose one"
        )
    query = Query(sweep=name, **asked)
    root = existing_store(store)
    answered = answer(root, query)
    if arrow:
        _write_arrow(answered.table, arrow)
    elif as_csv:
        _write_csv(answered.table)
    elif as_json:
        show(answered.table.to_pylist(), tuple(answered.table.column_names), True)
    else:
        from flows.views.terminal import in_terminal

        if answered.table.num_rows:
            text, remarks = in_terminal(answered, query, line_width(sys.stdout))
            click.echo(text)
        else:
            remarks = [f"no run has finished in {root} yet"]
        if query.sweep is None and (nights := night_names(root)):
            words = "; ".join(f"--store {night_path(root, name)}" for name in nights)
            remarks.append(f"nightly runs have results of their own: {words}")
        for words in remarks:
            click.echo(words, err=True)


def _write_csv(table: Any) -> None:
    """Print a table as CSV.

    Texts that a spreadsheet would take for formulas, such as an error's, get an apostrophe before
    them. Characters on which a terminal would act become spaces.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = table.column(place)
            marked = pc.replace_substring_regex(texts, r"\A([=+\-@\t\r])", r"'\1")
            plain = pc.replace_substring_regex(
                marked, r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}\p{Cf}]", " "
            )
            table = table.set_column(place, field, plain)
    pyarrow.csv.write_csv(table, sys.stdout.buffer)


def _write_arrow(table: Any, file: Path) -> None:
    """Write a table to an Arrow file. Raises `WrongInput` if its folder does not exist."""
    import pyarrow as pa

    from koco_stream.errors import WrongInput

    if not file.parent.is_dir():
        raise WrongInput(f"{file}: there is no folder {file.parent}; create it, or choose another")
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


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
@example("koco report ill-conditioned --open")
def report(name: str | None, store: str, figures: Path | None, opens: bool) -> None:
    """Write the report of the sweep NAME again, and print its path.

    Without a name, write the store's index: a line a sweep, with what it found.
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
