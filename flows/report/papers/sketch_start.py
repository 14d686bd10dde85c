"""Comparison of two initial values of Oja's sketch: the first gradients, or random rows."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from flows.charts import Chart
from flows.report.content import Claim, Figure
from flows.report.papers.experiment import Experiment, most, scatter
from flows.report.rows import ok_runs
from flows.scores.means import difference
from koco_stream.io.paths import AnyPath

STARTS = ("gradients", "random")
SCALES = ("as prepared", "none", "unit-rows", "unit-mean-square")
MARGIN = 1e-3  # smaller differences of error rates count as equal; for losses it is 1 %
PRINTED_RATE = 1.0
CRITERION = (
    "the start that errs less on more streams at the printed rate, by more than 0.001 in the error,"
    " or 1 % in the loss; the first gradients if there are as many, since they cost less (fixed"
    " before the run)"
)

# least error or loss, by (dataset, scale), then by (start, rate)
Best = dict[tuple[str, str], dict[tuple[str, float], float]]


def least(runs: pa.Table) -> tuple[Best, set[str]]:
    """Least error (or loss) of each start and rate on each stream, and the regression datasets."""
    rows = [
        row
        for row in ok_runs(runs, ("dataset", "learner", "error_rate", "mean_loss"))
        if row["learner"] == "OjaSON"
    ]
    losses = {row["dataset"].partition(",")[0] for row in rows if row["error_rate"] is None}
    best: Best = {}
    for row in rows:
        name, _, scale = row["dataset"].partition(",scale=")
        value = row["mean_loss"] if row["error_rate"] is None else row["error_rate"]
        key = row["params"]["sketch_start"], row["params"]["sketch_rate"]
        of_stream = best.setdefault((name, scale or SCALES[0]), {})
        of_stream[key] = min(of_stream.get(key, value), value)
    return dict(
        sorted(best.items(), key=lambda item: (SCALES.index(item[0][1]), item[0][0]))
    ), losses


def sketch_start(store: AnyPath, runs: pa.Table) -> Figure:
    """Figure of the least errors of both starts on each stream, with the better default."""
    best, losses = least(runs)
    rates = sorted({rate for by_start in best.values() for _, rate in by_start})
    scales = [scale for scale in SCALES if any(scale == other for _, other in best)]
    winners = {
        (stream, rate): _winner(by_start, rate, stream[0] in losses)
        for stream, by_start in best.items()
        for rate in rates
    }
    counts = "; ".join(
        f"{scale}, rate {rate:g}:"
        f" {_count([winners[stream, rate] for stream in best if stream[1] == scale])}"
        for scale in scales
        for rate in rates
    )
    at_printed = [winners[stream, PRINTED_RATE] for stream in best if PRINTED_RATE in rates]
    better = STARTS[int(at_printed.count("random") > at_printed.count("gradients"))]
    return Figure(
        "Which start of Oja's sketch makes fewer errors",
        [_chart(best, rates)],
        [Claim(f"the better default start is {better}", CRITERION, _count(at_printed), None)]
        if at_printed
        else [],
        [
            "dataset",
            "scale",
            *(f"{start}, rate {rate:g}" for rate in rates for start in STARTS),
            *(f"smaller at rate {r:g}" for r in rates),
        ],
        [
            [
                *stream,
                *(by_start.get((start, rate)) for rate in rates for start in STARTS),
                *(winners[stream, rate] for rate in rates),
            ]
            for stream, by_start in best.items()
        ],
        "The smallest progressive error over the values of alpha (for regression, the smallest"
        f" mean loss), m = 10. {counts}.",
    )


def _winner(by_start: dict[tuple[str, float], float], rate: float, is_loss: bool) -> str:
    """The start that errs less on a stream; `equal` within the margin, – if an error is missing."""
    if any((start, rate) not in by_start for start in STARTS):
        return "–"
    gradients, random = (by_start[start, rate] for start in STARTS)
    margin = 0.01 * min(gradients, random) if is_loss else MARGIN
    more = difference(gradients, random)
    return "equal" if abs(more) <= margin else STARTS[int(more > 0.0)]


def _count(winners: Sequence[str]) -> str:
    counts = Counter(winners)
    return most({name: counts[name] for name in (*STARTS, "equal")})


def _chart(best: Best, rates: Sequence[float]) -> Chart:
    """The least errors of both starts, one point per stream."""
    return scatter(
        "Errors from both starts",
        "Errors from the start with gradients against those from the random start.",
        ["rate", "dataset", "scale", "random start", "first gradients"],
        [
            [f"{rate:g}", name, scale, by_start["random", rate], by_start["gradients", rate]]
            for rate in rates
            for (name, scale), by_start in best.items()
            if all((start, rate) in by_start for start in STARTS)
        ],
        SCALES,
        series="scale",
        picks=("rate",),
    )


EXPERIMENT = Experiment(
    "sketch-start",
    "Our own experiment: which start of Oja's sketch makes fewer errors, over all available"
    " datasets, scaled in three ways",
    ("sketch-start",),
    sketch_start,
    "sketch-start",
)
