"""A comparison as people see it: a table for a page, and HTML for notebooks."""

from collections.abc import Sequence
from html import escape
from typing import Any

import pyarrow as pa

from flows.tables.tables import lists_of
from flows.tables.text import number_text

HEADINGS = {
    "learner": "learner",
    "mean_rank": "mean rank",
    "first": "best on",
    "wins": "wins",
    "losses": "losses",
    "ties": "ties",
    "difference": "difference to the best",
    "low": "from",
    "high": "to",
    "p": "p",
    "failed": "failed on",
    "beats_constant": "beats Constant on",
    "microseconds": "µs a round",
}


def summary_rows(summary: pa.Table) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the table `summary`, without columns that say nothing."""
    names, columns = [], []
    for name, values in zip(HEADINGS, lists_of(summary, list(HEADINGS)), strict=True):
        nothing = 0 if name == "failed" else None
        if any(value != nothing for value in values):
            names.append(name)
            columns.append(values)
    return names, [list(row) for row in zip(*columns, strict=True)]


def difference_words(relative: bool, alpha: float) -> str:
    """What the columns of the summary mean."""
    kind = "relative to the mean of the two" if relative else "in units of the metric"
    return (
        "Wins, losses, ties and differences are those against the learner with the least mean"
        f" rank. Differences are means over the blocks on which neither failed, {kind}, positive"
        f" where a learner is worse, with {100 * (1 - alpha):g} % bootstrap intervals over blocks"
        " and repeats. p is that of"
        " Wilcoxon's test against it, with Holm's correction over all pairs."
    )


def html_of(summary: pa.Table, conclusion: str, svg: str, words: str, notes: Sequence[str]) -> str:
    """HTML of a comparison for a notebook: its conclusion, summary, diagram and notes."""
    names, rows = summary_rows(summary)
    head = "".join(f'<th scope="col">{escape(HEADINGS[name])}</th>' for name in names)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in rows
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f"<p><b>{escape(conclusion)}</b></p>\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n"
        f'<div style="max-width: 30em; margin: 1em 0">{svg}</div>\n'
        f"<p>{escape(words)}</p>\n" + (f"<ul>{listed}</ul>\n" if notes else "")
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value, 3)
    return "–" if value is None else str(value)
