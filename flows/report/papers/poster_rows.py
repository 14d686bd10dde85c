"""The rows of the PROS-N-KONS paper's tables, each compared with our results."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import koco_stream
from flows.report.papers.poster_published import ROUNDS, TABLES, Published
from flows.report.papers.poster_readings import NEWTON, TARGETS, Key, Ours, Reading, misfit, under
from flows.report.rows import computed_once, rows_of_stream, stream_of
from koco_stream.batch import Batch
from koco_stream.io.paths import AnyPath

NAMES = {
    "PROSNKONS": "PROS-N-KONS",
    "CONKONS": "CON-KONS",
    "BKONS": "B-KONS",
    "Batch": "BATCH",
    "DualSGD": "Dual-SGD",
}
# largest product of rows and dictionary points for which `batch_of` computes a value
MOST_BATCH_VALUES = 15_000_000


def verdict(published: Published, mean: float, std: float) -> str:
    """Whether our mean agrees: |ours − published| ≤ 2·√(std² + std²). Else better or worse."""
    if abs(mean - published.mean) <= 2.0 * math.hypot(std, published.std):
        return "agrees"
    return "better" if mean < published.mean else "worse"


def batch_of(store: AnyPath, ours: Ours) -> float | None:
    """Error rate or loss of the best function in hindsight in the span of the first run's
    dictionary, for the row BATCH; cached. None if the computation is too long for a report.
    """
    if ours.size is None or ours.size * ours.first["rounds"] > MOST_BATCH_VALUES:
        return None
    run = ours.first

    def computed() -> float:
        X, y = rows_of_stream(store, stream_of(run))
        learner = getattr(koco_stream, run["learner"])(**ours.params, seed=run["learner_seed"] or 0)
        learner.partial_fit(X, y)
        best = Batch(learner, ours.params["alpha"]).fit(X, y)
        return best.mean_loss_ if best.error_rate_ is None else best.error_rate_

    return float(computed_once("batch", {"run_id": run["run_id"], "version": 1}, computed))


@dataclass(frozen=True)
class Row:
    """A row of the paper's tables, with our results for it.

    `single` is our result under the reading that fits all rows best, `own` the reading that fits
    this row best and our result under it, and `tuned` our best result over all configurations.
    `batch` is our value for a row of BATCH. `target` is that of parkinsons, if each has a row.
    """

    key: Key
    published: Published
    single: Ours | None
    own: tuple[Reading, Ours] | None
    tuned: Ours | None
    batch: float | None = None
    target: str = ""

    @property
    def name(self) -> str:
        """Name of the row: `PROS-N-KONS on ijcnn1, α = γ = 0.01`."""
        _, alpha, learner = self.key
        return f"{NAMES.get(learner, learner)} on {self.dataset}" + (
            f", α = γ = {alpha:g}" if alpha != 1.0 else ""
        )

    @property
    def dataset(self) -> str:
        """Name of the dataset, with its target or number of rows where they are needed."""
        name = self.key[0] + (f" ({self.target})" if self.target else "")
        rounds = self.ours.first["rounds"] if self.ours else None
        return name if rounds in (None, ROUNDS[self.key[0]]) else f"{name} ({rounds:,} rows)"

    @property
    def ours(self) -> Ours | None:
        """Our result that stands beside the published one: `single`, or else `tuned`."""
        return self.single or self.tuned

    @property
    def mean_std(self) -> tuple[float, float] | None:
        """Our mean and standard deviation to compare with the paper's; None if there are none.
        Baselines have those of their best step size.
        """
        if self.batch is not None:
            return self.batch, 0.0
        ours = self.single if self.key[2] in NEWTON else self.ours
        return (ours.mean, ours.std) if ours else None

    @property
    def verdict(self) -> str:
        """Result of the comparison with the paper: agrees, better, worse, or – if there is none."""
        return verdict(self.published, *self.mean_std) if self.mean_std else "–"

    def shown(self, mean: float | None, std: float | None = None) -> str:
        """Format a loss, or an error rate in per cent, with its standard deviation."""
        if mean is None:
            return "–"
        percent = self.key[0] in ("ijcnn1", "cod-rna")
        scale, digits = (100.0, 2) if percent else (1.0, 5)
        spread = "" if std is None else f" ± {scale * std:.{digits}f}"
        return f"{scale * mean:.{digits}f}{spread}{' %' if percent else ''}"


def rows_of(
    store: AnyPath,
    groups: dict[tuple[str, str], list[Ours]],
    found: dict[Key, dict[Reading, Ours]],
    best: Reading,
) -> Iterator[Row]:
    """Yield the rows of the paper's tables that we have runs for, in the paper's order.

    Parkinsons has two possible targets. For Newton learners the reading says which; baselines,
    which the paper quotes, and BATCH have a row for each target.
    """
    for key, published in {
        (*at, name): row for at, table in TABLES.items() for name, row in table.items()
    }.items():
        (dataset, alpha, learner), by_reading = key, found.get(key, {})
        for name in TARGETS if dataset == "parkinsons" else [dataset]:
            target, newton = TARGETS.get(name, ""), learner in NEWTON
            if newton and target and target != best.target:
                continue
            tuned = min(
                (
                    ours
                    for ours in groups.get((name, learner), [])
                    if not newton or ours.params["alpha"] == alpha
                ),
                key=lambda ours: ours.mean,
                default=None,
            )
            own = min(by_reading.items(), key=lambda p: misfit(published, p[1]), default=None)
            of_pros = found.get((dataset, alpha, "PROSNKONS"), {}) if learner == "Batch" else {}
            base = under(of_pros, best._replace(target=target))
            batch = batch_of(store, base) if base else None
            if tuned or batch is not None:
                single, shown = under(by_reading, best), "" if newton else target
                yield Row(key, published, single, own, tuned, batch, shown)
