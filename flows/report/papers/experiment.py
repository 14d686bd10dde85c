"""An experiment: its sweeps, and the figure with the claims that their results are held against."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flows.charts import Chart
from flows.report.content import Figure
from flows.scores.means import means
from koco_stream.io.paths import AnyPath
from storage.catalogue.entries import CATALOGUE

SMALLEST = 1e-4  # an error of 0 is drawn at this value on a logarithmic axis


@dataclass(frozen=True)
class Experiment:
    """A published figure or table that can be reproduced.

    Attributes
    ----------
    name, about : str
        Name for the command line, and a sentence about it.
    sweeps : tuple of str
        Sweeps whose results are held against the claims.
    figure : callable or None
        Draws a sweep's figure from the store and the rows of its runs; None for the benchmark.
    chart : str
        The figure's name in sweep files; empty if no report shows it.
    datasets : tuple of str
        The paper's datasets, by their names in the catalogue.
    takes_more : bool
        Whether it has one point per dataset, so that those can be added that its sweep file lacks.
    """

    name: str
    about: str
    sweeps: tuple[str, ...]
    figure: Callable[[AnyPath, pa.Table], Figure] | None = None
    chart: str = ""
    datasets: tuple[str, ...] = ()
    takes_more: bool = False


def datasets_of(paper: str, ending: str = "") -> tuple[str, ...]:
    """The catalogue's datasets of a paper."""
    return tuple(entry.name + ending for entry in CATALOGUE.values() if paper in entry.papers)


def banded(x: Sequence[float], runs: Iterable[Sequence[float]]) -> list[list[Any]]:
    """Rows of x, the mean over `runs` (n, k) at each x (k,), and the least and largest value.

    What is not finite in one of the runs is None.
    """
    values = np.asarray(list(runs), float)
    known = np.isfinite(values).all(axis=0)
    columns = means(values.T), values.min(axis=0), values.max(axis=0)
    found = [[at, *map(float, numbers)] for at, *numbers in zip(x, *columns, strict=True)]
    return [
        row if there else [row[0], None, None, None]
        for row, there in zip(found, known, strict=True)
    ]


def scatter(
    title: str,
    alt: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    names: Sequence[str],
    **how: Any,
) -> Chart:
    """A chart of points, whose last two columns are logarithmic axes with the diagonal."""
    x, y = columns[-2:]
    shown = [[*row[:-2], *(max(value, SMALLEST) for value in row[-2:])] for row in rows]
    return Chart(
        title, alt, columns, shown, x, y, mark="point", log="xy", diagonal=True, names=names, **how
    )


def most(counts: Mapping[str, int]) -> str:
    """Numbers of things in words: `agrees 3, better 1`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())
