"""Figure 3 of Luo et al. (2016): on real data, Oja-SON with and without a sketch, and against AdaGrad."""

from __future__ import annotations

import json
from collections import defaultdict
from statistics import fmean, median

import pyarrow as pa

from flows.figures.axes import Axis
from flows.figures.drawing import Drawing, Figure, Style, named_points, plot
from koco_stream.places import Where
from storage.catalogue.papers import ENTRIES, SON

STYLES: dict[str, Style] = {
    "m = 10": ("green", "o", ""),
    "m = 10, diagonal": ("blue", "^", ""),
    "m = 0": ("vermilion", "v", ""),
    "m = 0, diagonal": ("purple", "s", ""),
}
IMPROVED = ("acoustic", "census", "heart", "ionosphere", "letter")  # where the paper saw a significant gain of m = 10 over m = 0
CLEARLY = 0.05
SMALLEST = 1e-4  # what a logarithmic axis shows an error of 0 as

Errors = dict[str, dict[str, float]]  # line, dataset: error


def errors_of(runs: pa.Table) -> Errors:
    """The least error of each line (AdaGrad, and those of `STYLES`) on each dataset: over parameters, of the mean over orders and seeds."""
    single: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in runs.select(["dataset", "learner", "params", "status", "error_rate"]).to_pylist():
        if row["status"] != "ok" or row["error_rate"] is None:
            continue
        params = json.loads(row["params"])
        line = "AdaGrad" if row["learner"] == "AdaGrad" else f"m = {params['sketch_size']}{', diagonal' * bool(params.get('diagonal'))}"
        if line == "AdaGrad" or (row["learner"] == "OjaSON" and line in STYLES):
            single[(line, row["dataset"], row["params"])].append(row["error_rate"])
    best: Errors = {line: {} for line in ("AdaGrad", *STYLES)}
    for (line, dataset, _), errors in single.items():
        best[line][dataset] = min(best[line].get(dataset, 1.0), fmean(errors))
    return best


def son_figure_3(store: Where, runs: pa.Table) -> Figure:
    """SON's Figure 3: (a) m = 10 against m = 0, (b) m = 10, with and without diagonal adaptation, against AdaGrad."""
    best = errors_of(runs)
    names = sorted({name for errors in best.values() for name in errors})
    drawings = [
        _panel("(a) with a sketch and without", "error of Oja-SON, m = 0", "error of Oja-SON, m = 10", best, "m = 0", ("m = 10",)),
        _panel("(b) against AdaGrad", "error of AdaGrad", "error of Oja-SON, m = 10", best, "AdaGrad", ("m = 10", "m = 10, diagonal")),
    ]
    lines = [line for line, errors in best.items() if errors]
    return Figure(
        "Progressive error on real data (Figure 3 of Luo et al., 2016)",
        drawings,
        claims_of(best),
        ["dataset", *lines],
        [[name, *(best[line].get(name) for line in lines)] for name in names],
        f"Below the diagonal the vertical axis's learner is better. Errors are the least over the sweep's parameters. {missing(names)}",
    )


def missing(names: list[str]) -> str:
    """Which of the paper's datasets are not in the figure, and of which this project has a part only."""
    son = [entry for entry in ENTRIES if SON in entry.papers]
    absent = [entry.name for entry in son if entry.absent]
    left = [entry.name for entry in son if not entry.absent and entry.name not in names]
    parts = [f"{entry.name} ({entry.partial})" for entry in son if entry.partial and entry.name in names]
    said = f"Of the paper's {len(son)} datasets this project has no copy of {', '.join(absent)}"
    said += f", and this sweep leaves out {', '.join(left)}" if left else ""
    return said + (f". Only in part: {'; '.join(parts)}." if parts else ".")


def claims_of(best: Errors) -> list[tuple[str, str, str, bool]]:
    """What the paper says of its Figure 3, and what came out; without the claims that these runs cannot test."""
    claims = []
    plain, sketched, ada = best["m = 0"], best["m = 10"], best["AdaGrad"]
    tried = [name for name in IMPROVED if name in plain and name in sketched]
    if tried:
        gains = {name: 1 - sketched[name] / plain[name] for name in tried if plain[name]}
        claims.append(
            (
                "m = 10 significantly improves on m = 0 on acoustic, census, heart, ionosphere, letter",
                f"its error lower by {CLEARLY:.0%} at least, on those we have",
                ", ".join(f"{name} {gain:+.0%}" for name, gain in gains.items()) + " lower",
                bool(gains) and min(gains.values()) >= CLEARLY,
            )
        )
    claims += _most("AdaGrad outperforms Oja-SON (m = 10) on most datasets", ada, sketched)
    claims += _most("with diagonal adaptation Oja-SON outperforms AdaGrad on most, even for m = 0", best["m = 0, diagonal"], ada)
    claims += _most("and for m = 10", best["m = 10, diagonal"], ada)
    flat, steep = best["m = 0, diagonal"], best["m = 10, diagonal"]
    gains = {name: 1 - steep[name] / flat[name] for name in flat if name in steep and flat[name]}
    if gains:
        middle = median(gains.values())
        more = [f"{name} {gain:.0%}" for name, gain in gains.items() if gain >= CLEARLY]
        claims.append(
            (
                "with diagonal adaptation, m = 10 improves little on m = 0, except on splice",
                f"error lower by less than {CLEARLY:.0%} in the median",
                f"median {middle:+.1%}; by {CLEARLY:.0%} or more on {', '.join(more) or 'none'}",
                middle < CLEARLY,
            )
        )
    return claims


def _most(claim: str, better: dict[str, float], worse: dict[str, float]) -> list[tuple[str, str, str, bool]]:
    both = [name for name in better if name in worse]
    lower = sum(better[name] < worse[name] for name in both)
    outcome = f"lower on {lower} of {len(both)}, higher on {sum(better[name] > worse[name] for name in both)}"
    return [(claim, "its error lower on more than half of the datasets", outcome, 2 * lower > len(both))] if both else []


def _panel(title: str, x_label: str, y_label: str, best: Errors, x: str, lines: tuple[str, ...]) -> Drawing:
    points = {
        line: {name: (max(best[x][name], SMALLEST), max(error, SMALLEST)) for name, error in sorted(best[line].items()) if name in best[x]}
        for line in lines
    }
    series = [named_points(line, by_name) for line, by_name in points.items() if by_name]
    below = "; ".join(
        f"{one.name}: below the diagonal on {sum(y < x for x, y in points[one.name].values())} of {len(one.x)}" for one in series
    )
    alt = f"{title.partition(' ')[2].capitalize()}: {y_label} against {x_label}, one point a dataset. {below}."
    return plot(series, STYLES, Axis(x_label, log=True), Axis(y_label, log=True), alt, title, square=True)
