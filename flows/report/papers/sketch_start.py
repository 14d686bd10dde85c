"""Which start of Oja's sketch errs less: the first gradients, or random rows."""

import json
from collections.abc import Sequence

import pyarrow as pa

from flows.report.axes import Axis
from flows.report.drawing import Claim, Drawing, Figure, Style, named_points, plot
from koco_stream.io.paths import AnyPath

STARTS = ("gradients", "random")
SCALES = ("as prepared", "none", "unit-rows", "unit-mean-square")
STYLES: dict[str, Style] = {
    "as prepared": ("black", "x", ""),
    "none": ("vermilion", "v", ""),
    "unit-rows": ("blue", "^", ""),
    "unit-mean-square": ("green", "o", ""),
}
MARGIN = 1e-3  # of an error; 1 % of a loss
PRINTED_RATE = 1.0
CRITERION = (
    "the start that errs less on more streams at the printed rate, by more than 0.001 in the error,"
    " or 1 % in the loss; the first gradients if there are as many, since they cost less (fixed"
    " before the run)"
)

Best = dict[
    tuple[str, str], dict[tuple[str, float], float]
]  # (dataset, scale): (start, rate): the least error, or loss


def least(runs: pa.Table) -> tuple[Best, set[str]]:
    """The least error of each start and rate on each stream, and the datasets that have losses in
    place of errors.
    """
    best: Best = {}
    losses = set()
    for row in runs.select(
        ["dataset", "learner", "params", "status", "error_rate", "mean_loss"]
    ).to_pylist():
        if row["status"] != "ok" or row["learner"] != "OjaSON":
            continue
        name, _, scale = row["dataset"].partition(",scale=")
        if row["error_rate"] is None:
            losses.add(name)
        params, value = (
            json.loads(row["params"]),
            row["mean_loss"] if row["error_rate"] is None else row["error_rate"],
        )
        of_stream = best.setdefault((name, scale or SCALES[0]), {})
        key = (params["sketch_start"], params["sketch_rate"])
        of_stream[key] = min(of_stream.get(key, float("inf")), value)
    return (
        dict(sorted(best.items(), key=lambda item: (SCALES.index(item[0][1]), item[0][0]))),
        losses,
    )


def sketch_start(store: AnyPath, runs: pa.Table) -> Figure:
    """The least errors of both starts on each stream, at each rate, and which start is the better
    default.
    """
    best, losses = least(runs)
    rates = sorted({rate for by_start in best.values() for _, rate in by_start})
    verdicts = {
        rate: [_winner(stream, by_start, rate, losses) for stream, by_start in best.items()]
        for rate in rates
    }
    rows = [
        [
            name,
            scale,
            *(by_start.get((start, rate)) for rate in rates for start in STARTS),
            *(verdicts[rate][k] for rate in rates),
        ]
        for k, ((name, scale), by_start) in enumerate(best.items())
    ]
    counts = "; ".join(
        f"{scale}, rate {rate:g}:"
        f" {_count([v for (_, s), v in zip(best, verdicts[rate], strict=True) if s == scale])}"
        for scale in SCALES
        for rate in rates
        if any(s == scale for _, s in best)
    )
    return Figure(
        "Which start of Oja's sketch errs less",
        [_panel(best, rate) for rate in rates],
        [_claim(verdicts[PRINTED_RATE])] if PRINTED_RATE in verdicts else [],
        [
            "dataset",
            "scale",
            *(f"{start}, rate {rate:g}" for rate in rates for start in STARTS),
            *(f"less at rate {r:g}" for r in rates),
        ],
        rows,
        "The least progressive error over the ridge (for regression sets the least mean loss), m ="
        f" 10. {counts}.",
        opened=True,
    )


def _winner(
    stream: tuple[str, str], by_start: dict[tuple[str, float], float], rate: float, losses: set[str]
) -> str:
    """The start that errs less on a stream, `equal` within the margin, or – where one of them is
    missing.
    """
    if any((start, rate) not in by_start for start in STARTS):
        return "–"
    found, drawn = (by_start[(start, rate)] for start in STARTS)
    margin = 0.01 * min(found, drawn) if stream[0] in losses else MARGIN
    return "equal" if abs(found - drawn) <= margin else STARTS[int(drawn < found)]


def _count(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in (*STARTS, "equal"))


def _claim(verdicts: Sequence[str]) -> Claim:
    better = STARTS[int(verdicts.count("random") > verdicts.count("gradients"))]
    return f"the better default start is {better}", CRITERION, _count(verdicts), None


def _panel(best: Best, rate: float) -> Drawing:
    points: dict[str, dict[str, tuple[float, float]]] = {}
    for (name, scale), by_start in best.items():
        pair = [by_start.get((start, rate)) for start in STARTS]
        if None not in pair:
            points.setdefault(scale, {})[name] = (
                max(pair[1] or 0.0, 1e-4),
                max(pair[0] or 0.0, 1e-4),
            )
    alt = (
        "Errors from the start with gradients against those from the random start, at rate"
        f" {rate:g}, one point a stream."
    )
    series = [named_points(scale, by_name) for scale, by_name in points.items()]
    return plot(
        series,
        STYLES,
        Axis("random start", log=True),
        Axis("first gradients", log=True),
        alt,
        f"rate {rate:g}",
        square=True,
    )
