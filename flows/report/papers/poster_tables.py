"""Tables 1 and 2 of the PROS-N-KONS paper, compared with our results.

The paper is Calandriello, Lazaric, Valko (NIPS 2017).
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from flows.report.drawing import Claim, Drawing, Figure, Style, scatter
from flows.report.papers.poster_published import ROUNDS
from flows.report.papers.poster_readings import (
    NEWTON,
    Key,
    Ours,
    Reading,
    fits_of,
    groups_of,
    readings_of,
)
from flows.report.papers.poster_rows import NAMES, Row, rows_of, verdict
from koco_stream.io.paths import AnyPath

STYLES: dict[str, Style] = {
    "PROS-N-KONS": ("green", "o", ""),
    "CON-KONS": ("blue", "^", ""),
    "B-KONS": ("vermilion", "v", ""),
    "BATCH": ("black", "x", ""),
    "FOGD": ("purple", "s", ""),
    "NOGD": ("orange", "D", ""),
    "Dual-SGD": ("sky", "P", ""),
}
Points = dict[str, tuple[float, float]]  # published and ours, by name
CHOSEN = (
    *("clip", "curvature", "curvature_schedule", "bandwidth", "estimate", "carry", "step_size"),
    "regularisation",
)
VERDICTS = {
    "agrees": "Within two standard deviations",
    "better": "Better than published by more",
    "worse": "Worse by more",
}
COLUMNS = [
    *("row", "published", "one reading for all", "verdict", "the row's own reading", "which"),
    *("our best", "with", "#SV published", "one reading", "own reading"),
    *("µs a round published", "ours", "runs"),
]


def poster_tables(store: AnyPath, runs: pa.Table) -> Figure:
    """Figure with the paper's tables and our results.

    Our results are given under the reading that fits all rows best, under the reading that fits
    each row best, and with tuned parameters.
    """
    groups = groups_of(runs)
    found = readings_of(groups)
    fits, compared = fits_of(found)
    best = fits[0][1] if fits else Reading(1.0, 0.0, "constant", 8.0, "icml", "shuffled")
    rows = list(rows_of(store, groups, found, best))
    return Figure(
        "The tables of the PROS-N-KONS paper (Calandriello, Lazaric, Valko, 2017), and ours",
        _drawings(rows),
        [_claim(row, *row.mean_std) for row in rows if row.mean_std],
        COLUMNS,
        [_cells(row) for row in rows],
        "\n".join(_notes(rows, fits, compared)),
        opened=True,
    )


def summary_of_verdicts(rows: Sequence[Row]) -> str:
    """Sentence on the rows that agree with the paper, are better, or are worse."""
    by = {kind: [row.name for row in rows if row.verdict == kind] for kind in VERDICTS}
    return " ".join(
        f"{VERDICTS[kind]} ({len(names)}): {'; '.join(names) or 'none'}."
        for kind, names in by.items()
    )


def _claim(row: Row, mean: float, std: float) -> Claim:
    """Claim that our result agrees with a row of the paper's tables."""
    published = row.published
    text = f"{row.name}: {row.shown(published.mean, published.std)}"
    if published.size:
        text += f", {published.size:g} points"
    outcome = row.shown(mean, std) if row.batch is None else "one run: " + row.shown(mean)
    if row.single and row.single.size:
        outcome += f", {row.single.size:.1f} points"
    outcome += f": {row.verdict}"
    if row.own and row.verdict != "agrees":
        own = row.own[1]
        outcome += (
            f"; under the row's own best reading {row.shown(own.mean, own.std)},"
            f" {own.size or 0:.1f} points, {verdict(published, own.mean, own.std)}"
        )
    if row.key[2] not in (*NEWTON, "Batch") and row.ours:
        outcome += f" (step by search: {_chosen(row.ours)})"
    return Claim(text, "|ours − published| ≤ 2·√(std² + std²)", outcome, row.verdict == "agrees")


def _cells(row: Row) -> list[Any]:
    """Cells of the figure's table for a row of the paper's tables."""
    published, single, tuned, ours = row.published, row.single, row.tuned, row.ours
    reading, own = row.own or (None, None)
    return [
        row.name,
        row.shown(published.mean, published.std),
        row.shown(*(row.mean_std or (None,))) if row.batch is None else row.shown(row.batch),
        row.verdict,
        row.shown(own.mean, own.std) if own else "–",
        str(reading or "–"),
        row.shown(tuned.mean, tuned.std) if tuned else "–",
        _chosen(tuned) if tuned else "–",
        f"{published.size:g}" if published.size else "–",
        f"{single.size:.1f}" if single and single.size else "–",
        f"{own.size:.1f}" if own and own.size else "–",
        f"{published_us(row):.0f}" if published.seconds else "–",
        f"{ours.round_us:.2f}" if ours else "–",
        ours.n_runs if ours else 1,
    ]


