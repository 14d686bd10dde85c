"""The abstract of the ICML 2017 paper: Sketched-KONS has 1/γ times KONS's regret at γ² of its cost."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from flows.figures.axes import Axis
from flows.figures.drawing import Claim, Figure, Series, plot, style_of
from flows.figures.rows import kernel_matrix, matrix_of
from koco_stream.orders import AS_STORED
from koco_stream.places import Where
from koco_stream.runs import Stream
from koco_stream.stream import StreamReader
from koco_stream.theory import best_in_hindsight

EXACT = 1.0  # the floor at which every coin is 1: KONS
READ = (
    *("dataset", "dataset_hash", "order", "max_rows", "learner", "params", "status"),
    *("rounds", "mean_loss", "dictionary_size", "seconds"),
)


@dataclass(frozen=True)
class Point:
    """The runs of one floor on one dataset: their regrets, means of the points kept and of the seconds."""

    floor: float
    regrets: list[float]
    size: float
    seconds: float

    @property
    def regret(self) -> float:
        """The mean over the seeds."""
        return fmean(self.regrets)


def sampling_floor(store: Where, runs: pa.Table) -> Figure:
    """Regret and seconds against the floor, and whether they are within 1/γ and γ² of KONS's."""
    found = points_of(store, runs)
    regret, seconds, rows = list[Series](), list[Series](), list[list[Any]]()
    for dataset, points in found.items():
        drawn = [point for point in points if point.floor > 0]
        floors = [point.floor for point in drawn]
        shown = [[value if value > 0 else math.nan for value in point.regrets] for point in drawn]
        means = [point.regret if point.regret > 0 else math.nan for point in drawn]
        regret.append(Series(dataset, floors, means, [min(one) for one in shown], [max(one) for one in shown]))
        seconds.append(Series(dataset, floors, [point.seconds for point in drawn]))
        exact = next((point for point in points if point.floor == EXACT), None)
        if exact is not None:
            regret.append(Series(f"{dataset}, KONS's / γ", floors, [exact.regret / floor for floor in floors]))
            seconds.append(Series(f"{dataset}, γ² KONS's", floors, [floor**2 * exact.seconds for floor in floors]))
        rows += [
            [
                *(dataset, point.floor, point.regret, exact and point.regret / exact.regret),
                *(1 / point.floor if point.floor else None, point.size),
                *(point.seconds, exact and point.seconds / exact.seconds, point.floor**2),
            ]
            for point in points
        ]
    floor = Axis("sampling floor γ", log=True)
    claims = [claim for dataset, points in found.items() for claim in claims_of(dataset, points)]
    verdict = f"{sum(bool(claim[3]) for claim in claims)} of {len(claims)} hold." if claims else "There is no KONS to compare with."
    return Figure(
        "The floor of Sketched-KONS (abstract of Calandriello, Lazaric, Valko, ICML 2017)",
        [
            plot(regret, _styles(regret), floor, Axis("regret", log=True), f"Regret against the sampling floor. {verdict}"),
            plot(seconds, _styles(seconds), floor, Axis("seconds", log=True), f"Seconds against the sampling floor. {verdict}"),
        ],
        claims,
        ["dataset", "γ", "regret", "regret / KONS's", "1/γ", "points", "seconds", "seconds / KONS's", "γ²"],
        rows,
        f"{verdict} γ is the least probability that a row joins the sketch; γ = 1 is KONS, and γ = 0 "
        "leaves the choice to KORS. Regret is the cumulative squared loss above that of the best function "
        "in hindsight, kernel ridge regression with the same α, shrunk into the clip; means over the "
        "seeds, bands from the least to the largest.\nThe criteria were set before the runs. A round takes "
        "what KORS and the kernel values take beside the (tγ)² of the claim, and a sum squared is at most "
        "twice the sum of squares: hence twice the seconds of γ = 0, and twice γ² times KONS's.",
        opened=True,
    )


def points_of(store: Where, runs: pa.Table) -> dict[str, list[Point]]:
    """The points by dataset, the smallest floor first, of the runs with the squared loss and rows as stored that ended well."""
    groups: dict[str, dict[float, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    best: dict[str, float] = {}
    for row in runs.select(list(READ)).to_pylist():
        params = json.loads(row["params"])
        if row["status"] != "ok" or row["order"] != AS_STORED or params.get("loss") != "squared":
            continue
        if row["learner"] in ("KONS", "SketchedKONS"):
            floor = EXACT if row["learner"] == "KONS" else params["sampling_floor"]
            groups[row["dataset"]][floor].append(row)
            if row["dataset"] not in best:
                best[row["dataset"]] = hindsight_loss(store, row, params)
    return {
        dataset: [
            Point(
                floor,
                [row["rounds"] * row["mean_loss"] - best[dataset] for row in members],
                fmean(row["dictionary_size"] for row in members),
                fmean(row["seconds"] for row in members),
            )
            for floor, members in sorted(floors.items())
        ]
        for dataset, floors in groups.items()
    }


def hindsight_loss(store: Where, row: dict[str, Any], params: dict[str, Any]) -> float:
    """Σ (f(x_t) − y_t)² of the best function of a run's own space, shrunk into its clip."""
    block = StreamReader(store, Stream(row["dataset"], row["dataset_hash"], max_rows=row["max_rows"])).whole()
    K = kernel_matrix(matrix_of(block.rows).astype(np.float64), params)
    return best_in_hindsight(K, block.labels, params["alpha"]).scaled_into(params["clip"]).loss


def claims_of(dataset: str, points: list[Point]) -> list[Claim]:
    """The two halves of the claim, each over all floors between 0 and 1; none without KONS and such a floor."""
    by_floor = {point.floor: point for point in points}
    between = [point for point in points if 0 < point.floor < EXACT]
    if EXACT not in by_floor or not between:
        return []
    exact, sampled = by_floor[EXACT], by_floor.get(0.0)
    alone = sampled.seconds if sampled else 0.0
    regrets = "; ".join(f"{point.regret / exact.regret:.2f} at γ = {point.floor:g}" for point in between)
    times = "; ".join(f"{point.seconds / exact.seconds:.4f} at γ = {point.floor:g}" for point in between)
    return [
        (
            f"{dataset}: at most 1/γ times the regret",
            "the mean regret at most KONS's / γ at every floor",
            f"KONS's is {exact.regret:.2f}; times it: {regrets}",
            all(point.regret <= exact.regret / point.floor for point in between),
        ),
        (
            f"{dataset}: γ² of the cost",
            "the seconds at most 2γ² KONS's + 2 of those at γ = 0, at every floor",
            f"KONS takes {exact.seconds:.3g} s, γ = 0 {alone / exact.seconds:.4f} of it; shares: {times}",
            all(point.seconds <= 2 * point.floor**2 * exact.seconds + 2 * alone for point in between),
        ),
    ]


def _styles(series: list[Series]) -> dict[str, tuple[str, str, str]]:
    return {one.name: style_of(k) for k, one in enumerate(series)}
