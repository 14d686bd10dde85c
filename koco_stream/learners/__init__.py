"""The registry: every learner there is, with its parameters. A literal list; nothing is discovered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from koco_stream import parameters as p
from koco_stream.errors import WrongInput, nearest
from koco_stream.lanes import lanes_for
from koco_stream.learners import adagrad, ogd, oja_son
from koco_stream.losses import LOSSES, curvature_of
from koco_stream.parameters import Parameter, Value

Public = dict[str, Value]


@dataclass(frozen=True)
class Learner:
    """An algorithm: its file, its public parameters, and how these become the numbers that its `step` is given.

    `idle` names, for given parameters, those that cannot matter: they are no part of a run's identity; `draws` says whether the
    learner_seed matters. `state_floats(params, d)` is the size of the state in 8-byte numbers, `round_ns(params, s)` about what a round
    on s non-zeros takes (both for the planner). `numbers_version` is raised whenever a change to the code changes a run's numbers.
    """

    name: str
    module: ModuleType
    parameters: tuple[Parameter, ...]
    to_params: Callable[[Public], Any]
    idle: Callable[[Public], set[str]]
    draws: Callable[[Public], bool]
    state_floats: Callable[[Public, int], int]
    round_ns: Callable[[Public, float], float]
    numbers_version: int = 1

    def parameter(self, name: str) -> Parameter:
        """The declaration of parameter `name`. Raises `WrongInput` with the nearest name if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise WrongInput(f"{self.name} has no parameter {name!r}{nearest(name, [q.name for q in self.parameters])}")

    def complete(self, given: dict[str, Any]) -> Public:
        """All parameters, in order: those given, checked, and the defaults; a curvature of None becomes the loss's σ.

        Raises `WrongInput` for an unknown name, a value out of range, or a loss without curvature where one is needed.
        """
        for name in given:
            self.parameter(name)
        public = {q.name: q.check(given.get(q.name, q.default)) for q in self.parameters}
        if "curvature" in public and "curvature" not in self.idle(public):
            if public["curvature"] is None:
                public["curvature"] = curvature_of(str(public["loss"]), float(public["clip"]))  # type: ignore[arg-type]
            if public["curvature"] == 0.0:
                raise WrongInput(
                    f"{self.name}: the {public['loss']} loss with clip {public['clip']:g} has no curvature (σ = 0), so the sketch "
                    "would stay empty; give curvature a positive value, for example with curvature_schedule = 'decreasing'"
                )
        return public


def _loss(public: Public) -> int:
    return LOSSES[str(public["loss"])]


def _nothing(public: Public) -> set[str]:
    return set()


def _never(public: Public) -> bool:
    return False


def _plain_floats(public: Public, d: int) -> int:
    return 2 * d


def _plain_ns(public: Public, s: float) -> float:
    return 20 + 3.5 * s


def _step_size_params(module: ModuleType) -> Callable[[Public], Any]:
    def to_params(q: Public) -> Any:
        return module.Params(_loss(q), q["clip"], q["step_size"])

    return to_params


def _oja_params(q: Public) -> oja_son.Params:
    m, diagonal = int(q["sketch_size"]), bool(q["diagonal"])  # type: ignore[arg-type]
    return oja_son.Params(
        loss=_loss(q),
        alpha=float(q["alpha"]),  # type: ignore[arg-type]
        clip=float(q["clip"]),  # type: ignore[arg-type]
        curvature=float(q["curvature"] or 0.0),
        decreasing=q["curvature_schedule"] == "decreasing",
        rate=float(q["sketch_rate"]),  # type: ignore[arg-type]
        sketch_size=m,
        from_gradients=q["sketch_start"] == "gradients",
        diagonal=diagonal,
        lanes=lanes_for(m + 1 + diagonal),
    )


def _oja_idle(q: Public) -> set[str]:
    return {"sketch_rate", "sketch_start", "curvature", "curvature_schedule"} if q["sketch_size"] == 0 else set()


def _oja_floats(q: Public, d: int) -> int:
    width = len(lanes_for(int(q["sketch_size"]) + 1 + bool(q["diagonal"])))  # type: ignore[arg-type]
    return (d + width + 16) * width + (d if q["diagonal"] else 0)


def _oja_ns(q: Public, s: float) -> float:
    width = len(lanes_for(int(q["sketch_size"]) + 1))  # type: ignore[arg-type]
    return 50 + (0.35 * s + 0.6 * width + 8) * width


LEARNERS: dict[str, Learner] = {
    "OGD": Learner("OGD", ogd, (*p.SHARED, p.STEP_SIZE), _step_size_params(ogd), _nothing, _never, _plain_floats, _plain_ns),
    "AdaGrad": Learner(
        "AdaGrad", adagrad, (*p.SHARED, p.STEP_SIZE), _step_size_params(adagrad), _nothing, _never, _plain_floats, _plain_ns
    ),
    "OjaSON": Learner(
        "OjaSON",
        oja_son,
        (*p.SHARED, p.SKETCH_SIZE, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE, p.SKETCH_RATE, p.SKETCH_START, p.DIAGONAL),
        _oja_params,
        _oja_idle,
        lambda q: q["sketch_size"] != 0 and q["sketch_start"] == "random",
        _oja_floats,
        _oja_ns,
    ),
}


def learner_named(name: str) -> Learner:
    """The learner called `name`. Raises `WrongInput` with the nearest name if there is none."""
    if name not in LEARNERS:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    return LEARNERS[name]