def published_us(row: Row) -> float:
    """Microseconds a round in the paper, for a row of its tables."""
    return 1e6 * (row.published.seconds or math.nan) / ROUNDS[row.key[0]]


def _chosen(ours: Ours) -> str:
    """Text of the parameters that a sweep chose for a configuration."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name in CHOSEN
        if (value := ours.params.get(name)) is not None
    )


def _notes(
    rows: Sequence[Row], fits: list[tuple[float, Reading]], compared: list[Key]
) -> Iterator[str]:
    """Yield the paragraphs of the figure's note."""
    if fits:
        score, best = fits[0]
        error = 100 * math.expm1(math.sqrt(score / max(2 * len(compared), 1)))
        yield (
            f"The one reading that fits best, of {len(fits)}: {best}. Criterion: the least"
            f" sum, over the {len(compared)} rows that every reading has, of the squared logarithms"
            f" of the ratios ours/published of loss and of dictionary size: {score:.3f}, on"
            f" average {error:.0f} % away."
            + "".join(f" Next {score:.3f}: {reading}." for score, reading in fits[1:4])
        )
    yield summary_of_verdicts(rows)
    own = [(row, row.own[1]) for row in rows if row.own]
    agreeing = [
        row.name for row, ours in own if verdict(row.published, ours.mean, ours.std) == "agrees"
    ]
    if own:
        yield (
            f"Each row under its own best reading: {len(agreeing)} of {len(own)} agree:"
            f" {'; '.join(agreeing) or 'none'}."
        )
    below = "; ".join(
        f"{row.name} ({100 * (1 - row.tuned.mean / row.published.mean):.0f} %)"
        for row in rows
        if row.tuned and row.published.mean > row.tuned.mean
    )
    yield f"Our best over the grid is below the published mean on {below or 'no row'}."
    timed = [(row, row.single.round_us) for row in rows if row.published.seconds and row.single]
    if timed:
        theirs, mine = [published_us(row) for row, _ in timed], [us for _, us in timed]
        yield (
            f"Time a round: published {min(theirs):.0f} to {max(theirs):.0f} µs (on the authors'"
            f" machines), ours {min(mine):.2f} to {max(mine):.2f} µs on one core."
        )
    for dataset in dict.fromkeys(row.key[0] for row in rows):
        here = [row.ours.first["rounds"] for row in rows if row.key[0] == dataset and row.ours]
        if here[:1] != [ROUNDS[dataset]]:
            yield (
                f"{dataset} here is {here[0] if here else 0:,} rows and the paper's"
                f" {ROUNDS[dataset]:,}: these rows are not the same experiment."
            )
    with_batch = {row.key[:2] for row in rows if row.key[2] == "Batch"}
    without = ", ".join(
        f"{dataset} (α = γ = {alpha:g})"
        for dataset, alpha in sorted({row.key[:2] for row in rows} - with_batch)
    )
    yield (
        "BATCH is the best function in hindsight in the space of PROS-N-KONS's final dictionary"
        " under the one reading, on one run's rows"
        + (f"; left out, as too much work for a report, on {without}." if without else ".")
    )
    if any(row.key[0] == "ijcnn1" for row in rows):
        yield (
            "On ijcnn1 the constant −1 errs on 9.57 %, the share of the rarer class: rates near it"
            " say little of a learner."
        )
    yield (
        "std is the sample standard deviation over the runs. FOGD, NOGD and Dual-SGD have the best"
        " of the grid of steps."
    )


def _drawings(rows: Sequence[Row]) -> list[Drawing]:
    """Plots of our losses and dictionary sizes against the published ones."""
    losses, sizes = defaultdict[str, Points](dict), defaultdict[str, Points](dict)
    for row in rows:
        line = NAMES.get(row.key[2], row.key[2])
        point = row.dataset + ("" if row.key[1] == 1.0 else f", α = {row.key[1]:g}")
        if row.mean_std and row.mean_std[0] > 0:
            losses[line][point] = (row.published.mean, row.mean_std[0])
        if row.single and row.single.size and row.published.size:
            sizes[line][point] = (row.published.size, row.single.size)
    return [
        scatter(
            losses,
            STYLES,
            "published",
            "ours",
            "Losses, ours against published. " + summary_of_verdicts(rows),
            "(a) loss, one reading for all",
        ),
        scatter(
            sizes,
            STYLES,
            "published",
            "ours",
            "Dictionary sizes, ours against published.",
            "(b) dictionary size, one reading for all",
        ),
    ]
