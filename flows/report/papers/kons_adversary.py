"""Section 6 of Calandriello, Lazaric, Valko (ICML 2017): an adversary that shows one point again
and again.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from flows.report.axes import Axis
from flows.report.drawing import Claim, Figure, over_seeds, plot, style_of
from koco_stream.io.paths import AnyPath
from storage.results import read_curves

# a regret a·log t has at T = 2,000 the exponent 0.16 over the last factor of ten, √t has 0.5, t/log
# t about 0.86
LOGARITHMIC = 0.25
LINEAR = 0.8
# sketches that are a choice of weighted points: the class that the section speaks of
SAMPLED = ("SketchedKONS",)
EMBEDDED = ("PROSNKONS", "CONKONS", "BKONS")  # dictionaries that span an exact second-order step
NAMES = {
    "SketchedKONS": "Sketched-KONS",
    "PROSNKONS": "PROS-N-KONS",
    "CONKONS": "CON-KONS",
    "BKONS": "B-KONS",
    "FDSON": "FD-SON",
}
TOLD = {"sampling_floor": "floor", "sketch_size": "m =", "step_size": "step"}


@dataclass(frozen=True)
class Line:
    """A configuration: its regret against w = 0 at each of `rounds` and its dictionary's size (None
    if it has none), by seed.
    """

    learner: str
    rounds: list[int]
    regret: dict[int, list[float]]
    size: dict[int, list[float]] | None

    def regret_exponent(self) -> float:
        """How the regret grew over the last factor of ten: 1 for linear."""
        return exponent(self.rounds, [fmean(c) for c in zip(*self.regret.values(), strict=True)])

    def size_exponent(self) -> float:
        """How the dictionary grew over the last factor of ten; 0 without one."""
        return (
            exponent(self.rounds, [fmean(c) for c in zip(*self.size.values(), strict=True)])
            if self.size
            else 0.0
        )

    def final(self, by_seed: Mapping[int, Sequence[float]]) -> float:
        """The last value, on average over the seeds."""
        return fmean(values[-1] for values in by_seed.values())


def exponent(rounds: Sequence[int], values: Sequence[float]) -> float:
    """The b of values ~ t^b between a tenth of the rounds and their end; NaN where a value is not
    positive.
    """
    first = min(range(len(rounds)), key=lambda k: abs(math.log(10 * rounds[k] / rounds[-1])))
    if min(values[first], values[-1]) <= 0 or first == len(rounds) - 1:
        return math.nan
    return math.log(values[-1] / values[first]) / math.log(rounds[-1] / rounds[first])


def lines_of(runs: pa.Table, curves: pa.Table) -> dict[str, Line]:
    """The adversary's runs as lines, by a name that says the learner and the parameter that
    matters.
    """
    rows = [
        row
        for row in runs.select(
            ["run_id", "dataset", "learner", "params", "learner_seed", "status"]
        ).to_pylist()
        if row["status"] == "ok" and row["dataset"].startswith("adversary")
    ]
    columns = ["run_id", "t", "cumulative_loss", "dictionary_size"]
    mine = curves.filter(
        pc.is_in(curves.column("run_id"), pa.array([row["run_id"] for row in rows], pa.string()))
    )
    points: dict[str, list[tuple[int, float, int | None]]] = defaultdict(list)
    for point in mine.select(columns).to_pylist():
        points[point["run_id"]].append(
            (point["t"], point["cumulative_loss"], point["dictionary_size"])
        )
    found: dict[str, Line] = {}
    for row in rows:
        row["params"] = json.loads(row["params"])
    for row in sorted(
        rows,
        key=lambda row: (
            row["learner"],
            [row["params"].get(key, 0) for key in TOLD],
            row["learner_seed"] or 0,
        ),
    ):
        params = row["params"]
        curve = sorted(points[row["run_id"]])
        clip = params["clip"]  # the labels are −C and C: w = 0 loses C² a round
        line = found.setdefault(
            _name(row["learner"], params),
            Line(
                row["learner"],
                [t for t, _, _ in curve],
                {},
                {} if curve[0][2] is not None else None,
            ),
        )
        seed = row["learner_seed"] or 0
        line.regret[seed] = [loss - t * clip * clip for t, loss, _ in curve]
        if line.size is not None:
            line.size[seed] = [float(size or 0) for _, _, size in curve]
    return found


def _name(learner: str, params: Mapping[str, object]) -> str:
    words = [f"{word} {params[key]:.3g}" for key, word in TOLD.items() if key in params]
    return " ".join([NAMES.get(learner, learner), *words])


def kons_adversary(store: AnyPath, runs: pa.Table) -> Figure:
    """The regret against w = 0 and the dictionary's size over the rounds, and the section's
    claims.
    """
    lines = lines_of(runs, read_curves(store))
    styles = {name: style_of(k) for k, name in enumerate(lines)}
    rounds = next(iter(lines.values())).rounds if lines else []
    regret = [over_seeds(name, rounds, _shown(line.regret)) for name, line in lines.items()]
    size = [
        over_seeds(name, rounds, _shown(line.size)) for name, line in lines.items() if line.size
    ]
    ends = "; ".join(f"{name} {line.final(line.regret):.2f}" for name, line in lines.items())
    points = "; ".join(
        f"{name} {line.final(line.size):.1f}" for name, line in lines.items() if line.size
    )
    t = Axis("round t", log=True)
    return Figure(
        "The adversary of one point (section 6 of Calandriello, Lazaric, Valko, ICML 2017)",
        [
            plot(
                regret,
                styles,
                t,
                Axis("regret against w = 0", log=True),
                f"Regret against w = 0 over the rounds. At the end: {ends}.",
            ),
            plot(
                size,
                styles,
                t,
                Axis("dictionary size", log=True),
                f"Dictionary size over the rounds. At the end: {points}.",
            ),
        ],
        claims_of(lines),
        ["learner", "regret at the end", "its exponent", "dictionary at the end", "its exponent"],
        [
            [
                name,
                line.final(line.regret),
                line.regret_exponent(),
                line.final(line.size) if line.size else None,
                line.size_exponent() if line.size else None,
            ]
            for name, line in lines.items()
        ],
        "One point in every round, its label −C and +C in turn. Regret is the cumulative loss less"
        " that of w = 0, TC², the best in hindsight. An exponent is that of t between a tenth of"
        f" the rounds and the end ({rounds[-1] if rounds else 0:,}): 1 is linear; a·log t has about"
        f" 0.16. At most {LOGARITHMIC:g} counts as logarithmic, at least {LINEAR:g} as linear."
        " Lines are means over the seeds.\nPROS-N-KONS, CON-KONS and B-KONS keep a dictionary, but"
        " only to span the space of exact steps, so the section's argument, which is about"
        " matrices made of reweighted points, does not cover them; but PROS-N-KONS and B-KONS"
        " begin again at each of about log t points, and pay log t each time: log² t, an exponent"
        " of about 0.31 here. Gradient descent with a step of 1/t, which the section mentions, is"
        " not among the learners: OGD's step is constant.",
        opened=True,
    )


def claims_of(lines: Mapping[str, Line]) -> list[Claim]:
    """What section 6 says, and what came out; without what these runs cannot test."""
    claims: list[Claim] = []
    for name, line in lines.items():
        grows = line.regret_exponent()
        came = f"regret {line.final(line.regret):.2f}, exponent {grows:.2f}"
        if line.size:
            came += f"; {line.final(line.size):.1f} points, exponent {line.size_exponent():.2f}"
        if line.learner in SAMPLED:
            claims.append(
                (
                    (
                        "a sketch of chosen points has no small dictionary with logarithmic regret"
                        f" ({name})"
                    ),
                    (
                        f"the dictionary's exponent at least {LINEAR:g}, or the regret's above"
                        f" {LOGARITHMIC:g}"
                    ),
                    came,
                    line.size_exponent() >= LINEAR or grows > LOGARITHMIC,
                )
            )
        elif line.learner in ("KONS", "ONS"):
            claims.append(
                (
                    f"{name} has logarithmic regret",
                    f"the regret's exponent at most {LOGARITHMIC:g}",
                    came,
                    grows <= LOGARITHMIC,
                )
            )
        elif line.learner == "FDSON":
            claims.append(
                (
                    f"FD adapts: logarithmic regret in constant memory ({name})",
                    f"the regret's exponent at most {LOGARITHMIC:g}, and no dictionary",
                    came,
                    grows <= LOGARITHMIC and line.size is None,
                )
            )
        elif line.learner in EMBEDDED:
            claims.append(
                (
                    f"(not of this paper) does {name} escape the argument?",
                    f"the regret's exponent at most {LOGARITHMIC:g}, and the dictionary's",
                    came
                    + ": "
                    + (
                        "yes"
                        if grows <= LOGARITHMIC and line.size_exponent() <= LOGARITHMIC
                        else "no"
                    ),
                    None,
                )
            )
    return claims


def _shown(by_seed: Mapping[int, Sequence[float]]) -> dict[int, list[float]]:
    """What a logarithmic axis can show: nothing where a value is not positive."""
    return {
        seed: [value if value > 0 else math.nan for value in values]
        for seed, values in by_seed.items()
    }
