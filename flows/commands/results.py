"""The commands `koco results`, `koco report` and `koco compact`."""

import json
import sys
from pathlib import Path

import click

from flows.commands.shared import JSON, STORE, example, show


@click.command()
@STORE
@click.option("--sweep", "name", help="Only the runs of this sweep.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only runs with COLUMN=VALUE, or != < <= > >=; repeat it.",
)
@click.option("--runs", "single", is_flag=True, help="List single runs.")
@click.option(
    "--best", is_flag=True, help="Only the best configuration of each dataset and learner."
)
@click.option(
    "--group",
    metavar="COLUMNS",
    help="Average over all runs that have the same in these columns, with commas.",
)
@click.option(
    "--diff",
    "other",
    metavar="SWEEP",
    help="Beside another sweep; difference is its mean loss less that of --sweep.",
)
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--arrow", "arrow", type=click.Path(path_type=Path), help="Write an Arrow file.")
@example("koco results --where learner=OjaSON --where 'sketch_size>=5' --best")
def results(
    store: str,
    name: str | None,
    conditions: tuple[str, ...],
    single: bool,
    best: bool,
    group: str | None,
    other: str | None,
    as_json: bool,
    as_csv: bool,
    arrow: Path | None,
) -> None:
    """Show results: averages of configurations over orders and seeds, or single runs.

    Configurations are sorted for each stream, the best first, by error rate where there are classes
    and else by mean loss. beats_constant says whether one is better, in mean loss and error rate,
    than Constant, which always predicts the best constant so far; the learners whose best is not
    are named below the table. Conditions take the columns of single runs (--runs --json shows them
    all); the value none stands for a missing value. Runs of a running sweep are shown as they
    finish.
    """
    from flows.tables.querying import answer
    from storage.store import existing_store

    if as_json + as_csv + (arrow is not None) > 1:
        raise click.UsageError(
            "--json, --csv and --arrow are three ways to give the same; choose one"
        )
    table, remarks = answer(
        existing_store(store),
        name,
        conditions,
        single,
        best,
        (group.split(",") if group is not None else ()),
        other,
    )
    if conditions and not table.num_rows:
        click.echo("no run meets the conditions", err=True)
    if arrow:
        import pyarrow as pa

        from koco_stream.errors import WrongInput

        if not arrow.parent.is_dir():
            raise WrongInput(
                f"{arrow}: there is no folder {arrow.parent}; make it, or choose another"
            )
        with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return
    if as_csv:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    short = (
        "run_id",
        "dataset",
        "learner",
        "params",
        "status",
        "mean_loss",
        "error_rate",
        "seconds",
    )
    show(table.to_pylist(), tuple(table.column_names) if as_json or not single else short, as_json)
    for words in remarks if not as_json else ():
        click.echo(words, err=True)


@click.command()
@click.argument("name")
@STORE
@example("koco report ill-conditioned")
def report(name: str, store: str) -> None:
    """Write the HTML report of the sweep NAME again, and print its path."""
    from flows.report.document import write_report
    from storage.store import existing_store

    click.echo(str(write_report(existing_store(store), name)))


@click.command()
@STORE
@JSON
@example("koco compact")
def compact(store: str, as_json: bool) -> None:
    """Merge the many files that sweeps have left of each table of results into one.

    Nothing is lost if this is interrupted, and koco results may be used meanwhile.
    """
    from storage.collecting import compact as compact_results
    from storage.store import existing_store

    before, after = compact_results(existing_store(store))
    click.echo(
        json.dumps({"before": before, "after": after})
        if as_json
        else f"{before} files of runs before, {after} now"
    )
