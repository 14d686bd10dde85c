"""What the kernel learners share: the kernel, the dictionary of points, and their costs."""

import math
from typing import Any

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, Points, more_room, points_floats
from koco_stream.kernels.kernel import KERNELS, Kernel, gaussian_kernel
from koco_stream.kernels.random_features import fourier_floats, most_lines
from koco_stream.learners.base import Learner
from koco_stream.learners.growth import Growth, Sampling
from koco_stream.learners.spec import Cost, Public, StreamSize, real, whole
from koco_stream.losses import MOST_CLIPS, in_doubt
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import BLOCK
from koco_stream.types import Array

# The maximum number of points, for the planner and the run, of a dictionary without a limit.
PLANNED_POINTS = 2032
USUAL_POINTS = 50  # of a dictionary whose growth is not known
SPARE = 1.35  # the memory is planned for this multiple of the expected points
NO_LIMIT = 1 << 40
# Where α·φᵀA⁻¹φ is at most this share of φᵀφ, it is rounding: nothing can be learnt from the row.
LEAST = 1e-15
# Where a row's own curvature shrinks its step to less, α may be rounding beside k(x, x).
LEAST_SHRINK = 1e-6
EVERY_ROW = 1.0  # the least probability of a learner that takes all rows


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


def sampling_of(q: Public, ridge: float, factor: float, floor: float = 0.0) -> Sampling:
    """What decides whether rows join a dictionary, for the planner's estimate of its size."""
    kernel = str(q["kernel"])
    return Sampling(
        kernel,
        real(q, "bandwidth") if kernel == "gaussian" else 1.0,
        whole(q, "degree") if kernel == "polynomial" else 1,
        bool(q["fit_intercept"]) and kernel != "gaussian",
        ridge,
        factor,
        floor,
        whole(q, "max_dictionary") if q.get("max_dictionary") else None,
    )


def dictionary_cost(q: Public, size: StreamSize, matrices: int) -> Cost:
    """The cost of a run with `matrices` square matrices over the points of a growing dictionary.

    Without an estimate of the dictionary's size, memory is that of the largest usual one.
    """
    limit = whole(q, "max_dictionary") if q.get("max_dictionary") else NO_LIMIT
    if size.growth is None:
        most, growth = PLANNED_POINTS, Growth.assumed(size.rounds, min(limit, USUAL_POINTS))
    else:
        growth = size.growth
        most = int(SPARE * growth.last) + BLOCK
    n = capacity(min(most, limit, size.rounds))
    points = points_floats(n, min(size.d + 1, int(n * size.s) + 2), size.d, size.s)
    # The old and the new arrays, of half the length, both exist while the dictionary grows.
    floats = int(1.5 * points + 1.25 * matrices * n * n) + 32 * n + 4096
    return Cost(floats, dictionary_nanoseconds(growth, size.s, matrices))


def past_rows_cost(size: StreamSize) -> Cost:
    """What it costs beside `dictionary_cost` that a point that joins adds a coordinate to all rows
    before it. It was measured for 500 to 2,400 points and up to 16,000 rows.
    """
    growth = size.growth or Growth.assumed(size.rounds, min(size.rounds, USUAL_POINTS))
    t, J = np.array(growth.rounds), np.array(growth.points)
    earlier, coordinates = (t[1:] + t[:-1]) / 2.0, (J[1:] + J[:-1]) / 2.0
    joins = np.diff(J) @ (earlier * (60.0 + 2.0 * size.s + 1.2 * coordinates))
    most = PLANNED_POINTS if size.growth is None else int(SPARE * growth.last) + BLOCK
    rows, points = capacity(size.rounds), capacity(min(most, size.rounds))
    floats = int(1.5 * rows * points + rows * (6 + 3.0 * size.s)) + size.d
    return Cost(floats, float(joins) / max(size.rounds, 1))


def fourier_cost(n: int, size: StreamSize) -> tuple[int, float]:
    """The memory of n random frequencies, and the time of a round, as if all features occurred
    equally often.
    """
    occur = min(size.d, int(size.rounds * size.s) + 1)
    drawn = size.s * (1.0 - most_lines(size.d, n) / size.d)  # those without a line
    drawn = max(drawn, min(occur / max(size.rounds, 1), size.s))
    return fourier_floats(size.d, n), n * (1.8 + 0.1 * size.s + 0.4 * drawn)


def dictionary_nanoseconds(growth: Growth, s: float, matrices: int) -> float:
    """The mean time of a round with `matrices` square matrices over the points of a dictionary.

    It was measured for 25 to 2,000 points and 10 and 100 features. A round reads the matrices, and
    one in which a point joins may write all but KORS's anew, in strides. Matrices that exceed the
    processor's nearer caches take longer to read, and much longer to write in strides.
    """

    def reading(points: Array) -> Array:
        bytes_read = 4.0 * matrices * points * points
        each = np.interp(bytes_read, [2e6, 1.5e7, 4e7], [0.09, 0.14, 0.5])
        return (
            150.0 + points * (1.5 + 0.8 * (matrices - 1) + 0.05 * s) + matrices * each * points**2
        )

    def joining(points: Array) -> Array:
        each = np.interp(points, [800.0, 1000.0, 1300.0, 1700.0], [0.1, 0.15, 0.4, 0.5])
        return 2000.0 + (matrices - 1) * each * points**2

    return growth.a_round(reading) + growth.a_join(joining)


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
