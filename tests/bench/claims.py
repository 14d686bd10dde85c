"""What the project promises about speed, beside what was measured."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from koco_stream.io.files import json_text
from tests.bench.beside import US
from tests.bench.measure import SPREAD, show, spreads
from tests.bench.preparing import ONE, PEER, TWO
from tests.bench.public_call import LEARNERS

VW = "VW OjaNewton m=10"  # it rescales features adaptively, as our diagonal adaptation does
DIAGONAL = f"{US}, diagonal"
PLAIN_VW = "VW OjaNewton m=10, no normalising"
KEPT = "NumPy, kept inverses"

# (claim, at least (+) or at most (−) this ratio, the ratio from the results)
CLAIMS: list[tuple[str, float | None, Callable[[Any], float]]] = [
    (
        "20news: VW OjaNewton's marginal pass / ours, m=10",
        +25.0,
        lambda r: r["20news"][VW].us / r["20news"][US].us,
    ),
    (
        "dense: VW OjaNewton's marginal pass / ours, m=10",
        +35.0,
        lambda r: r["dense"][VW].us / r["dense"][US].us,
    ),
    (
        "20news: VW OjaNewton's marginal pass / ours, m=10, diagonal",
        +12.0,
        lambda r: r["20news"][VW].us / r["20news"][DIAGONAL].us,
    ),
    (
        "20news: loss of ours, m=10, diagonal / VW OjaNewton's",
        -1.0,
        lambda r: r["20news loss"][DIAGONAL] / r["20news loss"][VW],
    ),
    (
        "20news: loss of ours, m=10 / VW's without normalising",
        -1.0,
        lambda r: r["20news loss"][US] / r["20news loss"][PLAIN_VW],
    ),
    (
        "dense: loss of ours, m=10 / VW's, the better of the two",
        -1.0,
        lambda r: r["dense loss"][US] / min(r["dense loss"][VW], r["dense loss"][PLAIN_VW]),
    ),
    (
        "20news: OjaSON m=10 / AdaGrad",
        -4.0,
        lambda r: r["20news"][US].us / r["20news"]["AdaGrad"].us,
    ),
    (
        "20news: OjaSON m=10 / the roofline",
        -1.6,
        lambda r: r["roofline"]["20news"][US].us / r["roofline"]["20news"]["floor"].us,
    ),
    *[
        (
            f"{stream}: progressive / the scan, {learner.name}",
            -1.3,  # with the check of the rows
            lambda r, stream=stream, learner=learner: r["public-call"][stream][learner.name],
        )
        for stream in ("20news", "dense")
        for learner in LEARNERS
    ],
    (
        "20news: RPSON / OjaSON, m=10",
        -1.5,
        lambda r: r["20news"]["RPSON m=10"].us / r["20news"][US].us,
    ),
    (
        "dense: RPSON / OjaSON, m=10",
        -1.5,
        lambda r: r["dense"]["RPSON m=10"].us / r["dense"][US].us,
    ),
    (
        "20news: FDSON / OjaSON, m=10",
        -15.0,
        lambda r: r["20news"]["FDSON m=10"].us / r["20news"][US].us,
    ),
    (
        "dense: FDSON / OjaSON, m=10",
        -8.0,
        lambda r: r["dense"]["FDSON m=10"].us / r["dense"][US].us,
    ),
    *[
        (
            f"{name}, d from 10^4 to 10^6",
            -3.0,
            lambda r, name=name: grown(r, name, "d", 10**4, 10**6),
        )
        for name in ("RPSON", "FDSON", "FOGD", "DualSGD")
    ],
    ("OjaSON, d from 10^4 to 10^7", -5.0, lambda r: grown(r, "OjaSON", "d", 10**4, 10**7)),
    *[
        (
            f"OjaSON, d = 10^{k}, s = 100 / the roofline",
            -1.6,
            lambda r, k=k: (
                r["growth"]["OjaSON", "d"][10**k].us
                / r["growth"]["roofline of OjaSON", "d"][10**k].us
            ),
        )
        for k in (4, 5, 6, 7)
    ],
    *[
        (
            f"PROS-N-KONS on {name}: NumPy / ours",
            +40.0,
            lambda r, name=name: r["kernel"][name]["NumPy"].us / r["kernel"][name]["ours"].us,
        )
        for name in ("cpusmall", "cadata", "casp")
    ],
    (
        "PROS-N-KONS, d = 90: NumPy / ours",
        +4.0,
        lambda r: r["kernel"]["wide"]["NumPy"].us / r["kernel"]["wide"]["ours"].us,
    ),
    (
        "PROS-N-KONS, about 1,800 points: ours / NumPy with kept inverses",
        -3.0,
        lambda r: r["kernel"]["many"]["ours"].us / r["kernel"]["many"][KEPT].us,
    ),
    *[
        (f"{name}: ours / NumPy's by blocks of sixteen rows", -1.0, ratio)
        for name, ratio in (
            (name, lambda r, name=name: r["kernel"]["steps"][name])
            for name in ("KONS, 1,000 rows", "KONS, 4,000 rows", "KONS, 8,000 rows")
        )
    ],
    (
        "Sketched-KONS: ours / NumPy's by blocks of sixteen rows",
        -1.0,
        lambda r: r["kernel"]["steps"]["Sketched-KONS"],
    ),
    ("Sketched-KONS on casp, seconds", -30.0, lambda r: r["kernel"]["sketched"]["one"].us),
    (
        "Sketched-KONS, 32 configurations / one",
        -4.0,
        lambda r: r["kernel"]["sketched"]["cohort"].us / r["kernel"]["sketched"]["one"].us,
    ),
    *[
        (
            f"{stream}: {learner} / FDSON, m=10",
            -1.3,
            lambda r, stream=stream, learner=learner: (
                r["sketches"][stream][10][learner].us / r["sketches"][stream][10]["FDSON"].us
            ),
        )
        for stream in ("20news", "dense")
        for learner in ("RFDSON", "SAdaGrad", "AdaFD")
    ],
    (
        "preparing, one core: load_svmlight_file's time / ours",
        +0.75,
        lambda r: r["preparing"][PEER].us / r["preparing"][ONE].us,
    ),
    (
        "preparing, two cores: load_svmlight_file's time / ours",
        +1.4,
        lambda r: r["preparing"][PEER].us / r["preparing"][TWO].us,
    ),
    (
        "20news streamed as stored, cached: 10^8 non-zeros a second",
        +5.0,
        lambda r: r["streaming"]["cached"] / 1e8,
    ),
    (
        "two processes on one copy: its memory, as shares / its size",
        -1.1,
        lambda r: r["streaming"]["held"],
    ),
    (
        "100,000 small runs: ms each beside its scan, computing",
        -0.3,
        lambda r: r["sweep"]["small, computing"],
    ),
    (
        "100,000 small runs: ms each beside its scan, all but starting",
        -0.3,
        lambda r: r["sweep"]["small, all but starting"],
    ),
    ("100,000 small runs: MB of the driver", -1000.0, lambda r: r["sweep"]["small, MB"]),
    ("100,000 small runs: files in the store", -300.0, lambda r: r["sweep"]["small, files"]),
    ("100,000 small runs, swept again: runs computed", -0.0, lambda r: r["sweep"]["small, again"]),
    ("1,000 runs: Vowpal Wabbit's seconds / ours", +8.0, lambda r: r["sweep"]["Vowpal Wabbit"]),
    ("1,000 runs: optuna's seconds / ours", +1.8, lambda r: r["sweep"]["optuna, 1 process"]),
    (
        "1,000 runs: mean losses of the others with other bits than ours",
        -0.0,
        lambda r: r["sweep"]["different"],
    ),
    ("OjaSON, m from 10 to 40", -8.0, lambda r: grown(r, "OjaSON", "m", 10, 40)),
    # SON, section 5.2, of m = 10 with the diagonal adaptation, over 23 sets; and section 4, with
    # O(m²) for its O(m³) (docs/errata.md, S2)
    (
        "20news: OjaSON m=10, diagonal / AdaGrad (SON's: about 11)",
        -11.0,
        lambda r: r["20news"][DIAGONAL].us / r["20news"]["AdaGrad"].us,
    ),
    (
        "dense: OjaSON m=10, diagonal / AdaGrad (SON's: about 11)",
        -11.0,
        lambda r: r["dense"][DIAGONAL].us / r["dense"]["AdaGrad"].us,
    ),
    ("OjaSON, m from 10 to 64: growth / that of m² + ms", -1.0, lambda r: grown_by(r, "m", 10, 64)),
    (
        "OjaSON, s from 30 to 1,000: growth / that of m² + ms",
        -1.0,
        lambda r: grown_by(r, "s", 30, 1000),
    ),
    # what no bound is claimed of
    ("1,000 runs: joblib's seconds / ours", None, lambda r: r["sweep"]["joblib, 2 jobs"]),
    *[
        (
            f"PROS-N-KONS, {name}: NumPy with kept inverses / ours",
            None,
            lambda r, name=name: r["kernel"][name][KEPT].us / r["kernel"][name]["ours"].us,
        )
        for name in ("cpusmall", "cadata", "casp", "wide")
    ],
    (
        "20news: VW OjaNewton without normalising / ours, m=10",
        None,
        lambda r: r["20news"][PLAIN_VW].us / r["20news"][US].us,
    ),
    (
        "dense: VW OjaNewton without normalising / ours, m=10",
        None,
        lambda r: r["dense"][PLAIN_VW].us / r["dense"][US].us,
    ),
]


def grown(results: Any, learner: str, letter: str, low: int, high: int) -> float:
    """The time at `high` over the time at `low`."""
    found = results["growth"][learner, letter]
    return found[high].us / found[low].us


def grown_by(results: Any, letter: str, low: int, high: int) -> float:
    """How OjaSON's time grows, over how m² + ms does: at most 1 if a round is of that order, but
    for what lies in memory.
    """
    m, s, large_m, large_s = (low, 100, high, 100) if letter == "m" else (10, low, 10, high)
    says = (large_m * large_m + large_m * large_s) / (m * m + m * s)
    return grown(results, "OjaSON", letter, low, high) / says


class Asked(dict[str, Any]):
    """Results that note which of their groups were asked for."""

    def __init__(self, results: dict[str, Any]) -> None:
        super().__init__(results)
        self.groups: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.groups.add(name.removesuffix(" loss"))
        return super().__getitem__(name)


def claims(results: dict[str, Any], whole: bool) -> list[dict[str, Any]]:
    """The table of claims: the claim, what is required (at least if positive, at most if
    negative), what was measured, and whether it holds.

    Claims that were not measured are listed, with None, only of a `whole` run. One that was
    measured beside other work, and does not hold, is said to be disturbed: the repetitions of its
    group lie far apart.
    """
    found: list[dict[str, Any]] = []
    for claim, bound, ratio in CLAIMS:
        measured = holds = None
        asked, disturbed = Asked(results), False
        with suppress(KeyError):
            measured = float(ratio(asked))
            if bound is not None:
                holds = measured >= bound if bound > 0 else measured <= -bound
            disturbed = holds is False and any(spreads.get(g, 0.0) > SPREAD for g in asked.groups)
        if whole or measured is not None:
            line = {"claim": claim, "bound": bound, "measured": measured, "holds": holds}
            found.append(line | {"disturbed": disturbed})
    return found


def keep(found: list[dict[str, Any]], file: Path, about: dict[str, Any]) -> None:
    """Write the claims to a file, with those that it has and that were not measured now."""
    before = json.loads(file.read_text())["claims"] if file.is_file() else []
    now = {line["claim"]: line for line in found if line["measured"] is not None}
    old = {line["claim"]: line for line in before}
    lines = [now.get(name) or old.get(name) for name, *_ in CLAIMS]
    text = json_text({**about, "claims": [line for line in lines if line]}, indent=1)
    file.write_text(f"{text}\n")


def show_claims(found: list[dict[str, Any]]) -> None:
    """Print the table of claims."""
    show(
        "claims",
        [
            "claim (a ratio; of times a round unless it says otherwise)",
            "required",
            "measured",
            "holds",
        ],
        [words_of(**claim) for claim in found],
    )


def words_of(
    claim: str, bound: float | None, measured: float | None, holds: bool | None, disturbed: bool
) -> tuple[str, str, str, str]:
    """The line of a claim in the table."""
    required = "none" if bound is None else f"at {'least' if bound > 0 else 'most'} {abs(bound):g}"
    if measured is None:
        return claim, required, "–", "not measured"
    said = {True: "yes", False: "disturbed" if disturbed else "NO", None: ""}[holds]
    return claim, required, f"{measured:.2f}", said
