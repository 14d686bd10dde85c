"""The kernel learners: KORS, the online Newton steps on kernels, and their baselines."""

from __future__ import annotations

import math
from typing import Any

from koco_stream.kernels.dictionary import points_floats
from koco_stream.kernels.kernel import KERNELS, Kernel, gaussian_kernel
from koco_stream.kernels.random_features import fourier_floats
from koco_stream.learners import parameters as p
from koco_stream.learners.declared import (
    Learner,
    Public,
    Shared,
    StreamSize,
    newton_params,
    real,
    whole,
)
from koco_stream.learners.kernel import (
    dual_sgd,
    fogd,
    kors,
    nogd,
    norma,
    pros_n_kons,
    sketched_kons,
)
from koco_stream.losses import LOSSES, OF_REAL_LABELS
from koco_stream.numerics.llvm.point_panels import room_for

NO_LIMIT = 1 << 40
# a run whose dictionary has no limit is planned, and may run, with at most this many points
PLANNED_POINTS = 2032


def kernel_of(q: Public) -> Kernel:
    """The kernel that the parameters say."""
    gaussian = gaussian_kernel(float(q.get("bandwidth") or 1.0))
    return gaussian._replace(kind=KERNELS[str(q["kernel"])], degree=int(q.get("degree") or 1))


def idle_of_kernel(q: Public) -> set[str]:
    """Parameters of kernels other than this one."""
    return {"gaussian": {"degree"}, "polynomial": {"bandwidth"}, "linear": {"bandwidth", "degree"}}[
        str(q["kernel"])
    ]


def kors_params(q: Public) -> kors.Params:
    """KORS as these parameters say, for itself or inside a learner."""
    epsilon, most = real(q, "epsilon"), q.get("max_dictionary")
    return kors.Params(
        kernel=kernel_of(q),
        ridge=real(q, "ridge"),
        factor=1.0 + epsilon if q["estimate"] == "icml" else 1.0 - epsilon,
        beta=real(q, "beta"),
        most=NO_LIMIT if most is None else int(most),
        clip=real(q, "clip"),
    )


def _pros_params(restart: bool) -> Any:
    def to_params(q: Public) -> pros_n_kons.Params:
        forget = restart or q["carry"] == "weights"
        return pros_n_kons.Params(
            *newton_params(q), restart=restart, forget=forget, kors=kors_params(q)
        )

    return to_params


def _planned(q: Public, size: StreamSize) -> int:
    """The most points that a run is planned with."""
    return min(int(q.get("max_dictionary") or PLANNED_POINTS), size.rounds, PLANNED_POINTS)


def _floats(matrices: int) -> Any:
    def state_floats(q: Public, size: StreamSize) -> int:
        n = _planned(q, size)
        points = points_floats(n, min(size.d + 1, int(n * size.s) + 2), size.d)
        return (
            2 * (points + matrices * (n + 16) * (n + 16)) + 32 * n + 4096
        )  # twice: while it grows, the old and the new are both there

    return state_floats


def _pros_ns(q: Public, size: StreamSize) -> float:
    n = min(int(q.get("max_dictionary") or 50), 100)
    return 200 + n * (6 + 0.2 * size.s) + 0.5 * n * n


_CURVED = (p.CURVATURE, p.CURVATURE_SCHEDULE)


def _pros(name: str, restart: bool, *more: p.Parameter) -> Learner:
    return Learner(
        name,
        pros_n_kons,
        (*p.SHARED, p.ALPHA, *p.SAMPLING, *more, *_CURVED, *p.KERNEL_SHAPE),
        _pros_params(restart),
        idle_of_kernel,
        lambda q: True,
        _floats(3),
        _pros_ns,
        curvature_share=0.5,
    )


def _fogd_params(q: Public) -> fogd.Params:
    return fogd.Params(
        loss=LOSSES[str(q["loss"])],
        clip=math.inf,
        step_size=real(q, "step_size"),
        frequencies=whole(q, "n_frequencies"),
        bandwidth=real(q, "bandwidth"),
        tube=float(q.get("tube") or 0.0),
    )


def _nogd_params(q: Public) -> nogd.Params:
    budget = whole(q, "budget")
    return nogd.Params(
        loss=LOSSES[str(q["loss"])],
        clip=math.inf,
        step_size=real(q, "step_size"),
        budget=budget,
        rank=min(whole(q, "rank"), budget),
        kernel=kernel_of(q),
        tube=float(q.get("tube") or 0.0),
    )


