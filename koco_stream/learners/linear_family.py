"""The linear learners: the sketched online Newton family and its first-order baselines."""

from __future__ import annotations

from koco_stream.learners import parameters as p
from koco_stream.learners.declared import Learner, Public, StreamSize, newton_params, real, whole
from koco_stream.learners.linear import adagrad, fd_son, ogd, oja_son, ons, rp_son
from koco_stream.learners.linear.newton_round import DIAGONAL
from koco_stream.losses import LOSSES
from koco_stream.numerics.lazy_maps import maps_floats
from koco_stream.numerics.llvm.feature_lines import lanes_for


def _nothing(public: Public) -> set[str]:
    return set()


def _never(public: Public) -> bool:
    return False


def _plain_floats(public: Public, size: StreamSize) -> int:
    return 2 * size.d


def _plain_ns(public: Public, size: StreamSize) -> float:
    return 20 + 3.5 * size.s


def _projected(q: Public) -> bool:
    """Whether weights are projected, rather than predictions truncated."""
    return q["projection"] == "weights"


def _oja_params(q: Public) -> oja_son.Params:
    m, diagonal = whole(q, "sketch_size"), bool(q["diagonal"])
    return oja_son.Params(
        *newton_params(q),
        rate=real(q, "sketch_rate"),
        sketch_size=m,
        from_gradients=q["sketch_start"] == "gradients",
        diagonal=DIAGONAL[q["diagonal"]],
        project_weights=_projected(q),
        lanes=lanes_for(m + 1 + diagonal),
    )


def _oja_idle(q: Public) -> set[str]:
    return (
        {"sketch_rate", "sketch_start", "curvature", "curvature_schedule"}
        if q["sketch_size"] == 0
        else set()
    )


def _oja_floats(q: Public, size: StreamSize) -> int:
    width = len(lanes_for(whole(q, "sketch_size") + 1 + bool(q["diagonal"])))
    return (size.d + width + 16) * width + (size.d if q["diagonal"] else 0)


def _oja_ns(q: Public, size: StreamSize) -> float:
    width = len(lanes_for(whole(q, "sketch_size") + 1))
    return 50 + (0.35 * size.s + 0.6 * width + 8) * width


def _rp_params(q: Public) -> rp_son.Params:
    m, diagonal = whole(q, "sketch_size"), bool(q["diagonal"])
    return rp_son.Params(
        *newton_params(q),
        sketch_size=m,
        diagonal=DIAGONAL[q["diagonal"]],
        project_weights=_projected(q),
        lanes=lanes_for(m + 1 + diagonal),
    )


def _fd_params(q: Public) -> fd_son.Params:
    m, diagonal = whole(q, "sketch_size"), bool(q["diagonal"])
    return fd_son.Params(
        *newton_params(q),
        sketch_size=m,
        diagonal=DIAGONAL[q["diagonal"]],
        project_weights=_projected(q),
        lanes=lanes_for(2 * m + 1 + diagonal),
        out_lanes=lanes_for(m + 1),
    )


def _fd_floats(q: Public, size: StreamSize) -> int:
    d = size.d
    m = whole(q, "sketch_size")
    width, out = len(lanes_for(2 * m + 1 + bool(q["diagonal"]))), len(lanes_for(m + 1))
    return (
        (d + 13 + 6 * m) * width
        + maps_floats(d, 2 * m + 1, m + 1, out)
        + (d if q["diagonal"] else 0)
    )


def _fd_ns(q: Public, size: StreamSize) -> float:
    m = whole(q, "sketch_size")
    return 500 + 2 * m * m + 8 * m * m + size.s * (2 * m + 30)


LINEAR: dict[str, Learner] = {
    "OGD": Learner(
        "OGD",
        ogd,
        (*p.SHARED, p.STEP_SIZE, p.PROJECTION),
        lambda q: ogd.Params(
            LOSSES[str(q["loss"])], real(q, "clip"), real(q, "step_size"), _projected(q)
        ),
        _nothing,
        _never,
        _plain_floats,
        _plain_ns,
    ),
    "AdaGrad": Learner(
        "AdaGrad",
        adagrad,
        (*p.SHARED, p.STEP_SIZE),
        lambda q: adagrad.Params(LOSSES[str(q["loss"])], real(q, "clip"), real(q, "step_size")),
        _nothing,
        _never,
        _plain_floats,
        _plain_ns,
    ),
    "OjaSON": Learner(
        "OjaSON",
        oja_son,
        (
            *p.SHARED,
            p.SKETCH_SIZE,
            p.ALPHA,
            p.CURVATURE,
            p.CURVATURE_SCHEDULE,
            p.SKETCH_RATE,
            p.SKETCH_START,
            p.DIAGONAL,
            p.PROJECTION,
        ),
        _oja_params,
        _oja_idle,
        lambda q: q["sketch_size"] != 0 and q["sketch_start"] == "random",
        _oja_floats,
        _oja_ns,
        numbers_version=5,
    ),
    "ONS": Learner(
        "ONS",
        ons,
        (*p.SHARED, p.ALPHA_OR_ZERO, p.CURVATURE, p.CURVATURE_SCHEDULE, p.PROJECTION),
        lambda q: ons.Params(*newton_params(q), project_weights=_projected(q)),
        _nothing,
        _never,
        lambda q, size: (1 if q["alpha"] else 2) * size.d * (size.d + 2),
        lambda q, size: 30 + 0.5 * size.s**2,
    ),
    "RPSON": Learner(
        "RPSON",
        rp_son,
        (*p.SHARED, p.ROWS, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE, p.DIAGONAL, p.PROJECTION),
        _rp_params,
        _nothing,
        lambda q: True,
        lambda q, size: _oja_floats(q, size) + 2 * len(lanes_for(whole(q, "sketch_size") + 2)) ** 2,
        lambda q, size: 100 + _oja_ns(q, size),
        numbers_version=3,
    ),
    "FDSON": Learner(
        "FDSON",
        fd_son,
        (*p.SHARED, p.ROWS, p.ALPHA, p.CURVATURE, p.CURVATURE_SCHEDULE, p.DIAGONAL, p.PROJECTION),
        _fd_params,
        _nothing,
        _never,
        _fd_floats,
        _fd_ns,
        numbers_version=2,
    ),
}
