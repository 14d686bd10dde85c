"""The rows of the PROS-N-KONS paper's tables, each with what our runs have of it."""

import math
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
# rows times points: beyond it the best function in hindsight is not computed for the report
MOST_BATCH_VALUES = 15_000_000


def verdict(published: Published, mean: float, std: float) -> str:
    """agrees: |ours − published| ≤ 2·√(std² + std²), the distance of two means in their own spread;
    else better or worse.
    """
    if abs(mean - published.mean) <= 2.0 * math.hypot(std, published.std):
        return "agrees"
    return "better" if mean < published.mean else "worse"


def batch_of(store: AnyPath, ours: Ours) -> float | None:
    """The loss (error rate for labels −1, +1) of the best function in hindsight in the space of the
    final dictionary of the group's first run, from the cache folder if it was computed before; None
    if that is too much work for a report.
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
    """One of the paper's rows and what we have: under the single reading, under the reading that
    fits it best, and at our best.
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
        """`PROS-N-KONS on ijcnn1, α = γ = 0.01`."""
        _, alpha, learner = self.key
        return f"{NAMES.get(learner, learner)} on {self.dataset}" + (
            f", α = γ = {alpha:g}" if alpha != 1.0 else ""
        )

    @property
    def dataset(self) -> str:
        """The dataset, with the target where each has a row, and its rows where they are not the
        paper's.
        """
        name = self.key[0] + (f" ({self.target})" if self.target else "")
        rounds = self.ours.first["rounds"] if self.ours else None
        return name if rounds in (None, ROUNDS[self.key[0]]) else f"{name} ({rounds:,} rows)"

    @property
    def ours(self) -> Ours | None:
        """Ours under the single reading; at our best, where there is none."""
        return self.single or self.tuned

    @property
    def mean_std(self) -> tuple[float, float] | None:
        """What is compared with the paper: of the single reading, or BATCH; of the best step for
        the baselines.
        """
        if self.batch is not None:
            return self.batch, 0.0
        ours = self.single if self.key[2] in NEWTON else self.ours
        return (ours.mean, ours.std) if ours else None

    @property
    def verdict(self) -> str:
        """Of what is compared."""
        return verdict(self.published, *self.mean_std) if self.mean_std else "–"

    def shown(self, mean: float | None, std: float | None = None) -> str:
        """A loss, or a rate in per cent, with its standard deviation."""
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
) -> list[Row]:
    """The paper's rows that these runs can be held against, in the paper's order.

    Parkinsons' target belongs to the reading; for baselines, quoted from elsewhere, and for BATCH
    each target has a row.
    """
    keys = [(*at, learner) for at, learners in TABLES.items() for learner in learners]
    rows = []
    for key in keys:
        dataset, alpha, learner = key
        published, by_reading = TABLES[dataset, alpha][learner], found.get(key, {})
        for name in TARGETS if dataset == "parkinsons" else [dataset]:
            target, newton = TARGETS.get(name, ""), learner in NEWTON
            if newton and target and target != best.target:
                continue
            mine = groups.get((name, learner), [])
            tuned = min(
                (ours for ours in mine if not newton or ours.params["alpha"] == alpha),
                key=lambda ours: ours.mean,
                default=None,
            )
            own = min(by_reading.items(), key=lambda p: misfit(published, p[1]), default=None)
            of_pros = found.get((dataset, alpha, "PROSNKONS"), {})
            base = under(of_pros, best._replace(target=target)) if learner == "Batch" else None
            batch = batch_of(store, base) if base else None
            if tuned or batch is not None:
                single, told = under(by_reading, best), "" if newton else target
                rows.append(Row(key, published, single, own, tuned, batch, told))
    return rows
