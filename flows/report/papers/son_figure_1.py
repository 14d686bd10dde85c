"""Figure 1 of Luo et al. (2016): the final progressive error against the condition number."""

import pyarrow as pa

from flows.charts import Chart
from flows.report.content import Claim, Figure
from flows.report.papers.experiment import Experiment, banded
from flows.report.rows import ok_runs, sources_of
from flows.scores.means import mean
from koco_stream.io.paths import AnyPath

LINES = ("AdaGrad", "Oja-SON m = 0", "Oja-SON m = 5", "Oja-SON m = 10")
# two interpretations of how predictions are bounded
READINGS = {"prediction": "truncated predictions", "weights": "projected weights"}
NOTE = (
    "Lines are means over the data seeds, bands their range; each point is the best over all"
    " parameters of its line. Rows are not scaled, and the sketch's rate is the printed 1/t."
    " Predictions are bounded in two ways: weights are projected, as in the paper's algorithms, or"
    " predictions are truncated, as in the system of its experiments. AdaGrad truncates in both."
)
Errors = dict[str, dict[int, dict[float, float]]]  # line, data seed, condition number


def son_figure_1(store: AnyPath, runs: pa.Table) -> Figure:
    """Figure of the best final progressive error against the condition number, by learner."""
    readings: dict[str, Errors] = {}
    sources = sources_of(store, runs)
    for row in ok_runs(runs, ("dataset", "learner", "error_rate")):
        line, bounded = "AdaGrad", [*READINGS]
        if row["learner"] != "AdaGrad":
            line = f"Oja-SON m = {row['params']['sketch_size']}"
            bounded = [row["params"].get("projection", "weights")]
        source = sources[row["dataset"]]
        for reading in bounded:
            of_line = readings.setdefault(READINGS[reading], {}).setdefault(line, {})
            of_seed, kappa = of_line.setdefault(source["data_seed"], {}), source["condition_number"]
            of_seed[kappa] = min(of_seed.get(kappa, 1.0), row["error_rate"])
    readings = {
        name: readings[name] for name in READINGS.values() if {*readings.get(name, ())} - {LINES[0]}
    }
    every = [
        of_seed for of in readings.values() for line in of.values() for of_seed in line.values()
    ]
    kappas = sorted({kappa for of_seed in every for kappa in of_seed})
    whole = all({*errors} == {*LINES} for errors in readings.values())
    whole = whole and all({10.0, 200.0} <= {*of_seed} == {*kappas} for of_seed in every)
    rows = [
        [reading, line, *row]
        for reading, errors in readings.items()
        for line in LINES
        if line in errors
        for row in banded(
            kappas, ([e.get(k, float("nan")) for k in kappas] for e in errors[line].values())
        )
    ]
    ends = {(row[0], row[1]): (row[3], row[2]) for row in rows}
    said = "; ".join(
        f"{reading}, {line}: {at[0]:.3f}" for (reading, line), at in ends.items() if at[0]
    )
    error, y = ("least", "largest"), "progressive error, best parameters"
    chart = Chart(
        "Error against the condition number",
        f"Final progressive error against the condition number. At κ = {max(kappas, default=0):g}: {said}.",
        ["predictions", "learner", "condition number κ", y, *error],
        rows,
        "condition number κ",
        y,
        band=error,
        picks=("predictions",),
        names=LINES,
    )
    return Figure(
        "Error against the condition number (Figure 1 of Luo et al., 2016)",
        [chart],
        [one for name, errors in readings.items() if whole for one in _claims(name, errors)],
        ["predictions", "learner", "data seed", *(f"κ = {k:g}" for k in kappas)],
        [
            [reading, line, seed, *(round(of_seed[k], 4) if k in of_seed else None for k in kappas)]
            for reading, errors in readings.items()
            for line in LINES
            for seed, of_seed in sorted(errors.get(line, {}).items())
        ],
        NOTE,
        _finding(next(iter(readings.values()))) if whole and readings else "",
    )


def _finding(errors: Errors) -> str:
    """What the first chart shows at its right end."""
    oja, ada = (
        100 * mean(of_seed[200.0] for of_seed in errors[line].values())
        for line in (LINES[3], LINES[0])
    )
    return f"at condition number 200 Oja-SON (m = 10) errs on {oja:.0f} %, AdaGrad on {ada:.0f} %"


def _claims(reading: str, errors: Errors) -> list[Claim]:
    """The paper's claims on Figure 1, judged for one interpretation."""
    seeds = sorted(errors[LINES[0]])
    ada, m0, m5, m10 = ([errors[line][seed] for seed in seeds] for line in LINES)
    below = [min(a[k] - b[k] for k in a if k >= 100) for a, b in zip(ada, m10, strict=True)]
    ada_growth, m10_growth = ([one[200.0] / one[10.0] for one in line] for line in (ada, m10))
    at_end = [[one[200.0] for one in of] for of in zip(m0, ada, m5, m10, strict=True)]

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
                f"m = 0 {a:.3f}, AdaGrad {b:.3f}, m = 5 {c:.3f}, m = 10 {d:.3f}"
                for a, b, c, d in at_end
            ),
            all(a > max(b, c) and c > d for a, b, c, d in at_end),
        ),
    ]


EXPERIMENT = Experiment(
    "son-figure-1",
    "Figure 1 of Luo et al. (NIPS 2016): error against the condition number",
    ("ill-conditioned",),
    son_figure_1,
    "son-figure-1",
)
