"""Interpretations ("readings") of what the PROS-N-KONS paper leaves open, and how well each fits.

The sweep fixes what the paper states. A reading fixes the rest: C, the curvature, the kernel's
width, KORS's factor, parkinsons' target, the order of the rows, and what CON-KONS carries over.
"""

import json
import math
from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa

from flows.report.papers.poster_published import TABLES, Published
from flows.report.rows import READ
from flows.scores.means import deviations, exact_means, mean
from flows.tables.tables import grouped

NEWTON = ("PROSNKONS", "CONKONS", "BKONS")
TARGETS = {"parkinsons": "total_UPDRS", "parkinsons-motor": "motor_UPDRS"}
CARRIES = {"both": "CON-KONS carries ω and Ã", "weights": "CON-KONS carries ω only"}
SQUARED_BANDWIDTHS = {64.0: "exp(−‖x − x'‖²/(2·8²))", 32.0: "exp(−‖x − x'‖²/8²)"}
STATED = {"kernel": "gaussian", "beta": 1.0, "epsilon": 0.5}

Key = tuple[str, float, str]  # a row of the paper's tables: dataset, α = γ, learner


class Reading(NamedTuple):
    """Values of what the PROS-N-KONS paper leaves open.

    `clip` is C, `estimate` is "icml" for the factor 1 + ε in KORS's estimate. `target` is the
    target column of parkinsons, and `carry` what CON-KONS carries over when a point joins. They are
    empty for other datasets and learners.
    """

    clip: float
    curvature: float
    schedule: str
    bandwidth: float
    estimate: str
    order: str
    target: str = ""
    carry: str = ""

    def __str__(self) -> str:
        kernel = SQUARED_BANDWIDTHS.get(
            round(self.bandwidth**2, 6), f"a kernel of bandwidth {self.bandwidth:g}"
        )
        return (
            f"C = {self.clip:g}, curvature {self.curvature:g}"
            f"{'/√t' if self.schedule == 'decreasing' else ''}, {kernel},"
            f" factor {'1 + ε' if self.estimate == 'icml' else '1 − ε'}, rows {self.order}"
            + (f", parkinsons' target {self.target}" if self.target else "")
            + (f", {CARRIES[self.carry]}" if self.carry else "")
        )


class Ours(NamedTuple):
    """Averages of one of our configurations over its orders and seeds.

    They are of the error rate, or of the loss (its standard deviation is 0 for one run), of the
    dictionary size, and of the microseconds a round. `first` is the row of the first run.
    """

    params: dict[str, Any]
    mean: float
    std: float
    size: float | None
    round_us: float
    n_runs: int
    first: dict[str, Any]


def groups_of(runs: pa.Table) -> dict[tuple[str, str], list[Ours]]:
    """Our configurations by dataset and learner; those with a failed run are left out."""
    columns = [name for name in READ if name != "max_rows"]
    columns += ["run_id", "learner", "learner_seed", "params", "status", "rounds", "seconds"]
    columns += ["mean_loss", "error_rate", "dictionary_size"]
    by_configuration = grouped(
        runs.select(columns).to_pylist(),
        lambda row: (row["dataset"], row["learner"], row["order"], row["params"]),
    )
    every = [
        _averaged(rows)
        for _, rows in sorted(by_configuration.items())
        if all(row["status"] == "ok" for row in rows)
    ]
    return grouped(every, lambda ours: (ours.first["dataset"], ours.first["learner"]))


def _averaged(rows: list[dict[str, Any]]) -> Ours:
    rows.sort(key=lambda row: (row["order_seed"] or 0, row["learner_seed"] or 0))
    values = [row["mean_loss"] if row["error_rate"] is None else row["error_rate"] for row in rows]
    sizes = [row["dictionary_size"] for row in rows]
    return Ours(
        json.loads(rows[0]["params"]),
        mean(values),
        float(deviations([values], exact_means([values]))[0]) if len(values) > 1 else 0.0,
        None if None in sizes else mean(sizes),
        1e6 * mean(row["seconds"] / row["rounds"] for row in rows),
        len(rows),
        rows[0],
    )


def readings_of(groups: dict[tuple[str, str], list[Ours]]) -> dict[Key, dict[Reading, Ours]]:
    """Our results for each row of the paper's tables with a Newton learner, by reading."""
    found: dict[Key, dict[Reading, Ours]] = defaultdict(dict)
    for (dataset, learner), configurations in groups.items():
        name = "parkinsons" if dataset in TARGETS else dataset
        for ours in configurations if learner in NEWTON else ():
            p = ours.params
            as_stated = p["alpha"] == p["ridge"] and all(p[key] == STATED[key] for key in STATED)
            if as_stated and learner in TABLES.get((name, p["alpha"]), {}):
                reading = Reading(
                    p["clip"],
                    p["curvature"],
                    p["curvature_schedule"],
                    p["bandwidth"],
                    p["estimate"],
                    ours.first["order"],
                    TARGETS.get(dataset, ""),
                    p.get("carry", "both") if learner == "CONKONS" else "",
                )
                found[name, p["alpha"], learner][reading] = ours
    return found


def misfit(published: Published, ours: Ours) -> float:
    """Distance of our result from a published one, on a logarithmic scale.

    It is log² of the ratio of losses, plus log² of the ratio of dictionary sizes if both are known.
    """
    both = math.log(ours.mean / published.mean) ** 2 if ours.mean > 0 else math.inf
    if published.size and ours.size:
        both += math.log(ours.size / published.size) ** 2
    return both


def fits_of(found: dict[Key, dict[Reading, Ours]]) -> tuple[list[tuple[float, Reading]], list[Key]]:
    """Readings with their misfit summed over rows, the best first, and the rows in the sum.

    Each reading is applied to all rows. Only rows with a result under every reading count.
    """
    readings = {reading for by_reading in found.values() for reading in by_reading}
    targets = sorted({reading.target for reading in readings} - {""}) or [""]
    carries = sorted({reading.carry for reading in readings} - {""}) or [""]
    candidates = {
        reading._replace(target=target, carry=carry)
        for reading in readings
        for target in ([reading.target] if reading.target else targets)
        for carry in ([reading.carry] if reading.carry else carries)
    }
    rows = sorted(
        key
        for key, by_reading in found.items()
        if all(under(by_reading, reading) for reading in candidates)
    )
    fits = [
        (
            sum(
                misfit(TABLES[key[:2]][key[2]], ours)
                for key in rows
                if (ours := under(found[key], reading))
            ),
            reading,
        )
        for reading in candidates
    ]
    return sorted(fits), rows


def under(by_reading: dict[Reading, Ours], reading: Reading) -> Ours | None:
    """Our result under a reading; None if there is none.

    Its target and carry are ignored for rows to which they do not apply.
    """
    alike = (
        reading._replace(target=t, carry=c)
        for t in (reading.target, "")
        for c in (reading.carry, "")
    )
    return next((by_reading[one] for one in alike if one in by_reading), None)
