"""The command `koco compare`."""

import sys
import textwrap
from functools import partial
from typing import Any

import click

from flows.commands.shared import JSON, STORE, example
from flows.tables.text import laid_out, line_width, printable

DIGITS = {"low": 2, "high": 2, "p": 2, "mean_rank": 3, "difference": 3, "microseconds": 3}
LEAST = "beats_constant"  # it matters least: last, where a terminal may have no room


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
@example("koco compare poster-regression poster-classification --select first-half")
def compare(sweeps: tuple[str, ...], store: str, as_json: bool, **asked: Any) -> None:
    """Compare learners over datasets and orders: which is better, and how sure that is.

    A block is a dataset in one kind of order; its orders and seeds are repeats. On each block every
    learner has its best configuration. The table has mean ranks, and against the learner with the
    least of them: wins, losses, ties, the mean difference with a bootstrap interval from low to
    high, and p of Wilcoxon's test with Holm's correction. Below it stands what may be concluded, by
    Friedman's test and Nemenyi's critical difference. Several sweeps are taken together. --json has
    also all pairs of learners, and the configuration that was chosen on each block.

    docs/compare.md says how it is computed, and when nothing can be concluded.
    """
    from flows.comparing.comparison import compare as comparison_of
    from storage.store import existing_store

    found = comparison_of(existing_store(store), sweeps, **asked)
    if as_json:
        click.echo(found.to_json())
        return
    for text in in_terminal(found, line_width(sys.stdout)):
        click.echo(text)


def in_terminal(found: Any, width: int) -> list[str]:
    """The lines of a comparison, of at most `width` characters."""
    from flows.comparing.words import p_text

    rows = found.said
    names = sorted(rows[0], key=lambda name: name == LEAST)
    layout = laid_out(names, [[row[name] for name in names] for row in rows], width, DIGITS)
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
    if layout.left_out:
        sentences.append(f"No room for {', '.join(layout.left_out)}; --json has all.")
    fill = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return [layout.text, *("\n" + fill(printable(text)) for text in sentences)]
