"""What pages are made of: figures with their claims, and warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flows.charts import Chart


class Claim(NamedTuple):
    """A claim of a paper, the criterion by which it is judged, our outcome, and whether it holds.

    `holds` is None for a remark, which is not judged.
    """

    claim: str
    criterion: str
    came_out: str
    holds: bool | None


class Flag(NamedTuple):
    """A warning for the reader in a sentence, and what it sums up."""

    words: str
    details: tuple[str, ...] = ()


def merged_flags(words: str, sentences: Sequence[str]) -> list[Flag]:
    """Warnings as one: `words` with the `sentences` as details, or the only sentence itself."""
    if len(sentences) < 2:
        return [Flag(sentence) for sentence in sentences]
    return [Flag(words, tuple(sentences))]


@dataclass(frozen=True)
class Figure:
    """A section of a page: charts, claims that they test, a table, and a note for the reader.

    Each line of `note` is a paragraph. Cells of `rows` are integers, floats or text; None is shown
    as –. `finding` says what came out, with the numbers of the first chart.
    """

    title: str
    charts: Sequence[Chart] = ()
    claims: Sequence[Claim] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    note: str = ""
    finding: str = ""
    flags: Sequence[Flag] = ()

    @property
    def verdict(self) -> str:
        """How many claims hold, and the finding."""
        judged = [one.holds for one in self.claims if one.holds is not None]
        held = [f"{sum(judged)} of {len(judged)} claims hold"] * bool(judged)
        return "; ".join([*held, *([self.finding] if self.finding else [])])


@dataclass(frozen=True)
class Page:
    """A page: its first screen, and figures, which are folded.

    Attributes
    ----------
    title : str
        The title.
    facts : sequence of str
        What was run, in a few words each.
    sentence : str
        What happened, with the numbers of the chart.
    chart : Chart or None
        The figure of the first screen.
    columns, rows : sequence
        A line for each dataset.
    flags : sequence of Flag
        What failed, or is no better than `Constant`.
    next_run : str
        What to run next; empty if no best value is at the edge of its grid.
    small : sequence of str
        Tests and their conditions, in small print.
    figures : sequence of Figure
        The sections.
    file : str
        The sweep file.
    links : sequence of str
        Names of other pages.
    """

    title: str
    facts: Sequence[str] = ()
    sentence: str = ""
    chart: Chart | None = None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    flags: Sequence[Flag] = ()
    next_run: str = ""
    small: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    file: str = ""
    links: Sequence[str] = ()

    @property
    def has_charts(self) -> bool:
        """Whether there is anything to draw."""
        return self.chart is not None or any(figure.charts for figure in self.figures)
