"""Figure 1 of Luo et al. (2016): the final progressive error against the condition number."""

import math
from collections import defaultdict

import pyarrow as pa

from flows.report.axes import Axis
from flows.report.drawing import Claim, Drawing, Figure, mean_and_band, plot
from flows.report.rows import ok_runs
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import load_manifest

STYLES = {
    "AdaGrad": ("black", "s", "-"),
    "Oja-SON m = 0": ("vermilion", "v", "-"),
    "Oja-SON m = 5": ("blue", "^", "-"),
    "Oja-SON m = 10": ("green", "o", "-"),
}
# two interpretations of how predictions are bounded
READINGS = {"weights": "projected weights", "prediction": "truncated predictions"}
NOTE = (
    "Lines are means over the data seeds, bands their range; each point is the best over all"
    " parameters of its line. Rows are as the paper makes them, not scaled, and the sketch's rate"
    " is the printed 1/t. Predictions are bounded in two ways: weights are projected, as the"
    " paper's algorithms do, or predictions are truncated, as the system does that its experiments"
    " ran on. AdaGrad truncates in both."
)

Errors = dict[str, dict[int, list[float]]]  # line, data seed: error for each condition number


def son_figure_1(store: AnyPath, runs: pa.Table) -> Figure:
    """Figure of the best final progressive error against the condition number, by learner.

    It has the mean and range over the data seeds.
    """
    best: dict[str, dict[str, dict[tuple[int, float], float]]] = {
        reading: defaultdict(dict) for reading in READINGS.values()
    }
    sources = {
        name: load_manifest(store, name).source for name in set(runs.column("dataset").to_pylist())
    }
    for row in ok_runs(runs, ("dataset", "learner", "error_rate")):
        line, bounded = "AdaGrad", [*READINGS]
        if row["learner"] != "AdaGrad":
            line = f"Oja-SON m = {row['params']['sketch_size']}"
            bounded = [row["params"].get("projection", "weights")]
        key = sources[row["dataset"]]["data_seed"], sources[row["dataset"]]["condition_number"]
        for reading in bounded:
            of_line = best[READINGS[reading]][line]
            of_line[key] = min(of_line.get(key, 1.0), row["error_rate"])
    every = {key for lines in best.values() for of_line in lines.values() for key in of_line}
    seeds, kappas = sorted({seed for seed, _ in every}), sorted({kappa for _, kappa in every})
    readings = {
        reading: {
            line: {
                seed: [lines[line].get((seed, kappa), math.nan) for kappa in kappas]
                for seed in seeds
            }
            for line in STYLES
            if line in lines
        }
        for reading, lines in best.items()
        if set(lines) - {"AdaGrad"}
    }
    whole = {10.0, 200.0} <= set(kappas) and all(set(e) == set(STYLES) for e in readings.values())
    return Figure(
        "Error against the condition number (Figure 1 of Luo et al., 2016)",
        [_panel(reading, errors, kappas) for reading, errors in readings.items()],
        [
            claim
            for reading, errors in readings.items()
            if whole
            for claim in _claims(reading, errors, kappas, seeds)
        ],
        ["predictions", "learner", "data seed", *(f"κ = {k:g}" for k in kappas)],
        [
            [reading, line, seed, *(round(error, 4) for error in found)]
            for reading, errors in readings.items()
            for line, by_seed in errors.items()
            for seed, found in by_seed.items()
        ],
        NOTE,
    )


def _panel(reading: str, errors: Errors, kappas: list[float]) -> Drawing:
    """Plot of error against condition number for one interpretation."""
    series = [mean_and_band(line, kappas, list(e.values())) for line, e in errors.items()]
    alt = f"Final progressive error against the condition number, {reading}. " + " ".join(
        f"{line.name}: from {line.y[0]:.3f} to {line.y[-1]:.3f}." for line in series
    )
    return plot(
        series,
        STYLES,
        Axis("condition number κ"),
        Axis("progressive error, best parameters", low=0.0),
        alt,
        reading,
    )


def _claims(reading: str, errors: Errors, kappas: list[float], seeds: list[int]) -> list[Claim]:
    """The paper's claims on Figure 1, judged for one interpretation."""
    low, high = kappas.index(10.0), kappas.index(200.0)
    steep = [k for k, kappa in enumerate(kappas) if kappa >= 100]
    ada, m0, m5, m10 = (errors[line] for line in STYLES)
    below = [min(ada[s][k] - m10[s][k] for k in steep) for s in seeds]
    growth = {
        line: [errors[line][s][high] / errors[line][s][low] for s in seeds] for line in errors
    }
    ada_growth, m10_growth = growth["AdaGrad"], growth["Oja-SON m = 10"]

    def shown(numbers: list[float]) -> str:
        return ", ".join(f"{n:.2f}" for n in numbers)

    return [
        Claim(
            f"AdaGrad degrades as κ grows ({reading})",
            "its error at κ = 200 at least 2.2 times that at 10",
            shown(ada_growth),
            min(ada_growth) >= 2.2,
        ),
        Claim(
            f"m = 10 hardly worsens ({reading})",
            "its error at κ = 200 at most 1.5 times that at 10",
            shown(m10_growth),
            max(m10_growth) <= 1.5,
        ),
        Claim(
            f"m = 10 is substantially better ({reading})",
            "below AdaGrad from κ = 100 on; least distance",
            shown(below),
            min(below) > 0,
        ),
        Claim(
            f"a larger sketch is more accurate ({reading})",
            "at κ = 200 m = 0 is worst, m = 5 between m = 0 and m = 10",
            "; ".join(
                f"m = 0 {m0[s][high]:.3f}, AdaGrad {ada[s][high]:.3f}, m = 5 {m5[s][high]:.3f},"
                f" m = 10 {m10[s][high]:.3f}"
                for s in seeds
            ),
            all(
                m0[s][high] > max(ada[s][high], m5[s][high]) and m5[s][high] > m10[s][high]
                for s in seeds
            ),
        ),
    ]
