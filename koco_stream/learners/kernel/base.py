"""What the kernel learners share: the kernel, the dictionary of points, and their memory."""

import math
from typing import Any, ClassVar

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, Points, more_room, points_floats
from koco_stream.kernels.kernel import KERNELS, Kernel, gaussian_kernel
from koco_stream.learners.base import Learner
from koco_stream.learners.spec import Public, StreamSize
from koco_stream.losses import MOST_CLIPS, in_doubt
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import BLOCK, room_for
from koco_stream.types import Array

# Where α·φᵀA⁻¹φ is at most this share of φᵀφ, it is rounding: nothing can be learnt from the row.
LEAST = 1e-15
# Where a row's own curvature shrinks its step to less, α may be rounding beside k(x, x).
LEAST_SHRINK = 1e-6


class KernelLearner(Learner):
    """A learner with a kernel."""

    @classmethod
    def to_params(cls, q: Public) -> Any:
        return cls.filled(q, kernel=kernel_of(q))

    def _embedded(self, X: Any, left: Array) -> Array:
        """The features (n, …) in which the learner is linear, of the rows of X (n, d). Those of a
        row are what `forward` has `left` in the state.
        """
        rows = self._rows_of(X)
        features = np.empty((rows.n_rows, *left.shape))
        for t in range(rows.n_rows):
            self.expect(self._params, self._state, rows._replace(indptr=rows.indptr[t : t + 2]))
            features[t] = left
        return features


class DictionaryLearner(KernelLearner):
    """A learner with a dictionary of points."""

    grows = True

    @property
    def dictionary_(self) -> Array:
        """Row numbers (J,) of the dictionary's points, counted from 0 over all rows learnt from."""
        return OpenDictionaryLearner.joined(self._state) - 1


def bounded_floats(q: Public, size: StreamSize) -> int:
    """The most numbers in a dictionary of `budget` points; the old and the new arrays both exist
    while it grows.
    """
    budget = q["budget"]
    lines = min(size.d + 1, 2 * int((min(budget, size.rounds) + 1) * size.s) + 64)
    return 2 * points_floats(budget, lines, size.d, size.s) + 4 * room_for(budget) + 2 * lines


class OpenDictionaryLearner(DictionaryLearner):
    """A learner whose dictionary is as large as the rows decide, and no point leaves it. It has so
    many `matrices` over the points.
    """

    always_stochastic = open_ended = True
    matrices: ClassVar[int] = 3

    @staticmethod
    def joined(state: Any) -> Array:
        """The rounds in which the dictionary's points joined, increasing."""
        points: Points = getattr(state, "kors", state).points
        return points.rounds[: int(points.n)]

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        limit = q["max_dictionary"] if q.get("max_dictionary") else size.rounds
        n = capacity(min(limit, size.rounds))
        points = points_floats(n, min(size.d + 1, int(n * size.s) + 2), size.d, size.s)
        # The old and the new arrays, of half the length, both exist while the dictionary grows.
        return int(1.5 * points + 1.25 * cls.matrices * n * n) + 32 * n + 4096


def kernel_of(q: Public) -> Kernel:
    """The kernel that a learner's public parameters `q` define: a Gaussian one, if not another."""
    gaussian = gaussian_kernel(q["bandwidth"])
    kind = KERNELS[str(q.get("kernel", "gaussian"))]
    return gaussian._replace(kind=kind, degree=int(q.get("degree") or 1))


@jit
def held(z: float, clip: float) -> float:
    """z within [−C, C], and NaN if it is infinite, which is no prediction."""
    if math.isinf(z):
        return math.nan
    return math.copysign(clip, z) if abs(z) > clip else z


@inlined
def append_row(L: Array, n: int, row: Array, factor: float, pivot: float) -> None:
    """Append factor·`row` (n,) and the diagonal entry `pivot`, of which the reciprocal is kept."""
    for j in range(n):
        L[n // BLOCK, j, n % BLOCK] = factor * row[j]
    L[n // BLOCK, n, n % BLOCK] = 1.0 / pivot


@inlined
def count_doubt(
    s: Any,
    square: float,
    z: float,
    clip: float,
    gap: float = math.inf,
    blur: float = 0.0,
    most: float = MOST_CLIPS,
) -> None:
    """Count a round for whose prediction double precision cannot vouch (`in_doubt`, from `most`
    clips on): z, before it is held within [−C, C], for a row with φᵀφ = `square`.
    """
    reach = max(s.longest_step[()] * math.sqrt(square), blur)
    s.doubtful_rounds[()] += in_doubt(reach, abs(z) - clip, most * clip, gap)


@inlined
def note_step(
    s: Any, slope: float, shrink: float, along: float, square: float, alpha: float
) -> None:
    """Keep the length |c|√(φᵀφ)/α of a step c A⁻¹φ, as it is where nothing is known, if no step was
    longer: c is ℓ'·`shrink`, which the row's own curvature leaves, and `along`, to the clip.
    """
    c = abs(slope) * max(shrink, LEAST_SHRINK) + abs(along)
    s.longest_step[()] = max(s.longest_step[()], c * math.sqrt(square) / alpha)


def capacity(n: int) -> int:
    """The room of a dictionary that has grown to n points."""
    room = FIRST_ROOM
    while room < n:
        room = more_room(room)
    return room
