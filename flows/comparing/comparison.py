"""The comparison of learners over blocks: figures, tables, and what may be concluded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flows.charts import Chart, drawn
from flows.comparing.blocks import Blocks, blocks_of, how_chosen
from flows.comparing.conclusion import MIN_BLOCKS, concluded
from flows.comparing.counted import ALL, LOSS, check_choices, unfinished, views_to_compare
from flows.comparing.diagram import ranks_chart
from flows.comparing.figures import blocks_table, pairs_table, summary_table
from flows.comparing.shown import difference_words, html_of
from flows.scores import statistics
from flows.scores.means import exact_means, rounded
from flows.scores.statistics import Friedman
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath

LEVEL = 0.05
# of these, a difference means another thing on every dataset
WITH_UNITS = (LOSS, "log_loss", "mae", "rmse")


@dataclass(frozen=True)
class Comparison:
    """Learners compared over blocks. A notebook shows its summary, diagram and conclusion.

    Attributes
    ----------
    learners : list of str
        By mean rank, the best first.
    n_blocks, n_datasets : int
        Blocks, and the datasets that they are of.
    repeats : tuple of (int, int)
        Least and largest number of repeats in a block.
    metrics : list of str
        What is compared.
    select : str
        How configurations were chosen: "all" or "first-half".
    alpha : float
        Level of the tests, and 1 less that of the intervals.
    relative : bool
        Whether differences are relative: over the mean of the two.
    friedman : Friedman or None
        Friedman's test; None if there are too few blocks.
    critical_difference : float or None
        Nemenyi's, of mean ranks.
    groups : list of list of str
        The largest groups of learners whose mean ranks differ by less than that.
    summary : pyarrow.Table
        A row for each learner: `mean_rank`; `first`, the blocks on which none is better; `wins`,
        `losses` and `ties` against the best learner; mean `difference` to it with an interval from
        `low` to `high`, over the blocks on which neither failed, `compared`; `p` of Wilcoxon's test
        against it, corrected by Holm over all pairs; `failed`, the blocks on which it failed;
        `beats_constant`; `microseconds` a round.
    pairs : pyarrow.Table
        A row for each pair, with Wilcoxon's p-value alone and corrected.
    blocks : pyarrow.Table
        A row for each block and learner: its chosen configuration, score and rank, or why it has no
        score.
    conclusion : str
        What may be concluded.
    how : str
        How configurations were chosen, and from how many blocks and repeats.
    left_out : list of str
        The blocks and repeats that are left out, and why.
    notes : list of str
        What failed or was left out, and what weakens the conclusion.
    """

    learners: list[str]
    n_blocks: int
    n_datasets: int
    repeats: tuple[int, int]
    metrics: list[str]
    select: str
    alpha: float
    relative: bool
    friedman: Friedman | None
    critical_difference: float | None
    groups: list[list[str]]
    summary: pa.Table
    pairs: pa.Table
    blocks: pa.Table
    conclusion: str
    how: str
    left_out: list[str]
    notes: list[str]

    @property
    def ranks(self) -> dict[str, float]:
        """Mean ranks by learner, the best first."""
        return dict(zip(self.learners, self.summary.column("mean_rank").to_pylist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dicts."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        tables = {name: found[name].to_pylist() for name in ("summary", "pairs", "blocks")}
        friedman = None if self.friedman is None else self.friedman._asdict()
        return {**found, **tables, "friedman": friedman, "repeats": list(self.repeats)}

    def to_json(self) -> str:
        """All of it as JSON, with null for what is not finite."""
        return json_text(self.to_dict())

    def __repr__(self) -> str:
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in self.ranks.items())
        return f"{self.conclusion}\nMean ranks: {ranks}.\n{self.how}"

    @property
    def meaning(self) -> str:
        """What the columns of the summary mean, in words."""
        return difference_words(self.relative, self.alpha)

    @property
    def diagram(self) -> Chart:
        """The critical-difference diagram."""
        return ranks_chart(self.ranks, self.n_blocks, self.critical_difference, self.groups)

    def _repr_html_(self) -> str:
        words, [(_, spec)] = f"{self.how} {self.meaning}", self.diagram.files()
        return html_of(self.summary, self.conclusion, drawn(spec), words, self.notes)


def compare(
    store: AnyPath,
    sweeps: Sequence[str],
    *,
    select: str = ALL,
    metric: str | None = None,
    alpha: float = LEVEL,
    learners: Sequence[str] = (),
) -> Comparison:
    """Compare the learners of some sweeps, whose runs count once.

    Parameters
    ----------
    store : path or str
        The store.
    sweeps : sequence of str
        Names of the sweeps.
    select : str
        How the configuration of a learner on a block is chosen: "all", by what is compared, or
        "first-half", by the first half of the stream, of which the second half is then compared.
    metric : str, optional
        `error_rate`, `mean_loss` or a metric; by default the error rate where there are classes,
        else the mean loss.
    alpha : float
        Level of the tests.
    learners : sequence of str
        Only these; all, if none are named.

    Raises
    ------
    WrongInput
        For an unknown sweep, learner or metric, if there is no block with runs of two learners, and
        for results without a point at half their rounds if `select` needs it.
    """
    check_choices(select, metric)
    check_level(alpha)
    views = views_to_compare(store, list(dict.fromkeys(sweeps)), select, metric, learners)
    blocks = blocks_of(views, metric)
    if len(blocks.learners) < 2:
        there = ", ".join(blocks.learners) or "none"
        raise WrongInput(
            f"{', '.join(sweeps)}: a comparison needs runs of two learners, and there are: {there};"
            " name more sweeps, or wait until more runs have finished"
        )
    if not blocks.blocks:
        reasons = "\n".join(blocks.left_out)
        raise WrongInput(
            f"{', '.join(sweeps)}: there is no dataset and order with runs of all learners; compare"
            f" fewer of them (--learner NAME, several times)\n{reasons}"
        )
    return comparison_of(blocks, select, alpha, views.halved, unfinished(views))


def check_level(alpha: float) -> None:
    """Raise `WrongInput` if a level is not between 0 and a half."""
    if not 0.0 < alpha < 0.5:
        raise WrongInput(f"alpha is {alpha:g}; it is a level such as {LEVEL}, between 0 and 0.5")


def compared_sweep(store: AnyPath, sweep: str) -> Comparison | None:
    """Compare the learners of a sweep by what is usual; None if there are not two."""
    views = views_to_compare(store, [sweep])
    blocks = blocks_of(views)
    if len(blocks.learners) < 2 or not blocks.blocks:
        return None
    return comparison_of(blocks, ALL, LEVEL, views.halved)


def comparison_of(
    found: Blocks,
    select: str = ALL,
    alpha: float = LEVEL,
    halved: bool = False,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compute a comparison from blocks: one at least, of two learners at least.

    `halved` says whether halving has stopped some configurations early; `notes` are further ones.
    """
    blocks, names = found.blocks, found.learners
    exact = np.array([exact_means(block.scores.T) for block in blocks])
    ranks = statistics.mean_ranks(rounded(exact))
    order = sorted(range(len(names)), key=lambda one: (ranks[one], names[one]))
    learners, exact, ranks = [names[one] for one in order], exact[:, order], ranks[order]
    scores = rounded(exact)
    metrics = sorted({block.metric for block in blocks})
    relative = len(metrics) > 1 or metrics[0] in WITH_UNITS
    enough = len(blocks) >= MIN_BLOCKS
    pairs = pairs_table(learners, exact, relative, enough)
    critical = statistics.critical_difference(len(learners), len(blocks), alpha) if enough else None
    groups = statistics.groups_of_equals(ranks.tolist(), critical) if critical is not None else []
    friedman = statistics.friedman(scores) if enough else None
    summary = summary_table(blocks, order, learners, scores, ranks, pairs, relative, alpha)
    counts = [len(block.scores) for block in blocks]
    repeats = min(counts), max(counts)
    sources = len({block.source for block in blocks})
    left_out = [*found.left_out, *(f"{b.title}: {b.lacking}" for b in blocks if b.lacking)]
    of_all = f"; {len(found.left_out):,} more are left out" if found.left_out else ""
    return Comparison(
        learners,
        len(blocks),
        sources,
        repeats,
        metrics,
        select,
        alpha,
        relative,
        friedman,
        critical,
        [[learners[one] for one in group] for group in groups],
        summary,
        pairs,
        blocks_table(blocks, order, learners, scores),
        concluded(learners, ranks, len(blocks), sources, friedman, critical, pairs, alpha),
        f"{_counted(len(blocks), sources, repeats)}, by {' or '.join(metrics)}{of_all}."
        f" {how_chosen(select, max(block.choices for block in blocks), halved)}",
        left_out,
        [*_weaknesses(found, order), *left_out, *notes],
    )


def _counted(n: int, sources: int, repeats: tuple[int, int]) -> str:
    """How many blocks, datasets and repeats there are."""
    least, most = repeats
    often = f"{least}" if least == most else f"{least} to {most}"
    return (
        f"{n:,} block{'s' * (n != 1)} (a dataset in one kind of order) of {sources:,}"
        f" dataset{'s' * (sources != 1)}, with {often} repeat{'s' * (most != 1)} (orders and seeds)"
        " each"
    )


def _weaknesses(found: Blocks, order: Sequence[int]) -> list[str]:
    """Sentences on learners that failed, and on losses that cannot be compared."""
    failed = {
        found.learners[one]: [
            f"{block.title} ({block.failed[one]})" for block in found.blocks if block.failed[one]
        ]
        for one in order
    }
    sentences = [
        f"{name} has no result on {len(where)} of {len(found.blocks)} blocks, and the worst rank"
        f" there: {'; '.join(where)}"
        for name, where in failed.items()
        if where
    ]
    mixed = [one.title for one in found.blocks if one.metric == LOSS and len(one.losses) > 1]
    if mixed:
        sentences.append(
            f"the learners have different losses on {', '.join(mixed)}, so that their mean losses"
            " cannot be compared; give them one loss"
        )
    return sentences
