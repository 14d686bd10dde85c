"""The registry: every learner there is, with its parameters. A literal list; nothing is discovered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from koco_stream import parameters as p
from koco_stream.errors import WrongInput, nearest
from koco_stream.lanes import lanes_for
from koco_stream.lazy_maps import maps_floats
from koco_stream.learners import adagrad, fd_son, ogd, oja_son, ons, rp_son
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


def _ons_params(q: Public) -> ons.Params:
    return ons.Params(
        loss=_loss(q),
        alpha=float(q["alpha"]),  # type: ignore[arg-type]
        clip=float(q["clip"]),  # type: ignore[arg-type]
        curvature=float(q["curvature"] or 0.0),
        decreasing=q["curvature_schedule"] == "decreasing",
    )


def _rp_params(q: Public) -> rp_son.Params:
    m, diagonal = int(q["sketch_size"]), bool(q["diagonal"])  # type: ignore[arg-type]
    return rp_son.Params(*_ons_params(q), sketch_size=m, diagonal=diagonal, lanes=lanes_for(m + 1 + diagonal))


def _fd_params(q: Public) -> fd_son.Params:
    m, diagonal = int(q["sketch_size"]), bool(q["diagonal"])  # type: ignore[arg-type]
    return fd_son.Params(
        *_ons_params(q), sketch_size=m, diagonal=diagonal, lanes=lanes_for(2 * m + 1 + diagonal), out_lanes=lanes_for(m + 1)
    )


def _fd_floats(q: Public, d: int) -> int:
    m = int(q["sketch_size"])  # type: ignore[arg-type]
    width, out = len(lanes_for(2 * m + 1 + bool(q["diagonal"]))), len(lanes_for(m + 1))
    return (d + 13 + 6 * m) * width + maps_floats(d, 2 * m + 1, m + 1, out) + (d if q["diagonal"] else 0)


def _fd_ns(q: Public, s: float) -> float:
    m = int(q["sketch_size"])  # type: ignore[arg-type]
    return 500 + 2 * m * m + 8 * m * m + s * (2 * m + 30)


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
        numbers_version=2,
    ),
    "ONS": Learner(
        "ONS",
        ons,
        (*p.SHARED, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE),
        _ons_params,
        _nothing,
        _never,
        lambda q, d: d * (d + 2),
        lambda q, s: 30 + 0.5 * s * s,
    ),
    "RPSON": Learner(
        "RPSON",
        rp_son,
        (*p.SHARED, p.ROWS, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE, p.DIAGONAL),
        _rp_params,
        _nothing,
        lambda q: True,
        lambda q, d: _oja_floats(q, d) + 2 * len(lanes_for(int(q["sketch_size"]) + 2)) ** 2,  # type: ignore[arg-type]
        lambda q, s: 100 + _oja_ns(q, s),
        numbers_version=2,
    ),
    "FDSON": Learner(
        "FDSON",
        fd_son,
        (*p.SHARED, p.ROWS, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE, p.DIAGONAL),
        _fd_params,
        _nothing,
        _never,
        _fd_floats,
        _fd_ns,
    ),
}


def learner_named(name: str) -> Learner:
    """The learner called `name`. Raises `WrongInput` with the nearest name if there is none."""
    if name not in LEARNERS:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    return LEARNERS[name]
