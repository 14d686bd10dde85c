"""The comparison of learners over blocks: figures and tables."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from flows import scores as statistics
from flows.charts import Chart, Row, drawn
from flows.comparing.blocks import (
    ALL,
    ERROR,
    LEVEL,
    LOSS,
    Blocks,
    blocks_of,
    check_choices,
    table_of_blocks,
    unfinished,
    views_to_compare,
)
from flows.comparing.words import (
    MIN_BLOCKS,
    beaten,
    concluded,
    how_compared,
    unresolved,
    weaknesses,
)
from flows.pages import rendered
from flows.views.views import table_of
from koco_stream.errors import refuse_first
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath
from koco_stream.types import Array

# of these, a difference means another thing on every dataset
WITH_UNITS = (LOSS, "log_loss", "mae", "rmse")


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
    relative : bool
        Whether differences are relative: over the mean of the two.
    friedman : Friedman or None
        Friedman's test; None if there are too few blocks.
    critical_difference : float or None
        Nemenyi's, of mean ranks.
    summary : pyarrow.Table
        A row for each learner, against the best over the `compared` blocks, on which neither
        failed; docs/compare.md has its columns.
    pairs, blocks : pyarrow.Table
        A row for each pair, and for each block and learner.
    conclusion, how : str
        What may be concluded, and how configurations were chosen.
    unresolved : str
        Which differences are below their resolution.
    notes : list of str
        What is left out, and what else weakens the conclusion.
    """

    def __init__(
        self,
        found: Blocks,
        select: str = ALL,
        alpha: float = LEVEL,
        halved: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        self.select, self.alpha = select, alpha
        exact = np.array(
            [statistics.exact_means([row["scores"] for row in block]) for block in found.blocks]
        )
        ranks = statistics.ranks_of(statistics.rounded(exact)).mean(axis=0)
        order = sorted(range(len(ranks)), key=lambda one: (ranks[one], found.learners[one]))
        exact = exact[:, order]
        ranks = ranks[order]
        blocks = [[block[one] for one in order] for block in found.blocks]
        counts = [len(block[0]["scores"]) for block in blocks]
        self.learners = [found.learners[one] for one in order]
        self.n_blocks, self.repeats = len(blocks), (min(counts), max(counts))
        self.n_datasets = len({block[0]["source"] for block in blocks})
        self.metrics = sorted({block[0]["metric"] for block in blocks})
        self.relative = len(self.metrics) > 1 or self.metrics[0] in WITH_UNITS
        enough = self.n_blocks >= MIN_BLOCKS
        self.friedman = statistics.friedman(statistics.rounded(exact)) if enough else None
        self.critical_difference = (
            statistics.critical_difference(len(order), self.n_blocks, alpha) if enough else None
        )
        repeats = [np.column_stack([row["scores"] for row in block]) for block in blocks]
        self.pairs = self._pairs(exact, repeats)
        self.summary = self._summary(blocks, repeats, statistics.rounded(exact), ranks)
        self.blocks = table_of_blocks(blocks, statistics.rounded(exact))
        self.conclusion = concluded(self)
        self.unresolved = unresolved(self)
        self.how = how_compared(self, max(block[0]["choices"] for block in blocks), halved)
        lacking = [f"{one['title']}: {one['lacking']}" for one, *_ in blocks if one["lacking"]]
        self.notes = [*weaknesses(blocks), *found.left_out, *lacking, *notes]

    def _pairs(self, exact: Array, repeats: Sequence[Array]) -> pa.Table:
        def between(scores: Array, one: int, other: int) -> Array:
            return statistics.differences(scores[:, [one]], scores[:, other], self.relative)[:, 0]

        pairs = list(combinations(range(len(self.learners)), 2))
        differences = [between(exact, *pair) for pair in pairs]
        alone = [statistics.wilcoxon(found) if self.friedman else None for found in differences]
        corrected = statistics.holm([p for p in alone if p is not None]) or alone
        called = [p is not None and p <= self.alpha for p in corrected]
        resolved = [
            statistics.resolution(
                found if self.friedman else found[:0],  # without a test it is over repeats
                (between(block, *pair) for block in repeats),
                self.alpha / (called.count(False) + is_called),  # Holm's, the others as found
            )
            for pair, found, is_called in zip(pairs, differences, called, strict=True)
        ]
        return table_of(
            (
                (
                    self.learners[one],
                    self.learners[other],
                    int((difference < 0.0).sum()),
                    int((difference > 0.0).sum()),
                    int((difference == 0.0).sum()),
                    statistics.mean(difference[np.isfinite(difference)]),
                    p_alone,
                    p,
                    int(np.isfinite(exact[:, one] + exact[:, other]).sum()),
                    *found,
                )
                for (one, other), difference, p_alone, p, found in zip(
                    pairs, differences, alone, corrected, resolved, strict=True
                )
            ),
            learner=str,
            other=str,
            wins=int,
            losses=int,
            ties=int,
            difference=float,
            p_alone=float,
            p=float,
            compared=int,
            resolution=float,
            resolved_over=str,
        )

    def _summary(
        self, blocks: Sequence[Sequence[Row]], repeats: Sequence[Array], scores: Array, ranks: Array
    ) -> pa.Table:
        differences = statistics.bootstrap(repeats, 0, self.relative, self.alpha)
        first = (scores == scores.min(axis=1, keepdims=True)).sum(axis=0).tolist()
        pairs = {row["other"]: row for row in self.against_best}
        return table_of(
            (
                (
                    self.learners[k],
                    float(ranks[k]),
                    first[k],
                    pair.get("losses"),
                    pair.get("wins"),
                    pair.get("ties"),
                    *(differences[k] if pair else (None, None, None)),
                    pair.get("resolution"),
                    pair.get("p"),
                    pair.get("compared"),
                    sum(bool(row["failed"]) for row in mine),
                    beaten(mine),
                    statistics.microseconds([row["seconds"] for row in mine]),
                )
                for k, mine in enumerate(zip(*blocks, strict=True))
                for pair in [pairs.get(self.learners[k], {})]
            ),
            learner=str,
            mean_rank=float,
            first=int,
            wins=int,
            losses=int,
            ties=int,
            difference=float,
            low=float,
            high=float,
            resolution=float,
            p=float,
            compared=int,
            failed=int,
            beats_constant=str,
            microseconds=float,
        )

    @property
    def against_best(self) -> list[Row]:
        return self.pairs.slice(0, len(self.learners) - 1).to_pylist()

    @property
    def ranks(self) -> dict[str, float]:
        return dict(zip(self.learners, self.summary.column("mean_rank").to_pylist(), strict=True))

    @property
    def meaning(self) -> str:
        kind = "relative to the mean of the two" if self.relative else "in units of the metric"
        return (
            "Wins, losses, ties and differences are those against the learner with the least mean"
            f" rank. Differences are means over the blocks on which neither failed, {kind},"
            f" positive where a learner is worse, with {100 * (1 - self.alpha):g} % bootstrap"
            " intervals over blocks and repeats. p is that of Wilcoxon's test against it, with"
            " Holm's correction over all pairs. Resolution is the least difference that would have"
            f" been called significant with power {statistics.POWER:g}: by that test, or where it"
            " cannot reach the level with so few blocks, by the interval over orders and seeds of"
            " each block, which says nothing of other datasets."
        )

    @property
    def said(self) -> list[Row]:
        """The rows of the summary without columns that say nothing."""
        nothing = {"compared"} | {
            name
            for name, values in self.summary.to_pydict().items()
            if set(values) <= {0 if name == "failed" else None}
        }
        return self.summary.drop_columns(list(nothing)).to_pylist()

    @property
    def diagram(self) -> Chart:
        """The critical-difference diagram: mean ranks, and half the difference on both sides."""
        half = (self.critical_difference or 0.0) / 2
        places = ", ".join(f"{name} {rank:.2f}" for name, rank in self.ranks.items())
        said = (
            f"Those that differ by less than {self.critical_difference:.2f}, the critical"
            " difference, are not told apart by it."
            if self.critical_difference is not None
            else "There are too few blocks for a critical difference."
        )
        return Chart(
            f"Mean ranks over {self.n_blocks:,} blocks",
            f"Mean ranks, the best first: {places}. {said}",
            [
                {"learner": name, "mean rank": rank, "from": rank - half, "to": rank + half}
                for name, rank in self.ranks.items()
            ],
            "mean rank",
            "learner",
            mark="point",
            band=("from", "to") if half else (),
        )

    def to_json(self) -> str:
        tables = {name: getattr(self, name).to_pylist() for name in ("summary", "pairs", "blocks")}
        friedman = None if self.friedman is None else self.friedman._asdict()
        return json_text({**vars(self), **tables, "friedman": friedman})

    def __repr__(self) -> str:
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in self.ranks.items())
        return f"{self.conclusion}\nMean ranks: {ranks}.\n{self.how}"

    def _repr_html_(self) -> str:
        [(_, spec)] = self.diagram.files()
        return rendered(
            "notebook.html",
            title="Comparison",
            summary=self.conclusion,
            rows=self.said,
            plots=[("", drawn(spec))],
            notes=[*filter(None, [self.unresolved]), f"{self.how} {self.meaning}", *self.notes],
        )


