"""Section 6 of Calandriello, Lazaric, Valko (ICML 2017): an adversary that repeats one point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from flows.charts import Chart
from flows.report.content import Claim, Figure
from flows.report.papers.experiment import Experiment, banded
from flows.report.rows import curves_of, ok_runs
from flows.scores.means import means
from koco_stream.io.paths import AnyPath
from koco_stream.types import Array

# At T = 2,000, a regret a·log t has the exponent 0.16 over the last decade, √t has 0.5, and t/log t
# about 0.86.
LOGARITHMIC = 0.25
LINEAR = 0.8
EMBEDDED = ("PROSNKONS", "CONKONS", "BKONS")  # dictionaries that span an exact second-order step
NAMES = {
    "SketchedKONS": "Sketched-KONS",
    "PROSNKONS": "PROS-N-KONS",
    "CONKONS": "CON-KONS",
    "BKONS": "B-KONS",
    "FDSON": "FD-SON",
}
NAMED = {"sampling_floor": "floor", "sketch_size": "m =", "step_size": "step"}


@dataclass(frozen=True)
class Growth:
    """Values of a regret or dictionary size after each of `rounds`, for each seed."""

    rounds: list[int]
    by_seed: dict[int, Array]

    @property
    def mean(self) -> list[float]:
        """Mean value over the seeds after each of the rounds."""
        return means(zip(*self.by_seed.values(), strict=True)).tolist()

    @property
    def exponent(self) -> float:
        """Exponent b of growth as t^b over the last decade of rounds: 1 for linear growth.

        NaN if a value at its ends is not positive.
        """
        rounds, values = self.rounds, self.mean
        first = min(range(len(rounds)), key=lambda k: abs(math.log(10 * rounds[k] / rounds[-1])))
        if min(values[first], values[-1]) <= 0 or first == len(rounds) - 1:
            return math.nan
        return math.log(values[-1] / values[first]) / math.log(rounds[-1] / rounds[first])


@dataclass(frozen=True)
class Line:
    """A configuration's regret against w = 0, and the size of its dictionary if it has one."""

    learner: str
    regret: Growth
    size: Growth | None


def lines_of(store: AnyPath, runs: pa.Table) -> dict[str, Line]:
    """Group the adversary's runs by configuration, named by its learner and main parameter.

    Only those with the most rounds count: a halving also has runs that end earlier.
    """
    ended = [
        row
        for row in ok_runs(runs, ("run_id", "dataset", "learner", "learner_seed", "rounds"))
        if row["dataset"].startswith("adversary")
    ]
    most = max((row["rounds"] for row in ended), default=0)
    rows = [
        row | {"learner_seed": row["learner_seed"] or 0} for row in ended if row["rounds"] == most
    ]
    curves = curves_of(store, [row["run_id"] for row in rows])
    found: dict[str, Line] = {}
    for row in sorted(
        rows,
        key=lambda row: (
            row["learner"],
            [row["params"].get(key, 0) for key in NAMED],
            row["learner_seed"],
        ),
    ):
        params, curve = row["params"], curves[row["run_id"]]
        name = str(NAMES.get(row["learner"], row["learner"])) + "".join(
            f" {word} {params[key]:.3g}" for key, word in NAMED.items() if key in params
        )
        rounds = curve.t.astype(int).tolist()
        line = found.setdefault(
            name,
            Line(
                row["learner"],
                Growth(rounds, {}),
                None if np.isnan(curve.size[0]) else Growth(rounds, {}),
            ),
        )
        # the labels are −C and C, so the loss of w = 0 is C² a round
        loss_of_0 = curve.t * params["clip"] * params["clip"]
        line.regret.by_seed[row["learner_seed"]] = curve.loss - loss_of_0
        if line.size is not None:
            line.size.by_seed[row["learner_seed"]] = np.nan_to_num(curve.size)
    return found


