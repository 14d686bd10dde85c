"""What the kernel learners share: the kernel, the dictionary of points, and their costs."""

from typing import Any

from koco_stream.kernels.dictionary import Points, points_floats
from koco_stream.kernels.kernel import KERNELS, Kernel, gaussian_kernel
from koco_stream.learners.base import Learner
from koco_stream.learners.spec import Cost, Public, StreamSize, real, whole
from koco_stream.types import Array

# The maximum number of points, for the planner and the run, of a dictionary without a limit.
PLANNED_POINTS = 2032


def joined(state: Any) -> Array:
    """The rounds in which the points of KORS's dictionary joined, increasing."""
    points: Points = getattr(state, "kors", state).points
    return points.rounds[: int(points.n)]


class DictionaryLearner(Learner):
    """A learner with a dictionary of points."""

    @property
    def dictionary_(self) -> Array:
        """Row numbers (J,) of the dictionary's points, counted from 0 over all rows learnt from."""
        return joined(self._state) - 1


def kernel_of(q: Public) -> Kernel:
    """The kernel that a learner's public parameters `q` define."""
    gaussian = gaussian_kernel(real(q, "bandwidth"))
    return gaussian._replace(kind=KERNELS[str(q["kernel"])], degree=whole(q, "degree"))


def dictionary_cost(q: Public, size: StreamSize, matrices: int) -> Cost:
    """The cost of a run with `matrices` square matrices over the points of a growing dictionary."""
    n = min(int(q.get("max_dictionary") or PLANNED_POINTS), size.rounds, PLANNED_POINTS)
    points = points_floats(n, min(size.d + 1, int(n * size.s) + 2), size.d)
    # Twice, since the old and the new arrays both exist while the dictionary grows.
    floats = 2 * (points + matrices * (n + 16) * (n + 16)) + 32 * n + 4096
    usual = min(int(q.get("max_dictionary") or 50), 100)
    return Cost(floats, 200 + usual * (6 + 0.2 * size.s) + 0.5 * usual * usual)
