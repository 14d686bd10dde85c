"""What the learners of a part of the benchmark compile, before anything is timed: on all cores,
since one after the other they would take minutes on a new machine.
"""

from collections.abc import Iterable
from typing import Any

from flows.runtime.engine import compilers
from koco_stream.engine.warm_up import Needed
from koco_stream.learners import learner_named
from tests.bench.sweeping import on

LINEAR = [
    *[("OjaSON", {"sketch_size": m}) for m in (0, 5, 10, 20)],
    *[(name, {}) for name in ("AdaGrad", "OGD")],
    *[(name, {"sketch_size": 10}) for name in ("RPSON", "FDSON")],
]
LEARNERS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    **dict.fromkeys(("20news", "dense", "ill-conditioned"), LINEAR),
    "sketches": [
        (name, {"sketch_size": m})
        for name in ("FDSON", "RFDSON", "SAdaGrad", "AdaFD")
        for m in (10, 64)
    ],
    "growth": [
        *[("OjaSON", {"sketch_size": m}) for m in (1, 2, 5, 10, 20, 40, 64)],
        *[(name, {}) for name in ("FOGD", "DualSGD")],
    ],
    "kernel": [(name, {}) for name in ("KONS", "SketchedKONS", "PROSNKONS", "NORMA")],
}


def compile_for(groups: Iterable[str], cores: set[int]) -> None:
    """Compile what these groups need and what is not compiled yet."""
    kinds = dict[Any, Needed]()
    for group in groups:
        for learner, given in LEARNERS.get(group, []):
            params = learner_named(learner).complete(given)
            kind = Needed(learner, params, "float64", 1000, 100.0)
            kinds[kind.specialization] = kind
    with on(cores):
        started = compilers(list(kinds.values()))
    if any([one.wait() for one in started]):
        raise RuntimeError("compiling the learners failed; what was said is above")