def kons_adversary(store: AnyPath, runs: pa.Table) -> Figure:
    """Figure of regret against w = 0 and of dictionary size, with the claims of Section 6."""
    lines = lines_of(store, runs)
    sizes = {name: line.size for name, line in lines.items() if line.size}
    rounds = next((line.regret.rounds for line in lines.values()), [0])
    regrets = {name: line.regret for name, line in lines.items()}
    return Figure(
        "The adversary of one point (section 6 of Calandriello, Lazaric, Valko, ICML 2017)",
        [_chart("regret against w = 0", regrets), _chart("dictionary size", sizes)],
        claims_of(lines),
        ["learner", "regret at the end", "its exponent", "dictionary at the end", "its exponent"],
        [
            [
                name,
                line.regret.mean[-1],
                line.regret.exponent,
                line.size.mean[-1] if line.size else None,
                line.size.exponent if line.size else None,
            ]
            for name, line in lines.items()
        ],
        "One point in every round, its label −C and +C in turn. Regret is the cumulative loss less"
        " that of w = 0, TC², the best in hindsight. An exponent is that of t between a tenth of"
        f" the rounds and the end ({rounds[-1]:,}): 1 is linear; a·log t has about"
        f" 0.16. At most {LOGARITHMIC:g} counts as logarithmic, at least {LINEAR:g} as linear."
        " Lines are means over the seeds.\nPROS-N-KONS, CON-KONS and B-KONS keep a dictionary, but"
        " only to span the space of exact steps, so the section's argument, which is about"
        " matrices made of reweighted points, does not cover them; but PROS-N-KONS and B-KONS"
        " begin again at each of about log t points, and pay log t each time: log² t, an exponent"
        " of about 0.31 here. Gradient descent with a step of 1/t, which the section mentions, is"
        " not among the learners: OGD's step is constant.",
    )


def _chart(what: str, lines: Mapping[str, Growth]) -> Chart:
    """What grows over the rounds: the mean, where positive, and the range over seeds."""
    shown = {
        name: np.where((values := np.array([*line.by_seed.values()])) > 0, values, np.nan)
        for name, line in lines.items()
    }
    ends = "; ".join(f"{name} {line.mean[-1]:.2f}" for name, line in lines.items())
    return Chart(
        f"{what[0].upper()}{what[1:]} over the rounds",
        f"{what[0].upper()}{what[1:]} over the rounds. At the end: {ends}.",
        ["learner", "round t", what, "least", "largest"],
        [[name, *row] for name, line in lines.items() for row in banded(line.rounds, shown[name])],
        "round t",
        what,
        band=("least", "largest"),
        log="xy",
    )


def claims_of(lines: Mapping[str, Line]) -> list[Claim]:
    """The claims of Section 6 that these runs can test, judged by the results."""
    claims: list[Claim] = []
    regret_is_low = f"the regret's exponent at most {LOGARITHMIC:g}"
    for name, line in lines.items():
        grows, points = line.regret.exponent, line.size.exponent if line.size else 0.0
        low = grows <= LOGARITHMIC
        came = f"regret {line.regret.mean[-1]:.2f}, exponent {grows:.2f}"
        if line.size:
            came += f"; {line.size.mean[-1]:.1f} points, exponent {points:.2f}"
        exact = Claim(f"{name} has logarithmic regret", regret_is_low, came, low)
        sampled = Claim(
            f"a sketch of chosen points has no small dictionary with logarithmic regret ({name})",
            f"the dictionary's exponent at least {LINEAR:g}, or the regret's above {LOGARITHMIC:g}",
            came,
            points >= LINEAR or grows > LOGARITHMIC,
        )
        adapts = Claim(
            f"FD adapts: logarithmic regret in constant memory ({name})",
            f"{regret_is_low}, and no dictionary",
            came,
            low and line.size is None,
        )
        embedded = Claim(
            f"(not of this paper) does {name} escape the argument?",
            f"{regret_is_low}, and the dictionary's",
            f"{came}: {'yes' if low and points <= LOGARITHMIC else 'no'}",
            None,
        )
        by_learner = {"KONS": exact, "ONS": exact, "SketchedKONS": sampled, "FDSON": adapts}
        by_learner |= dict.fromkeys(EMBEDDED, embedded)
        claims += [by_learner[line.learner]] if line.learner in by_learner else []
    return claims


EXPERIMENT = Experiment(
    "section-6-adversary",
    "Section 6 of Calandriello, Lazaric, Valko (ICML 2017): an adversary of one point",
    ("adversary",),
    kons_adversary,
    "kons-adversary",
)
