"""The usual sweep on a prepared dataset: the text of a sweep file, so that it can be kept and
changed.
"""

import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from koco_stream.io.files import json_text
from koco_stream.streams.manifest import Manifest

# Why each is there: its mean rank among so many learners in a part of the benchmark, of which
# flows/report/papers/benchmark.parquet has the scores.
WHY = {
    "AdaGrad": "the best first-order learner on whole streams: mean rank 6.7 of 17",
    "NAG": "the best on features of any scale, as files have them: 3.6 of 12",
    "SAdaGrad": "the best sketch, and the best of all, on whole streams: 3.7 of 17",
    "KAWV": "the best of all on 1,000 rows, with a kernel: 5.6 of 24",
    "ONS": "what sketches approximate, with rows too many for KAWV: 8.0 of 17, on whole streams",
    "OjaSON": "the best on texts, with rows too many for KAWV, and features for ONS: 2.3 of 11",
    "Mixture": "no choice to make: one pass with the configurations of AdaGrad and NAG as members",
    "Constant": "the constant that fits best; what learns from the rows should do better",
}
MIXED = ("AdaGrad", "NAG")
ORDERS = 6  # the fewest with which Wilcoxon's test can find a difference: 2/2⁶ is below 0.05
SECONDS = 120.0  # for all runs on one core, by `NANOSECONDS`
ROWS = 50_000  # a learner is slow if its runs need more than half of that for so many
# of a round, in the mean of n on rows of d features and s non-zeros, roughly, as measured
NANOSECONDS: dict[str, Callable[[int, int, float], float]] = {
    "AdaGrad": lambda n, d, s: 20 + 3.5 * s,
    "NAG": lambda n, d, s: 20 + 9 * s,
    "SAdaGrad": lambda n, d, s: 2300 + 46 * s,
    "KAWV": lambda n, d, s: 500 + (2.3 + 0.05 * s) * n + n**2 / 60,
    "ONS": lambda n, d, s: 30 + 0.5 * d**2,
    "OjaSON": lambda n, d, s: 230 + 4.2 * s,
    "Mixture": lambda n, d, s: 350 + 63 * s,  # of ten members
    "Constant": lambda n, d, s: 20.0,
}
FILE = """\
# The usual sweep on {name}, as `koco sweep {words}` runs it: learners that did well in the
# benchmark, with small grids in units of the labels and of the rows' norm.
name = "{sweep}"

[[dataset]]
name = "{name}"
{classes}order = "shuffled"  # where the order matters: "as-stored", without order_seeds
order_seeds = {orders}  # the fewest with which a difference can be significant
"""


def usual_sweep(manifest: Manifest, positive: str = "") -> str:
    """The usual sweep file on a dataset, whose class `positive` is learnt against the rest."""
    sweep = words = manifest.name
    classes = ""
    if positive:
        name = manifest.names_of_classes[manifest.class_of(positive)]
        sweep, words = f"{sweep}-{name}", f"{words} --positive {shlex.quote(name)}"
        classes = f"positive_class = {json_text(name)}\n"
        manifest = replace(manifest, classes=[-1.0, 1.0])  # as its learners see it
    elif len(manifest.classes) > 2:
        classes = 'multiclass = "one-vs-rest"\n'
    elif not {*manifest.classes} <= {-1.0, 1.0}:
        classes = f"positive_class = {manifest.classes[-1]}\n"
    grids = grids_for(manifest)
    n = manifest.n_rows
    seconds = partial(seconds_of, grids, manifest)
    quick = (name for name in ("KAWV", "ONS") if seconds(name, min(n, ROWS)) <= SECONDS / 2)
    chosen = ("AdaGrad", "NAG", "SAdaGrad", next(quick, "OjaSON"), "Mixture", "Constant")
    ratio = sum(seconds(name, n) for name in chosen) / SECONDS
    limit = f"max_rows = {max(int(n / ratio), 100)}  # all {n:,} would take long\n"
    sweep = re.sub(r"[^\w.-]", "-", sweep, flags=re.ASCII)[:200]
    head = FILE.format(name=manifest.name, sweep=sweep, words=words, classes=classes, orders=ORDERS)
    tables = (
        f'\n# {WHY[name]}\n[[learner]]\nname = "{name}"\n{lines_of(grids[name])}'
        + "".join(
            f'[[learner.member]]\nname = "{member}"\n{lines_of(grids[member], only_lists=True)}'
            for member in MIXED * (name == "Mixture")
        )
        for name in chosen
    )
    return "".join((head, limit * (ratio > 1.0), *tables))


def lines_of(grid: dict[str, Any], only_lists: bool = False) -> str:
    return "".join(
        f"{key} = {json_text(value)}\n"
        for key, value in grid.items()
        if isinstance(value, list) or not only_lists
    )


def grids_for(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """The grids of all learners. With labels −1 and +1 and predictions between them, the squared
    hinge is the squared loss, which the benchmark has and by which KAWV learns.
    """
    facts = manifest.statistics
    square = facts["mean_square_norm"] or 1.0
    is_real = manifest.task == "regression"
    clip = (max(abs(facts["label_min"]), abs(facts["label_max"])) or 1.0) if is_real else 1.0
    every = {"loss": "squared" if is_real else "squared_hinge", "clip": clip}
    linear = {**every, "fit_intercept": True}
    steps = {**linear, "step_size": in_units(clip / square**0.5, 0.03, 0.1, 0.3, 1.0, 3.0)}
    newton = {
        **linear,
        "alpha": in_units(square, 0.1, 1.0, 10.0),
        "curvature": in_units(1.0 / clip / clip, 0.125, 0.5),
    }
    return {
        "AdaGrad": steps,
        "NAG": {**linear, "step_size": in_units(clip, 0.03, 0.1, 0.3, 1.0, 3.0)},
        "SAdaGrad": steps,
        "KAWV": {
            **every,
            "alpha": [0.01, 0.1, 1.0],
            "bandwidth": in_units(square**0.5, 0.5, 2.0, 8.0),
        },
        "ONS": newton,
        "OjaSON": newton,
        "Mixture": linear,
        "Constant": every,
    }


def in_units(unit: float, *values: float) -> list[float]:
    return [float(f"{unit * value:.3g}") for value in values]


def seconds_of(
    grids: dict[str, dict[str, Any]], manifest: Manifest, name: str, rounds: int
) -> float:
    values = [of for of in grids[name].values() if isinstance(of, list)]
    d, s = manifest.n_features + 1, manifest.n_values / manifest.n_rows
    states = len(manifest.classes) if len(manifest.classes) > 2 else 1
    runs = ORDERS * math.prod(map(len, values))
    return states * runs * rounds * NANOSECONDS[name](rounds, d, s) * 1e-9