def _dual_sgd_params(q: Public) -> dual_sgd.Params:
    bandwidth = real(q, "bandwidth")
    return dual_sgd.Params(
        loss=LOSSES[str(q["loss"])],
        clip=real(q, "clip"),
        regularisation=real(q, "regularisation"),
        budget=whole(q, "budget"),
        frequencies=whole(q, "n_frequencies"),
        kernel=gaussian_kernel(bandwidth),
        bandwidth=bandwidth,
    )


def _not_truncated(q: Public) -> set[str]:
    """What cannot matter to FOGD and NOGD."""
    return {"clip"} if q["loss"] in OF_REAL_LABELS else {"clip", "tube"}


def _budget_floats(q: Public, size: StreamSize) -> int:
    """The points of a budget, twice: while their lines grow, the old and the new are both there."""
    n = whole(q, "budget")
    return 2 * points_floats(
        n, min(size.d + 1, max(2 * int(n * size.s), 64)), size.d
    ) + 4 * room_for(n)


def _nogd_floats(q: Public, size: StreamSize) -> int:
    room, rank = room_for(whole(q, "budget")), room_for(min(whole(q, "rank"), whole(q, "budget")))
    return _budget_floats(q, size) + room * (room + rank + 3) + 2 * rank + 64


def _dual_sgd_floats(q: Public, size: StreamSize) -> int:
    budget, n = whole(q, "budget"), whole(q, "n_frequencies")
    lines = min(
        size.d + 1, 2 * int(size.rounds * size.s) + 64
    )  # the lines of features that removed points had are not given back
    points = 2 * points_floats(budget, lines, size.d) + 4 * room_for(budget)
    return points + fourier_floats(size.d, n) + (2 * budget + 2) * room_for(n)


def _fourier_ns(q: Public, size: StreamSize) -> float:
    return 100 + whole(q, "n_frequencies") * (1.8 + 0.075 * size.s)


def _points_ns(q: Public, size: StreamSize) -> float:
    return 100 + whole(q, "budget") * (3 + 0.1 * size.s)


def _nogd_ns(q: Public, size: StreamSize) -> float:
    budget, rank = whole(q, "budget"), whole(q, "rank")
    return (
        _points_ns(q, size)
        + 0.1 * budget * room_for(min(rank, budget))
        + 3.0 * budget**3 / max(size.rounds, 1)
    )


def _kons_params(exact: bool) -> Any:
    def to_params(q: Public) -> sketched_kons.Params:
        epsilon = float(q.get("epsilon") or 0.0)
        return sketched_kons.Params(
            *newton_params(q),
            kernel=kernel_of(q),
            exact=exact,
            factor=1.0 - epsilon if q.get("estimate") == "poster" else 1.0 + epsilon,
            beta=float(q.get("beta") or 0.0),
            floor=float(q.get("sampling_floor") or 0.0),
        )

    return to_params


def _norma_params(q: Public) -> norma.Params:
    return norma.Params(
        loss=LOSSES[str(q["loss"])],
        clip=real(q, "clip"),
        step_size=real(q, "step_size"),
        regularisation=real(q, "regularisation"),
        tube=float(q.get("tube") or 0.0),
        kernel=kernel_of(q),
        budget=whole(q, "budget"),
    )


def _kernel_values(rows: Any) -> Any:
    """What runs that read the kernel values of a row with `rows(q, size)` earlier ones share: the
    rows seen, which double, and a tile.
    """

    def shared(q: Public, size: StreamSize) -> Shared:
        key = (q["kernel"], q.get("bandwidth"), q.get("degree"), q["fit_intercept"])
        return Shared(
            key,
            rows(q, size) * (1.5 + 0.1 * size.s),
            int(2 * size.rounds * (3 + 1.5 * size.s) + 16 * size.rounds),
        )

    return shared


def _all_earlier(q: Public, size: StreamSize) -> float:
    return size.rounds / 2


def _within_budget(q: Public, size: StreamSize) -> float:
    return min(real(q, "budget"), size.rounds / 2)


