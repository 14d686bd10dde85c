"""Figure 1 of Luo et al. (2016): the final progressive error against the condition number."""

from __future__ import annotations

import json
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from flows.figures.axes import Axis
from flows.figures.drawing import Figure, over_seeds, plot
from koco_stream.manifest import load_manifest
from koco_stream.places import Where

STYLES = {
    "AdaGrad": ("black", "s", "-"),
    "Oja-SON m = 0": ("vermilion", "v", "-"),
    "Oja-SON m = 5": ("blue", "^", "-"),
    "Oja-SON m = 10": ("green", "o", "-"),
    "Oja-SON m = 10, rate 1": ("green", "x", ":"),
}


def son_figure_1(store: Where, runs: pa.Table) -> Figure:
    """SON's Figure 1: the best final progressive error against the condition number, one line a learner, over the data seeds."""
    best: dict[tuple[str, int, float], float] = {}
    data = {name: load_manifest(store, name).source for name in pc.unique(runs.column("dataset")).to_pylist()}
    for row in runs.select(["dataset", "learner", "params", "status", "error_rate"]).to_pylist():
        if row["status"] != "ok":
            continue
        origin = data[row["dataset"]]
        params = json.loads(row["params"])
        lines = ["AdaGrad"] if row["learner"] == "AdaGrad" else [f"Oja-SON m = {params['sketch_size']}"]
        if params.get("sketch_size") == 10 and params["sketch_rate"] == 1.0:
            lines.append("Oja-SON m = 10, rate 1")
        for line in lines:
            key = (line, origin["data_seed"], origin["condition_number"])
            best[key] = min(best.get(key, 1.0), row["error_rate"])
    seeds = sorted({seed for _, seed, _ in best})
    kappas = sorted({kappa for _, _, kappa in best})
    lines = [line for line in STYLES if any(key[0] == line for key in best)]
    errors = {line: {seed: [best.get((line, seed, k), float("nan")) for k in kappas] for seed in seeds} for line in lines}
    rows = [[line, seed, *(round(e, 4) for e in errors[line][seed])] for line in lines for seed in seeds]
    alt = "Final progressive error against the condition number. " + " ".join(
        f"{line}: from {_mean(errors[line], 0):.3f} to {_mean(errors[line], -1):.3f}." for line in lines
    )
    series = [over_seeds(line, kappas, errors[line]) for line in lines]
    return Figure(
        "Error against the condition number (Figure 1 of Luo et al., 2016)",
        [plot(series, STYLES, Axis("condition number κ"), Axis("progressive error, best parameters", low=0.0), alt)],
        _figure_1_claims(errors, kappas, seeds) if {10.0, 200.0} <= set(kappas) and set(STYLES) == set(lines) else [],
        ["learner", "data seed", *(f"κ = {k:g}" for k in kappas)],
        rows,
        "Lines are means over the data seeds, bands their range; each point is the best over all parameters of its line.",
    )


def _figure_1_claims(errors: dict[str, dict[int, list[float]]], kappas: list[float], seeds: list[int]) -> list[tuple[str, str, str, bool]]:
    low, high = kappas.index(10.0), kappas.index(200.0)
    ada, m0, m5, m10 = (errors[line] for line in list(STYLES)[:4])

    def growth(line: dict[int, list[float]]) -> list[float]:
        return [line[s][high] / line[s][low] for s in seeds]

    def shown(numbers: list[float]) -> str:
        return ", ".join(f"{n:.2f}" for n in numbers)

    steep = [k for k, kappa in enumerate(kappas) if kappa >= 100]
    below = [min(ada[s][k] - m10[s][k] for k in steep) for s in seeds]
    at_high = [f"m = 0 {m0[s][high]:.3f}, AdaGrad {ada[s][high]:.3f}, m = 5 {m5[s][high]:.3f}, m = 10 {m10[s][high]:.3f}" for s in seeds]
    ordered = all(m0[s][high] > max(ada[s][high], m5[s][high], m10[s][high]) and m10[s][high] < m5[s][high] for s in seeds)
    return [
        ("AdaGrad degrades as κ grows", "its error at κ = 200 at least 2.2 times that at 10", shown(growth(ada)), min(growth(ada)) >= 2.2),
        ("m = 10 hardly worsens", "its error at κ = 200 at most 1.5 times that at 10", shown(growth(m10)), max(growth(m10)) <= 1.5),
        ("m = 10 is substantially better", "below AdaGrad from κ = 100 on; least distance", shown(below), min(below) > 0),
        ("a larger sketch is more accurate", "at κ = 200 m = 0 is worst, m = 5 between m = 0 and m = 10", "; ".join(at_high), ordered),
    ]


def _mean(line: dict[int, list[float]], place: int) -> float:
    return fmean(errors[place] for errors in line.values())