def compare(
    store: AnyPath,
    sweeps: Sequence[str],
    *,
    select: str = ALL,
    metric: str | None = None,
    alpha: float = LEVEL,
    learners: Sequence[str] = (),
) -> Comparison:
    """Compare the learners of some sweeps, whose runs count once; see `SweepResult.compare`."""
    check_choices(select, metric, alpha)
    views = views_to_compare(store, list(dict.fromkeys(sweeps)), select, metric, learners)
    blocks = blocks_of(views, metric)
    there = ", ".join(blocks.learners) or "none"
    refuse_first(
        [
            (
                len(blocks.learners) < 2,
                f"{', '.join(sweeps)}: a comparison needs runs of two learners, and there are:"
                f" {there}; name more {'learners' if learners else 'sweeps'}, or wait until more"
                " runs have finished",
            ),
            (
                not blocks.blocks,
                f"{', '.join(sweeps)}: there is no dataset and order with runs of all learners; "
                + (
                    "compare fewer of them (--learner NAME, several times)"
                    if metric in (None, LOSS, ERROR)
                    else f'add "{metric}" to metrics in the sweep file, and run the sweep again'
                )
                + "\n".join(["", *blocks.left_out]),
            ),
        ]
    )
    return Comparison(blocks, select, alpha, views.halved, unfinished(views))