def _kons_floats(exact: bool) -> Any:
    def state_floats(q: Public, size: StreamSize) -> int:
        n = (
            size.rounds
            if exact
            else min(
                size.rounds,
                max(PLANNED_POINTS, int(1.2 * float(q["sampling_floor"] or 0.0) * size.rounds)),
            )
        )
        return 2 * size.rounds + (1 if exact else 2) * 3 * (n + 16) ** 2 + 16 * n

    return state_floats


CACHED_SQUARE = (
    750.0**2
)  # of points, on average, of whose factors the processor's cache holds all: some 30 MB at the end


def _kons_ns(exact: bool) -> Any:
    def round_ns(q: Public, size: StreamSize) -> float:
        mean_square = size.rounds**2 / 3  # of t
        if not exact:
            mean_square = min(
                mean_square, (100 + float(q["sampling_floor"] or 0.0) * size.rounds / 2) ** 2
            )
        each = (
            0.6 if mean_square < CACHED_SQUARE else 2.5
        )  # measured: from the processor's cache, or from memory
        return 500 + 0.15 * size.rounds / 2 + each * mean_square

    return round_ns


KERNEL: dict[str, Learner] = {
    "KORS": Learner(
        "KORS",
        kors,
        (*p.SHARED, *p.SAMPLING, p.MAX_DICTIONARY, *p.KERNEL_SHAPE),
        kors_params,
        lambda q: idle_of_kernel(q) | {"loss", "clip"},
        lambda q: True,
        _floats(1),
        _pros_ns,
    ),
    "PROSNKONS": _pros("PROSNKONS", True),
    "CONKONS": _pros("CONKONS", False, p.CARRY),
    "BKONS": _pros("BKONS", True, p.J_MAX),
    "KONS": Learner(
        "KONS",
        sketched_kons,
        (*p.SHARED, p.ALPHA, *_CURVED, *p.KERNEL_SHAPE),
        _kons_params(True),
        idle_of_kernel,
        lambda q: False,
        _kons_floats(True),
        _kons_ns(True),
        shared=_kernel_values(_all_earlier),
    ),
    "SketchedKONS": Learner(
        "SketchedKONS",
        sketched_kons,
        (
            *p.SHARED,
            p.ALPHA,
            p.BETA,
            p.EPSILON,
            p.ESTIMATE,
            p.SAMPLING_FLOOR,
            *_CURVED,
            *p.KERNEL_SHAPE,
        ),
        _kons_params(False),
        idle_of_kernel,
        lambda q: True,
        _kons_floats(False),
        _kons_ns(False),
        shared=_kernel_values(_all_earlier),
    ),
    "NORMA": Learner(
        "NORMA",
        norma,
        (*p.SHARED, p.STEP_SIZE, p.DECAY, p.BUDGET, *p.KERNEL_SHAPE, p.NU),
        _norma_params,
        lambda q: idle_of_kernel(q) | (set() if q["loss"] == "hinge" else {"tube"}),
        lambda q: False,
        lambda q, size: 4 * whole(q, "budget"),
        lambda q, size: 300 + 2 * _within_budget(q, size),
        shared=_kernel_values(_within_budget),
    ),
    "FOGD": Learner(
        "FOGD",
        fogd,
        (*p.SHARED, p.STEP_SIZE, p.N_FREQUENCIES, p.BANDWIDTH, p.TUBE),
        _fogd_params,
        _not_truncated,
        lambda q: True,
        lambda q, size: (
            fourier_floats(size.d, whole(q, "n_frequencies"))
            + 2 * room_for(whole(q, "n_frequencies"))
        ),
        _fourier_ns,
    ),
    "NOGD": Learner(
        "NOGD",
        nogd,
        (*p.SHARED, p.STEP_SIZE, p.BUDGET, p.RANK, *p.KERNEL_SHAPE, p.TUBE),
        _nogd_params,
        lambda q: _not_truncated(q) | idle_of_kernel(q),
        lambda q: False,
        _nogd_floats,
        _nogd_ns,
    ),
    "DualSGD": Learner(
        "DualSGD",
        dual_sgd,
        (*p.SHARED, p.REGULARISATION, p.BUDGET, p.N_FREQUENCIES, p.BANDWIDTH),
        _dual_sgd_params,
        lambda q: set(),
        lambda q: True,
        _dual_sgd_floats,
        lambda q, size: _fourier_ns(q, size) + _points_ns(q, size),
    ),
}
