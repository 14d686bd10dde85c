"""The kernel learners: KORS, the online Newton steps on kernels, and their baselines."""

from __future__ import annotations

from typing import Any

from koco_stream import parameters as p
from koco_stream.dictionary import points_floats
from koco_stream.kernels import KERNELS, Kernel
from koco_stream.learners import kors, pros_n_kons
from koco_stream.learners.declared import Learner, Public, StreamSize
from koco_stream.losses import LOSSES

NO_LIMIT = 1 << 40
PLANNED_POINTS = 2032  # a run whose dictionary has no limit is planned, and may run, with at most this many points


def kernel_of(q: Public) -> Kernel:
    """The kernel that the parameters say."""
    bandwidth = float(q.get("bandwidth") or 1.0)
    return Kernel(KERNELS[str(q["kernel"])], 1.0 / (2.0 * bandwidth * bandwidth), int(q.get("degree") or 1))


def idle_of_kernel(q: Public) -> set[str]:
    """Parameters of kernels other than this one."""
    return {"gaussian": {"degree"}, "polynomial": {"bandwidth"}, "linear": {"bandwidth", "degree"}}[str(q["kernel"])]


def kors_params(q: Public) -> kors.Params:
    """KORS as these parameters say, for itself or inside a learner."""
    epsilon, most = float(q["epsilon"]), q.get("max_dictionary")  # type: ignore[arg-type]
    return kors.Params(
        kernel=kernel_of(q),
        ridge=float(q["ridge"]),  # type: ignore[arg-type]
        factor=1.0 + epsilon if q["estimate"] == "icml" else 1.0 - epsilon,
        beta=float(q["beta"]),  # type: ignore[arg-type]
        most=NO_LIMIT if most is None else int(most),
        clip=float(q["clip"]),  # type: ignore[arg-type]
    )


def _pros_params(restart: bool) -> Any:
    def to_params(q: Public) -> pros_n_kons.Params:
        return pros_n_kons.Params(
            loss=LOSSES[str(q["loss"])],
            alpha=float(q["alpha"]),  # type: ignore[arg-type]
            clip=float(q["clip"]),  # type: ignore[arg-type]
            curvature=float(q["curvature"] or 0.0),
            decreasing=q["curvature_schedule"] == "decreasing",
            restart=restart,
            kors=kors_params(q),
        )

    return to_params


def _planned(q: Public, size: StreamSize) -> int:
    """The most points that a run is planned with."""
    return min(int(q.get("max_dictionary") or PLANNED_POINTS), size.rounds, PLANNED_POINTS)


def _floats(matrices: int) -> Any:
    def state_floats(q: Public, size: StreamSize) -> int:
        n = _planned(q, size)
        points = points_floats(n, min(size.d + 1, int(n * size.s) + 2), size.d)
        return 2 * (points + matrices * (n + 16) * (n + 16)) + 32 * n + 4096  # twice: while it grows, the old and the new are both there

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
    "CONKONS": _pros("CONKONS", False),
    "BKONS": _pros("BKONS", True, p.J_MAX),
}
